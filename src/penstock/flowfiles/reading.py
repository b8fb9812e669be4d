"""A flow from its file: each entry of `steps` is a call of the method of that name.

>>> from penstock.flowfiles.yaml_text import read_yaml
>>> text = '''
... flow: hello
... steps:
...   - {name: words, source: {items: {rows: [a, bb], schema: word string}}}
...   - {name: long, from: words, where: length(word) > 1}
...   - {name: out, from: long, sink: console}
... '''
>>> read_flow(read_yaml(text, "hello.yaml"))
Flow('hello', 3 steps)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from penstock.errors import NameTaken, PenstockError, nearest
from penstock.flowfiles import vocabulary as v
from penstock.flowfiles.references import is_reference, referenced
from penstock.flowfiles.yaml_text import Place
from penstock.frontends.streams.branches import Branches
from penstock.frontends.streams.flow import Flow
from penstock.frontends.streams.stream import Stream
from penstock.graph.caller import written_at
from penstock.graph.nodes.base import OUT

FLOW_KEYS = ("flow", "delivery", "on_error", "functions", "steps")
STEP_KEYS = ("name", "from", *v.VIEWS, *v.SETTINGS)


def read_flow(root: Place) -> Flow:
    """The flow of a file.

    Raises:
        FlowError: something in it is not as it must be; with file, line and column.
    """
    given = root.checked(FLOW_KEYS, ("flow", "steps"))
    return _FlowReader(given, root).flow


class _FlowReader:
    """A flow under construction, and the streams of its steps by name."""

    def __init__(self, given: dict[str, Place], root: Place) -> None:
        self.streams: dict[str, Any] = {}
        self.names: set[str] = set()
        words = frozenset({"Policy", "str"})
        options: dict[str, Any] = {k: self.value(given[k], words) for k in ("delivery", "on_error") if k in given}
        if "functions" in given:
            options["functions"] = [self._reference(each) for each in given["functions"].items()]
        with _placed(given["flow"]):
            self.flow = Flow(given["flow"].as_text(), **options)
        for each in given["steps"].items():
            self.step(each)
        with _placed(root):
            self.flow.graph  # noqa: B018 - checks it as a whole

    def step(self, place: Place) -> None:
        """One entry of `steps`."""
        entries = place.checked((*STEP_KEYS, *v.steps()))
        methods = [key for key in entries if key in v.steps()]
        if len(methods) != 1:
            said = f"{methods[0]} and {methods[1]}" if methods else ", ".join(entries) or "nothing"
            raise place.error(f"expected one step here, such as 'where: n > 3', got {said}")
        method = methods[0]
        self._check_keys(place, method, entries)
        with _placed(place), written_at(place.line):
            receiver = self._receiver(place, entries)
            made = v.step(method, type(receiver))
            args, keywords = self.arguments(entries[method], made, place)
            named = () if method in v.UNNAMED else (self._name(place, entries),)
            result = getattr(receiver, method)(*named, *args, **keywords)
            self._set(entries, result)
        if named:
            self.streams[named[0]] = result

    def _check_keys(self, place: Place, method: str, entries: dict[str, Place]) -> None:
        for key in STEP_KEYS:
            if method in v.UNNAMED and key in entries:
                raise place.error(f"{method} makes no step: leave out {key!r}")

    def _name(self, place: Place, entries: dict[str, Place]) -> str:
        if "name" not in entries:
            raise place.error("a step needs a name: 'name: words'")
        name = entries["name"].as_text()
        if name in self.names:
            raise entries["name"].error(f"the name {name!r} appears twice; each step has its own", NameTaken)
        self.names.add(name)
        return name

    def _receiver(self, place: Place, entries: dict[str, Place]) -> Any:
        """What the method is called on: the flow, or a stream, seen by key and by window where that is said."""
        if "from" not in entries:
            views = [key for key in v.VIEWS if key in entries]
            if views:
                raise place.error(f"{views[0]} needs the stream that is read: 'from: words'")
            return self.flow
        receiver: Any = self.stream(entries["from"])
        for key in v.VIEWS:
            if key in entries:
                args, keywords = self.arguments(entries[key], v.view(key), place)
                receiver = getattr(receiver, key)(*args, **keywords)
        return receiver

    def _set(self, entries: dict[str, Place], result: object) -> None:
        for key in v.SETTINGS:
            if key in entries:
                if not isinstance(result, Stream):
                    raise entries[key].error(
                        f"{key} is for steps that emit one stream; say it among the step's own keys"
                    )
                with _placed(entries[key]):
                    getattr(result, key)(self.value(entries[key], frozenset({"Policy", "int"})))

    def stream(self, place: Place) -> Stream:
        """The stream of a step, `words`, or one of its further outputs, `size.large`."""
        text = place.as_text()
        meanings = self._meanings(text)
        if len(meanings) > 1:
            raise place.error(f"{text!r} is both {' and '.join(meanings)}; rename the step")
        found = next(iter(meanings.values()), None)
        if isinstance(found, Stream):
            return found
        if isinstance(found, Branches):
            raise place.error(f"{text!r} has several outputs; expected one of them, such as {text}.{next(iter(found))}")
        raise place.error(f"no stream {text!r} above; {nearest(text, list(self._known()))}")

    def _meanings(self, text: str) -> dict[str, object]:
        """What a text may stand for, by how it is said: a step, and outputs of steps of which it begins with the names."""
        found = {"a step": self.streams[text]} if text in self.streams else {}
        for at in (at for at, sign in enumerate(text) if sign == "."):
            name, output = text[:at], text[at + 1 :]
            if output in _outputs(self.streams.get(name)) and not (found and output == OUT):
                found[f"an output of {name!r}"] = _output(self.streams[name], output)
        return found

    def _known(self) -> Iterator[str]:
        for name, found in self.streams.items():
            if isinstance(found, Stream):
                yield name
            yield from (f"{name}.{output}" for output in _outputs(found) if output != OUT)

    def arguments(self, place: Place, made: v.Vocable, owner: Place) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call, positional ones where the signature needs them."""
        given = self._by_name(place, made)
        missing = [p.name for p in made.parameters if p.required and p.name not in given]
        if missing:
            raise (owner if place.is_null else place).error(
                f"{made.name} needs {missing[0]!r}; it has: {', '.join(given) or 'nothing'}"
            )
        values = {key: self._argument(value, made, key) for key, value in given.items()}
        many = next((p for p in made.parameters if p.is_many), None)
        if many is None or many.name not in values:
            return [], values
        before = [p.name for p in made.parameters[: made.parameters.index(many)]]
        last = values.pop(many.name)
        return [*(values.pop(name) for name in before), *last], values

    def _by_name(self, place: Place, made: v.Vocable) -> dict[str, Place]:
        if place.is_null:
            return {}
        if not made.parameters:
            raise place.error(f"{made.name} takes nothing: write '{made.name}:' alone")
        first = made.parameters[0]
        if not place.is_mapping or (self._is_call(place, first) and not self._names_any(place, made)):
            if first.is_named:
                raise place.error(f"expected keys and values, such as {{n: count(*)}}, got {place.shape}")
            return {first.name: place}
        return self._entries(place, made)

    def _entries(self, place: Place, made: v.Vocable) -> dict[str, Place]:
        entries = place.entries()
        for key in entries:
            if key not in made.named and made.rest is None:
                raise place.keys().get(key, place).error(f"{made.name} has no {key!r}; {nearest(key, made.named)}")
        return entries

    def _names_any(self, place: Place, made: v.Vocable) -> bool:
        return any(key in made.named for key in place.entries())

    def _argument(self, place: Place, made: v.Vocable, key: str) -> Any:
        parameter = made.named.get(key) or made.rest
        assert parameter is not None
        if parameter.is_many and key in made.named:
            each = place.items() if place.is_list else [place]
            return [self.value(one, parameter.words) for one in each]
        return self.value(place, parameter.words)

    def value(self, place: Place, words: frozenset[str]) -> Any:
        """What stands at a place, as the words of an annotation allow it."""
        parameter = v.Parameter("", words, v.KEYWORD, False)
        if place.is_mapping:
            return self._mapping(place, parameter)
        if place.is_list:
            made = [self._inner(each, words) for each in place.items()]
            return tuple(made) if words & {"Rows", "Around"} else made
        return self._scalar(place, parameter)

    def _inner(self, place: Place, words: frozenset[str]) -> Any:
        """A list in a list, or in a mapping, is a tuple: a row, or a pair of keys."""
        made = self.value(place, words)
        return tuple(made) if place.is_list else made

    def _mapping(self, place: Place, parameter: v.Parameter) -> Any:
        if self._is_call(place, parameter):
            return self._call(place, parameter)
        if not parameter.words & {
            "Mapping",
            "Any",
            "object",
            "Iterable",
            "Form",
            "Types",
            "On",
            "Selected",
            "Position",
            "V",
            "Written",
        }:
            wanted = ", ".join(v.functions_for(parameter.words)) or "a value"
            key = next(iter(place.entries()), "")
            raise place.error(
                f"expected one of {wanted}; got {key!r}; {nearest(key, v.functions_for(parameter.words))}"
            )
        return {_key(k): self._inner(each, parameter.words) for k, each in place.entries().items()}

    def _is_call(self, place: Place, parameter: v.Parameter) -> bool:
        """Whether a mapping is a call: its one key is a function that fits, or the reference of a class."""
        if not place.is_mapping or len(place.entries()) != 1:
            return False
        key = next(iter(place.entries()))
        return key in v.functions_for(parameter.words) or (v.REFERENCE in parameter.allows and is_reference(key))

    def _call(self, place: Place, parameter: v.Parameter) -> Any:
        key, given = next(iter(place.entries().items()))
        if is_reference(key):
            with _placed(place):
                return _called(referenced(key), self.value(given, frozenset({"Any"})) if not given.is_null else {})
        made = v.functions_for(parameter.words)[key]
        args, keywords = self.arguments(given, made, place)
        with _placed(place):
            return _function(key)(*args, **keywords)

    def _scalar(self, place: Place, parameter: v.Parameter) -> Any:
        plain = place.plain()
        if not isinstance(plain, str):
            return place.as_text() if _wants_text(parameter) and plain is not None else plain
        if v.STREAM in parameter.allows and (parameter.words <= {"Stream", "None"} or self._meanings(plain)):
            return self.stream(place)
        if v.REFERENCE in parameter.allows and (is_reference(plain) or parameter.words.isdisjoint(_TEXTS)):
            return self._reference(place)
        if parameter.allows.isdisjoint({v.PLAIN, v.EXPR}) or (
            plain in v.functions_for(parameter.words) and "str" not in parameter.words
        ):
            return self._named(place, plain, parameter)
        return plain

    def _named(self, place: Place, name: str, parameter: v.Parameter) -> Any:
        """A function without arguments: `sink: console`."""
        fitting = v.functions_for(parameter.words)
        if name not in fitting:
            raise place.error(f"expected one of {', '.join(fitting)}, got {name!r}; {nearest(name, fitting)}")
        missing = [p.name for p in fitting[name].parameters if p.required]
        if missing:
            raise place.error(f"{name} needs {missing[0]!r}: write {{{name}: {{{missing[0]}: ...}}}}")
        with _placed(place):
            return _function(name)()

    def _reference(self, place: Place) -> Any:
        with _placed(place):
            return referenced(place.as_text())


