"""Fills the state of steps before the first batch: version -1, from which batch 0 starts, is made of a bounded run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.compiler.compile import compile_graph
from penstock.compiler.plan import Plan
from penstock.errors import StepError
from penstock.graph.bootstrap import bootstrap_graph
from penstock.graph.graph import Graph
from penstock.location import Address
from penstock.spark.batch.result import BatchInput
from penstock.spark.batch.settings import batch_settings, set_for
from penstock.spark.batch.sources import Sources
from penstock.spark.checkpoint.sparklog import SparkLog
from penstock.spark.failures import as_run_error
from penstock.state.store import StateStore
from penstock.storage import open_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.batch.batch import BatchRunner

VERSION = -1


def wanted(graph: Graph, folder: Address) -> bool:
    """Whether a flow has to be filled: it says so, nothing has run yet, and it has not been done."""
    begun = SparkLog(folder / "spark").begun() >= 0
    return bool(graph.bootstraps) and not begun and not StateStore(open_storage(folder / "state")).has(VERSION)


def fill(graph: Graph, spark: SparkSession, work: Path, runner: Callable[[Plan], BatchRunner]) -> None:
    """Runs the bootstraps of a flow. The manifest of version -1 makes it count; before that it can be done again."""
    plan = compile_graph(bootstrap_graph(graph), live=True)
    steps = frozenset(name for stage in plan.stages for name in stage.steps)
    sources = Sources(plan.graph, work / "bootstrap", steps)
    made = runner(plan)
    try:
        times = made.time.begin(VERSION, VERSION - 1)
        with set_for(spark, batch_settings(plan, made.tasks, is_adaptive=False)):
            made.run(spark, BatchInput(VERSION, VERSION - 1, sources.bounded(spark), times))
    except Exception as error:
        raise _traced(sources, spark, as_run_error(error)) from error
    finally:
        made.close()
        sources.close()


def _traced(sources: Sources, spark: SparkSession, error: BaseException) -> BaseException:
    return sources.trace(spark, error) if isinstance(error, StepError) else error
