"""Cells: the pieces of state that a process class declares for each key."""

from __future__ import annotations

import copy
import datetime
import decimal
import pickle
import types
from typing import Any, Protocol, get_origin

from penstock.graph.duration import Span, micros

PLAIN = (bool, int, float, str, bytes, decimal.Decimal, datetime.datetime, datetime.date)
"""Kinds of values that are never mutated; a state file has a typed column for each."""
NEVER_CHANGE = (*PLAIN, type(None))


class PickledValue(bytes):
    """A value as its pickle: nobody has asked for it yet."""

    __slots__ = ()


class WithCells(Protocol):
    """What watched cells need of the instance they stand in."""

    _cells: dict[str, Any]
    _stamps: dict[str, int]
    _dirty: bool

    def _wrote(self, cell: Cell) -> None:
        """Notes that a cell was written."""


class Cell:
    """A piece of per-key state, declared in the body of a Process class.

    A plain one stands among the attributes of the instance while its key is at hand, so that reading and writing it costs
    nothing; this class is only asked for the default.
    """

    def __init__(self, kind: object, default: object, ttl: int | None = None) -> None:
        self.kind = kind
        self.default = default
        self.ttl = ttl
        self.name = ""

    @property
    def plain(self) -> bool:
        """Whether its values are never mutated, and nobody counts the time."""
        return type(self) is Cell

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, logic: object, owner: type | None = None) -> Any:
        return self if logic is None else self.default

    def __str__(self) -> str:
        kind = self.kind.__qualname__ if type(self.kind) is type else str(self.kind)
        return f"{self.name} {kind}"


class WatchedCell(Cell):
    """A cell whose values may be mutated, or are forgotten after a time: each use of it is seen."""

    def __get__(self, logic: Any, owner: type | None = None) -> Any:
        if logic is None:
            return self
        cells = logic._cells
        if self.name not in cells:
            if isinstance(self.default, NEVER_CHANGE):
                return self.default
            cells[self.name] = copy.deepcopy(self.default)
        made = cells[self.name]
        if type(made) is PickledValue:
            made = cells[self.name] = pickle.loads(made)
        if not isinstance(made, NEVER_CHANGE):
            logic._wrote(self)
        return made

    def __set__(self, logic: WithCells, given: object) -> None:
        refuse_type(logic, self, given)
        logic._cells[self.name] = given
        logic._wrote(self)

    def __delete__(self, logic: WithCells) -> None:
        if self.name in logic._cells:
            del logic._cells[self.name]
            logic._dirty = True
        logic._stamps.pop(self.name, None)


def refuse_type(logic: object, cell: Cell, given: object) -> None:
    """Refuses a value of another type than its cell declares; None stands for nothing, and whole numbers are numbers.

    Raises:
        TypeError: naming the class, the cell, and both types.
    """
    kind = get_origin(cell.kind) or cell.kind
    if given is None or not isinstance(kind, type) or isinstance(given, kind):
        return
    if kind is float and isinstance(given, int):
        return
    raise TypeError(
        f"{type(logic).__qualname__}.{cell.name} is declared as {kind.__qualname__}, got {given!r} "
        f"({type(given).__qualname__}); convert it, or declare another type"
    )


def value(kind: object = object, default: object = None, *, ttl: Span | None = None) -> Any:
    """One value per key, declared in the body of a `ps.Process` class.

    Args:
        kind: the type of the value; a value of another type is refused.
        default: what it is before it was first written.
        ttl: how long it is kept after it was last written, by processing time; None keeps it for ever.

    Returns:
        The cell; on an instance the attribute is the value of the key at hand.

    Raises:
        FlowError: `ttl` is no span of time.

    >>> import penstock as ps
    >>> class Numbered(ps.Process):
    ...     seen = ps.value(int, default=0, ttl="1h")
    >>> list(Numbered.cells())
    ['seen']
    """
    if ttl is None and kind in PLAIN and isinstance(default, NEVER_CHANGE):
        return Cell(kind, default)
    return WatchedCell(kind, default, span(ttl))


def list_of(kind: object = object, *, ttl: Span | None = None) -> Any:
    """A list per key, declared in the body of a `ps.Process` class.

    Args:
        kind: the type of the items.
        ttl: how long it is kept after it was last used, by processing time; None keeps it for ever.

    Returns:
        The cell; on an instance the attribute is the list of the key at hand.

    Raises:
        FlowError: `ttl` is no span of time.

    >>> import penstock as ps
    >>> class Remembering(ps.Process):
    ...     words = ps.list_of(str)
    >>> list(Remembering.cells())
    ['words']
    """
    return WatchedCell(types.GenericAlias(list, (kind,)), [], span(ttl))


def map_of(key: object = object, item: object = object, *, ttl: Span | None = None) -> Any:
    """A dict per key, declared in the body of a `ps.Process` class.

    Args:
        key: the type of the keys.
        item: the type of the items.
        ttl: how long it is kept after it was last used, by processing time; None keeps it for ever.

    Returns:
        The cell; on an instance the attribute is the dict of the key at hand.

    Raises:
        FlowError: `ttl` is no span of time.

    >>> import penstock as ps
    >>> class Counting(ps.Process):
    ...     counts = ps.map_of(str, int)
    >>> list(Counting.cells())
    ['counts']
    """
    return WatchedCell(types.GenericAlias(dict, (key, item)), {}, span(ttl))


def span(ttl: Span | None) -> int | None:
    """A time to live in microseconds."""
    return None if ttl is None else micros(ttl, "ttl")
