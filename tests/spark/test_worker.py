"""A stage as a worker runs it, without a JVM."""

from __future__ import annotations

import pyarrow as pa

import penstock as ps
from penstock.compiler.compile import compile_graph
from penstock.compiler.plan import PYTHON
from penstock.kernels.counts import PassCounts
from penstock.spark.tasks.pack import Packer
from penstock.spark.tasks.worker import Stage


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
