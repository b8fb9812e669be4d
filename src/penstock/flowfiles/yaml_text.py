"""YAML read with care: plain values only, each with its place in the file, within limits of size, depth and aliases.

>>> root = read_yaml("flow: hello", "a.yaml")
>>> root.text("flow")
'hello'
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from penstock.errors import FlowError, PenstockError, nearest

MOST_BYTES = 4 * 1024 * 1024
MOST_DEPTH = 64
MOST_VALUES = 500_000
"""Values of a file with all of its aliases written out."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_PLAIN = ("str", "int", "float", "bool", "null", "timestamp", "binary")
_SHAPES = {yaml.ScalarNode: "a value", yaml.SequenceNode: "a list", yaml.MappingNode: "keys and values"}


@dataclass(frozen=True)
class Place:
    """A value of a file, and where it stands."""

    node: yaml.Node
    file: str
    lenient: bool = False
    """Whether `yes`, `no`, `on` and `off` are true and false, as in YAML 1.1."""

    @property
    def line(self) -> str:
        """Where it stands, as errors of steps name it: `flow.yaml:12`."""
        return f"{Path(self.file).name or 'line'}:{self.node.start_mark.line + 1}"

    def error(self, message: str, kind: type[FlowError] = FlowError) -> FlowError:
        """An error at this place."""
        mark = self.node.start_mark
        return kind(f"{self.file}: line {mark.line + 1}, column {mark.column + 1}: {message}")

    @property
    def is_mapping(self) -> bool:
        """Whether it has keys."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_null(self) -> bool:
        """Whether it is nothing."""
        return bool(self.node.tag == f"{_TAG}null")

    @property
    def shape(self) -> str:
        """What it is, for messages."""
        return repr(self.node.value) if isinstance(self.node, yaml.ScalarNode) else _SHAPES[type(self.node)]

    @contextmanager
    def naming(self) -> Iterator[None]:
        """An error of what is called inside gets the file, the line and the column; one that has them stays."""
        try:
            yield
        except PenstockError as error:
            if str(error).startswith(f"{self.file}: line "):
                raise
            raise self.error(str(error), type(error) if isinstance(error, FlowError) else FlowError) from error

    def at(self, node: yaml.Node) -> Place:
        """Another value of the same file."""
        return Place(node, self.file, self.lenient)

    def entries(self) -> dict[str, Place]:
        """The values of a mapping by key. A key that appears twice is refused; `<<` takes over those of another mapping."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error(f"expected keys and values, got {self.shape}")
        found: dict[str, Place] = {}
        merged: dict[str, Place] = {}
        for key, value in self.node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self.at(key).error("expected a text as key")
            if key.tag == f"{_TAG}merge":
                merged.update(self.at(value).merged())
            elif key.value in found:
                raise self.at(key).error(f"the key {key.value!r} appears twice")
            else:
                found[key.value] = self.at(value)
        return merged | found

    def merged(self) -> dict[str, Place]:
        """What `<<` takes over: a mapping, or a list of them of which the first counts most."""
        parts = reversed(self.items()) if self.is_list else [self]
        return {key: value for part in parts for key, value in part.entries().items()}

    def keys(self) -> dict[str, Place]:
        """Where the keys of a mapping stand."""
        assert isinstance(self.node, yaml.MappingNode)
        return {key.value: self.at(key) for key, _ in self.node.value}

    def checked(self, keys: tuple[str, ...], needed: tuple[str, ...] = ()) -> dict[str, Place]:
        """The values of a mapping of which the keys are known."""
        found = self.entries()
        for key in found:
            if key not in keys:
                raise self.keys().get(key, self).error(f"no key {key!r} here; {nearest(key, keys)}")
        for key in needed:
            if key not in found:
                raise self.error(f"expected the key {key!r} here; there are: {', '.join(found) or 'none'}")
        return found

    def items(self) -> list[Place]:
        """The values of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error(f"expected a list, got {self.shape}")
        return [self.at(each) for each in self.node.value]

    def as_text(self) -> str:
        """A text; a number or a word such as `true` is the text that it is written as."""
        if not isinstance(self.node, yaml.ScalarNode) or self.is_null:
            raise self.error(f"expected a text, got {self.shape}")
        return str(self.node.value)

    def text(self, key: str) -> str:
        """The text of a key."""
        return self.checked(tuple(self.entries()), (key,))[key].as_text()

    def number(self) -> int:
        """A whole number."""
        found = self.plain()
        if not isinstance(found, int) or isinstance(found, bool):
            raise self.error(f"expected a whole number, got {self.shape}")
        return found

    def boolean(self) -> bool:
        """True or false."""
        found = self.plain()
        if not isinstance(found, bool):
            raise self.error(f"expected true or false, got {self.shape}")
        return found

    def plain(self) -> Any:
        """The value: texts, numbers, true and false, dates, bytes, nothing, and lists and dicts of them."""
        if isinstance(self.node, yaml.SequenceNode):
            return [each.plain() for each in self.items()]
        if isinstance(self.node, yaml.MappingNode):
            return {key: value.plain() for key, value in self.entries().items()}
        return self._scalar()

    def _scalar(self) -> Any:
        kind = self.node.tag.removeprefix(_TAG)
        if kind not in _PLAIN:
            raise self.error(f"expected a plain value, got the tag {self.node.tag!r}; objects cannot be made in a file")
        if not self.lenient and _is_word(kind, self.node.value):
            return str(self.node.value)
        try:
            return yaml.constructor.SafeConstructor().construct_object(self.node)
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            raise self.error(f"expected a value, got {self.node.value[:40]!r} ({error})") from None


def _is_word(kind: str, value: str) -> bool:
    """What YAML 1.1 takes for something else than the text that people mean: `no`, and `10:30`."""
    return (kind == "bool" and value.lower() not in ("true", "false")) or (kind in ("int", "float") and ":" in value)


def read_yaml(text: str, file: str, *, lenient: bool = False) -> Place:
    """The root of a YAML text.

    Args:
        text: the text.
        file: its name, for errors.
        lenient: whether `yes` and `on` are true, as in YAML 1.1.

    Raises:
        FlowError: it is no YAML, is empty, or exceeds a limit; with line and column.
    """
    if len(text.encode()) > MOST_BYTES:
        raise FlowError(f"{file}: expected at most {MOST_BYTES:,} bytes, got {len(text.encode()):,}")
    try:
        _check_depth(text, file)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise FlowError(f"{file}: {where}no YAML: {error.problem or error}") from None
    except yaml.YAMLError as error:
        raise FlowError(f"{file}: no YAML: {error}") from None
    if root is None:
        raise FlowError(f"{file}: expected keys and values, got an empty file")
    _check_values(root, file)
    return Place(root, file, lenient)


def read_text(path: Path) -> str:
    """The text of a file that is not too large."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise FlowError(f"{path}: expected at most {MOST_BYTES:,} bytes, got {size:,}")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FlowError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise FlowError(
            f"{path}: expected UTF-8, got the byte {error.object[error.start]:#x} at {error.start}"
        ) from None


def _check_depth(text: str, file: str) -> None:
    """Before anything recurses over it."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:
            mark = event.start_mark
            raise FlowError(f"{file}: line {mark.line + 1}: expected at most {MOST_DEPTH} levels, got more")


def _check_values(root: yaml.Node, file: str) -> None:
    """Aliases share what they name, so that a small file may stand for more than memory holds."""
    sizes: dict[int, int] = {}
    if _size(root, sizes, file) > MOST_VALUES:
        raise FlowError(f"{file}: expected at most {MOST_VALUES:,} values with its aliases written out, got more")


def _size(node: yaml.Node, sizes: dict[int, int], file: str) -> int:
    if id(node) in sizes:
        if sizes[id(node)] < 0:
            raise FlowError(
                f"{file}: line {node.start_mark.line + 1}: expected a value, got an alias of what it stands in"
            )
        return sizes[id(node)]
    sizes[id(node)] = -1
    sizes[id(node)] = 1 + sum(_size(each, sizes, file) for each in _parts(node))
    return sizes[id(node)]


def _parts(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
