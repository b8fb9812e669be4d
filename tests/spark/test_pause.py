"""A topology that is paused from outside while it runs: its spout stops, stays paused over a restart, and goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.graph.run import RunSpec
from penstock.live.activation import Activation
from penstock.live.report import BatchReport

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


class Numbers(ps.Spout):
    """Runs in the driver, which is this process: what happens to it is seen here."""

    outputs = "n bigint"
    said: list[str] = []
    calls = 0

    def __init__(self) -> None:
        self.n = 0

    def open(self, context: Any) -> None:
        self.said.append("open")
        self._emitted = context.register_metric("emitted", ps.CountMetric())

    def activate(self) -> None:
        self.said.append("activate")

    def deactivate(self) -> None:
        self.said.append("deactivate")

    def next_tuple(self) -> Any:
        time.sleep(0.02)
        type(self).calls += 1
        self.n += 1
        self._emitted.increment()
        self.emit(self.n)


class Odd(ps.BasicBolt):
    outputs = "n bigint"

    def prepare(self, context: Any) -> None:
        self._seen = context.register_metric("seen", ps.CountMetric())

    def process(self, tup: Any) -> Any:
        self._seen.increment()
        if tup.n % 2 == 0:
            self.report_error(f"{tup.n} is even")
        return [tup.n]


def topology(out: Path) -> ps.Topology:
    top = ps.Topology("paused")
    top.spout("numbers", Numbers())
    top.bolt("odd", Odd(), parallelism=2).shuffle("numbers")
    top.sink("out", ps.write_files(out, "json"), from_="odd")
    return top


@contextmanager
def running(spark: Any, folder: Path) -> Iterator[list[BatchReport]]:
    from penstock.spark.run import run_live

    reports: list[BatchReport] = []
    spec = RunSpec(checkpoint=folder / "flow", by_value=(__name__,))
    run = run_live(topology(folder / "out").graph, spark, spec, observers=(reports.append,))
    waits = threading.Thread(target=lambda: run.wait(pause=0.05), daemon=True)
    waits.start()
    try:
        yield reports
    finally:
        run.ask_to_stop()
        waits.join(300)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_paused_spout_stays_paused_over_a_restart_and_goes_on(penstock_spark: Any, tmp_path: Path) -> None:
    note = Activation(tmp_path / "flow" / "topology")
    with running(penstock_spark, tmp_path) as reports:
        until(lambda: len(reports) >= 2)
        note.ask(on=False)
        until(lambda: "deactivate" in Numbers.said)
        calls = Numbers.calls
    seen = sum(report.rows_in for report in reports)
    assert seen > 0
    assert any("emitted" in m for r in reports for m in r.metrics.get("numbers", {}).values())
    assert sum(m["seen"] for r in reports for m in r.metrics.get("odd", {}).values()) == seen
    assert any("is even" in text for r in reports for texts in r.errors.get("odd", {}).values() for text in texts)
    Numbers.said.clear()
    with running(penstock_spark, tmp_path) as again:
        until(lambda: "open" in Numbers.said)
        assert (Numbers.said, Numbers.calls) == (["open"], calls)
        note.ask(on=True)
        until(lambda: sum(report.rows_in for report in again) > 0 and Numbers.calls > calls)
    assert Numbers.said == ["open", "activate", "deactivate"]
