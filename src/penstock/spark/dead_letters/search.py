"""Puts aside the records that break a batch and name no step: they are found by bisection, and become dead letters of their source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connectors.malformed import MALFORMED
from penstock.graph.graph import Graph
from penstock.graph.row import row_class
from penstock.kernels.base import short
from penstock.kernels.errors.guard import DeadLetter
from penstock.kernels.errors.payload import payload_of
from penstock.spark.dead_letters.bisect import Bisection, Frames, Row, TooMany
from penstock.spark.failures import as_run_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.batch.batch import BatchRunner
    from penstock.spark.batch.result import BatchInput


def searches(graph: Graph) -> bool:
    """Whether the flow as a whole keeps dead letters."""
    return any(s.searched for s in graph.sources)


def without_breakers(
    runner: BatchRunner, spark: SparkSession, given: BatchInput
) -> tuple[Frames, list[DeadLetter]] | None:
    """The frames without the records that break the batch, and those as dead letters; None when they cannot be found."""
    search = Bisection(dict(given.frames), lambda some: runner.attempt(spark, given.without(some, [])))
    try:
        causes = search.run()
        dead_letters = [_dead_letter(search, row, error, runner.plan.graph) for row, error in causes.items()]
        whole = {port: frame.localCheckpoint() for port, frame in search.without(list(causes)).items()}
    except TooMany:
        return None
    finally:
        search.close()
    return whole, dead_letters


def _dead_letter(search: Bisection, row: Row, error: Exception, graph: Graph) -> DeadLetter:
    port, number = row
    names = tuple(n for n in search.frames[port].columns if n != MALFORMED)
    values = search.values(row)[: len(names)]
    shown = short(tuple.__new__(row_class(names), values))
    message = str(as_run_error(error))
    payload = payload_of(values, graph.output(port).schema)
    return DeadLetter(port.step, message.split("\n", 1)[0], message, shown, payload, 0, f"record {number}")
