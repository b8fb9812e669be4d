"""The tuples of a chunk, as a task gets them one by one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.graph.logic.topology.collector import RootRuns
from penstock.graph.logic.topology.tuples import Tuple, tuple_class
from penstock.kernels.records.arrow import decoded
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.topology.blocks import BlockChunk


class RootsColumn(Sequence[Any]):
    """The roots of the tuples of a chunk from elsewhere; seldom is any of them looked at."""

    def __init__(self, column: pa.Array) -> None:
        self.column = column

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, at: Any) -> Any:
        return self.column[at].as_py()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.column.to_pylist())


def roots_column(roots: list[bytes | None] | RootRuns, *, in_arrow: bool) -> Any:
    """The roots of records as a list, or where they leave Python next as an Arrow column: each root once, where several records stem from it."""
    if not isinstance(roots, RootRuns):
        return roots
    if not in_arrow or not isinstance(roots.given, RootsColumn):
        return list(roots)
    many, given = len(roots.ends), decoded(roots.given.column)
    if len(roots) == many and roots.ends == list(range(1, many + 1)):
        return given.slice(0, many)
    counts: NDArray[np.int64] = np.fromiter(roots.ends, np.int64, many)
    counts[1:] -= counts[:-1].copy()
    numbers = np.repeat(np.arange(many, dtype=np.int32), counts)
    return pa.DictionaryArray.from_arrays(pa.array(numbers), given.slice(0, many))


class Tuples:
    """Goes over the tuples of a chunk; `at` is the index of the one given last. `roots` has those of each, None where there are none.

    All tuples are of one class, or each of its own.
    """

    __slots__ = ("_chunk", "_classes", "_given", "_names", "roots")

    def __init__(
        self, classes: type | Iterable[type], chunk: Chunk, names: Sequence[str], roots: Sequence[Any] | None = None
    ) -> None:
        self._classes, self._chunk, self._names = classes, chunk, names
        self._given: Any = None
        self.roots = roots

    def _rows(self) -> Iterator[Any]:
        """The fields of each tuple."""
        first, *others = [self._chunk.column(name) for name in self._names]
        self._given = iter(first)
        return zip(self._given, *others, strict=False)

    def __iter__(self) -> Iterator[Any]:
        classes, rows = self._classes, self._rows()
        made: Any = map(classes, rows) if isinstance(classes, type) else map(tuple.__new__, classes, rows)
        return made if self.roots is None else map(_rooted, made, self.roots)

    def __len__(self) -> int:
        return len(self._chunk)

    def unrooted(self) -> Iterator[Any]:
        """The tuples, which find their roots only when they are asked for them, while they are the last that was given.

        One that is kept for later needs `keep_roots`.
        """
        if self.roots is None or not isinstance(self._classes, type):
            return iter(self)
        cls, asked = _asking(self._classes)
        asked.tuples = self
        return map(cls, self._rows())

    def bare(self) -> Iterator[Any]:
        """The tuples without roots, for a bolt that neither keeps one nor asks for its roots; `whole` has those of the one given last.

        Nobody can tell one from another that has the same fields: where these are at hand by number, it is the same object again.
        """
        if not isinstance(self._classes, type):
            return iter(self)
        cls = self._classes if self.roots is None else _without_roots(self._classes)
        shared = self._chunk.shared_rows(self._names, cls) if isinstance(self._chunk, BlockChunk) else None
        if shared is None:
            return map(cls, self._rows())
        self._given = iter(shared)
        given: Iterator[Any] = self._given
        return given

    def whole(self, tup: Any) -> Any:
        """The tuple that was given last, with its roots."""
        if self.roots is None or not isinstance(self._classes, type) or isinstance(tup, self._classes):
            return tup
        return _rooted(self._classes(tup), self.roots[self.at])

    def keep_roots(self, tup: Any) -> None:
        """Writes the roots of the tuple that was given last into it."""
        if self.roots is not None and "_roots" not in vars(tup):
            tup._roots = self.roots[self.at]

    @property
    def at(self) -> int:
        """The index of the tuple that was given last."""
        return -1 if self._given is None else len(self) - int(self._given.__length_hint__()) - 1


def _rooted(tup: Any, packed: bytes | None) -> Tuple:
    tup._roots = packed
    made: Tuple = tup
    return made


class _AskedRoots:
    """The roots of the tuple at hand, by where its iteration stands; a tuple that has its own is not asked here."""

    tuples: Tuples | None = None

    def __get__(self, tup: Any, owner: type) -> bytes | None:
        found = self.tuples
        return found.roots[found.at] if found is not None and found.roots is not None and tup is not None else None


@lru_cache(maxsize=512)
def _without_roots(cls: Any) -> type:
    """The class of the same tuples without roots, which are made faster."""
    return tuple_class(cls.names, cls.component, cls.stream, False, cls._task)


@lru_cache(maxsize=512)
def _asking(cls: type) -> tuple[type, _AskedRoots]:
    """A class of tuples whose roots are found when they are asked for."""
    asked = _AskedRoots()
    return type("Tuple", (cls,), {"_roots": asked}), asked


def _alone() -> int:
    for tup in map(tuple, [[1]]):
        return sys.getrefcount(tup)
    raise AssertionError


ALONE = _alone()
"""The references to a tuple that only a loop holds; it depends on the version of Python."""


def roots_of(tuples: Iterable[Any]) -> Sequence[bytes | None]:
    """The roots of each of some tuples."""
    if not isinstance(tuples, Tuples):
        return [tup._roots for tup in tuples]
    return tuples.roots if tuples.roots is not None else [None] * len(tuples)


def as_it_is(tup: Any) -> Any:
    """Tuples that come one by one are whole."""
    return tup


def keep_nothing(tup: Any) -> None:
    """Tuples that come one by one have their roots."""


class CurrentTuple:
    """The tuple at hand."""

    __slots__ = ("tup",)

    def __init__(self) -> None:
        self.tup: Any = None
