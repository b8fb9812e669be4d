"""The files of a step that a task owns, oldest first: how they are named, written, noted for the driver, and named in a snapshot.

Values (`state/values.py`) and rows in time (`state/tables.py`) differ in what stands in a file and which files are merged; the rest is here.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from penstock.errors import StateError
from penstock.graph.arrays import IntArray
from penstock.graph.state.active_runs import ActiveRuns, RunChanges, RunNote
from penstock.graph.state.key_groups import HASH_BITS, KEY_GROUPS, SLOTS
from penstock.state.file import (
    StateFile,
    close_removed,
    files_from_json,
    files_to_json,
    open_file,
    write_file,
)
from penstock.state.file_list import FileList
from penstock.state.notes import TaskWakes, wake_note
from penstock.state.ranges import KeyRanges, numbered_ranges, ranges_of
from penstock.state.timing.time_index import is_index, with_index
from penstock.storage import Storage

Settled = tuple[StateFile | None, list[StateFile]]
"""The file that was written, if one was, and those that it replaces."""
TaskNote = dict[str, Any]
"""What a task notes of the state of a step: the file that it wrote, the older ones that it replaces, and when it next has work."""


@dataclass(frozen=True)
class StepFiles:
    """What a task needs to know of the state of a step: where its files are, what to read (oldest first), and where to write.

    `groups` is the number of key groups, which the tasks share. `by_number` says that the step has no key, but keeps something for each task.
    """

    storage: Storage
    read: FileList
    folder: str
    tasks: int
    groups: int = KEY_GROUPS
    by_number: bool = False
    starts: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Where the spans of time start by which the runs under way are counted, by pattern."""
    notes: dict[int, TaskNote] = field(default_factory=dict, compare=False, repr=False)
    """What tasks have noted, by their number. Those of another process come by `StateStore.report`."""

    def ranges(self, task: int) -> KeyRanges:
        """The keys that a task owns."""
        if self.by_number:
            return numbered_ranges(task, self.tasks, (file.ranges for file in self.read))
        return ranges_of(task, self.tasks, self.groups)


class FileChain:
    """The base of what a task keeps in files. A subclass says what of its changes goes into the next one."""

    ending: ClassVar[str]
    """How the names of its files end."""
    noun: ClassVar[str]
    """What it keeps, as errors call it."""
    by: ClassVar[str]
    """The column of its files that has the key hashes."""

    def __init__(self, files: StepFiles, task: int) -> None:
        self.files, self.task = files, task
        self.ranges = files.ranges(task)
        self.chain = files.read.meeting(self.ranges)
        close_removed()

    def write_changes(self) -> Settled:
        """Writes what changed, if anything did, and forgets that it did."""
        raise NotImplementedError

    def save(self, wakes: TaskWakes | None = None, runs: Mapping[str, RunChanges] | None = None) -> TaskNote:
        """Writes what changed; returns the note that tells the driver that the task is done, when it next has work, and what has changed of runs."""
        file, older = self._settle()
        note = self.files.notes[self.task] = {
            "file": None if file is None else file.to_json(),
            "older": [f.path for f in older],
            **wake_note(wakes),
            **self._runs(runs or {}),
        }
        return note

    def _runs(self, runs: Mapping[str, RunChanges]) -> dict[str, dict[str, RunNote]]:
        """What is to be noted of the runs of patterns; nothing where none has changed."""
        starts = self.files.starts
        made = {name: each.note(starts.get(name, ActiveRuns().starts)) for name, each in runs.items()}
        return {"runs": made} if made else {}

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
        return StateFile(path, size, crc, batch.num_rows, self.ranges)

    def whole(self, file: StateFile) -> pa.RecordBatch:
        """All that a file holds of the task's keys for which it counts, without its index."""
        opened = open_file(self.files.storage, file)
        names = [name for name in opened.batch.schema.names if not is_index(name)]
        return opened.part(file.ranges & self.ranges, self.by, names)

    def refuse_strays(self, hashes: IntArray) -> None:
        """Refuses key hashes that the task does not own."""
        strays = ~self.ranges.mask(hashes)
        if strays.any():
            slot = (int(hashes[strays][0]) >> HASH_BITS) + SLOTS // 2
            group = slot * self.files.groups // SLOTS
            raise StateError(
                f"task {self.task} of {self.files.tasks} got {self.noun} of group {group}, which it does not own"
            )
