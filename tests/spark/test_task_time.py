"""The time that tasks work inside Spark, by what its executors add up."""

from __future__ import annotations

from types import SimpleNamespace as Fake
from typing import Any

import pytest

from penstock.kernels.counts import StepLoad
from penstock.live.report import BatchReport
from penstock.live.totals import Totals
from penstock.spark.live import task_time
from penstock.spark.live.task_time import TaskTime


class Executors:
    """What Spark's status store says, and how often it was asked."""

    def __init__(self, **seconds: float) -> None:
        self.seconds, self.asked = dict(seconds), 0

    def executorList(self, active: bool) -> Any:  # noqa: N802 - Spark's name
        self.asked += 1
        made = [
            Fake(id=lambda n=n: n, totalDuration=lambda s=s: s * 1000, totalCores=lambda: 2)
            for n, s in self.seconds.items()
        ]
        return Fake(size=lambda: len(made), apply=made.__getitem__)


def of(executors: Executors) -> TaskTime:
    spark = Fake(sparkContext=Fake(_jsc=Fake(sc=lambda: Fake(statusStore=lambda: executors))))
    return TaskTime(spark)  # type: ignore[arg-type]


def report(python: float = 0.0) -> BatchReport:
    return BatchReport(0, load={"split": StepLoad(seconds=python, tasks=2, skew=1.0, longest=python)})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which a test moves."""
    now = [100.0]
    monkeypatch.setattr(task_time, "time", Fake(monotonic=lambda: now[0]))
    return now


def test_what_python_steps_took_is_taken_off(clock: list[float]) -> None:
    executors = Executors(one=5.0)
    found = of(executors)
    assert found.added_to(report(1.0)).native == 0.0, "what was before the first look is not known"
    executors.seconds["one"] = 9.0
    clock[0] += 2
    after = found.added_to(report(1.5))
    assert (after.native, after.cores) == (2.5, 2)


def test_it_is_asked_once_a_second_and_nothing_is_lost_between(clock: list[float]) -> None:
    executors = Executors(one=0.0)
    found = of(executors)
    found.added_to(report())
    for second in (1.0, 2.0, 3.0):
        executors.seconds["one"] = second
        assert found.added_to(report(0.25)).cores == 0
    clock[0] += 2
    assert found.added_to(report(0.25)).native == 2.0
    assert executors.asked == 2


def test_an_executor_that_is_gone_keeps_its_time_and_python_that_is_told_early_gives_nothing_below_zero(
    clock: list[float],
) -> None:
    executors = Executors(one=4.0, two=4.0)
    found = of(executors)
    found.added_to(report())
    del executors.seconds["two"]
    clock[0] += 2
    assert found.added_to(report(3.0)).native == 0.0
    executors.seconds["one"] = 9.0
    clock[0] += 2
    last = found.added_to(report())
    assert (last.native, last.cores) == (2.0, 2)


def test_a_spark_that_does_not_tell_is_asked_once(clock: list[float]) -> None:
    found = of(Fake())  # type: ignore[arg-type]
    for _ in range(3):
        assert found.added_to(report()).native == 0.0
        clock[0] += 10
    assert found._next == float("inf")


def test_totals_add_it_up_beside_the_cores() -> None:
    totals = Totals()
    for seconds in (1.5, 2.0, 0.0):
        totals.add(BatchReport(0, native=seconds, cores=4 if seconds else 0))
    assert (totals.figures["native"], totals.measured["cores"]) == (3.5, 4)
