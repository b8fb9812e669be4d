"""The same tests on a real Spark: bounded, and live in micro-batches cut where the test says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import Batch
from penstock.graph.endpoints.basic import callback, items
from penstock.graph.graph import Graph
from penstock.graph.nodes import Endpoint, JoinStatic, Node, Sink, Source
from penstock.graph.run import RunSpec
from penstock.kernels.topology.spout_records import completed
from penstock.temporary import temporary_directory
from penstock.testing.driver import FlowLike, Record, Records, Results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CollectedRows:
    """Sinks that keep what they get, a batch that runs again replaces its first run."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.batches: dict[str, dict[int, list[Any]]] = {s.name: {} for s in graph.sinks}

    def endpoint(self, sink: str) -> Endpoint:
        """The endpoint that collects for a sink."""

        def keep(rows: list[Any], batch: Batch) -> None:
            self.batches[sink][batch.id] = rows

        return callback(keep)

    def results(self) -> Results:
        """All rows, in the order of the batches."""
        made = {s: [r for b in sorted(batches) for r in batches[b]] for s, batches in self.batches.items()}
        return Results(self.graph, made)


def run_spark(
    flow: FlowLike | Graph,
    spark: SparkSession,
    inputs: Records | None = None,
    *,
    tables: Records | None = None,
    cuts: int | Mapping[str, list[int]] | None = None,
    folder: Path | None = None,
    parallelism: int | None = None,
    drain: bool = True,
) -> Results:
    """Runs a flow on a real Spark over lists.

    Args:
        flow: a Flow, a Topology or a graph.
        spark: a session; the fixture `penstock_spark` is one.
        inputs: records by the name of a source. A source without a list is read as the flow says.
        tables: rows for the tables of joins, by the name of the join.
        cuts: without it the run is bounded. With it the run is live: a number cuts every input into so many batches, a mapping
            says for each source after which records a batch ends.
        folder: the checkpoint directory of a live run, to test a restart; by default a temporary one.
        parallelism: how many tasks keyed steps run as.
        drain: whether all time has passed when the input is over.

    Returns:
        The rows of each sink, in the order of the batches.

    Raises:
        StepError: a step failed on a record.
        CaptureError: a function could not travel to a worker.

    >>> import penstock as ps
    >>> from penstock.testing import run_spark
    >>> flow = ps.Flow("count")
    >>> flow.source("words", ps.items([], "word string")).key_by("word").count("n").sink("out", ps.console())
    >>> run_spark(flow, spark, {"words": ["a", "b", "a"]}, cuts=2).table("out")["a"]  # doctest: +SKIP
    Row(word='a', n=2)
    """
    from penstock.spark.run import run_bounded, run_live  # it loads pyspark

    graph: Graph = flow if isinstance(flow, Graph) else flow.graph
    collected = CollectedRows(graph)
    nodes = tuple(_tested(n, inputs or {}, tables or {}, cuts, collected) for n in graph.nodes)
    changed = Graph(graph.name, nodes, graph.bootstraps)
    if cuts is None:
        run_bounded(changed, spark, RunSpec(parallelism=parallelism))
        return collected.results()
    with temporary_directory("test") as made:
        options = RunSpec(checkpoint=folder or made, mode="once", parallelism=parallelism, drain=drain)
        run_live(changed, spark, options).wait(pause=0.02)
    return collected.results()


def _tested(
    node: Node,
    inputs: Records,
    tables: Records,
    cuts: int | Mapping[str, list[int]] | None,
    collected: CollectedRows,
) -> Node:
    if isinstance(node, Source) and node.name in inputs:
        mine: Any = cuts.get(node.name, 1) if isinstance(cuts, Mapping) else cuts or 1
        made = items(_rows(node, inputs[node.name]), node.output().schema, batches=mine)
        return replace(node, endpoint=made, on_error=None)
    if isinstance(node, Sink):
        return replace(node, endpoint=collected.endpoint(node.name), delivery="", on_error=None)
    if isinstance(node, JoinStatic) and node.name in tables:
        schema = node.table.schema
        assert schema is not None, "the step has checked that its table has one"
        return replace(node, table=items(list(tables[node.name]), schema))
    return node


def _rows(node: Source, given: Iterable[Record]) -> list[Record]:
    """The records of a source; those that replace a spout's get what a spout adds to its own."""
    if not node.endpoint.capabilities.emits_tuples:
        return list(given)
    return [completed(node, record, number) for number, record in enumerate(given)]
