"""The driver's side of state on disk: a manifest per batch says which files are version N.

A version is real when its manifest is there. A batch that runs again starts from the version before it, so it writes
the same again.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.errors import StateError
from penstock.kernels.state import GROUPS
from penstock.spark.statefile import StateFile, put_safely
from penstock.spark.states import StepFiles, groups_of


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
        found = self._load(path)
        self._check_shapes(found.get("shapes", {}))
        return {step: [StateFile(**f) for f in files] for step, files in found["steps"].items()}

    @staticmethod
    def _load(path: Path) -> dict[str, Any]:
        body, _, crc = path.read_text(errors="replace").rpartition("\n")
        if f"{zlib.crc32(body.encode()):08x}" != crc:
            raise StateError(f"the manifest {path} is damaged; restore it, or start afresh with --fresh")
        found: dict[str, Any] = json.loads(body)
        return found

    def time(self, version: int, *, missing: bool = False) -> dict[str, Any]:
        """What a version keeps of time; nothing when there is no such version, if it may be missing."""
        path = self.manifest(version)
        if version < 0 or (missing and not path.exists()):
            return {}
        found: dict[str, Any] = self._load(path).get("time", {})
        return found

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

    def publish(self, version: int, time: Mapping[str, Any] | None = None) -> dict[str, int | None]:
        """Makes a version real: every task must have reported, then the manifest is put in place.

        Gives the earliest times, by event time and by the clock, at which a step wants a batch although no record may come.
        """
        notes = {step: self._notes(step, files) for step, files in self.staged.items()}
        steps = {step: [asdict(f) for f in _files(self.staged[step], mine)] for step, mine in notes.items()}
        wakes = {clock: _earliest(notes, clock) for clock in ("event", "clock")}
        made = {
            "version": version,
            "groups": GROUPS,
            "shapes": self.shapes,
            "steps": steps,
            "time": time or {},
            "wakes": wakes,
        }
        body = json.dumps(made)
        put_safely(self.manifest(version), [f"{body}\n{zlib.crc32(body.encode()):08x}".encode()])
        self._forget(version - self.keep)
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
        return {task: json.loads(path.read_text()) for task, path in sorted(done.items())}

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


def _files(files: StepFiles, notes: Mapping[int, Any]) -> list[StateFile]:
    """The files of the new version: those of the one before, less what is done with, and the new ones on top."""
    kept, made = list(files.read), []
    for task, note in notes.items():
        mine = groups_of(task, files.tasks)
        kept = [replace(f, groups=f.groups & ~mine) if f.path in note["older"] else f for f in kept]
        if note["file"] is not None:
            made.append(StateFile(**note["file"]))
    return [f for f in kept if f.groups] + made


def _earliest(notes: Mapping[str, Mapping[int, Any]], clock: str) -> int | None:
    return min((n[clock] for mine in notes.values() for n in mine.values() if n.get(clock) is not None), default=None)
