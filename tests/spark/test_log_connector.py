"""The embedded log as a source and a sink of flows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.base import Batch, SinkContext
from penstock.connectors.log.sink import LogSink
from penstock.errors import DeliveryError, RunError
from penstock.graph.run import RunSpec
from penstock.graph.schema import schema_of
from penstock.live.dead_letters.store import DeadLetterStore
from penstock.log import Log
from penstock.spark.run import run_bounded, run_live

pytestmark = pytest.mark.spark


def filled(folder: Path, records: int, partitions: int = 2) -> Path:
    """A log with a topic of numbers."""
    with Log(folder / "log") as log:
        log.create_topic("numbers", partitions)
        produce(log, range(records))
    return folder / "log"


def produce(log: Log, numbers: Any) -> None:
    with log.producer() as producer:
        for n in numbers:
            producer.send("numbers", json.dumps({"n": n, "even": n % 2 == 0}).encode(), str(n).encode())


def values(path: Path, topic: str) -> list[Any]:
    """All values of a topic, partition by partition."""
    with Log(path) as log:
        return [json.loads(r.value or b"") for p in log.offsets(topic) for r in log.read(topic, p, 0)]


def doubled(path: Path) -> ps.Flow:
    flow = ps.Flow("double")
    numbers = flow.source("numbers", ps.topic("numbers", "n bigint, even boolean", path=path, group="doubler"))
    numbers.map("double", lambda r: (r.n, 2 * r.n), "n bigint, twice bigint").sink(
        "out", ps.write_topic("doubled", key="n", path=path, partitions=2)
    )
    return flow


def test_from_topic_to_topic_live_and_again_later(penstock_spark: Any, tmp_path: Path) -> None:
    path = filled(tmp_path, 50)
    options = RunSpec(checkpoint=tmp_path / "checkpoint", mode="once")
    run_live(doubled(path).graph, penstock_spark, options).wait()
    with Log(path) as log:
        produce(log, range(50, 60))
    run_live(doubled(path).graph, penstock_spark, options).wait()
    assert sorted((v["n"], v["twice"]) for v in values(path, "doubled")) == [(n, 2 * n) for n in range(60)]
    with Log(path) as log:
        assert log.groups.describe("doubler").lag == 0


def test_bounded_with_raw_records(penstock_spark: Any, tmp_path: Path) -> None:
    path = filled(tmp_path, 10, partitions=1)
    taken: list[Any] = []
    flow = ps.Flow("raw")
    flow.source("numbers", ps.topic("numbers", path=path)).sink(
        "out", ps.callback(lambda rows, batch: taken.extend(rows))
    )
    run_bounded(flow.graph, penstock_spark)
    assert [(r.partition, r.offset, r.key) for r in taken] == [(0, n, str(n).encode()) for n in range(10)]


def test_a_start_can_be_an_offset(penstock_spark: Any, tmp_path: Path) -> None:
    path = filled(tmp_path, 10, partitions=1)
    taken: list[Any] = []
    flow = ps.Flow("late-start")
    numbers = flow.source("numbers", ps.topic("numbers", "n bigint", path=path, start={0: 7}))
    numbers.sink("out", ps.callback(lambda rows, batch: taken.extend(r.n for r in rows)))
    run_bounded(flow.graph, penstock_spark)
    assert taken == [7, 8, 9]


class Crash(Exception):
    """Stands for the death of the driver."""


def sink_of(path: Path) -> tuple[LogSink, Any]:
    sink = LogSink()
    options = {"topic": "out", "path": str(path), "format": "json", "key": "id", "partitions": 4}
    context = SinkContext("out", "flow", options, schema_of("id bigint"), "life", "exactly_once")
    return sink, sink.open(context)


def about(batch: int, path: Path, fingerprint: str = "") -> Batch:
    options = {"topic": "out", "path": str(path), "format": "json", "key": "id", "partitions": 4}
    return Batch(batch, "out", options, "life", "exactly_once", fingerprint or f"f{batch}")


def test_a_batch_that_died_between_two_partitions_adds_only_what_is_missing(
    penstock_spark: Any, tmp_path: Path
) -> None:
    sink, entry = sink_of(tmp_path)
    assert entry is None
    sink.stage(penstock_spark.range(20), about(0, tmp_path)).commit()
    send, calls = sink.producer.send_many, []

    def dying(*args: Any, **kwargs: Any) -> Any:
        calls.append(kwargs["partition"])
        if len(calls) == 3:
            raise Crash
        return send(*args, **kwargs)

    sink.producer.send_many = dying  # type: ignore[method-assign]  # the driver dies in the middle
    with pytest.raises(Crash):
        sink.stage(penstock_spark.range(20, 40), about(1, tmp_path)).commit()
    assert 20 < len(values(tmp_path, "out")) < 40
    again, entry = sink_of(tmp_path)
    assert entry is not None
    assert (entry.batch, entry.is_complete) == (1, False)
    again.stage(penstock_spark.range(20, 40), about(1, tmp_path)).commit()
    again.stage(penstock_spark.range(20, 40), about(1, tmp_path)).commit()
    assert sorted(v["id"] for v in values(tmp_path, "out")) == list(range(40))


def test_two_drivers_cannot_both_commit(penstock_spark: Any, tmp_path: Path) -> None:
    old, _ = sink_of(tmp_path)
    staged = old.stage(penstock_spark.range(3), about(0, tmp_path))
    new, _ = sink_of(tmp_path)
    with pytest.raises(DeliveryError, match="another driver of this flow has taken over"):
        staged.commit()
    new.stage(penstock_spark.range(3), about(0, tmp_path)).commit()
    with pytest.raises(DeliveryError, match="made of other offsets"):
        new.stage(penstock_spark.range(9), about(0, tmp_path, "other")).commit()
    assert sorted(v["id"] for v in values(tmp_path, "out")) == [0, 1, 2]


@pytest.mark.parametrize("partitions", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_each_partition_of_a_topic_has_a_watermark(penstock_spark: Any, tmp_path: Path, partitions: int) -> None:
    """A partition that stops holds event time back until it is idle; empty ones never do."""
    path, rows, stops = tmp_path / "log", list[Any](), partitions // 2

    def send(*events: tuple[int, int]) -> None:
        with Log(path) as log, log.producer() as producer:
            for partition, second in events:
                value = {"p": partition, "ts": f"2024-01-01T00:{second // 60:02d}:{second % 60:02d}Z"}
                producer.send("many", json.dumps(value).encode(), partition=partition)

    def run(idle: str, **options: Any) -> None:
        flow = ps.Flow("many")
        events = ps.topic("many", "p int, ts timestamp", path=path)
        timed = flow.source("events", events).event_time("timed", "ts", lateness="0s", idle=idle, partition="p")
        counts = timed.key_by("p").window(ps.tumbling("10s")).count("n")
        counts.sink("out", ps.callback(lambda new, _: rows.extend(tuple(r) for r in new if tuple(r)[1].minute < 12)))
        spec = RunSpec(checkpoint=tmp_path / "checkpoint", duration=300, **options)
        run_live(flow.graph, penstock_spark, spec, until=lambda report: len(rows) > 2 * len(fast)).wait()

    with Log(path) as log:
        log.create_topic("many", partitions)
    fast = [p for p in range(0, partitions - 4, 2) if p != stops]
    send(*((p, 600) for p in fast), (stops, 0), (2, 601))
    run("1h", mode="once")
    send(*((p, 660) for p in fast), (stops, 1))
    run("1h", mode="once")
    send(*((p, 720) for p in fast), (stops, 2))
    run("1h", mode="once")
    assert rows == [], f"partition {stops} is at its first seconds, and shares its time with no other"
    send((4, 721))
    run("1s")
    got = sorted((p, begin.minute, n) for p, begin, _, n in rows)
    assert got == sorted([(stops, 0, 3), *((p, 10, 1 + (p == 2)) for p in fast), *((p, 11, 1) for p in fast)])


def compacted(folder: Path, given: list[Any], **settings: Any) -> ps.Flow:
    """A flow into a compacted topic, which takes no record without a key."""
    with Log(folder / "log") as log:
        if not log.topics():
            log.create_topic("out", 2, cleanup="compact")
    flow = ps.Flow("keyed")
    rows = flow.source("rows", ps.items(given, "id string, n bigint"))
    rows.sink("out", ps.write_topic("out", key="id", path=folder / "log"), **settings)
    return flow


ROWS = [("a", 1), (None, 2), ("c", 3), (None, 4)]


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_records_without_a_key_for_a_compacted_topic_become_dead_letters(
    penstock_spark: Any, tmp_path: Path, delivery: str
) -> None:
    flow = compacted(tmp_path, ROWS, on_error="dead_letter", delivery=delivery)
    for _ in range(2):
        run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path / "at", mode="once")).wait()
        assert sorted(v["n"] for v in values(tmp_path / "log", "out")) == [1, 3]
        kept = list(DeadLetterStore(tmp_path / "at" / "dead-letters").dead_letters())
        assert sorted(letter["record"] for letter in kept) == ["Row(id=None, n=2)", "Row(id=None, n=4)"]
        assert {letter["cause"] for letter in kept} == {
            "the topic 'out' is compacted, so every record needs a key, and id is null"
        }
        for lost in [*(tmp_path / "at" / "spark" / "commits").iterdir(), *(tmp_path / "at" / "dead-letters").iterdir()]:
            if lost.is_file() and "metadata" not in lost.name and delivery == "exactly_once":
                lost.unlink()  # as after a driver that died when its sink had the batch


def test_a_record_without_a_key_for_a_compacted_topic_stops_a_flow_that_does_not_put_it_aside(
    penstock_spark: Any, tmp_path: Path
) -> None:
    with pytest.raises(
        RunError, match=r"sink 'out' refuses a row: the topic 'out' is compacted.*on_error='dead_letter'"
    ):
        run_bounded(compacted(tmp_path, ROWS).graph, penstock_spark)
    assert values(tmp_path / "log", "out") == []
