"""The state of a keyed step, as a kernel sees it: a value for each key.

This is the seam behind which state engines are put. A kernel says how keys and values look, which keys it will touch,
asks for them, changes the values, and says so; what becomes of it at a barrier is the host's affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.graph.logic.cells import Packed
from penstock.graph.times import FOREVER

__all__ = ["ABSENT", "CLOCK", "EVENT", "GROUPS", "Column", "KeyedState", "Layout", "MemoryState", "Packed"]

GROUPS = 128
"""Keys belong to key groups, tasks own groups; their number never changes."""

EVENT, CLOCK = "@event", "@clock"
"""The columns that hold the earliest time for which a key waits, in event time and by the clock."""


class _Absent:
    """The one object that stands for nothing."""

    def __reduce__(self) -> str:
        return "ABSENT"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()
"""What stands in a pickled column where nothing is kept; None is a value like any other there."""


@dataclass(frozen=True)
class Column:
    """A part of a key or of a value.

    With an Arrow type it is kept as such; a value that does not fit is pickled beside it. `exact` is the Python type that
    comes back from the column as it was; None says that all values fit. Without a type everything is pickled; if it is
    `lazy` too, values come back as `Packed`. `default` stands for nothing.
    """

    name: str
    type: Any = None
    exact: type | None = None
    default: Any = None
    lazy: bool = False


@dataclass(frozen=True)
class Layout:
    """How the keys and the values of a store look.

    A key is a tuple, unless it is `bare`: then it is the one part itself. A value is a tuple too, unless it is `single`.
    """

    keys: tuple[Column, ...]
    values: tuple[Column, ...]
    single: bool = False
    bare: bool = False

    def place(self, name: str) -> int:
        """Where a column stands in a value."""
        return next(at for at, column in enumerate(self.values) if column.name == name)


class KeyedState(Protocol):
    """The state of one step, as far as the task at hand owns it.

    A kernel in a hurry may write to `near` itself, and must then name the key in `touched`.
    """

    near: dict[Any, Any]
    touched: dict[Any, None]

    def describe(self, layout: Layout) -> None:
        """Says how keys and values look; before anything else."""

    def prepare(self, keys: list[Any], places: list[int] | None) -> None:
        """Brings keys near; each must have been named before it is asked for.

        A place is a hash of the key whose last seven bits are its key group; a host that needs none gives none.
        """

    def get(self, key: Any, default: Any = None) -> Any:
        """What is kept for a key, or the default."""

    def put(self, key: Any, value: Any) -> None:
        """Keeps a value for a key."""

    def delete(self, key: Any) -> None:
        """Forgets a key."""

    def items(self) -> Iterator[tuple[Any, Any]]:
        """All that is kept."""

    def due(self, column: str, after: int, until: int) -> list[Any]:
        """The keys that may wait for a time in `(after, until]`, brought near. Some may not wait any more."""

    def wake(self, column: str, after: int) -> None:
        """Says that the step wants a batch at the earliest time behind `after` for which a key waits."""


class MemoryState:
    """State in a dict; what the local runtime and bounded runs use."""

    def __init__(self, kept: dict[Any, Any] | None = None) -> None:
        self.kept: dict[Any, Any] = kept if kept is not None else {}
        self.near, self.get = self.kept, self.kept.get
        self.touched: dict[Any, None] = {}
        self.layout: Layout | None = None
        self.wakes: dict[str, int] = {}

    def describe(self, layout: Layout) -> None:
        """Remembers the columns."""
        self.layout = layout

    def prepare(self, keys: list[Any], places: list[int] | None) -> None:
        """All keys are near."""

    def put(self, key: Any, value: Any) -> None:
        """Keeps a value for a key."""
        self.kept[key] = value

    def delete(self, key: Any) -> None:
        """Forgets a key."""
        self.kept.pop(key, None)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """All that is kept."""
        return iter(self.kept.items())

    def due(self, column: str, after: int, until: int) -> list[Any]:
        """The keys that wait for a time up to `until`."""
        at = self._place(column)
        return [key for key, value in self.kept.items() if value[at] is not None and value[at] <= until]

    def wake(self, column: str, after: int) -> None:
        """Notes the earliest time."""
        at = self._place(column)
        times = (value[at] for value in self.kept.values() if value[at] is not None and value[at] > after)
        self.wakes[column] = min(times, default=FOREVER)

    def _place(self, column: str) -> int:
        assert self.layout is not None, "describe comes first"
        return self.layout.place(column)
