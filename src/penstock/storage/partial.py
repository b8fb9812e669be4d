"""A copy of an object that never changes, of which only parts are on this machine: what is missing is read from the store when it is asked for.

The copy is a file with holes, as large as the object, mapped into memory. It does not know which of its parts are there: whoever reads it has checksums, and asks for the parts
that do not fit theirs. So processes may fill one copy at the same time, and one that died while it wrote has done no harm.
"""

from __future__ import annotations

import mmap
import os
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

Span = tuple[int, int]
"""A part of an object: its first byte, and the one after its last."""

SPARE = 0.1
"""How much more than is needed may be read, as a share of it, so that parts with small gaps between them take one request."""
WIDEST = 1 << 20
"""The largest gap that is read: a request to an object store takes as long as so many bytes or more."""
LONGEST = 4 << 20
"""How many bytes a request asks for at most; more are asked for at the same time."""
AT_ONCE = 16
"""How many requests are under way at once."""


@dataclass(frozen=True)
class PartialCopy:
    """Parts of an object.

    Attributes:
        data: The bytes, mapped into memory; those that were not read are zero.
        read: Reads so many bytes from an index on.
        path: The file; None where no file could be made, and the parts are in memory.
        file: Its descriptor, -1 in memory.
        kept: Called when more was kept, with the file.
    """

    data: mmap.mmap
    read: Callable[[int, int], bytes]
    path: Path | None = None
    file: int = -1
    kept: Callable[[Path], None] = lambda path: None

    @classmethod
    def in_memory(cls, size: int, read: Callable[[int, int], bytes]) -> PartialCopy:
        """A copy of which nothing is there, in memory."""
        return cls(mmap.mmap(-1, max(size, 1)), read)

    @classmethod
    def in_file(
        cls, path: Path, size: int, read: Callable[[int, int], bytes], kept: Callable[[Path], None]
    ) -> PartialCopy:
        """The copy in a file, which is made if it is not there.

        Raises:
            OSError: The file cannot be made.
        """
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(file, size)
            os.utime(file)
            return cls(mmap.mmap(file, size, access=mmap.ACCESS_READ), read, path, file, kept)
        except BaseException:
            os.close(file)
            raise

    def __del__(self) -> None:
        if self.file >= 0:
            os.close(self.file)

    def fetch(self, needed: Iterable[Span]) -> None:
        """Reads parts from the store, those between them too where that saves requests.

        Raises:
            StorageError: The store does not give them.
            OSError: They cannot be kept.
        """
        spans = read_plan(needed)
        if len(spans) == 1:
            self._fetch(spans[0])
        elif spans:
            with ThreadPoolExecutor(min(len(spans), AT_ONCE)) as pool:
                list(pool.map(self._fetch, spans))
        if self.path is not None:
            self.kept(self.path)

    def _fetch(self, span: Span) -> None:
        begin, end = span
        content = self.read(begin, end - begin)
        if self.file < 0:
            self.data[begin : begin + len(content)] = content
            return
        view = memoryview(content)
        while view:
            written = os.pwrite(self.file, view, begin)
            view, begin = view[written:], begin + written


def read_plan(needed: Iterable[Span]) -> list[Span]:
    """What is read where some parts are needed: gaps between them too, the smallest first, as long as that is not much more; long parts are cut.

    >>> read_plan([(0, 10), (10, 20), (50, 60)])
    [(0, 20), (50, 60)]
    >>> read_plan([(0, 100), (110, 200)])
    [(0, 200)]
    """
    apart = _merged(sorted(needed), 0)
    read = _merged(apart, _widest(apart))
    return [(at, min(at + LONGEST, end)) for begin, end in read for at in range(begin, end, LONGEST)]


def _widest(apart: list[Span]) -> int:
    """The largest gap such that it and all that are no larger can be read."""
    gaps = Counter(after[0] - before[1] for before, after in pairwise(apart))
    spare, widest = SPARE * sum(end - begin for begin, end in apart), 0
    for gap in sorted(gaps):
        spare -= gap * gaps[gap]
        if spare < 0 or gap > WIDEST:
            break
        widest = gap
    return widest


def _merged(spans: list[Span], widest: int) -> list[Span]:
    """Spans in order, those with at most such a gap between them as one."""
    made: list[Span] = []
    for begin, end in spans:
        if made and begin - made[-1][1] <= widest:
            made[-1] = (made[-1][0], max(made[-1][1], end))
        else:
            made.append((begin, end))
    return made
