"""How much a job logs, changed while it runs: the manager writes the levels into a file, its driver follows it and passes them on to its workers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from penstock.errors import OptionError
from penstock.jobs.logs import event
from penstock.jobs.manager.processes.directory import LOG_LEVELS, JobDirectory
from penstock.kernels.log_levels import set_levels
from penstock.live.sampling import SAMPLER

if TYPE_CHECKING:
    from penstock.jobs.run import Run

Level = Literal["debug", "info", "warning", "error"]
OWN, SPARK, USUAL = "penstock", "spark", "default"
LOGGER = r"^[A-Za-z_][A-Za-z0-9_.-]{0,199}$"
MOST = 100
"""The levels of so many loggers are kept."""
_LEVELS = ("debug", "info", "warning", "error")
_SPARK = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR"}


def levels_of(directory: JobDirectory) -> dict[str, str]:
    """The levels that were asked for, by logger; the file may have been written by anybody who has the directory."""
    found = directory.log_levels()
    named = {name: level for name, level in found.items() if re.fullmatch(LOGGER, name) and level in _LEVELS}
    return dict(list(named.items())[:MOST])


def change_level(directory: JobDirectory, logger: str, level: Level | Literal["default"]) -> dict[str, str]:
    """Has a logger of a job log from a level on, or as usual; returns all that is asked for.

    Raises:
        OptionError: the name is none of a logger, or too many have a level.
    """
    if not re.fullmatch(LOGGER, logger):
        raise OptionError(f"expected the name of a logger, such as penstock, spark or my.module, got {logger!r}")
    levels = {name: each for name, each in levels_of(directory).items() if name != logger}
    if level != USUAL:
        levels[logger] = level
    if len(levels) > MOST:
        raise OptionError(f"the levels of at most {MOST} loggers can be set; set some to default")
    directory.write_shown(LOG_LEVELS, levels)
    return levels


class FollowedLevels:
    """The driver's side: does what the file says, when it has changed.

    Args:
        usual: the level of Penstock's own log where nobody has asked for another.
    """

    def __init__(self, usual: str = "info") -> None:
        self.usual = usual
        self._spark = ""

    def follow(self, directory: JobDirectory, run: Run) -> None:
        """Looks once."""
        levels = levels_of(directory)
        spark = levels.pop(SPARK, "")
        if set_levels(levels, {OWN: self.usual}):
            SAMPLER.levels = tuple(sorted(levels.items()))
            event("log levels", levels=levels)
        if spark != self._spark and run.set_spark_log(_SPARK[spark or "warning"]):
            self._spark = spark
            event("log levels", levels={SPARK: spark or USUAL}, file=run.spark_log)


def shown_levels(directory: JobDirectory) -> dict[str, object]:
    """What is asked for, and what can be."""
    levels: Mapping[str, str] = levels_of(directory)
    return {"levels": {OWN: USUAL, SPARK: USUAL, **levels}}
