"""Load shedding: a flow that is too far behind leaves out the oldest records, counts them, and does the same in a replay."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.cli.output.progress import Tally, plain_line, summary
from penstock.connectors.log.shedding import plain, records_shed
from penstock.connectors.log.source import LogStreamReader
from penstock.errors import FlowError
from penstock.graph.run import RunSpec
from penstock.log import Log
from penstock.spark.run import run_bounded, run_live


def append(folder: Path, numbers: range, partitions: int = 1, timestamp: int | None = None) -> None:
    with Log(folder / "log") as log:
        if "numbers" not in log.topics():
            log.create_topic("numbers", partitions)
        with log.producer() as producer:
            for n in numbers:
                producer.send("numbers", b'{"n": %d}' % n, b"%d" % n, timestamp=timestamp)


def reader(folder: Path, shed: str) -> LogStreamReader:
    about = {"path": str(folder / "log"), "topic": "numbers", "start": "earliest", "step": "numbers"}
    return LogStreamReader(about | {"pace": str(folder / "pace"), "shed": shed})


def offsets(source: LogStreamReader, start: Any, end: Any) -> set[tuple[int, int]]:
    """What a batch reads: partitions and offsets."""
    parts = source.partitions(start, end)
    return {(p.partition, n) for bundle in parts for p in bundle.slices for n in range(p.begin, p.end)}


def test_the_oldest_are_left_out_and_the_same_again_in_a_replay(tmp_path: Path) -> None:
    append(tmp_path, range(1000), partitions=2)
    source = reader(tmp_path, '{"behind": 100}')
    start = source.initialOffset()
    end = source.latestOffset(start, None)  # type: ignore[arg-type]  # the limit is not looked at
    read = offsets(source, start, end)
    assert 98 <= len(read) <= 100
    assert len(read) + records_shed(start, end) == 1000
    append(tmp_path, range(1000, 5000))
    assert offsets(reader(tmp_path, '{"behind": 1}'), start, end) == read
    ends = plain(end)
    assert {(p, ends[str(p)] - 1) for p in (0, 1)} <= read


def test_nothing_is_shed_of_what_is_near_enough_and_nothing_twice(tmp_path: Path) -> None:
    append(tmp_path, range(100))
    source = reader(tmp_path, '{"behind": 60}')
    first = source.latestOffset(source.initialOffset(), None)  # type: ignore[arg-type]  # the limit is not looked at
    assert records_shed({"0": 0}, first) == 40
    again = source.latestOffset(first, None)  # type: ignore[arg-type]  # the limit is not looked at
    assert again == first
    assert records_shed(first, again) == 0
    append(tmp_path, range(60))
    more = source.latestOffset(first, None)  # type: ignore[arg-type]  # the limit is not looked at
    assert more == {"0": 160}
    assert len(offsets(source, first, more)) == 60


def test_what_is_older_is_left_out(tmp_path: Path) -> None:
    append(tmp_path, range(50), timestamp=int(time.time() * 1000) - 3_600_000)
    append(tmp_path, range(7))
    source = reader(tmp_path, '{"older": 1800000000}')
    end = source.latestOffset({"0": 0}, None)  # type: ignore[arg-type]  # the limit is not looked at
    assert (records_shed({"0": 0}, end), len(offsets(source, {"0": 0}, end))) == (50, 7)


def test_a_run_that_reads_what_is_there_sheds_nothing(tmp_path: Path) -> None:
    append(tmp_path, range(50))
    source = reader(tmp_path, '{"behind": 5}')
    source.prepareForTriggerAvailableNow()
    assert source.latestOffset({"0": 0}, None) == {"0": 50}  # type: ignore[arg-type]  # the limit is not looked at


def test_compacted_topics_are_counted_by_records(tmp_path: Path) -> None:
    with Log(tmp_path / "log") as log:
        log.create_topic("numbers", 1, cleanup="compact", segment_bytes=1 << 12)
        for _ in range(40):
            with log.producer() as producer:
                for key in range(20):
                    producer.send("numbers", b"x" * 20, b"%d" % key)
        log.clean("numbers")
        there = log.read_arrow("numbers", 0, 0).num_rows
    assert there < 800
    source = reader(tmp_path, '{"behind": 10}')
    end = source.latestOffset({"0": 0}, None)  # type: ignore[arg-type]  # the limit is not looked at
    assert records_shed({"0": 0}, end) == there - 10


def test_what_makes_no_sense_is_refused() -> None:
    flow = ps.Flow("refused")
    with pytest.raises(FlowError, match="shed needs behind=1000"):
        ps.shed()
    with pytest.raises(FlowError, match="older is a time"):
        ps.shed(older=0)
    with pytest.raises(FlowError, match="only a topic of the log"):
        flow.source("a", ps.items([], "n int"), shed=ps.shed(behind=1))
    with pytest.raises(FlowError, match=r"shed is ps\.shed"):
        flow.source("b", ps.topic("t"), shed=100)  # type: ignore[arg-type]  # what a user may write


def slow(row: Any) -> Any:
    time.sleep(0.002)
    return row.n


def append_in_pieces(folder: Path) -> None:
    for first in range(5000, 20000, 1500):
        append(folder, range(first, first + 1500))


def accounted(reports: list[Any], report: Any) -> int:
    """The records read or shed up to a batch, whether its report was handed on already or not."""
    return sum(int(r.balance["read"]) for r in [*reports, report] if r is report or r.batch < report.batch)


@pytest.mark.spark
def test_a_slow_step_behind_a_fast_producer_sheds_and_every_record_is_accounted_for(
    penstock_spark: Any, tmp_path: Path
) -> None:
    append(tmp_path, range(5000))
    rows: list[Any] = []
    reports: list[Any] = []
    flow = ps.Flow("behind")
    numbers = flow.source("numbers", ps.topic("numbers", "n bigint", path=tmp_path / "log"), shed=ps.shed(behind=1000))
    numbers.map("slow", slow, "n bigint").sink("out", ps.callback(lambda got, batch: rows.extend(got)))
    more = threading.Thread(target=append_in_pieces, args=(tmp_path,))
    options = RunSpec(
        checkpoint=tmp_path / "checkpoint",
        max_rows=400,
        duration=300,
    )
    live = run_live(
        flow.graph,
        penstock_spark,
        options,
        observers=(reports.append,),
        until=lambda report: accounted(reports, report) >= 20000,
    )
    more.start()
    live.wait(pause=0.02)
    more.join()
    shed = sum(r.shed.get("numbers", 0) for r in reports)
    written = [r.n for r in rows]
    assert shed > 4000
    assert sum(r.balance["read"] for r in reports) == 20000 == len(written) + shed
    assert len(set(written)) == len(written)
    assert 19999 in written
    assert max(r.sources["numbers"] for r in reports) <= 400
    assert all(r.balance["read"] == r.balance["written"] + r.balance.get("shed", 0) for r in reports)
    tally = Tally(flow.graph)
    for report in reports:
        tally.add(report)
    assert f"{shed:,} shed by numbers" in summary(tally)
    one = next(r for r in reports if r.shed)
    assert one.as_dict()["shed"] == one.shed
    tally.last = one
    assert f"shed {one.shed['numbers']:,} (numbers)" in plain_line(tally)


@pytest.mark.spark
def test_a_bounded_run_sheds_nothing(penstock_spark: Any, tmp_path: Path) -> None:
    append(tmp_path, range(100))
    rows: list[Any] = []
    flow = ps.Flow("bounded")
    numbers = flow.source("numbers", ps.topic("numbers", "n bigint", path=tmp_path / "log"), shed=ps.shed(behind=10))
    numbers.sink("out", ps.callback(lambda got, batch: rows.extend(got)))
    run_bounded(flow.graph, penstock_spark)
    assert len(rows) == 100
