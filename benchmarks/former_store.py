"""The driver's side of state before key groups were ranges: bit sets of 128 groups, what the bench `many-tasks` compares with.

Kept as it was, but for what has nothing to do with the time of a batch.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.errors import StateError
from penstock.graph.times import FOREVER, NEVER
from penstock.storage import Storage, object_name

KEY_GROUPS = 128


@dataclass(frozen=True)
class FormerFile:
    """A file as a manifest named it: its key groups were bits."""

    path: str
    size: int
    crc: int
    rows: int
    groups: int
    low: int = NEVER
    high: int = FOREVER
    horizon: int = NEVER


@dataclass(frozen=True)
class FormerStepFiles:
    """What a task needed to know of the state of a step."""

    storage: Storage
    read: tuple[FormerFile, ...]
    folder: str
    tasks: int


def groups_of(task: int, tasks: int) -> int:
    """The key groups that a task owned, as bits."""
    return sum(1 << group for group in range(task, KEY_GROUPS, tasks))


def read_note(storage: Storage, name: str) -> dict[str, Any]:
    """A note as it was written."""
    where = storage.local_path(name) or name
    body, _, crc = storage.read(name).decode(errors="replace").rpartition("\n")
    if f"{zlib.crc32(body.encode()):08x}" != crc:
        raise StateError(f"the note {where} is damaged")
    found: dict[str, Any] = json.loads(body)
    return found


def put_note(storage: Storage, name: str, note: Mapping[str, Any]) -> None:
    """Writes a note."""
    body = json.dumps(note)
    storage.write(name, f"{body}\n{zlib.crc32(body.encode()):08x}".encode())


@dataclass
class FormerStore:
    """Versions of state, as they were begun and published."""

    storage: Storage
    keep: int = 20
    run: str = "r"
    staged: dict[str, FormerStepFiles] = field(default_factory=dict)
    _named: dict[int, set[str]] = field(default_factory=dict, repr=False)

    def read(self, version: int) -> dict[str, list[FormerFile]]:
        """The files of a version, by step."""
        if version < 0:
            return {}
        found = read_note(self.storage, f"versions/{version}.json")
        return {step: [FormerFile(**f) for f in files] for step, files in found["steps"].items()}

    def begin(self, version: int, steps: dict[str, int], base: int) -> dict[str, FormerStepFiles]:
        """What the tasks of each step read, and where they write."""
        before = self.read(base)
        self.staged = {
            step: FormerStepFiles(
                self.storage, tuple(before.get(step, ())), f"files/{version}-{self.run}/{object_name(step)}", tasks
            )
            for step, tasks in steps.items()
        }
        return self.staged

    def publish(self, version: int) -> None:
        """Makes a version real."""
        notes = {step: self._notes(files) for step, files in self.staged.items()}
        steps = {step: [asdict(f) for f in _files(self.staged[step], mine)] for step, mine in notes.items()}
        made = {"version": version, "groups": KEY_GROUPS, "schemas": {}, "steps": steps, "time": {}, "wakes": {}}
        put_note(self.storage, f"versions/{version}.json", made)
        self._named.pop(version, None)
        self._forget(version - max(2, self.keep))

    def _notes(self, files: FormerStepFiles) -> dict[int, Any]:
        there = {e.name: e.size for e in self.storage.list(f"{files.folder}/")}
        done = {_number(name): name for name in there if name.endswith(".json")}
        strays = sorted(t for t in done if t >= files.tasks)
        silent = [t for t in range(files.tasks) if t not in done]
        if strays or silent:
            raise StateError("not complete")
        notes = {task: read_note(self.storage, name) for task, name in sorted(done.items())}
        for path, size in ((n["file"]["path"], n["file"]["size"]) for n in notes.values() if n["file"] is not None):
            if there.get(path) != size:
                raise StateError("not complete")
        return notes

    def _forget(self, last: int) -> None:
        old = [v for v in self.versions() if v <= last]
        if not old:
            return
        for version in old:
            self.storage.delete(f"versions/{version}.json")
            self._named.pop(version, None)
        needed = set[str]().union(*map(self._files_of, self.versions()))
        written = [e.name for e in self.storage.list("files/")]
        self.storage.delete(*(n for n in written if int(n.split("/")[1].split("-")[0]) <= last and n not in needed))

    def _files_of(self, version: int) -> set[str]:
        if version not in self._named:
            self._named[version] = {f.path for files in self.read(version).values() for f in files}
        return self._named[version]

    def versions(self) -> list[int]:
        """The versions that are there, oldest first."""
        return sorted(_number(e.name) for e in self.storage.list("versions/") if e.name.endswith(".json"))


def _number(name: str) -> int:
    return int(name.rpartition("/")[2].removesuffix(".json"))


def _files(files: FormerStepFiles, notes: Mapping[int, Any]) -> list[FormerFile]:
    kept, made = list(files.read), []
    for task, note in notes.items():
        mine = groups_of(task, files.tasks)
        kept = [replace(f, groups=f.groups & ~mine) if f.path in note["older"] else f for f in kept]
        if note["file"] is not None:
            made.append(FormerFile(**note["file"]))
    return [f for f in kept if f.groups] + made
