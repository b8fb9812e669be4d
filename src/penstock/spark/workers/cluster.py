"""Asks every executor of a cluster what it is, for `penstock doctor --master`."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.errors import SetupError
from penstock.spark.workers import probe

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

STEADY = 2.0
"""Executors are all there when none was added for so many seconds."""


@dataclass(frozen=True)
class WorkerAnswer:
    """What one executor said."""

    address: str
    cores: int
    host: str
    python: str
    executable: str
    java: str
    imports: dict[str, tuple[str, str]]
    """Module to its version and the error of its import."""
    store_error: str | None = None
    """Why the checkpoint cannot be used from there; empty when it can, None when it was not tried."""
    store_seconds: float = 0.0
    store_name: str = ""
    """The object that the worker has put."""
    skew: tuple[float, float] = field(default=(0.0, 0.0))
    """How far its clock is from the driver's: at least and at most, in seconds; it is ahead where that is positive."""


def wait_for_executors(spark: SparkSession, seconds: float) -> int:
    """Waits until executors have come and no more come; returns how many tasks they run at a time.

    Raises:
        SetupError: None registered in this time.
    """
    deadline, slots, since = time.monotonic() + seconds, 0, time.monotonic()
    while True:
        now, found = time.monotonic(), _slots(spark)
        slots, since = (slots, since) if found == slots else (found, now)
        if slots and now - since >= STEADY:
            return slots
        if now > deadline:
            raise SetupError(
                f"no executor registered within {seconds:g} s: the master has no free cores, its workers have less memory than "
                "spark.executor.memory, or they cannot reach the driver (spark.driver.host)"
            )
        time.sleep(0.1)


def ask_workers(
    spark: SparkSession, slots: int, modules: tuple[str, ...], storage: bytes = b"", prefix: str = ""
) -> list[WorkerAnswer]:
    """The answers of all executors, by address."""
    with _by_value():
        ask = functools.partial(probe.answer, modules=modules, storage=storage, prefix=prefix)
        answers = [json.loads(text) for text in _tasks(spark, slots, ask).collect()]
        skews = _skews(spark, slots)
    made = [_answer(each, skews.get(each["address"], (0.0, 0.0))) for each in answers]
    return sorted(made, key=lambda each: each.address)


def _answer(said: dict[str, object], skew: tuple[float, float]) -> WorkerAnswer:
    store = said.pop("store", None)
    imports = {name: (found[0], found[1]) for name, found in said.pop("imports").items()}  # type: ignore[attr-defined]  # JSON
    tried: dict[str, object] = store if isinstance(store, dict) else {}
    return WorkerAnswer(
        **said,  # type: ignore[arg-type]  # JSON
        imports=imports,
        store_error=str(tried["error"]) if tried else None,
        store_seconds=float(str(tried.get("seconds", 0.0))),
        store_name=str(tried.get("name", "")),
        skew=skew,
    )


def _tasks(spark: SparkSession, slots: int, function: Callable[[Iterable[int]], Iterable[str]]) -> RDD[str]:
    """A task for every core at the same time, so that each executor has one."""
    return spark.sparkContext.parallelize(range(slots), slots).barrier().mapPartitions(function)


def _skews(spark: SparkSession, slots: int) -> dict[str, tuple[float, float]]:
    """What the clocks of executors say, against when they were asked and when the answer was there."""
    rdd = spark.sparkContext.parallelize(range(slots), slots).barrier().mapPartitions(probe.clock)
    asked = time.time()
    answers = rdd.collect()
    answered = time.time()
    return {address: bounds(moment, asked, answered) for address, moment in answers}


def bounds(moment: float, asked: float, answered: float) -> tuple[float, float]:
    """How far a clock that showed `moment` somewhere between two moments of ours is from ours, at least and at most.

    >>> bounds(10.5, 10.0, 11.0), bounds(20.0, 10.0, 11.0)
    ((0.0, 0.5), (9.0, 10.0))
    """
    low, high = moment - answered, moment - asked
    if low <= 0 <= high:
        return 0.0, max(-low, high)
    return (low, high) if low > 0 else (high, low)


def _slots(spark: SparkSession) -> int:
    """How many tasks run at a time on the executors that are there."""
    context = spark.sparkContext._jsc.sc()
    return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))


@contextmanager
def _by_value() -> Iterator[None]:
    """Sends the functions with their code: workers may lack Penstock."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(probe)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(probe)
