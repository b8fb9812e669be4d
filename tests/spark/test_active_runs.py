"""The runs of patterns under way in the reports of a live run: over batches, a restart and another number of tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.graph.graph import Graph
from penstock.graph.run import RunSpec
from penstock.graph.times import to_micros
from penstock.live.report import BatchReport
from penstock.spark.run import run_live
from penstock.state import run_summaries

pytestmark = pytest.mark.spark


def graph(folder: Path) -> Graph:
    flow = ps.Flow("orders")
    source = ps.files(f"{folder}/*.json", "json", "id int, kind string, at timestamp", files_per_batch=1)
    events = flow.source("events", source, event_time="at").key_by("id")
    sent = ps.pattern("sent").begin("paid", "kind = 'paid'").followed_by("sent", "kind = 'sent'").within("1h")
    events.match("stages", sent, select={"id": "id"}).sink("out", ps.console())
    events.match("text", ps.pattern_text("every a=paid -> b=sent", types="kind"), select={"id": "a.id"}).sink(
        "hits", ps.console()
    )
    rows = ps.row_pattern("A B", define={"A": "kind = 'paid'", "B": "kind = 'sent'"}, measures={"n": "count(*)"})
    events.match_rows("rows", rows).sink("matched", ps.console())
    return flow.graph


def run(folder: Path, spark: Any, tasks: int) -> list[BatchReport]:
    reports: list[BatchReport] = []
    spec = RunSpec(checkpoint=folder / "flow", mode="once", parallelism=tasks)
    run_live(graph(folder / "events"), spark, spec, observers=(reports.append,)).wait(pause=0.02)
    return [report for report in reports if report.active_runs]


def put(folder: Path, name: str, rows: list[tuple[int, str, str]]) -> None:
    (folder / "events").mkdir(exist_ok=True)
    text = "".join(json.dumps({"id": key, "kind": kind, "at": f"2026-01-01 {at}"}) + "\n" for key, kind, at in rows)
    (folder / "events" / f"{name}.json").write_text(text)


def test_reports_say_which_runs_are_under_way(tmp_path: Path, penstock_spark: Any) -> None:
    put(tmp_path, "a", [(key, "paid", f"10:00:0{key}") for key in range(5)])
    put(tmp_path, "b", [(0, "sent", "10:10:00"), (7, "x", "10:20:00")])
    last = run(tmp_path, penstock_spark, 2)[-1].active_runs
    assert {step: found[next(iter(found))]["runs"] for step, found in last.items()} == {
        "stages": 4,
        "text": 4,
        "rows": 4,
    }
    put(tmp_path, "c", [(1, "sent", "10:20:00"), (9, "paid", "10:30:00"), (7, "x", "10:40:00")])
    reports = run(tmp_path, penstock_spark, 3)
    stages = reports[-1].active_runs["stages"]["sent"]
    (exact,) = (each for each in run_summaries(tmp_path / "flow") if each.step == "stages")
    assert (
        (stages["runs"], stages["keys"], stages["waiting"])
        == (exact.runs, exact.keys, exact.waiting)
        == (4, 4, {"sent": 4})
    )
    assert stages["bytes"] == exact.bytes
    assert exact.oldest is not None
    assert stages["oldest"] is not None
    assert 0 <= to_micros(exact.oldest) - stages["oldest"] <= 2_000_000, "the oldest of its batch has ended meanwhile"