_TEXTS = frozenset({"str", "Form", "Written", "Condition", "Span", "Duration"})
"""Words of annotations that allow a text as well as a reference."""


def _outputs(owner: object) -> Iterable[str]:
    """The names of the outputs that a step has."""
    if isinstance(owner, Branches):
        return owner
    return [o.name for o in owner.flow.builder.node(owner.port).outputs] if isinstance(owner, Stream) else ()


def _output(owner: Stream | Branches, name: str) -> Stream:
    return owner[name] if isinstance(owner, Branches) else owner.side(name)


def _wants_text(parameter: v.Parameter) -> bool:
    """Whether `1` means the expression 1."""
    return parameter.words <= {"str", "Expr", "None"}


def _key(text: str) -> Any:
    return int(text) if text.isdecimal() else text


def _called(found: Any, given: Any) -> Any:
    return found(**given) if isinstance(given, dict) else found(*given) if isinstance(given, list) else found(given)


def _function(name: str) -> Callable[..., Any]:
    made: Callable[..., Any] = getattr(v.public(), name)
    return made


@contextmanager
def _placed(place: Place) -> Iterator[None]:
    """As `Place.naming`, for errors of Python's own too: a class of the user's may raise them."""
    try:
        with place.naming():
            yield
    except (TypeError, ValueError, AttributeError) as error:
        if isinstance(error, PenstockError):
            raise
        raise place.error(f"{type(error).__name__}: {error}") from error
