"""Upgrades: a new version begins from a savepoint, in a checkpoint of its own; that of the version before stays as it was."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from penstock.jobs.manager.job import Job
from penstock.jobs.manager.processes.directory import JobDirectory
from penstock.jobs.manager.processes.trial import last_commit
from penstock.live.dead_letters.store import DEAD_LETTERS
from penstock.location import Address
from penstock.spark.checkpoint.changes import FLOW
from penstock.spark.checkpoint.savepoint import directory_of, is_savepoint, take
from penstock.storage import copy_object, exists, names_under, open_storage
from penstock.storage.private import make_private

CARRIED = "carried"
"""A mark in the checkpoint of a new version: what the one before had beside its savepoint is there."""
_BESIDE = (DEAD_LETTERS, "replay", "topology")


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
    found = _savepoint(before, job.checkpoint)
    _carry(before, target)
    return {"savepoint": str(found)}


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


def _carry(before: Path, target: Path) -> None:
    """Has what people have to do with go along once, which no savepoint has: dead letters, what is asked of them, and spouts that were paused."""
    source, goes = open_storage(before), open_storage(make_private(target))
    if exists(goes, CARRIED):
        return
    for name in (name for part in _BESIDE for name in names_under(source, f"{part}/")):
        copy_object(source, name, goes, name)
    goes.write(CARRIED, b"")


def forget_older(directory: JobDirectory, job: Job) -> None:
    """Deletes the checkpoints of versions before the last one. The driver does it, which has the job's lock."""
    kept = {job.checkpoint, *([job.previous.checkpoint] if job.previous else [])}
    for found in directory.path.glob("checkpoint*"):
        if found.name not in kept:
            shutil.rmtree(found, ignore_errors=True)
