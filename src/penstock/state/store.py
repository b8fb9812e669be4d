"""The driver's side of state on disk: a manifest per batch says which files are version N.

A version is real when its manifest is there. A batch that runs again starts from the version before it, so it writes
the same again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.errors import StateError
from penstock.faults import passing
from penstock.graph.state.layout import KEY_GROUPS
from penstock.graph.state.schema import StateSchema, schemas_from_json, schemas_to_json
from penstock.graph.state.times import StoredTimes, Wakes
from penstock.state.file import StateFile
from penstock.state.notes import put_note, read_note
from penstock.state.values import StepFiles, groups_of


@dataclass
class StateStore:
    """The driver's side: knows the versions, hands out files to tasks, publishes manifests."""

    folder: Path
    keep: int = 20
    """How many versions are kept; two at least, because a batch that is not through runs again from the one before."""
    run: str = ""
    schemas: dict[str, StateSchema] = field(default_factory=dict)
    staged: dict[str, StepFiles] = field(default_factory=dict)
    _named: dict[int, set[Path]] = field(default_factory=dict, repr=False)

    def manifest(self, version: int) -> Path:
        """Where the manifest of a version is."""
        return self.folder / "versions" / f"{version}.json"

    def read(self, version: int) -> dict[str, list[StateFile]]:
        """The files of a version, by step. Version -1 is empty, unless a bootstrap has made it."""
        path = self.manifest(version)
        if version < 0 and not path.exists():
            return {}
        if not path.exists():
            raise StateError(
                f"state version {version} is not there ({path}); the checkpoint and the state do not belong together. "
                f"Restore both, or start afresh with --fresh"
            )
        found = self._load(path)
        self._check_schemas(schemas_from_json(found.get("schemas", {})))
        return {step: [StateFile(**f) for f in files] for step, files in found["steps"].items()}

    @staticmethod
    def _load(path: Path) -> dict[str, Any]:
        return read_note(path, "manifest")

    def time(self, version: int, *, missing: bool = False) -> StoredTimes:
        """What a version keeps of time; nothing when there is no such version, if it may be missing."""
        path = self.manifest(version)
        if version < 0 or (missing and not path.exists()):
            return {}
        found: StoredTimes = self._load(path).get("time", {})
        return found

    def kept_schemas(self, version: int) -> dict[str, StateSchema]:
        """The form of what each step keeps in a version."""
        path = self.manifest(version)
        return schemas_from_json(self._load(path).get("schemas", {})) if path.exists() else {}

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
        before = self.read(base)
        self.staged = {
            step: StepFiles(str(self.folder), tuple(before.get(step, ())), f"files/{version}-{self.run}/{step}", tasks)
            for step, tasks in steps.items()
        }
        return self.staged

    def publish(self, version: int, time: StoredTimes | None = None) -> Wakes:
        """Makes a version real: every task must have reported, then the manifest is put in place."""
        notes = {step: self._notes(step, files) for step, files in self.staged.items()}
        steps = {step: [asdict(f) for f in _files(self.staged[step], mine)] for step, mine in notes.items()}
        wakes = Wakes(_earliest(notes, "event"), _earliest(notes, "clock"))
        made = {
            "version": version,
            "groups": KEY_GROUPS,
            "schemas": schemas_to_json(self.schemas),
            "steps": steps,
            "time": time or {},
            "wakes": asdict(wakes),
        }
        put_note(self.manifest(version), made)
        self._named.pop(version, None)
        self._forget(version - max(2, self.keep))
        return wakes

    def _notes(self, step: str, files: StepFiles) -> dict[int, Any]:
        """What each task has noted of its state; all must have."""
        folder = self.folder / files.folder
        done = {int(p.stem): p for p in folder.glob("*.json")} if folder.exists() else {}
        strays = sorted(t for t in done if t >= files.tasks)
        if strays:
            raise StateError(
                f"step {step!r} has {files.tasks} tasks, but {len(strays)} more wrote state; nothing is kept of this batch"
            )
        silent = [t for t in range(files.tasks) if t not in done]
        if silent:
            raise StateError(
                f"step {step!r}: tasks {silent} of {files.tasks} did not report their state; the batch is not complete"
            )
        notes = {task: read_note(path) for task, path in sorted(done.items())}
        for path, size in ((n["file"]["path"], n["file"]["size"]) for n in notes.values() if n["file"] is not None):
            there = (self.folder / path).stat().st_size if (self.folder / path).exists() else None
            if there != size:
                raise StateError(
                    f"step {step!r}: {self.folder / path} should have {size} bytes and has {there}; nothing is kept of this batch"
                )
        return notes

    def _forget(self, last: int) -> None:
        """Drops the versions up to one, and the files that only they needed."""
        old = [v for v in self.versions() if v <= last]
        if not old:
            return
        for version in old:
            self.manifest(version).unlink()
            self._named.pop(version, None)
        passing("purge", last)
        try:
            needed = set[Path]().union(*map(self._files_of, self.versions()))
        except StateError:  # a manifest that nobody needs now; what it names stays
            return
        for folder in (self.folder / "files").glob("*"):
            if _version_of(folder) <= last:
                _sweep(folder, needed)

    def _files_of(self, version: int) -> set[Path]:
        """The files that a version names; manifests do not change while a flow runs, so each is read once."""
        if version not in self._named:
            self._named[version] = {self.folder / f.path for files in self.read(version).values() for f in files}
        return self._named[version]

    def versions(self) -> list[int]:
        """The versions that are there, oldest first."""
        folder = self.folder / "versions"
        return sorted(int(p.stem) for p in folder.glob("*.json")) if folder.exists() else []


def _version_of(folder: Path) -> int:
    """The version that a folder of files was written for.

    >>> _version_of(Path("files/12-a-b")), _version_of(Path("files/-1-a-b"))
    (12, -1)
    """
    return int(folder.name[0] + folder.name[1:].split("-")[0])


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


def _files(files: StepFiles, notes: Mapping[int, Any]) -> list[StateFile]:
    """The files of the new version: those of the one before, less what is done with, and the new ones on top."""
    kept, made = list(files.read), []
    for task, note in notes.items():
        mine = groups_of(task, files.tasks)
        kept = [replace(f, groups=f.groups & ~mine) if f.path in note["older"] else f for f in kept]
        if note["file"] is not None:
            made.append(StateFile(**note["file"]))
    return [f for f in kept if f.groups] + made


def _earliest(notes: Mapping[str, Mapping[int, Any]], clock: str) -> dict[str, int]:
    times = {store: [n[clock] for n in mine.values() if n.get(clock) is not None] for store, mine in notes.items()}
    return {store: min(mine) for store, mine in times.items() if mine}
