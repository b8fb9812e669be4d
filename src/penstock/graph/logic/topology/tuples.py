"""Tuples as bolts get them, and the root ids that travel with them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar

from penstock.graph.row import row_class

DEFAULT = "default"
"""The stream that is meant when none is named."""
SYSTEM, TICK_STREAM = "__system", "__tick"
"""The component and the stream of tick tuples."""


NO_TASK = -1
"""The task of tuples that no component emitted."""


class Tuple:
    """A record as a bolt gets it: its fields by name and position, and where it comes from.

    `tup.word`, `tup["word"]` and `tup[0]` are the same; a field whose name is taken here (`values`, `stream`, `component`,
    `roots`, `is_tick`) is reached as `tup["values"]`. `tup.task` is the id of the task that emitted it, unless a field has that name.
    A tuple may be kept in an attribute of a bolt until a later batch.

    >>> import penstock as ps
    >>> class Split(ps.Bolt):
    ...     outputs = "word string"
    ...     def process(self, tup: ps.Tuple):
    ...         return [] if tup.component == "tests" else tup.line.split()
    """

    __slots__ = ()
    component: ClassVar[str] = ""
    stream: ClassVar[str] = DEFAULT
    task: ClassVar[int]
    _task: ClassVar[int] = NO_TASK
    _roots: bytes | None = None
    _edge: int | None = None

    @property
    def values(self) -> tuple[Any, ...]:
        """The fields, in order, as a plain tuple."""
        return tuple(self)  # type: ignore[arg-type]  # every Tuple is a row as well

    @property
    def roots(self) -> frozenset[int]:
        """The ids of the spout tuples this one stems from; empty when the spout gave none."""
        return roots_of(self._roots)

    @property
    def is_tick(self) -> bool:
        """Whether it is no record but says that an interval has passed; its one value is the interval in seconds."""
        return self.stream == TICK_STREAM and self.component == SYSTEM

    def __reduce__(self) -> tuple[Any, ...]:
        rooted = hasattr(self, "__dict__")
        names = tuple(type(self).names)  # type: ignore[attr-defined]  # every Tuple is a row as well
        origin = (names, self.component, self.stream, rooted, self._task)
        return _tuple_again, (origin, self.values, {"_roots": self._roots, **vars(self)} if rooted else None)


@lru_cache(maxsize=4096)
def tuple_class(names: tuple[str, ...], component: str, stream: str, rooted: bool, task: int = NO_TASK) -> type:
    """The class of the tuples of an input that come from one task. Those with roots can hold one thing more than their fields."""
    about: dict[str, Any] = {"component": component, "stream": stream, "_task": task}
    if "task" not in names:
        about["task"] = task
    if not rooted:
        about["__slots__"] = ()
    return type("Tuple", (Tuple, row_class(names)), about)


def tick_tuple(seconds: float) -> Any:
    """The tuple that says that an interval has passed. Whole seconds are an integer, as Storm has them."""
    value = int(seconds) if seconds == int(seconds) else seconds
    return tuple.__new__(tuple_class(("interval",), SYSTEM, TICK_STREAM, False), (value,))


def _tuple_again(origin: tuple[Any, ...], values: tuple[Any, ...], beside: dict[str, Any] | None) -> Any:
    """A tuple from what was saved of it."""
    made: Any = tuple.__new__(tuple_class(*origin), values)
    if beside:
        vars(made).update(beside)
    return made


def roots_of(packed: bytes | None) -> frozenset[int]:
    """Root ids from the form in which they travel: eight bytes each.

    >>> sorted(roots_of(pack_roots([7, 1])))
    [1, 7]
    """
    given = packed or b""
    return frozenset(int.from_bytes(given[i : i + 8], "big") for i in range(0, len(given), 8))


def pack_roots(roots: Iterable[int]) -> bytes | None:
    """Root ids in the form in which they travel; None when there are none."""
    return b"".join(r.to_bytes(8, "big") for r in sorted(set(roots))) or None


def joined_roots(anchors: Tuple | Iterable[Tuple]) -> bytes | None:
    """The roots of a tuple, or of several together."""
    packed = {a._roots for a in ((anchors,) if isinstance(anchors, Tuple) else anchors)} - {None}
    if len(packed) <= 1:
        return next(iter(packed), None)
    return pack_roots(root for each in packed for root in roots_of(each))
