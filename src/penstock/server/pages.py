"""Lists are given out page by page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Query

from penstock.errors import OptionError

T = TypeVar("T")
AT_MOST = "how many entries the answer has at most"


@dataclass(frozen=True)
class Page:
    """Which part of a list: after the last one of the page before, and so many."""

    after: Annotated[str, Query(max_length=300, description="the name of the last one of the page before")] = ""
    limit: Annotated[int, Query(ge=1, le=1_000, description=AT_MOST)] = 1_000

    def of(self, items: Sequence[T], name: Callable[[T], str]) -> list[T]:
        """The page of a list by name; after one that has gone, those whose names are later.

        >>> Page("b", 2).of(["a", "b", "c", "d", "e"], str), Page("bb", 2).of(["a", "b", "c"], str)
        (['c', 'd'], ['c'])
        """
        names = [name(item) for item in items]
        if self.after in names:
            return list(items[names.index(self.after) + 1 :][: self.limit])
        return [item for item, found in zip(items, names) if found > self.after][: self.limit]

    def by_time(self, items: Sequence[T], name: Callable[[T], str]) -> list[T]:
        """The page of a list by time; after one that has gone there is no telling where to go on.

        >>> Page("c", 2).by_time(["d", "c", "a", "b"], str)
        ['a', 'b']

        Raises:
            OptionError: what is to be gone on from is not there.
        """
        names = [name(item) for item in items]
        if self.after and self.after not in names:
            raise OptionError(f"query.after: there is no {self.after[:80]!r} to go on from; begin with the first page")
        start = names.index(self.after) + 1 if self.after else 0
        return list(items[start:][: self.limit])


Paging = Annotated[Page, Depends()]
