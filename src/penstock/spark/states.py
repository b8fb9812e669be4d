"""Keyed state on disk: immutable files, and a manifest per batch that says which of them are version N.

A task writes one file per batch with all the key groups it owns, beside its final name first. A version is real when
its manifest is there. A batch that runs again starts from the version before it, so it writes the same again.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import StateError
from penstock.kernels.state import GROUPS, MemoryState

_MAGIC = b"penstock-state-1\n"


@dataclass(frozen=True)
class StateFile:
    """A file of state: where, how large, its checksum, and the task that wrote it (of how many)."""

    path: str
    size: int
    crc: int
    task: int
    tasks: int

    def holds_any_of(self, task: int, tasks: int) -> bool:
        """Whether it has key groups that belong to `task` of `tasks`."""
        step = min(self.tasks, tasks)
        return self.task % step == task % step


@dataclass(frozen=True)
class StepFiles:
    """What a task needs to know of the state of a step: what to read, and where to write."""

    base: str
    read: tuple[StateFile, ...]
    folder: str
    tasks: int


def load_state(files: StepFiles, task: int) -> MemoryState:
    """The state of the key groups that a task owns."""
    groups: dict[int, dict[Any, Any]] = {}
    for file in files.read:
        if file.holds_any_of(task, files.tasks):
            kept = read_file(Path(files.base), file)
            groups |= {g: keys for g, keys in kept.items() if g % files.tasks == task}
    return MemoryState(groups)


def read_file(base: Path, file: StateFile) -> dict[int, dict[Any, Any]]:
    """The groups in a file; its size and checksum must be those of the manifest."""
    from pyspark import cloudpickle

    try:
        data = (base / file.path).read_bytes()
    except OSError as error:
        raise StateError(
            f"state file {base / file.path} cannot be read ({error.strerror}); restore it, or start from a savepoint"
        ) from None
    if len(data) != file.size or zlib.crc32(data) != file.crc or not data.startswith(_MAGIC):
        raise StateError(
            f"state file {base / file.path} is damaged: {file.size} bytes with checksum {file.crc:08x} were written, "
            f"{len(data)} with {zlib.crc32(data):08x} are there"
        )
    made: dict[int, dict[Any, Any]] = cloudpickle.loads(data[len(_MAGIC) :])
    return made


def save_state(files: StepFiles, task: int, state: MemoryState) -> None:
    """Writes the groups of a task, or a note that nothing changed; either tells the driver that the task is done."""
    from pyspark import cloudpickle

    folder = Path(files.base) / files.folder
    if not state.changed:
        _put(folder / f"{task}.same", b"")
        return
    data = _MAGIC + cloudpickle.dumps(state.groups, protocol=5)
    _put(folder / f"{task}.state", data)
    note = StateFile(f"{files.folder}/{task}.state", len(data), zlib.crc32(data), task, files.tasks)
    _put(folder / f"{task}.json", json.dumps(asdict(note)).encode())


def _put(path: Path, data: bytes) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with aside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


@dataclass
class StateStore:
    """The driver's side: knows the versions, hands out files to tasks, publishes manifests."""

    folder: Path
    keep: int = 10
    run: str = ""
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
        found = json.loads(body)["steps"]
        return {step: [StateFile(**f) for f in files] for step, files in found.items()}

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
        body = json.dumps({"version": version, "groups": GROUPS, "steps": steps})
        _put(self.manifest(version), f"{body}\n{zlib.crc32(body.encode()):08x}".encode())
        self._forget(version - self.keep)

    def _files(self, step: str, files: StepFiles) -> list[StateFile]:
        folder = self.folder / files.folder
        done = {p.name for p in folder.iterdir()} if folder.exists() else set()
        silent = [t for t in range(files.tasks) if f"{t}.json" not in done and f"{t}.same" not in done]
        if silent:
            raise StateError(
                f"step {step!r}: tasks {silent} of {files.tasks} did not report their state; the batch is not complete"
            )
        made = [
            StateFile(**json.loads((folder / f"{t}.json").read_text()))
            for t in range(files.tasks)
            if f"{t}.json" in done
        ]
        rewritten = {f.task for f in made}
        return self._carried(files, rewritten) + made

    def _carried(self, files: StepFiles, rewritten: set[int]) -> list[StateFile]:
        """The files of the version before that no task has replaced."""
        kept = []
        for file in files.read:
            owners = {t for t in range(files.tasks) if file.holds_any_of(t, files.tasks)}
            if file.tasks == files.tasks and file.task in rewritten:
                continue
            if file.tasks != files.tasks and owners <= rewritten:
                continue
            kept.append(file)
        return kept

    def _forget(self, version: int) -> None:
        """Drops a version, and the files that only it needed."""
        path = self.manifest(version)
        if version < 0 or not path.exists():
            return
        path.unlink()
        needed = {
            self.folder / Path(f.path).parent.parent
            for v in self.versions()
            for files in self.read(v).values()
            for f in files
        }
        for folder in (self.folder / "files").iterdir():
            if folder not in needed and int(folder.name.split("-")[0]) <= version:
                _remove(folder)

    def versions(self) -> list[int]:
        """The versions that are there, oldest first."""
        folder = self.folder / "versions"
        return sorted(int(p.stem) for p in folder.glob("*.json")) if folder.exists() else []


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
