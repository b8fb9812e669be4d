"""Upgrades: a new version begins from a savepoint, in a checkpoint of its own; that of the version before stays as it was."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from penstock.jobs.manager.job import Job
from penstock.jobs.manager.processes.directory import JobDirectory
from penstock.jobs.manager.processes.trial import last_commit
from penstock.location import Address
from penstock.spark.checkpoint.changes import FLOW
from penstock.spark.checkpoint.savepoint import directory_of, is_savepoint, take


def begin(directory: JobDirectory, job: Job) -> dict[str, object]:
    """Makes ready what a new version begins from; returns the options of its run. May be done again after a crash at any moment."""
    forget_older(directory, job)
    target = directory.path / job.checkpoint
    if job.previous is None or (target / FLOW).exists():
        return {}
    before = directory.path / job.previous.checkpoint
    if last_commit(before) < 0:
        _copy(before, target)
        return {}
    return {"savepoint": str(_savepoint(before, job.checkpoint))}


def _copy(before: Path, target: Path) -> None:
    """A checkpoint without a batch goes along as it is."""
    if before.is_dir() and not target.exists():
        made = target.with_name(f"{target.name}.{uuid.uuid4().hex}.tmp")
        shutil.copytree(before, made)
        made.rename(target)


def _savepoint(before: Path, name: str) -> Address:
    found = directory_of(f"before-{name}", before)
    if not is_savepoint(found):
        take(before, found)
    return found


def forget_older(directory: JobDirectory, job: Job) -> None:
    """Deletes the checkpoints of versions before the last one. The driver does it, which has the job's lock."""
    kept = {job.checkpoint, *([job.previous.checkpoint] if job.previous else [])}
    for found in directory.path.glob("checkpoint*"):
        if found.name not in kept:
            shutil.rmtree(found, ignore_errors=True)
