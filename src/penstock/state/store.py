"""The driver's side of state on disk: a manifest per batch says which files are version N.

A version is real when its manifest is there. A batch that runs again starts from the version before it, so it writes
the same again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypedDict

from penstock.errors import StateError
from penstock.faults import passing
from penstock.graph.state.active_runs import (
    ActiveByPattern,
    RunFigures,
    active_from_json,
    active_to_json,
    after_batch,
    figures_of,
)
from penstock.graph.state.key_groups import KEY_GROUPS
from penstock.graph.state.schema import StateSchema, schemas_from_json, schemas_to_json
from penstock.graph.state.times import StoredTimes, Wakes
from penstock.location import Address, Location
from penstock.state.chain import StepFiles, TaskNote
from penstock.state.file import StateFile
from penstock.state.file_list import FileList
from penstock.state.notes import put_note, read_note, swap_note
from penstock.state.ranges import KeyRanges, Span
from penstock.storage import CachedStorage, LocalStorage, NotFound, Storage, object_name, open_storage

FORGET_EVERY = 10
"""How many versions are forgotten at once where that takes requests over a network; half of those that are kept, if these are few."""


def state_storage(folder: Address) -> Storage:
    """What keeps the state in a checkpoint; workers keep copies of the files, where these are not on a disk that they see."""
    storage = open_storage(folder / "state")
    is_remote = isinstance(folder, Location) and not isinstance(storage, LocalStorage)
    return CachedStorage(storage, is_state_file) if is_remote else storage


def is_state_file(name: str) -> bool:
    """Whether a name is that of a file that a task has written, which never changes.

    >>> is_state_file("files/3-a/count/0-b.state"), is_state_file("files/3-a/count/0.json"), is_state_file("versions/3.json")
    (True, False, False)
    """
    return name.startswith("files/") and not name.endswith(".json")


class StateSize(TypedDict):
    """How much a step keeps."""

    rows: int
    bytes: int


@dataclass
class StateStore:
    """The driver's side: knows the versions, hands out files to tasks, publishes manifests."""

    storage: Storage
    keep: int = 20
    """How many versions are kept; two at least, because a batch that is not through runs again from the one before."""
    run: str = ""
    schemas: dict[str, StateSchema] = field(default_factory=dict)
    groups: int = KEY_GROUPS
    """The number of key groups."""
    staged: dict[str, StepFiles] = field(default_factory=dict)
    epoch: int = 0
    """The epoch of the driver that publishes: no manifest of a later one is replaced. 0 where no other can take over."""
    active: dict[str, ActiveByPattern] | None = field(default_factory=dict)
    """The runs under way by step and pattern, in the version that a batch goes on from, or that it has made; None where an older release has not counted them."""
    _named: dict[int, set[str]] = field(default_factory=dict, repr=False)
    _published: tuple[int | None, dict[str, list[StateFile]]] = field(default=(None, {}), repr=False)
    """The version that was published last, and its files: no other driver of this epoch writes one."""

    @staticmethod
    def manifest(version: int) -> str:
        """The name of the manifest of a version."""
        return f"versions/{version}.json"

    def has(self, version: int) -> bool:
        """Whether a version is there."""
        try:
            return self.storage.size(self.manifest(version)) >= 0
        except NotFound:
            return False

    def load(self, version: int) -> dict[str, Any] | None:
        """The manifest of a version; None when there is none."""
        try:
            return read_note(self.storage, self.manifest(version), "manifest")
        except NotFound:
            return None

    def read(self, version: int) -> dict[str, list[StateFile]]:
        """The files of a version, by step. Version -1 is empty, unless a bootstrap has made it."""
        found = self.load(version)
        if found is None and version < 0:
            return {}
        if found is None:
            raise StateError(
                f"state version {version} is not there ({self.where}); the checkpoint and the state do not belong together. "
                f"Restore both, or start afresh with --fresh"
            )
        self._check_schemas(schemas_from_json(found.get("schemas", {})))
        return {step: list(map(StateFile.from_json, files)) for step, files in found["steps"].items()}

    @property
    def where(self) -> str:
        """Where the state is, for messages."""
        return str(getattr(self.storage, "root", self.storage))

    def time(self, version: int, *, missing: bool = False) -> StoredTimes:
        """What a version keeps of time; nothing when there is no such version, if it may be missing."""
        found = None if version < 0 else self.load(version)
        if found is None and version >= 0 and not missing:
            raise StateError(
                f"state version {version} is not there ({self.where}); restore it, or start afresh with --fresh"
            )
        made: StoredTimes = {} if found is None else found.get("time", {})
        return made

    def resumption(self, version: int) -> tuple[StoredTimes, Wakes] | None:
        """What a run that goes on from a version knows of time before its first batch; None where there is no such version.

        Stores that the flow has no more want no batch.
        """
        found = self.load(version)
        if found is None:
            return None
        asked = found.get("wakes", {})
        wakes = ({s: at for s, at in asked.get(c, {}).items() if s in self.schemas} for c in ("event", "clock"))
        return (found.get("time", {}) if version >= 0 else {}), Wakes(*wakes)

    def kept_schemas(self, version: int) -> dict[str, StateSchema]:
        """The form of what each step keeps in a version."""
        return schemas_from_json((self.load(version) or {}).get("schemas", {}))

    def _check_schemas(self, kept: dict[str, StateSchema]) -> None:
        """What a step keeps must still be what it kept."""
        for step, schema in self.schemas.items():
            reasons = schema.compatible_with(kept[step]) if step in kept else []
            if reasons:
                raise StateError(
                    f"step {step!r} kept its state as {kept[step]}; now it wants {schema}: {'; '.join(reasons)}. Give the changed step "
                    f"a name of its own, which begins with no state, or start afresh with --fresh"
                )

    def begin(self, version: int, steps: dict[str, int], base: int) -> dict[str, StepFiles]:
        """What the tasks of each step read (version `base`) and where they write, for `version`."""
        is_next = self._published[0] == base
        before = self._published[1] if is_next else self.read(base)
        self.active = self.active if is_next else self._active_in(base)
        self.staged = {
            step: StepFiles(
                self.storage,
                FileList(before.get(step, ())),
                f"files/{version}-{self.run}/{object_name(step)}",
                tasks,
                self.groups,
                by_number=step in self.schemas and bool(self.schemas[step].tasks),
                starts={name: runs.starts for name, runs in (self.active or {}).get(step, {}).items()},
            )
            for step, tasks in steps.items()
        }
        return self.staged

    def _active_in(self, version: int) -> dict[str, ActiveByPattern] | None:
        found = self.load(version)
        if found is not None and "runs" not in found:
            return None
        return {step: active_from_json(kept) for step, kept in (found or {}).get("runs", {}).items()}

    def report(self, notes: Mapping[tuple[str, int], TaskNote]) -> None:
        """Takes the notes of tasks, by the folder of a step's files in this batch and the number of the task; those of another batch are left out."""
        by_folder = {files.folder: files.notes for files in self.staged.values()}
        for (folder, task), note in notes.items():
            if folder in by_folder:
                by_folder[folder][task] = note

    def publish(self, version: int, time: StoredTimes | None = None) -> Wakes:
        """Makes a version real: every task must have reported, then the manifest is written."""
        notes = {step: self._notes(step, files) for step, files in self.staged.items()}
        files = {step: _files(self.staged[step], mine) for step, mine in notes.items()}
        wakes = Wakes(_earliest(notes, "event"), _earliest(notes, "clock"))
        made = {
            "version": version,
            "groups": self.groups,
            "schemas": schemas_to_json(self.schemas),
            "steps": {step: [f.to_json() for f in mine] for step, mine in files.items()},
            "time": time or {},
            "wakes": asdict(wakes),
        }
        active = self._active_after(notes)
        if active is not None:
            made["runs"] = {step: active_to_json(runs) for step, runs in active.items()}
        if self.epoch:
            swap_note(self.storage, self.manifest(version), made | {"epoch": self.epoch})
        else:
            put_note(self.storage, self.manifest(version), made)
        self._published, self.active = (version, files), active
        self._named[version] = {f.path for each in files.values() for f in each}
        if not self.epoch or version % max(1, min(FORGET_EVERY, self.keep // 2)) == 0:
            self._forget(version - max(2, self.keep))
        return wakes

    def _active_after(self, notes: Mapping[str, Mapping[int, TaskNote]]) -> dict[str, ActiveByPattern] | None:
        """The runs under way after what tasks have noted."""
        if self.active is None:
            return None
        made = {
            step: after_batch(self.active.get(step, {}), [note.get("runs", {}) for note in mine.values()])
            for step, mine in notes.items()
        }
        return {step: runs for step, runs in (self.active | made).items() if runs}

    def figures(self) -> dict[str, dict[str, RunFigures]]:
        """The runs under way by step and pattern, with the bytes of their files, in the version that was published last."""
        files = self._published[1]
        return {
            step: figures_of(runs, sum(file.size for file in files.get(step, ())))
            for step, runs in (self.active or {}).items()
        }

    def sizes(self) -> dict[str, StateSize]:
        """The entries and bytes of each store in the version that was published last; entries that newer ones replace count until files are merged."""
        return {
            store: StateSize(rows=sum(file.rows for file in files), bytes=sum(file.size for file in files))
            for store, files in self._published[1].items()
        }

    def _notes(self, step: str, files: StepFiles) -> dict[int, Any]:
        """What each task has noted of its state; all must have."""
        notes = dict(sorted(files.notes.items()))
        strays = [t for t in notes if t >= files.tasks]
        if strays:
            raise StateError(
                f"step {step!r} has {files.tasks} tasks, but {len(strays)} more wrote state; nothing is kept of this batch"
            )
        silent = [t for t in range(files.tasks) if t not in notes]
        if silent:
            raise StateError(
                f"step {step!r}: tasks {silent} of {files.tasks} did not report their state; the batch is not complete"
            )
        self._check_files(step, files, {n["file"]["path"]: n["file"]["size"] for n in notes.values() if n["file"]})
        return notes

    def _check_files(self, step: str, files: StepFiles, written: dict[str, int]) -> None:
        """Looks whether files are as tasks have noted; not where that takes a request, since a store has answered that it keeps each."""
        if isinstance(self.storage, CachedStorage) or not written:
            return
        there = {e.name: e.size for e in self.storage.list(f"{files.folder}/")}
        for path, size in written.items():
            if there.get(path) != size:
                raise StateError(
                    f"step {step!r}: {self.where}/{path} should have {size} bytes and has {there.get(path)}; nothing is kept of this batch"
                )

    def _forget(self, last: int) -> None:
        """Drops the versions up to one, and the files that only they needed."""
        versions = self.versions()
        old = [v for v in versions if v <= last]
        if not old:
            return
        named = [self._named.pop(v, None) for v in old]
        self.storage.delete(*map(self.manifest, old))
        passing("purge", last)
        try:
            needed = set[str]().union(*map(self._files_of, versions[len(old) :]))
        except StateError:  # a manifest that nobody needs now; what it names stays
            return
        written = {n for each in named if each is not None for n in each}.union(
            self._written(old, complete=None in named)
        )
        self.storage.delete(*sorted(n for n in written if _version_of(n) <= last and n not in needed))

    def _written(self, versions: list[int], *, complete: bool) -> Iterator[str]:
        """What was written for some versions, by attempts that failed too; or for any, where it is not known what older ones have left."""
        folders = self.storage.children("files/")
        mine = [f for f in folders if complete or _version_of(f"files/{f}") in versions]
        return (entry.name for folder in mine for entry in self.storage.list(f"files/{folder}/"))

    def _files_of(self, version: int) -> set[str]:
        """The files that a version names; manifests do not change while a flow runs, so each is read once."""
        if version not in self._named:
            self._named[version] = {f.path for files in self.read(version).values() for f in files}
        return self._named[version]

    def versions(self) -> list[int]:
        """The versions that are there, oldest first."""
        return sorted(_number(e.name) for e in self.storage.list("versions/") if e.name.endswith(".json"))


def _number(name: str) -> int:
    """The version or task that an object of JSON is about.

    >>> _number("versions/12.json"), _number("versions/-1.json")
    (12, -1)
    """
    return int(name.rpartition("/")[2].removesuffix(".json"))


def _version_of(name: str) -> int:
    """The version that a file was written for.

    >>> _version_of("files/12-a-b/step/0-c.state"), _version_of("files/-1-a-b/step/0.json")
    (12, -1)
    """
    written = name.split("/")[1]
    return int(written[0] + written[1:].split("-")[0])


def _files(files: StepFiles, notes: Mapping[int, Any]) -> list[StateFile]:
    """The files of the new version: those of the one before, less what is done with, and the new ones on top."""
    replaced: dict[str, list[Span]] = defaultdict(list)
    for task, note in notes.items():
        for path in note["older"]:
            replaced[path] += files.ranges(task).spans
    left = (
        replace(f, ranges=f.ranges - KeyRanges.of(replaced[f.path])) if f.path in replaced else f for f in files.read
    )
    made = [StateFile.from_json(note["file"]) for note in notes.values() if note["file"] is not None]
    return [*(f for f in left if f.ranges), *made]


def _earliest(notes: Mapping[str, Mapping[int, Any]], clock: str) -> dict[str, int]:
    times = {store: [n[clock] for n in mine.values() if n.get(clock) is not None] for store, mine in notes.items()}
    return {store: min(mine) for store, mine in times.items() if mine}
