"""Levels of logs, changed while a job runs."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import OptionError
from penstock.jobs.manager.insight.log_levels import FollowedLevels, change_level, levels_of
from penstock.jobs.manager.processes.directory import LOG_LEVELS, JobDirectory
from penstock.kernels.log_levels import NamedJsonLines, set_levels
from penstock.live.sampling import SAMPLER


class SparkRun:
    """A run whose Spark comes up when it is told to."""

    spark_log = "spark.log"

    def __init__(self) -> None:
        self.is_up, self.level = False, ""

    def set_spark_log(self, level: str) -> bool:
        self.level = level if self.is_up else self.level
        return self.is_up


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[JobDirectory]:
    """A job's directory; what a test sets is taken back."""
    root = logging.getLogger()
    handlers, own = list(root.handlers), logging.getLogger("penstock").level
    yield JobDirectory(tmp_path)
    set_levels({})
    SAMPLER.levels = ()
    root.handlers[:] = handlers
    logging.getLogger("penstock").setLevel(own)


def level(name: str) -> int:
    return logging.getLogger(name).level


def test_a_driver_follows_levels_and_goes_back_to_its_own(directory: JobDirectory) -> None:
    run, followed = SparkRun(), FollowedLevels("warning")
    change_level(directory, "penstock", "debug")
    assert change_level(directory, "market.prices", "error") == {"penstock": "debug", "market.prices": "error"}
    followed.follow(directory, run)  # type: ignore[arg-type]
    assert (level("penstock"), level("market.prices")) == (logging.DEBUG, logging.ERROR)
    assert dict(SAMPLER.wanted().levels) == {"penstock": "debug", "market.prices": "error"}
    assert not SAMPLER.wanted(), "levels alone must not have records sampled"
    change_level(directory, "penstock", "default")
    followed.follow(directory, run)  # type: ignore[arg-type]
    assert (level("penstock"), level("market.prices")) == (logging.WARNING, logging.ERROR)


def test_the_level_of_spark_is_set_once_spark_is_there(directory: JobDirectory) -> None:
    run, followed = SparkRun(), FollowedLevels()
    change_level(directory, "spark", "info")
    followed.follow(directory, run)  # type: ignore[arg-type]
    assert run.level == ""
    run.is_up = True
    followed.follow(directory, run)  # type: ignore[arg-type]
    assert run.level == "INFO"
    change_level(directory, "spark", "default")
    followed.follow(directory, run)  # type: ignore[arg-type]
    assert run.level == "WARN"


@pytest.mark.parametrize("name", ["", "two words", "../x", "a" * 201, "-x"])
def test_what_is_no_name_of_a_logger_is_refused(directory: JobDirectory, name: str) -> None:
    with pytest.raises(OptionError, match="expected the name of a logger"):
        change_level(directory, name, "debug")


def test_levels_are_of_so_many_loggers(directory: JobDirectory) -> None:
    directory.write_shown(LOG_LEVELS, {f"l{n}": "info" for n in range(100)})
    with pytest.raises(OptionError, match="at most 100"):
        change_level(directory, "one.more", "info")


@pytest.mark.parametrize("found", [{"penstock": 3}, {"penstock": "loud"}, {"a b": "info"}, {"x": ["info"]}])
def test_what_a_driver_may_have_written_there_is_not_trusted(directory: JobDirectory, found: dict[str, Any]) -> None:
    directory.write_shown(LOG_LEVELS, found)
    assert levels_of(directory) == {}


def test_lines_of_other_loggers_name_them() -> None:
    record = logging.LogRecord("market.prices", logging.DEBUG, "prices.py", 1, "got %d", (3,), None)
    line = json.loads(NamedJsonLines().format(record))
    assert (line["level"], line["event"], line["logger"]) == ("debug", "got 3", "market.prices")
