"""What may stand in a flow file, taken from the code: the steps are the methods of flows and streams, their keys are the parameters.

>>> step("where").parameters[0].name
'condition'
>>> sorted(f for f in functions_for({"Early"}))
['every_interval', 'every_records']
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from penstock.errors import FlowError, nearest
from penstock.frontends.streams.flow import Flow
from penstock.frontends.streams.keyed import KeyedStream
from penstock.frontends.streams.naming import is_step
from penstock.frontends.streams.over import OverStream
from penstock.frontends.streams.stream import Stream
from penstock.frontends.streams.windows import WindowedStream

OWNERS = (Flow, Stream, KeyedStream, WindowedStream, OverStream)
UNNAMED = ("feed", "bootstrap")
"""Methods of a flow that say something without making a step."""
SETTINGS = ("on_error", "parallelism")
"""What is said of a step after it."""
VIEWS = ("key_by", "window", "over")
"""How a step looks at the stream that it reads."""
KEYWORD = inspect.Parameter.KEYWORD_ONLY
PLAIN, EXPR, REFERENCE, STREAM = "plain", "expr", "reference", "stream"
_PATTERNS = ("Pattern", "OperatorPattern", "SelectedPattern")
_EARLY = ("EveryInterval", "EveryRecords")
_WINDOWS = ("TimeWindow", "CumulatingWindow", "SessionWindow", "CountWindow", "GlobalWindow")
MEANINGS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(["str", "int", "bool", "float", "None", "Any", "V", "dict", "Span", "Duration", "TimeOption", "Within", "Rows", "Around", "Path", "datetime", "Position", "Types"], (PLAIN,)),
    **dict.fromkeys(["tuple", "list", "Sequence", "Iterable", "Mapping"], (PLAIN,)),
    **dict.fromkeys(["Callable", "type", "ProcessingElement", "PatternReader", "RunPattern", "ProcessLogic", "AsyncFunction", "BroadcastProcess"], (REFERENCE,)),
    **dict.fromkeys(["Expr"], (EXPR,)),
    **dict.fromkeys(["On", "Key", "Selected"], (PLAIN, EXPR)),
    **dict.fromkeys(["Written", "Condition"], (PLAIN, EXPR, REFERENCE)),
    **dict.fromkeys(["Form", "object"], (PLAIN, REFERENCE)),
    "Stream": (STREAM,),
    "LookUp": (PLAIN, STREAM, "Endpoint"),
    "Policy": (PLAIN, "OnError"),
    "RunLimit": (PLAIN, "RunLimit"),
    "WindowSpec": _WINDOWS,
    "Early": _EARLY,
    "AnyPattern": _PATTERNS,
    "WrittenPattern": (PLAIN, *_PATTERNS),
    "Rule": ("RuleSet",),
    **{name: (name,) for name in ("Endpoint", "ShedRule", "OnError", "MatchClause", "RuleSet", *_EARLY, *_WINDOWS, *_PATTERNS)},
}  # fmt: skip
"""What the words of an annotation allow in a file: plain values, expressions, references, streams, or calls that return such a thing."""


@dataclass(frozen=True)
class Parameter:
    """A key of a step or of a function: its name, what it may hold, and whether it must be there."""

    name: str
    words: frozenset[str]
    kind: inspect._ParameterKind
    required: bool
    default: object = None

    @property
    def allows(self) -> frozenset[str]:
        """What may stand there."""
        return frozenset(m for word in self.words for m in MEANINGS.get(word, (PLAIN,)))

    @property
    def is_many(self) -> bool:
        """Whether it takes a list, as `*fields` does."""
        return self.kind is inspect.Parameter.VAR_POSITIONAL

    @property
    def is_named(self) -> bool:
        """Whether it takes any further keys, as `**named` does."""
        return self.kind is inspect.Parameter.VAR_KEYWORD


@dataclass(frozen=True)
class Vocable:
    """A step or a function that a file may name."""

    name: str
    parameters: tuple[Parameter, ...]
    doc: str

    @property
    def named(self) -> dict[str, Parameter]:
        """The parameters by name, without the one for further keys."""
        return {p.name: p for p in self.parameters if not p.is_named}

    @property
    def rest(self) -> Parameter | None:
        """The parameter for further keys."""
        return next((p for p in self.parameters if p.is_named), None)


def words_of(annotation: object) -> frozenset[str]:
    """The names in an annotation.

    >>> sorted(words_of("Mapping[str, o.Form] | None"))
    ['Form', 'Mapping', 'None', 'str']
    """
    found = re.findall(r"[A-Za-z_][\w.]*", annotation if isinstance(annotation, str) else str(annotation))
    return frozenset(word.rsplit(".", 1)[-1] for word in found)


def _described(function: Callable[..., object], skipped: int) -> Vocable:
    parameters = list(inspect.signature(function).parameters.values())[skipped:]
    made = tuple(
        Parameter(p.name, words_of(p.annotation), p.kind, _is_required(p), None if p.default is p.empty else p.default)
        for p in parameters
    )
    return Vocable(function.__name__, made, (inspect.getdoc(function) or "").partition("\n")[0])


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind not in (
        parameter.VAR_POSITIONAL,
        parameter.VAR_KEYWORD,
    )


def methods(owner: type) -> Iterator[str]:
    """The steps of a class."""
    yield from (n for n in dir(owner) if not n.startswith("_") and is_step(inspect.getattr_static(owner, n)))


@cache
def steps() -> dict[str, dict[type, Vocable]]:
    """Every step by its name, and for each the classes that have it."""
    found: dict[str, dict[type, Vocable]] = {}
    for owner in OWNERS:
        for name in methods(owner):
            found.setdefault(name, {})[owner] = _described(getattr(owner, name), 2)
    for name in UNNAMED:
        found[name] = {Flow: _described(getattr(Flow, name), 1)}
    return found


def step(name: str, owner: type | None = None) -> Vocable:
    """A step, as a class has it.

    Raises:
        FlowError: there is no such step, or the class does not have it.
    """
    if name not in steps():
        raise FlowError(f"no step {name!r}; {nearest(name, steps())}")
    owners = steps()[name]
    if owner is None:
        return next(iter(owners.values()))
    if owner not in owners:
        raise FlowError(_misplaced(name, owners))
    return owners[owner]


def _misplaced(name: str, owners: dict[type, Vocable]) -> str:
    if Flow in owners:
        return f"{name} reads no stream: leave out 'from'"
    if Stream in owners:
        return f"{name} reads a stream as it is: leave out 'key_by' and 'window'"
    return f"{name} keeps something per key: say key_by" + (" or window" if WindowedStream in owners else "")


def view(name: str) -> Vocable:
    """`key_by` or `window`, as streams have them."""
    return _described(getattr(Stream, name), 1)


def public() -> ModuleType:
    """`penstock` itself, whose functions a file names. It imports this package, so it is looked up when it is needed."""
    return importlib.import_module("penstock")


@cache
def functions() -> dict[str, tuple[str, Vocable]]:
    """The public functions that a file may call: what they return, and their parameters."""
    found = {}
    for name in public().__all__:
        function = getattr(public(), name)
        if inspect.isfunction(function) and "return" in function.__annotations__:
            returned = next(iter(words_of(function.__annotations__["return"])))
            if (returned,) == MEANINGS.get(returned) or name == "expr":
                found[name] = (returned, _described(function, 0))
    return found


def functions_for(words: set[str] | frozenset[str]) -> dict[str, Vocable]:
    """The functions that return what an annotation allows."""
    wanted = {m for word in words for m in MEANINGS.get(word, ())}
    wanted |= {"Expr"} if EXPR in wanted else set()
    return {name: made for name, (returned, made) in functions().items() if returned in wanted}
