"""A Python worker that stands still is noticed, asked for its stack, killed, and its task runs again."""

from __future__ import annotations

import logging
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.base import RowSink
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live


def stopping(path: Path) -> Any:
    """A step whose worker stops at its first record, the first time."""

    def step(row: Any) -> Any:
        if not path.exists():
            path.write_text("stopped")
            os.kill(os.getpid(), signal.SIGSTOP)
        return row

    return step


@pytest.mark.spark
def test_a_worker_that_stands_still_is_killed_and_its_task_runs_again(
    penstock_spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    got: list[int] = []
    flow = ps.Flow("stalled")
    numbers = flow.source("numbers", ps.items([1, 2, 3], "n int"))
    numbers.map("stop", stopping(tmp_path / "once")).sink(
        "out", ps.callback(lambda rows, _: got.extend(r.n for r in rows))
    )
    options = RunSpec(checkpoint=tmp_path / "c", mode="once", stalled_after=2.0, kill_stalled_after=8.0)
    with caplog.at_level(logging.WARNING, "penstock"):
        run_live(flow.graph, penstock_spark, options).wait()
    assert sorted(got) == [1, 2, 3]
    assert "no task has ended for" in caplog.text
    assert "killing Python workers" in caplog.text


class SilentOnce(RowSink):
    """A sink of the user's own whose first commit gets no answer until it is broken off."""

    def __init__(self) -> None:
        self.asked, self.got, self.broken = 0, list[int](), threading.Event()

    def write(self, rows: list[Any], batch: Any) -> None:
        """The first time there is no answer."""
        self.asked += 1
        if self.asked == 1:
            assert self.broken.wait(300)
            raise ConnectionError("the connection is gone")
        self.got += [row.n for row in rows]

    def interrupt(self) -> bool:
        """Ends the wait."""
        self.broken.set()
        return True


@pytest.mark.spark
def test_a_sink_that_does_not_answer_is_named_and_asked_again(
    penstock_spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    silent = SilentOnce()
    flow = ps.Flow("silent")
    flow.source("numbers", ps.items([1, 2, 3], "n int")).sink("orders", ps.connector(silent), delivery="at_least_once")
    options = RunSpec(checkpoint=tmp_path / "c", mode="once", stalled_after=1.0, kill_stalled_after=3.0)
    with caplog.at_level(logging.WARNING, "penstock"):
        run_live(flow.graph, penstock_spark, options).wait()
    assert sorted(silent.got) == [1, 2, 3]
    assert "sink 'orders' (own), committing batch 0: no answer since" in caplog.text
    assert "trying again" in caplog.text
    assert "no task has ended" not in caplog.text
