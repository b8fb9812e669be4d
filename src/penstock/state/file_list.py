"""The files of a step on their way to its tasks: thousands of files, of which a task needs a few."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Self, overload

import numpy as np

from penstock.graph.arrays import IntArray
from penstock.state.file import StateFile
from penstock.state.ranges import KeyRanges


class FileList(Sequence[StateFile]):
    """Files, oldest first. It travels as a hull of slots and some bytes for each file; a file is made of them when it is asked for.

    With 10,000 files a task gets its own in 2 ms, where it took 38 ms to make all of them.
    """

    def __init__(self, files: Iterable[StateFile] = ()) -> None:
        self._files: list[StateFile | bytes] = list(files)
        self._hulls: IntArray | None = None

    def __reduce__(self) -> tuple[object, ...]:
        hulls = np.array([(f.ranges.spans[0][0], f.ranges.spans[-1][1]) for f in self], np.int32).reshape(-1, 2)
        return FileList._packed, ([pickle.dumps(_parts(f), 5) for f in self], hulls)

    @classmethod
    def _packed(cls, files: list[StateFile | bytes], hulls: IntArray) -> Self:
        made = cls()
        made._files, made._hulls = files, hulls
        return made

    def __len__(self) -> int:
        return len(self._files)

    @overload
    def __getitem__(self, at: int) -> StateFile: ...

    @overload
    def __getitem__(self, at: slice) -> list[StateFile]: ...

    def __getitem__(self, at: int | slice) -> StateFile | list[StateFile]:
        if isinstance(at, slice):
            return [self[i] for i in range(len(self))[at]]
        file = self._files[at]
        return file if isinstance(file, StateFile) else self._made(at, file)

    def _made(self, at: int, packed: bytes) -> StateFile:
        path, size, crc, rows, spans, *times = pickle.loads(
            packed
        )  # as the driver has sent it, with the function of the task
        made = self._files[at] = StateFile(path, size, crc, rows, KeyRanges(spans), *times)
        return made

    def meeting(self, ranges: KeyRanges) -> list[StateFile]:
        """The files that count for some of these keys."""
        return [file for file in self._candidates(ranges) if file.ranges.meets(ranges)]

    def _candidates(self, ranges: KeyRanges) -> Iterator[StateFile]:
        """The files whose hulls meet the ranges."""
        if self._hulls is None:
            return iter(self)
        begin, end = ranges.spans[0][0], ranges.spans[-1][1]
        meeting = np.flatnonzero((self._hulls[:, 0] < end) & (self._hulls[:, 1] > begin))
        return (self[at] for at in meeting.tolist())


def _parts(file: StateFile) -> tuple[object, ...]:
    return (file.path, file.size, file.crc, file.rows, file.ranges.spans, file.low, file.high, file.horizon)
