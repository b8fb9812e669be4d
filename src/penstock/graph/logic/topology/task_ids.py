"""The tasks that get a tuple, as `emit` tells them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

Finder = Callable[[str, object, int, "int | None"], list[int]]
"""Finds the tasks of a record: its stream, the record, its number in the stream, and the task it names on a direct stream."""


Asked = tuple[Finder | None, str, object, int, int | None]
"""A finder, and what it is asked."""


class TaskIds(Sequence[int]):
    """The ids of the tasks that get a tuple. They are worked out when they are looked at, so an emit that nobody asks costs nothing more.

    >>> ids = TaskIds()
    >>> ids.asked = (lambda stream, record, number, task: [4, 7]), "default", ("a",), 0, None
    >>> ids == [4, 7], list(ids), len(ids), 7 in ids
    (True, [4, 7], 2, True)
    """

    __slots__ = ("asked",)
    asked: Asked | list[int]
    """What is to be worked out, then the answer. Emits set it themselves: a constructor in Python would double what they cost."""

    def look(self) -> list[int]:
        """The ids; none where the topology around the task is not known."""
        if isinstance(self.asked, tuple):
            find, stream, record, number, task = self.asked
            self.asked = [] if find is None else find(stream, record, number, task)
        return self.asked

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> list[int]: ...

    def __getitem__(self, at: Any) -> Any:
        return self.look()[at]

    def __len__(self) -> int:
        return len(self.look())

    def __iter__(self) -> Iterator[int]:
        return iter(self.look())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.look() == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self.look()))

    def __repr__(self) -> str:
        return repr(self.look())
