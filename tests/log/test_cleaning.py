"""Retention and compaction remove what they should, nothing else, and do not disturb readers."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from penstock.log import BadRecord, Log, OffsetOutOfRange
from tests.log.helpers import fill, run_python, segments, values

HOUR = 3_600_000


def test_retention_by_size_removes_the_oldest_segments(log: Log) -> None:
    log.create_topic("t", segment_bytes=1000, retention_bytes=3000)
    log.configure_topic("t", retention_bytes=None)
    sent = fill(log, 60)
    log.configure_topic("t", retention_bytes=3000)
    assert log.clean() > 0
    info = log.describe("t").partitions[0]
    assert 3000 <= info.bytes <= 4200
    assert info.start > 0
    assert values(log, offset=info.start) == sent[info.start :]
    with pytest.raises(OffsetOutOfRange, match="retention may have removed it"):
        log.read("t", 0, info.start - 1)
    assert log.verify() == []
    assert log.clean() == 0


def test_retention_happens_by_itself_when_segments_fill(log: Log) -> None:
    log.create_topic("t", segment_bytes=1000, retention_bytes=3000)
    fill(log, 100)
    assert log.describe("t").partitions[0].bytes < 6000
    assert log.offsets("t")[0][0] > 0


def test_retention_by_time_removes_what_is_too_old_even_the_last_segment(log: Log) -> None:
    log.create_topic("t", segment_bytes=500, retention_ms=HOUR)
    now = time.time_ns() // 1_000_000
    with log.producer() as producer:
        for n in range(20):
            producer.send_many("t", [b"old %d" % n], timestamps=now - 2 * HOUR)
        producer.send_many("t", [b"new"], timestamps=now)
    log.clean(now=now)
    assert b"new" in values(log, offset=log.offsets("t")[0][0])
    assert log.offsets("t")[0][0] > 0
    log.clean(now=now + 2 * HOUR)
    assert log.offsets("t") == {0: (21, 21)}
    assert values(log, offset=21) == []
    fill(log, 1)
    assert log.offsets("t") == {0: (21, 23)}


def test_a_timestamp_in_the_far_future_does_not_stop_retention(log: Log) -> None:
    log.create_topic("t", retention_ms=HOUR)
    with log.producer() as producer:
        producer.send_many("t", [b"x"], timestamps=253_402_300_799_000)
    log.clean(now=time.time_ns() // 1_000_000 + 2 * HOUR)
    assert log.offsets("t") == {0: (1, 1)}


def test_a_group_behind_retention_is_told(log: Log) -> None:
    log.create_topic("t", segment_bytes=300, retention_bytes=600)
    with log.consumer("g", "t") as consumer:
        assert consumer.poll() == []
        fill(log, 30)
        with pytest.raises(OffsetOutOfRange):
            consumer.poll()
        consumer.seek_to_beginning()
        assert consumer.poll()


def keyed(log: Log, rounds: int, keys: int, seed: int = 0) -> dict[bytes, bytes | None]:
    """Append values for a few keys; the last value of each."""
    chance = random.Random(seed)
    last: dict[bytes, bytes | None] = {}
    with log.producer() as producer:
        for n in range(rounds):
            several = [b"k%d" % chance.randrange(keys) for _ in range(chance.randrange(1, 5))]
            new = [None if chance.random() < 0.1 else b"%d.%d" % (n, i) for i in range(len(several))]
            producer.send_many("t", new, keys=several, headers=[[("n", b"%d" % n)]] * len(new), timestamps=n)
            last.update(zip(several, new, strict=True))
    return last


def test_compaction_keeps_the_last_record_of_each_key_at_its_offset(log: Log) -> None:
    log.create_topic("t", cleanup="compact", segment_bytes=800, tombstone_ms=1 << 60)
    last = keyed(log, 100, 12)
    before = {r.key: r for r in log.read("t", 0, 0)}
    end = log.offsets("t")[0][1]
    gone = log.clean()
    after = log.read("t", 0, 0)
    assert {r.key: r for r in after} == before
    assert {r.key: r.value for r in after} == last
    assert len(after) == 12 == end - gone
    assert [r.offset for r in after] == sorted(r.offset for r in after)
    assert log.offsets("t") == {0: (0, end)}
    assert log.verify() == []
    assert len(segments(log.path)) == 2
    for offset in range(end):
        assert log.read("t", 0, offset) == [r for r in after if r.offset >= offset]
    assert log.clean() == 0
    assert log.read_arrow("t", 0, 0).column("offset").to_pylist() == [r.offset for r in after]


def test_tombstones_go_after_their_delay(log: Log) -> None:
    log.create_topic("t", cleanup="compact", tombstone_ms=1000)
    with log.producer() as producer:
        producer.send_many("t", [b"1", b"2", None], keys=[b"a", b"b", b"a"], timestamps=5000)
    log.clean(now=5500)
    assert [(r.key, r.value) for r in log.read("t", 0, 0)] == [(b"b", b"2"), (b"a", None)]
    log.clean(now=7000)
    assert [(r.key, r.value) for r in log.read("t", 0, 0)] == [(b"b", b"2")]
    assert log.offsets("t") == {0: (0, 3)}
    assert log.verify() == []


def test_a_topic_where_every_key_is_deleted_is_empty_and_goes_on(log: Log) -> None:
    log.create_topic("t", cleanup="compact", tombstone_ms=0)
    with log.producer() as producer:
        producer.send_many("t", [b"1", None], keys=[b"a", b"a"], timestamps=5)
        log.clean()
        assert log.read("t", 0, 0) == []
        producer.send_many("t", [b"2"], keys=[b"a"])
    assert [(r.offset, r.value) for r in log.read("t", 0, 0)] == [(2, b"2")]
    with log.consumer(None, "t") as consumer:
        assert [r.offset for r in consumer.poll()] == [2]


def test_a_compacted_topic_needs_keys(log: Log) -> None:
    import pyarrow as pa

    log.create_topic("t", cleanup="compact")
    with log.producer() as producer:
        for wrong in (
            lambda: producer.send("t", b"v"),
            lambda: producer.send_many("t", [b"v", b"w"], keys=[b"k", None]),
        ):
            with pytest.raises(BadRecord, match="needs a key"):
                wrong()
    with pytest.raises(BadRecord, match="needs a key"):
        log.append_arrow("t", 0, pa.table({"value": [b"v"]}))


def test_a_damaged_segment_is_left_alone_by_compaction(log: Log) -> None:
    log.create_topic("t", cleanup="compact", segment_bytes=600, tombstone_ms=0)
    with log.producer() as producer:
        producer.send_many("t", [b"deleted later"], keys=[b"d"])
        keyed(log, 20, 5)
        producer.send_many("t", [None], keys=[b"d"])
        keyed(log, 20, 5)
    file = segments(log.path)[0]
    raw = bytearray(file.read_bytes())
    raw[100] ^= 4
    file.write_bytes(raw)
    damage = log.verify()
    assert len(damage) == 1
    log.clean()
    assert file.read_bytes() == raw
    assert log.verify() == damage
    assert [r.value for r in log.read("t", 0, damage[0].next) if r.key == b"d"] == [None]


CLEAN = """
import sys
from penstock.log import Log
with Log(sys.argv[1]) as log:
    while True:
        log.clean()
"""


@pytest.mark.parametrize("cleanup", ["compact", "delete"])
def test_readers_and_writers_are_not_disturbed_by_cleaning(tmp_path: Path, cleanup: str) -> None:
    """A slow reader in the middle of segments that are replaced or deleted sees every record that stays, in order."""
    with Log(tmp_path) as log:
        log.create_topic("t", cleanup=cleanup, segment_bytes=1500, retention_bytes=15_000, tombstone_ms=1 << 60)
    cleaner = run_python(CLEAN, tmp_path, wait=False)
    last: dict[bytes, bytes | None] = {}
    seen: dict[bytes | None, bytes | None] = {}
    try:
        with Log(tmp_path) as log, log.consumer(None, "t") as consumer:
            previous = -1
            for n in range(12):
                last |= keyed(log, 15, 6, seed=n)
                while records := consumer.poll(20):
                    assert [r.offset for r in records] == sorted({r.offset for r in records})
                    assert records[0].offset > previous
                    previous = records[-1].offset
                    seen |= {r.key: r.value for r in records}
            assert seen == last
            assert log.verify() == []
    finally:
        cleaner.kill()
        cleaner.communicate()
