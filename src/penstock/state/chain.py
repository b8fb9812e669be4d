"""The files of a step that a task owns, oldest first: how they are named, written, noted for the driver, and named in a snapshot.

Values (`state/values.py`) and rows in time (`state/tables.py`) differ in what stands in a file and which files are merged; the rest is here.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import ClassVar

import pyarrow as pa

from penstock.errors import StateError
from penstock.graph.arrays import IntArray
from penstock.graph.state.layout import KEY_GROUPS
from penstock.state.file import (
    StateFile,
    close_removed,
    files_from_json,
    files_to_json,
    open_file,
    write_file,
)
from penstock.state.merge import bits
from penstock.state.notes import TaskWakes, put_note, wake_note
from penstock.state.time_index import with_index, without_index
from penstock.storage import Storage

Settled = tuple[StateFile | None, list[StateFile]]
"""The file that was written, if one was, and those that it replaces."""


@dataclass(frozen=True)
class StepFiles:
    """What a task needs to know of the state of a step: where its files are, what to read (oldest first), and where to write."""

    storage: Storage
    read: tuple[StateFile, ...]
    folder: str
    tasks: int


def groups_of(task: int, tasks: int) -> int:
    """The key groups that a task owns, as bits.

    >>> [group for group in range(10) if groups_of(1, 4) >> group & 1]
    [1, 5, 9]
    """
    return sum(1 << group for group in range(task, KEY_GROUPS, tasks))


class FileChain:
    """The base of what a task keeps in files. A subclass says what of its changes goes into the next one."""

    ending: ClassVar[str]
    """How the names of its files end."""
    noun: ClassVar[str]
    """What it keeps, as errors call it."""

    def __init__(self, files: StepFiles, task: int) -> None:
        self.files, self.task = files, task
        self.groups = groups_of(task, files.tasks)
        self.mine = bits(self.groups)
        self.chain = [f for f in files.read if f.holds(self.groups)]
        close_removed()

    def write_changes(self) -> Settled:
        """Writes what changed, if anything did, and forgets that it did."""
        raise NotImplementedError

    def save(self, wakes: TaskWakes | None = None) -> None:
        """Writes what changed, and the note that tells the driver that the task is done, and when it next has work."""
        file, older = self._settle()
        note = {
            "file": None if file is None else asdict(file),
            "older": [f.path for f in older],
            **wake_note(wakes),
        }
        put_note(self.files.storage, f"{self.files.folder}/{self.task}.json", note)

    def snapshot(self) -> bytes:
        """Writes what changed, and names the files of the task."""
        self._settle()
        return files_to_json(self.chain)

    def restore(self, snapshot: bytes) -> None:
        """Goes on from the files of a snapshot."""
        self.chain = files_from_json(snapshot)

    def _settle(self) -> Settled:
        file, older = self.write_changes()
        self.chain = [*(f for f in self.chain if f not in older), *([file] if file is not None else [])]
        return file, older

    def put_file(self, batch: pa.RecordBatch, times: Iterable[str]) -> StateFile:
        """Writes a batch, sorted by key hash, with an index of its columns of times."""
        path = f"{self.files.folder}/{self.task}-{uuid.uuid4().hex[:8]}.{self.ending}"
        size, crc = write_file(self.files.storage, path, with_index(batch, times))
        return StateFile(path, size, crc, batch.num_rows, self.groups)

    def whole(self, file: StateFile) -> pa.RecordBatch:
        """All of a file, without its index."""
        return without_index(open_file(self.files.storage, file).whole())

    def refuse_strays(self, hashes: IntArray) -> None:
        """Refuses key hashes of groups that the task does not own."""
        strays = ~self.mine[hashes & (KEY_GROUPS - 1)]
        if strays.any():
            group = int(hashes[strays][0]) & (KEY_GROUPS - 1)
            raise StateError(
                f"task {self.task} of {self.files.tasks} got {self.noun} of group {group}, which it does not own"
            )
