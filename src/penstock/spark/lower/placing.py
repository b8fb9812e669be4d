"""Python workers and cores of its own for a stage, where a run asks for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from penstock.compiler.plan import Plan, Stage
from penstock.errors import OptionError
from penstock.graph.run.master import is_in_one_jvm

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import SparkSession

VARIABLE = "PENSTOCK_WORKERS"
"""Spark keeps a Python worker for tasks that have the same environment: a stage with another value of this variable has workers of its own."""
CORES = "spark.executor.cores"
_TURN = threading.Lock()


@contextmanager
def own_workers(spark: SparkSession, stage: Stage) -> Iterator[None]:
    """Functions that are handed to Spark meanwhile are run by the Python workers of this stage."""
    environment = spark.sparkContext.environment
    with _TURN:
        if stage.workers:
            environment[VARIABLE] = stage.workers
        try:
            yield
        finally:
            environment.pop(VARIABLE, None)


def profile_of(spark: SparkSession, stage: Stage) -> ResourceProfile | None:
    """What a task of a stage asks for; None where that is what every task does."""
    if not stage.alone:
        return None
    return _whole_executor(spark.sparkContext.applicationId, int(spark.sparkContext.getConf().get(CORES) or 1))


@lru_cache(maxsize=4)
def _whole_executor(application: str, cores: int) -> ResourceProfile:
    """One for all batches: Spark keeps every profile that it is shown."""
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    return ResourceProfileBuilder().require(TaskResourceRequests().cpus(cores)).build


def check_cores(spark: SparkSession, plan: Plan) -> None:
    """Refuses a stage that is to run alone where a task cannot ask for a whole executor."""
    lonely = next((stage for stage in plan.stages if stage.alone), None)
    if lonely is None:
        return
    master, conf = str(spark.sparkContext.master), spark.sparkContext.getConf()
    if is_in_one_jvm(master):
        raise OptionError(f"--place alone: {lonely.name!r} needs executors, and {master} has one JVM for all")
    if not conf.get(CORES) and not master.startswith(("k8s", "yarn")):
        raise OptionError(
            f"--place alone: a task of {lonely.name!r} asks for all cores of its executor, and how many those are is not said. "
            f"Set it, such as --conf {CORES}=2"
        )
