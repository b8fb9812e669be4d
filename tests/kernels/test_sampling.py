"""A pass that is looked at keeps a few records of its streams, and does and counts what it does otherwise."""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock as ps
from penstock.graph.nodes import Port
from penstock.graph.schema import schema_of
from penstock.kernels.base import Context
from penstock.kernels.build import kernel_of
from penstock.kernels.counts import MOST_SAMPLED, PassCounts
from penstock.kernels.looks import Looks, SampledStream
from penstock.kernels.pipeline import Pipeline
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.sampling import SampledPipeline, StreamSample, plain

SCHEMA = schema_of("n bigint")


def graph() -> ps.Flow:
    flow = ps.Flow("numbers")
    flow.source("in", ps.items([], "n bigint")).map("twice", lambda r: r.n * 2, schema="n bigint").map(
        "text", lambda r: f"<{r.n}>", schema="t string"
    ).sink("out", ps.console())
    return flow


def passed(sampled: tuple[SampledStream, ...], many: int) -> tuple[list[object], PassCounts]:
    made = graph().graph
    kernels = [kernel_of(made.node(name), made) for name in ("twice", "text")]
    out = (Port("text"),)
    pipeline = SampledPipeline(kernels, out, made, Looks(sampled)) if sampled else Pipeline(kernels, out)
    pipeline.open(Context(0, 1))
    given = list(pipeline.take(Port("in"), Chunk(SCHEMA, columns=[list(range(many))])))
    return [row for _, chunk in given for row in chunk.values()], pipeline.counts()


def test_streams_that_go_in_pass_through_and_come_out_are_seen() -> None:
    rows, counts = passed(((Port("in"), ""), (Port("twice"), "n > 7"), (Port("text"), "")), 6)
    assert counts.samples == {
        ("in", "out", ""): [{"n": n} for n in range(6)],
        ("twice", "out", "n > 7"): [{"n": 8}, {"n": 10}],
        ("text", "out", ""): [{"t": f"<{2 * n}>"} for n in range(6)],
    }
    plainly, without = passed((), 6)
    assert (rows, counts.taken(), counts.emitted()) == (plainly, without.taken(), without.emitted())
    assert without.samples == {}


def test_a_sample_is_small_however_much_passes_and_however_many_tasks_add_theirs() -> None:
    _, counts = passed(((Port("in"), ""),), 5_000)
    assert len(counts.samples["in", "out", ""]) == MOST_SAMPLED
    both = counts + passed(((Port("in"), ""),), 5_000)[1]
    assert len(both.samples["in", "out", ""]) == MOST_SAMPLED


@pytest.mark.parametrize("where", ["nothing > 1", "n >", "1 / (n - n) = 1", "n + 1"])
def test_a_condition_that_cannot_be_met_shows_nothing_and_hurts_nobody(where: str) -> None:
    rows, counts = passed(((Port("in"), where),), 3)
    assert len(rows) == 3
    assert counts.samples.get(("in", "out", where), []) == []


def test_the_first_records_of_a_chunk_are_those_of_every_form() -> None:
    forms = [
        Chunk(SCHEMA, columns=[[1, 2, 3]]),
        Chunk(SCHEMA, rows=[(1,), (2,), (3,)]),
        Chunk(SCHEMA, batch=pa.record_batch({"n": pa.array([1, 2, 3], pa.int64())})),
    ]
    for chunk in forms:
        assert [tuple(values) for values in chunk.first(2)] == [(1,), (2,)]
        assert [tuple(values) for values in chunk.first(9)] == [(1,), (2,), (3,)]


def test_values_are_plain_and_short() -> None:
    sample = StreamSample((Port("in"), ""), graph().graph)
    sample.take(Chunk(SCHEMA, columns=[[1, None]]))
    assert sample.rows == [{"n": 1}, {"n": None}]
    assert len(plain("x" * 10_000)) == 501
