"""The versions of a job's checkpoint: when each was written, how much state it names, and how much of that was new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.jobs.manager.processes.directory import JobDirectory
from penstock.state.notes import read_note
from penstock.storage import LocalStorage, StorageError

MOST = 200
"""So many versions are shown."""


def checkpoints_of(directory: JobDirectory, most: int = MOST) -> list[dict[str, Any]]:
    """The versions of a job's state, the newest first; of one that keeps no state the batches that were committed."""
    folder = directory.checkpoint
    versions = _numbered(folder / "state" / "versions", ".json")
    if versions:
        return [_version(number, file) for number, file in versions[:most]]
    return [{"version": number, "time": _time(file)} for number, file in _numbered(folder / "spark" / "commits")[:most]]


def _numbered(folder: Path, ending: str = "") -> list[tuple[int, Path]]:
    if not folder.is_dir():
        return []
    found = [
        (name, file) for file in folder.iterdir() if (name := file.name.removesuffix(ending)).lstrip("-").isdigit()
    ]
    return sorted(((int(name), file) for name, file in found), reverse=True)


def _version(number: int, file: Path) -> dict[str, Any]:
    """A version as its manifest has it. Files whose folder bears its number were written by its batch."""
    made: dict[str, Any] = {"version": number, "time": _time(file)}
    try:
        steps = read_note(LocalStorage(file.parent), file.name)["steps"]
        files = [each for kept in steps.values() for each in kept]
        fresh = [each for each in files if str(each["path"]).startswith(f"files/{number}-")]
    except (PenstockError, StorageError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return made
    return made | {
        "rows": sum(each["rows"] for each in files),
        "bytes": sum(each["size"] for each in files),
        "files": len(files),
        "written_bytes": sum(each["size"] for each in fresh),
        "written_files": len(fresh),
        "steps": {
            step: {"rows": sum(each["rows"] for each in kept), "bytes": sum(each["size"] for each in kept)}
            for step, kept in steps.items()
        },
    }


def _time(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except OSError:  # it was replaced by a newer version meanwhile
        return None
