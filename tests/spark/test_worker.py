"""A stage as a worker runs it, without a JVM."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.compiler.compile import compile_graph
from penstock.compiler.plan import PYTHON, Plan
from penstock.graph.graph import Graph
from penstock.graph.logic.topology.tuples import pack_roots
from penstock.graph.nodes import Bolt, ExternalStep, Grouping, Output, Port
from penstock.graph.nodes.topology import ROOTS, with_hidden
from penstock.graph.schema import schema_of
from penstock.kernels.build import kernel_of
from penstock.kernels.counts import PassCounts
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.topology.blocks import BLOCK, TupleRoute
from penstock.spark.tasks.pack import Packer
from penstock.spark.tasks.worker import Stage, in_memory


class Counts:
    """An accumulator that stays here."""

    def add(self, counts: PassCounts) -> None:
        self.counts = counts


def shown(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"seen": [str(batch.schema)]})


def test_a_field_that_spark_proves_never_to_be_null_is_like_any_other() -> None:
    flow = ps.Flow("fields")
    flow.source("in", ps.items([], "n bigint")).map_batches("show", shown, schema="seen string").sink(
        "out", ps.console()
    )
    plan = compile_graph(flow.graph)
    digest, packed = Packer().pack(plan, next(s for s in plan.stages if s.host == PYTHON))
    proved = pa.RecordBatch.from_arrays([pa.array([1])], schema=pa.schema([pa.field("n", pa.int64(), nullable=False)]))
    (made,) = Stage(digest, packed, Counts())(iter([proved]))
    assert made.to_pylist() == [{"seen": "n: int64"}]


class Lines(ps.Spout):
    outputs = "line string"
    reliable = True

    def next_tuple(self) -> Any:
        return ps.END


class Split(ps.BasicBolt):
    outputs = "word string"

    def process(self, tup: Any) -> Any:
        return tup.line.split()


class Count(ps.BasicBolt):
    outputs = "word string, n bigint"

    def prepare(self, context: Any) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Any) -> Any:
        if tup.word == "bad":
            raise ps.FailedException("refused")
        self.counts[tup.word] = self.counts.get(tup.word, 0) + 1
        return [(tup.word, self.counts[tup.word])]


class Last(ps.BasicBolt):
    def process(self, tup: Any) -> None:
        self.seen = [*getattr(self, "seen", []), tup]


def stages(*, sink: bool) -> tuple[Plan, list[tuple[str, bytes]]]:
    """The passes of a topology of two bolts, of one task each so that the task is this process."""
    top = ps.Topology("blocks")
    top.spout("lines", Lines())
    top.bolt("split", Split()).shuffle("lines")
    top.bolt("count", Count()).fields("split", "word")
    if sink:
        top.sink("out", ps.console(), from_="count")
    plan = compile_graph(top.graph, live=False)
    return plan, [Packer((__name__,)).pack(plan, s) for s in plan.stages if s.host == PYTHON]


@pytest.mark.parametrize("sink", [True, False])
def test_tuples_go_from_bolt_to_bolt_in_blocks_with_their_roots(sink: bool) -> None:
    """What fails names the roots of its messages; what nobody reads stays in the worker."""
    plan, (split, count) = stages(sink=sink)
    schema = plan.graph.output(Port("split")).schema
    route = TupleRoute(Grouping("fields", ("word",)), 1, schema)
    lines = {"line": ["a b", "", "a bad"], "__roots": [pack_roots([n]) for n in (1, 2, 3)]}
    given = pa.record_batch(lines, pa.schema([("line", pa.string()), ("__roots", pa.binary())]))
    first = Stage(*split, Counts(), routed=True, routes={Port("split"): (route,)})
    (blocks,) = first(iter([given]))
    assert blocks.schema.equals(BLOCK)
    moved = pa.record_batch(
        {"__input": pa.array([0] * blocks.num_rows, pa.int32()), "__from": blocks["__from"], "__data": blocks["__data"]}
    )
    unread = frozenset() if sink else frozenset({Port("count")})
    counts = Counts()
    second = Stage(*count, counts, routed=True, reads_blocks=True, unread=unread)
    made = [row for batch in second(iter([moved])) for row in batch.to_pylist()]
    expected = [{"word": "a", "n": 1}, {"word": "b", "n": 1}, {"word": "a", "n": 2}]
    assert made == (expected if sink else [])
    assert counts.counts.acks["count", 0].failed == {3}
    assert (counts.counts.of("count").taken, counts.counts.of("count").emitted) == (4, 3)


@pytest.mark.parametrize("sink", [True, False])
@pytest.mark.parametrize("stored", [True, False])
def test_many_tuples_by_way_of_files_or_not(sink: bool, stored: bool, tmp_path: Path) -> None:
    """Enough for many chunks and a large block: what nobody reads is counted all the same, and what fails in a later chunk names its message."""
    plan, (split, count) = stages(sink=sink)
    route = TupleRoute(Grouping("fields", ("word",)), 1, plan.graph.output(Port("split")).schema)
    lines = ["bad a" if n == 7_777 else f"a b {n % 50}" for n in range(10_000)]
    roots = [pack_roots([n]) for n in range(10_000)]
    given = pa.record_batch(
        {"line": lines, "__roots": roots}, pa.schema([("line", pa.string()), ("__roots", pa.binary())])
    )
    folder = str(tmp_path) if stored else ""
    first = Stage(*split, Counts(), routed=True, routes={Port("split"): (route,)}, blocks_in=folder)
    blocks = pa.Table.from_batches(list(first(iter([given])))).combine_chunks().to_batches()[0]
    assert [len(data) < 200 for data in blocks["__data"].to_pylist()] == [stored] * blocks.num_rows
    moved = pa.record_batch(
        {"__input": pa.array([0] * blocks.num_rows, pa.int32()), "__from": blocks["__from"], "__data": blocks["__data"]}
    )
    unread = frozenset() if sink else frozenset({Port("count")})
    counts = Counts()
    second = Stage(*count, counts, routed=True, reads_blocks=True, unread=unread)
    made = [row for batch in second(iter([moved])) for row in batch.to_pylist()]
    assert counts.counts.acks["count", 0].failed == {7_777}
    assert (counts.counts.of("count").taken, counts.counts.of("count").emitted) == (29_999, 29_998)
    assert len(made) == (29_998 if sink else 0)
    assert not sink or {row["word"]: row["n"] for row in made}["a"] == 10_000


def test_a_tuple_that_a_bolt_keeps_has_its_roots_later() -> None:
    node = Bolt("last", (Port("lines"),), Last(), (Grouping("shuffle"),), (("lines", "default"),))
    lines = with_hidden(schema_of("line string"), ROOTS)
    graph = Graph("kept", (ExternalStep("lines", (), (Output(lines),)), node))
    kernel = kernel_of(graph.node("last"), graph)
    kernel.open(in_memory(0))
    rows = pa.record_batch({"line": ["x", "y"], "__roots": [pack_roots([n]) for n in (7, 8)]}, arrow_schema(lines))
    list(kernel.take(Chunk(lines, batch=rows)))
    kept = kernel.tasks[0].logic.seen  # type: ignore[attr-defined]  # it is a BoltKernel
    assert [(tup.line, set(tup.roots)) for tup in kept] == [("x", {7}), ("y", {8})]
    assert [set(t.roots) for t in pickle.loads(pickle.dumps(kept))] == [{7}, {8}]
