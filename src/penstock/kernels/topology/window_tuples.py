"""The tuples of the windows of a task, by the number under which they arrived: in memory, or page by page in the state of the task."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, overload

from penstock.kernels.topology.task_state import TaskState

PAGE = 1000
"""Tuples of a page, where so many pages fit into memory."""
_PAGES = 4
"""So many pages fit into memory at least."""
Numbers = Sequence[int]


class WindowTuples(Protocol):
    """Where tuples are kept until they have left their last window."""

    def add(self, number: int, tup: Any) -> None:
        """Keeps a tuple; numbers go up by one."""

    def get(self, number: int) -> Any:
        """The tuple of a number."""

    def drop(self, numbers: Numbers) -> None:
        """Forgets tuples."""


class MemoryTuples:
    """Tuples in memory, which are saved whole with the task.

    >>> held = MemoryTuples({})
    >>> held.add(0, "a")
    >>> held.get(0)
    'a'
    """

    def __init__(self, held: dict[int, Any]) -> None:
        self.held = held
        self.get: Callable[[int], Any] = held.__getitem__

    def add(self, number: int, tup: Any) -> None:
        """Keeps a tuple."""
        self.held[number] = tup

    def drop(self, numbers: Numbers) -> None:
        """Forgets tuples."""
        for number in numbers:
            del self.held[number]


@dataclass
class Pages:
    """What is saved with a task of tuples whose pages are in its state.

    Attributes:
        size: how many tuples a page holds.
        full: how many pages have been full.
        open: the tuples of the last page, which is not.
        alive: how many tuples of each page have not left.
    """

    size: int
    full: int = 0
    open: list[Any] = field(default_factory=list)
    alive: dict[int, int] = field(default_factory=dict)

    @staticmethod
    def of(most: int) -> Pages:
        """Pages of which some fit into memory, when that holds so many tuples."""
        return Pages(max(1, min(PAGE, most // _PAGES)))


class PagedTuples:
    """Tuples in pages, of which the state of the task has the full ones; at most so many tuples are in memory.

    A page comes to memory when one of its tuples is asked for, and leaves it when others need the room.

    >>> from penstock.state.memory import MemoryState
    >>> entries = TaskState(MemoryState(), 0, apart=True)
    >>> held = PagedTuples(Pages(2), entries, 4)
    >>> for number, tup in enumerate("abcde"):
    ...     held.add(number, tup)
    >>> dict(entries), held.get(0), held.get(4)
    ({0: ['a', 'b'], 1: ['c', 'd']}, 'a', 'e')
    >>> held.drop([0, 1])
    >>> dict(entries)
    {1: ['c', 'd']}
    """

    def __init__(self, pages: Pages, entries: TaskState, most: int) -> None:
        self.pages, self.entries = pages, entries
        self.most = max(1, most // pages.size - 1)
        self.near: dict[int, list[Any]] = {}

    def add(self, number: int, tup: Any) -> None:
        """Keeps a tuple; a page that is full goes to the state."""
        pages, page = self.pages, number // self.pages.size
        pages.open.append(tup)
        pages.alive[page] = pages.alive.get(page, 0) + 1
        if len(pages.open) == pages.size:
            self.entries[page] = pages.open
            pages.open, pages.full = [], pages.full + 1

    def get(self, number: int) -> Any:
        """The tuple of a number, from its page."""
        page, at = divmod(number, self.pages.size)
        found = self.near.get(page)
        return (self._page(page) if found is None else found)[at]

    def _page(self, page: int) -> list[Any]:
        if page >= self.pages.full:
            return self.pages.open
        while len(self.near) >= self.most:
            oldest = next(iter(self.near))
            del self.near[oldest]
            self.entries.release(oldest)
        self.near[page] = self.entries[page]
        return self.near[page]

    def drop(self, numbers: Numbers) -> None:
        """Forgets tuples; a page goes when none of its tuples is left."""
        alive, size = self.pages.alive, self.pages.size
        for number in numbers:
            page = number // size
            alive[page] -= 1
            if not alive[page] and page < self.pages.full:
                self.near.pop(page, None)
                self.entries.discard(page)
                del alive[page]


class TupleList(Sequence[Any]):
    """Tuples of a window, read when they are asked for; valid while the window is at hand.

    >>> TupleList(MemoryTuples({3: "a", 4: "b"}), [3, 4])
    ['a', 'b']
    """

    __slots__ = ("_held", "_numbers")

    def __init__(self, held: WindowTuples, numbers: Numbers) -> None:
        self._held, self._numbers = held, numbers

    def since(self, number: int) -> TupleList:
        """Those that have come with this number or a later one."""
        return TupleList(self._held, [each for each in self._numbers if each >= number])

    @overload
    def __getitem__(self, at: int) -> Any: ...

    @overload
    def __getitem__(self, at: slice) -> TupleList: ...

    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return TupleList(self._held, self._numbers[at])
        return self._held.get(self._numbers[at])

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Any]:
        return map(self._held.get, self._numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # like a list's

    def __repr__(self) -> str:
        return repr(list(self))


def numbers_of(given: Iterable[int] = ()) -> array[int]:
    """Numbers in eight bytes each."""
    return array("q", given)
