"""Keyed state on disk: immutable files, and a manifest per batch that says which of them are version N.

A task reads only the keys that a batch touches, and writes only those: a new file on top of the older ones, into which
older ones of its own size are merged. A version is real when its manifest is there. A batch that runs again starts from
the version before it, so it writes the same again.
"""

from __future__ import annotations

import json
import pickle
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import StateError
from penstock.kernels.state import GROUPS
from penstock.spark.statefile import StateFile, close_removed, open_file, put_safely, sorted_table, write_file
from penstock.spark.statemerge import merged, owned

_GONE = object()


@dataclass(frozen=True)
class StepFiles:
    """What a task needs to know of the state of a step: what to read (oldest first), and where to write."""

    base: str
    read: tuple[StateFile, ...]
    folder: str
    tasks: int


def groups_of(task: int, tasks: int) -> int:
    """The key groups that a task owns, as bits.

    >>> [group for group in range(10) if groups_of(1, 4) >> group & 1]
    [1, 5, 9]
    """
    return sum(1 << group for group in range(task, GROUPS, tasks))


class FileState:
    """The state of a task: files below, what this batch touches in memory."""

    def __init__(self, files: StepFiles, task: int) -> None:
        self.files, self.task = files, task
        self.groups = groups_of(task, files.tasks)
        self.chain = [f for f in files.read if f.holds(self.groups)]
        close_removed()
        self.near: dict[Any, Any] = {}
        self.places: dict[Any, int] = {}
        self.touched: dict[Any, None] = {}

    def prepare(self, keys: list[Any], places: list[int] | None) -> None:
        """Looks up the keys that are not near yet, all at once."""
        assert places is not None
        new = {k: p for k, p in zip(keys, places, strict=True) if k not in self.places}
        if not new:
            return
        strays = [p for p in new.values() if not self.groups >> (p & (GROUPS - 1)) & 1]
        if strays:
            raise StateError(
                f"task {self.task} of {self.files.tasks} got a key of group {strays[0] & (GROUPS - 1)}, which it does not own"
            )
        self.places |= new
        if self.chain:
            self._find(new)

    def _find(self, new: dict[Any, int]) -> None:
        """Goes through the files, newest first, until every key is found or all are through."""
        wanted: dict[int, list[Any]] = {}
        for key, place in new.items():
            wanted.setdefault(place, []).append(key)
        for file in reversed(self.chain):
            if not wanted:
                return
            self._find_in(file, wanted)

    def _find_in(self, file: StateFile, wanted: dict[int, list[Any]]) -> None:
        opened = open_file(Path(self.files.base), file)
        here = [p for p in wanted if file.groups >> (p & (GROUPS - 1)) & 1]
        places = np.sort(np.array(here, np.int64))
        for place, key_bytes, value in opened.lookup(places):
            key, sought = pickle.loads(key_bytes), wanted.get(place, [])
            if key in sought:
                if value is not None:
                    self.near[key] = pickle.loads(value)
                sought.remove(key)
                if not sought:
                    del wanted[place]

    def get(self, key: Any) -> Any:
        """What is kept for a key, or None."""
        return self.near.get(key)

    def put(self, key: Any, value: Any) -> None:
        """Keeps a value for a key."""
        self.near[key] = value
        self.touched[key] = None

    def delete(self, key: Any) -> None:
        """Forgets a key."""
        self.near.pop(key, None)
        self.touched[key] = None

    def items(self) -> Iterator[tuple[Any, Any]]:
        """All that is kept, in the files and in memory."""
        for place, key_bytes, value in self._entries():
            key = pickle.loads(key_bytes)
            self.places.setdefault(key, place)
            if key not in self.touched:
                yield key, pickle.loads(value)
        yield from ((k, self.near[k]) for k in list(self.touched) if k in self.near)

    def _entries(self) -> Iterator[tuple[int, bytes, bytes]]:
        whole = merged([self._whole(f) for f in self.chain], self.groups, last=True)
        yield from zip(*(c.to_pylist() for c in whole.columns), strict=True)

    def _whole(self, file: StateFile) -> pa.RecordBatch:
        """A file, without the groups for which it does not count any more."""
        whole = open_file(Path(self.files.base), file).whole()
        return whole if file.groups & self.groups == self.groups else whole.filter(pa.array(owned(whole, file.groups)))

    def save(self) -> None:
        """Writes what changed, or a note that nothing did; either tells the driver that the task is done."""
        base = Path(self.files.base)
        if not self.touched:
            put_safely(base / self.files.folder / f"{self.task}.same", [])
            return
        batch, older = self._written()
        path = f"{self.files.folder}/{self.task}-{uuid.uuid4().hex[:8]}.state"
        size, crc = write_file(base / path, batch)
        note = {
            "file": asdict(StateFile(path, size, crc, batch.num_rows, self.groups)),
            "older": [f.path for f in older],
        }
        put_safely(base / self.files.folder / f"{self.task}.json", [json.dumps(note).encode()])

    def _written(self) -> tuple[pa.RecordBatch, list[StateFile]]:
        """What is to be written: the touched keys, and the newest files below that are not much larger."""
        older: list[StateFile] = []
        batch, left = self._changes(), list(self.chain)
        while left and left[-1].rows <= 2 * (batch.num_rows + sum(f.rows for f in older)):
            older.append(left.pop())
        if older:
            batch = merged([*(self._whole(f) for f in reversed(older)), batch], self.groups, last=not left)
        return batch, older

    def _changes(self) -> pa.RecordBatch:
        keys = list(self.touched)
        values = [self.near.get(k, _GONE) for k in keys]
        return sorted_table(
            [self.places[k] for k in keys],
            [pickle.dumps(k, 5) for k in keys],
            [None if v is _GONE else _dumps(v) for v in values],
        )


