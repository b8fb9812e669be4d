"""Steps in time on Spark, where only a live run can show it: quiet input, restarts, other parallelisms."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live

pytestmark = pytest.mark.spark
BEGIN = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def at(seconds: float) -> datetime.datetime:
    return BEGIN + datetime.timedelta(seconds=seconds)


def test_what_waits_comes_out_when_the_input_is_quiet(penstock_spark: Any, tmp_path: Path) -> None:
    got: list[int] = []
    flow = ps.Flow("quiet")
    given = ps.items([(n, at(n)) for n in (2, 1, 3)], "n int, ts timestamp")
    numbers = flow.source("numbers", given, event_time="ts", lateness="1s", idle="1s")
    numbers.sort("order").sink("out", ps.callback(lambda rows, batch: got.extend(r.n for r in rows)))
    spec = RunSpec(checkpoint=tmp_path, duration=300)
    run_live(flow.graph, penstock_spark, spec, until=lambda report: len(got) == 3).wait()
    assert got == [1, 2, 3]


def test_state_goes_on_with_another_parallelism(penstock_spark: Any, tmp_path: Path) -> None:
    """What waits, what was seen and what is best belong to key groups, not to tasks."""
    got: dict[str, list[Any]] = {"sorted": [], "once": [], "top": [], "net": []}
    flow = ps.Flow("moves")
    rows = [(f"k{n % 7}", n, at(n)) for n in range(60)]
    stream = flow.source(
        "rows", ps.items(rows, "k string, n int, ts timestamp", batches=6), event_time="ts", lateness="9s"
    )
    keyed = stream.key_by("k")
    counts = keyed.count("counts", into="c")
    for sink, made in {
        "sorted": keyed.sort("order"),
        "once": keyed.distinct("seen", within="20s"),
        "top": keyed.top("best", 1, by="n desc"),
        "net": counts.key_by("c").count("of-counts", into="keys"),
    }.items():
        made.sink(sink, ps.callback(lambda new, batch, sink=sink: got[sink].extend(map(tuple, new))))
    for batches, tasks in ((2, 3), (2, 7), (1, 4)):
        options = RunSpec(checkpoint=tmp_path, parallelism=tasks, batches=batches, duration=200)
        run_live(flow.graph, penstock_spark, options).wait()
    run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path, parallelism=2, mode="once", drain=True)).wait()
    for key in {k for k, _, _ in rows}:
        assert [r[1] for r in got["sorted"] if r[0] == key] == [n for k, n, _ in rows if k == key]
    assert sorted(r[1] for r in got["once"]) == [n for n in range(60) if n // 7 % 3 == 0]
    assert {r[0]: r[1] for r in got["top"]} == {f"k{n % 7}": n for n in range(53, 60)}
    left = {r[0]: r[1] for r in got["net"]}
    gone = {r[0] for r in got["net"] if r[2]} - {9, 8}
    assert {c: n for c, n in left.items() if c not in gone} == {9: 4, 8: 3}
