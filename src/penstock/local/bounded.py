"""A bounded run in this process: a graph over what its endpoints hold now, without a JVM."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from penstock.connectors.local import LocalSource, read_locally
from penstock.graph.endpoints.parsing import keeps_malformed
from penstock.graph.graph import Graph
from penstock.graph.nodes import DeadLetters, Endpoint, Source
from penstock.local.net_table import NetTable
from penstock.local.program import CHUNK
from penstock.local.run import LocalRun

log = logging.getLogger("penstock")
Watch = Callable[[int], None]
"""Called with the number of records so far, now and then; it may raise to end the run."""


def read_source(source: Source) -> Iterable[object]:
    """The records that the endpoint of a source holds now.

    Raises:
        Impossible: it has no end, or needs Spark.
    """
    return read_locally(LocalSource(source.name, source.endpoint, source.output().schema, keeps_malformed(source)))


def read_table(endpoint: Endpoint) -> Iterable[object]:
    """The rows of a static table.

    Raises:
        Impossible: only Spark can read it.
    """
    assert endpoint.schema is not None, "a table has a schema"
    return read_locally(LocalSource("table", endpoint, endpoint.schema))


def run_bounded(graph: Graph, watch: Watch | None = None) -> dict[str, list[Any]]:
    """Runs a graph until its input is over.

    Args:
        graph: the graph.
        watch: is called with how many records have been read.

    Returns:
        The rows of each sink; of a table those that are there at the end.

    Raises:
        Impossible: a source has no end, or needs Spark.
        StepError: a step failed on a record.
    """
    run, count = LocalRun(graph, read_table), 0
    try:
        for source in graph.sources:
            records = iter(read_source(source))
            while chunk := list(islice(records, CHUNK)):
                run.push(source.name, *chunk)
                count += len(chunk)
                if watch is not None:
                    watch(count)
        run.barrier(end=True)
        run.close()
    finally:
        run.abandon()
    _tell(graph, run.dead_letters)
    return {sink.name: _net(graph, sink.name, run.committed.results.get(sink.name, [])) for sink in graph.sinks}


def _tell(graph: Graph, dead_letters: list[Any]) -> None:
    """Says of dead letters that go to no sink: here nobody keeps them."""
    if dead_letters and not any(isinstance(node, DeadLetters) for node in graph.nodes):
        first = dead_letters[0]
        log.warning("%d records were left out; the first, of step %r: %s", len(dead_letters), first.step, first.cause)


def _net(graph: Graph, sink: str, rows: list[Any]) -> list[Any]:
    made = NetTable.of(graph, sink)
    made.take(rows)
    return made.rows()
