"""A live run does the work that waits: it ends after a batch, not before one, and replays dead letters without new input."""

from __future__ import annotations

import datetime
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.graph.run import RunSpec
from penstock.live.dead_letters.replay import Replays
from penstock.live.dead_letters.store import DeadLetterStore
from penstock.live.report import BatchReport
from penstock.log import Log
from penstock.spark.live.live import LiveRun
from penstock.spark.run import run_live
from tests.waiting import wait_until

pytestmark = pytest.mark.spark


def counted(folder: Path, records: int, got: list[int]) -> ps.Flow:
    """A topic with records, and a flow that collects them."""
    with Log(folder / "log") as log:
        log.create_topic("numbers", 3)
        with log.producer() as producer:
            for n in range(records):
                producer.send("numbers", json.dumps({"n": n}).encode(), str(n).encode())
    flow = ps.Flow("counted")
    numbers = flow.source("numbers", ps.topic("numbers", "n bigint", path=folder / "log"))
    numbers.sink("out", ps.callback(lambda rows, _: got.extend(r.n for r in rows)))
    return flow


@pytest.mark.parametrize("how", [{"duration": 0.1}, {"until_idle": 0.1}], ids=["for", "until-idle"])
def test_a_run_that_is_short_does_not_end_before_its_first_batch(
    penstock_spark: Any, tmp_path: Path, how: dict[str, Any]
) -> None:
    got: list[int] = []
    reports: list[BatchReport] = []
    flow = counted(tmp_path, 900, got)
    spec = RunSpec(checkpoint=tmp_path / "c", max_rows=400, **how)
    live = run_live(flow.graph, penstock_spark, spec, observers=(reports.append,))
    assert live.status().phase == "running"
    live.wait(pause=0.01)
    assert reports
    assert max(r.rows_in for r in reports) == 400, "never more than --max-rows"
    assert len(got) == sum(r.rows_in for r in reports)
    assert "until_idle" not in how or sorted(got) == list(range(900))
    assert live.status().phase == "over"


def parse(row: Any) -> int:
    return int(row.text)


def parse_better(row: Any) -> int:
    return int(row.text) if row.text.isdigit() else -1


@pytest.mark.parametrize("once", [True, False], ids=["once", "live"])
def test_dead_letters_are_replayed_though_no_record_waits(penstock_spark: Any, tmp_path: Path, once: bool) -> None:
    def run(function: Any) -> list[int]:
        got: list[int] = []
        flow = ps.Flow("letters", on_error="dead_letter")
        texts = flow.source("texts", ps.items(["1", "x", "y"], "text string"))
        texts.map("parse", function, "n int").sink("out", ps.callback(lambda rows, _: got.extend(r.n for r in rows)))
        spec = RunSpec(checkpoint=tmp_path, mode="once" if once else "live", batches=1)
        run_live(flow.graph, penstock_spark, spec).wait(pause=0.01)
        return got

    assert run(parse) == [1]
    replays = Replays(tmp_path / "replay")
    assert replays.ask(DeadLetterStore(tmp_path / "dead-letters").dead_letters()) == 2
    assert replays.done() == set(), "the list says yes only when a batch has taken it"
    assert run(parse_better) == [-1, -1]
    assert len(replays.done()) == 2


def timed(got: list[Any]) -> ps.Flow:
    """Windows, of which only a quiet source closes the last two."""
    flow = ps.Flow("timed")
    rows = [(datetime.datetime(2026, 1, 1, 0, 0, s, tzinfo=datetime.UTC), s % 2) for s in (1, 2, 3)]
    events = flow.source("events", ps.items(rows, "ts timestamp, k bigint"), event_time="ts", lateness="0s", idle="1s")
    counts = events.key_by("k").window(ps.tumbling("2s")).count("n")
    counts.sink("out", ps.callback(lambda rows, _: got.extend((r.k, r.n) for r in rows)))
    return flow


def test_windows_that_become_due_by_idleness_fire_after_a_restart_without_new_records(
    penstock_spark: Any, tmp_path: Path
) -> None:
    got: list[Any] = []
    run_live(timed(got).graph, penstock_spark, RunSpec(checkpoint=tmp_path / "c", batches=1)).wait(pause=0.01)
    assert not got, "all windows are open when the first run ends"
    spec = RunSpec(checkpoint=tmp_path / "c", duration=30.0)
    run_live(timed(got).graph, penstock_spark, spec, until=lambda report: len(got) == 3).wait(pause=0.01)
    assert sorted(got) == [(0, 1), (1, 1), (1, 1)]


def test_windows_that_were_due_when_a_driver_died_fire_in_a_run_that_takes_what_is_there(
    penstock_spark: Any, tmp_path: Path
) -> None:
    got: list[Any] = []
    run_live(timed(got).graph, penstock_spark, RunSpec(checkpoint=tmp_path / "c", batches=1)).wait(pause=0.01)
    run_live(timed(got).graph, penstock_spark, RunSpec(checkpoint=tmp_path / "c", mode="once")).wait(pause=0.01)
    assert got == [(1, 1)], "the window that ends at 2 s, which the record at 3 s has made due"


def test_a_run_whose_first_batch_begins_late_does_not_say_that_it_waits(
    penstock_spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade that is on trial would else have come up before it did anything."""
    looked = threading.Semaphore(0)
    begin, poll = LiveRun._batch, LiveRun._poll
    said: list[float | None] = []

    def begin_late(live: LiveRun, frame: Any, batch: int) -> None:
        for _ in range(5 if batch == 0 else 0):
            assert looked.acquire(timeout=300)
        begin(live, frame, batch)

    def look(live: LiveRun) -> None:
        poll(live)
        if not live.status().batches:
            said.append(live.status().waits_since)
        looked.release()

    monkeypatch.setattr(LiveRun, "_batch", begin_late)
    monkeypatch.setattr(LiveRun, "_poll", look)
    got: list[int] = []
    live = run_live(counted(tmp_path, 9, got).graph, penstock_spark, RunSpec(checkpoint=tmp_path / "c", batches=1))
    live.wait(pause=0.01)
    assert len(got) == 9
    assert len(said) >= 5
    assert set(said) == {None}


def test_a_run_says_since_when_it_waits_until_the_next_batch_is_under_way(penstock_spark: Any, tmp_path: Path) -> None:
    got: list[int] = []
    in_batch, go_on, said = threading.Event(), threading.Event(), list[float | None]()

    def take(rows: Any, _: int) -> None:
        found = [row.n for row in rows]
        if found:  # the first batch may have none
            in_batch.set()
            assert go_on.wait(300)
        got.extend(found)

    counted(tmp_path, 0, got)
    flow = ps.Flow("waits")
    numbers = flow.source("numbers", ps.topic("numbers", "n bigint", path=tmp_path / "log"))
    numbers.sink("out", ps.callback(take))

    def look() -> None:
        try:
            wait_until(lambda: live.status().waits_since is not None)
            said.append(live.status().waits_since)
            with Log(tmp_path / "log") as log, log.producer() as producer:
                producer.send("numbers", b'{"n": 1}').result()
            assert in_batch.wait(300)
            said.append(live.status().waits_since)
            go_on.set()
            wait_until(lambda: bool(got) and live.status().waits_since is not None)
            said.append(live.status().waits_since)
        finally:
            go_on.set()
            live.ask_to_stop()

    live = run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path / "c"))
    assert live.status().waits_since is None, "nobody has looked yet"
    beside = threading.Thread(target=look)
    beside.start()
    live.wait(pause=0.01)
    beside.join()
    first, meanwhile, after = said
    assert meanwhile is None
    assert first is not None
    assert after is not None
    assert after > first