def _dumps(value: Any) -> bytes:
    """A value as bytes; one whose class travelled by value takes the longer way."""
    try:
        return pickle.dumps(value, 5)
    except (pickle.PicklingError, AttributeError, ImportError, TypeError):
        from pyspark import cloudpickle

        return bytes(cloudpickle.dumps(value, 5))


@dataclass
class StateStore:
    """The driver's side: knows the versions, hands out files to tasks, publishes manifests."""

    folder: Path
    keep: int = 10
    run: str = ""
    shapes: dict[str, str] = field(default_factory=dict)
    staged: dict[str, StepFiles] = field(default_factory=dict)

    def manifest(self, version: int) -> Path:
        """Where the manifest of a version is."""
        return self.folder / "versions" / f"{version}.json"

    def read(self, version: int) -> dict[str, list[StateFile]]:
        """The files of a version, by step. Version -1 is empty."""
        if version < 0:
            return {}
        path = self.manifest(version)
        if not path.exists():
            raise StateError(
                f"state version {version} is not there ({path}); the checkpoint and the state do not belong together. "
                f"Restore both, or start afresh with --fresh"
            )
        body, _, crc = path.read_text().rpartition("\n")
        if f"{zlib.crc32(body.encode()):08x}" != crc:
            raise StateError(f"the manifest {path} is damaged; restore it, or start afresh with --fresh")
        found = json.loads(body)
        self._check_shapes(found.get("shapes", {}))
        return {step: [StateFile(**f) for f in files] for step, files in found["steps"].items()}

    def _check_shapes(self, kept: dict[str, str]) -> None:
        """What a step keeps must still be what it kept."""
        for step, shape in self.shapes.items():
            if kept.get(step, shape) != shape:
                raise StateError(
                    f"step {step!r} kept its state as {kept[step]}; now it wants {shape}. Give the changed step a name of its "
                    f"own, which begins with no state, or start afresh with --fresh"
                )

    def begin(self, version: int, steps: dict[str, int], base: int) -> dict[str, StepFiles]:
        """What the tasks of each step read (version `base`) and where they write, for `version`."""
        before = self.read(base)
        self.staged = {
            step: StepFiles(str(self.folder), tuple(before.get(step, ())), f"files/{version}-{self.run}/{step}", tasks)
            for step, tasks in steps.items()
        }
        return self.staged

    def publish(self, version: int) -> None:
        """Makes a version real: every task must have reported, then the manifest is put in place."""
        steps = {step: [asdict(f) for f in self._files(step, files)] for step, files in self.staged.items()}
        body = json.dumps({"version": version, "groups": GROUPS, "shapes": self.shapes, "steps": steps})
        put_safely(self.manifest(version), [f"{body}\n{zlib.crc32(body.encode()):08x}".encode()])
        self._forget(version - self.keep)

    def _files(self, step: str, files: StepFiles) -> list[StateFile]:
        """The files of the new version: those of the one before, less what was merged, and the new ones on top."""
        folder = self.folder / files.folder
        done = {p.name for p in folder.iterdir()} if folder.exists() else set()
        strays = sorted(n for n in done if n.endswith(".json") and int(n.removesuffix(".json")) >= files.tasks)
        if strays:
            raise StateError(
                f"step {step!r} has {files.tasks} tasks, but {len(strays)} more wrote state; nothing is kept of this batch"
            )
        silent = [t for t in range(files.tasks) if f"{t}.json" not in done and f"{t}.same" not in done]
        if silent:
            raise StateError(
                f"step {step!r}: tasks {silent} of {files.tasks} did not report their state; the batch is not complete"
            )
        kept, made = list(files.read), []
        for task in (t for t in range(files.tasks) if f"{t}.json" in done):
            note = json.loads((folder / f"{task}.json").read_text())
            made.append(StateFile(**note["file"]))
            mine = groups_of(task, files.tasks)
            kept = [replace(f, groups=f.groups & ~mine) if f.path in note["older"] else f for f in kept]
        return [f for f in kept if f.groups] + made

    def _forget(self, version: int) -> None:
        """Drops a version, and the files that only it needed."""
        path = self.manifest(version)
        if version < 0 or not path.exists():
            return
        path.unlink()
        try:
            needed = {self.folder / f.path for v in self.versions() for files in self.read(v).values() for f in files}
        except StateError:  # a manifest that nobody needs now; what it names stays
            return
        for folder in (self.folder / "files").iterdir():
            if int(folder.name.split("-")[0]) <= version:
                _sweep(folder, needed)

    def versions(self) -> list[int]:
        """The versions that are there, oldest first."""
        folder = self.folder / "versions"
        return sorted(int(p.stem) for p in folder.glob("*.json")) if folder.exists() else []


def _sweep(folder: Path, needed: set[Path]) -> None:
    """Removes the files of a version that no manifest names, and the folders that are empty then."""
    for step in folder.iterdir():
        for file in step.iterdir():
            if file not in needed:
                file.unlink()
        if not any(step.iterdir()):
            step.rmdir()
    if not any(folder.iterdir()):
        folder.rmdir()
