"""Event time of a live run whose batches take longer than `idle`."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock as ps
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
BEGIN = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def slow(rows: list[Any], batch: Any) -> None:
    """The first batch takes more than twice as long as `idle`."""
    if any(row.n == 0 for row in rows):
        time.sleep(2.5)


@pytest.mark.parametrize("once", [True, False])
def test_records_in_order_are_not_late_when_a_batch_outlasts_idle(
    penstock_spark: SparkSession, tmp_path: Path, once: bool
) -> None:
    rows = [(n, BEGIN + datetime.timedelta(seconds=n)) for n in range(12)]
    given = ps.items(rows, "n int, ts timestamp", batches=3)
    flow = ps.Flow("slow")
    got: list[int] = []
    source = flow.source("rows", given, event_time="ts", idle="1s")
    source.sink("slow", ps.callback(slow))
    counts = source.key_by("n").window(ps.tumbling("1s")).count("c")
    counts.sink("out", ps.callback(lambda rows, _: got.extend(r.n for r in rows)))
    reports: list[Any] = []
    spec = RunSpec(checkpoint=tmp_path, mode="once" if once else "live", drain=True, records=None if once else 12)
    run_live(flow.graph, penstock_spark, spec, observers=(reports.append,)).wait(pause=0.02)
    assert [r.late for r in reports if r.late] == []
    assert sorted(got) == list(range(12))
