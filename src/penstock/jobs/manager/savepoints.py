"""Savepoints of jobs."""

from __future__ import annotations

import re

from penstock.errors import OptionError
from penstock.jobs.manager.processes.directory import JobDirectory
from penstock.spark.checkpoint.savepoint import describe, directory_of, fresh_name, saved, take
from penstock.spark.checkpoint.sparklog import SparkLog

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def take_savepoint(directory: JobDirectory, name: str = "") -> dict[str, object]:
    """Takes a savepoint of a job beside its checkpoint; an empty name makes one of the version and the time."""
    if name and not _NAME.fullmatch(name):
        raise OptionError(f"the name of a savepoint has letters, digits, '.', '_' and '-', got {name!r}")
    folder = directory.checkpoint
    number = SparkLog(folder / "spark").last()
    return describe(take(folder, directory_of(name or fresh_name(number), folder)))


def savepoints_of(directory: JobDirectory) -> list[dict[str, object]]:
    """The savepoints beside the checkpoint of a job; none where it has none."""
    return [describe(found) for found in saved(directory.checkpoint)] if directory.checkpoint.exists() else []
