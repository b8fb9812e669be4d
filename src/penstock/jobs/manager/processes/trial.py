"""The trial of a new version: whether it has come up, as its checkpoint and its driver tell.

It has when its checkpoint has a batch that the one before has not, or when its sources were asked and have had nothing for a while. Going back before that loses nothing and
doubles nothing: a batch that reached a sink and not the checkpoint is in the sink's ledger, from which the version before takes it over.
"""

from __future__ import annotations

from pathlib import Path

from penstock.jobs.manager.job import Job
from penstock.jobs.manager.processes.directory import JobDirectory

QUIET = 30.0
"""A new version whose sources have had nothing for so many seconds waits for input."""


def last_commit(checkpoint: Path) -> int:
    """The last batch that a checkpoint has, -1 if none."""
    return _newest(checkpoint / "spark" / "commits")


def _newest(folder: Path) -> int:
    """The highest number among the names of Spark's files in a folder, -1 if none."""
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def has_come_up(directory: JobDirectory, job: Job, now: float) -> bool:
    """Whether the version of a job that replaced another has done something, or runs and has nothing to do."""
    assert job.previous is not None
    done, before = (last_commit(directory.path / name) for name in (job.checkpoint, job.previous.checkpoint))
    if done > before:
        return True
    progress = directory.progress()
    is_its = progress.get("checkpoint") == job.checkpoint and progress.get("phase") == "running"
    has_batch = progress.get("under_way") or _newest(directory.path / job.checkpoint / "spark" / "offsets") > done
    waits = progress.get("waits_since")
    return is_its and not has_batch and isinstance(waits, float) and now - waits >= QUIET
