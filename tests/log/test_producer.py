"""Idempotent producers: a batch sent twice is stored once, and an old producer of a name may not write."""

from __future__ import annotations

import resource
import threading
from pathlib import Path

import pytest

from penstock.log import BadRecord, Log, OutOfOrderSequence, ProducerFenced
from penstock.log.produce.partitioner import murmur2, partition_for
from penstock.log.storage.batch import Stamp, body_of
from penstock.log.storage.columns import columns
from tests.log.helpers import fill, segments, values


def test_a_retried_batch_is_recognised(log: Log) -> None:
    log.create_topic("t")
    with log.producer() as producer:
        first = producer.send_many("t", [b"a", b"b"], sequence=0)[0]
        again = producer.send_many("t", [b"a", b"b"], sequence=0)[0]
        assert (again.offset, again.records, again.duplicate) == (first.offset, 2, True)
        assert not first.duplicate
        producer.send_many("t", [b"c"], sequence=2)
        assert producer.send_many("t", [b"b"], sequence=1)[0].offset == 1
    assert values(log) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("segment_bytes", [64 << 20, 256])
def test_a_retried_batch_is_recognised_after_a_reopen(tmp_path: Path, segment_bytes: int) -> None:
    with Log(tmp_path) as log:
        log.create_topic("t", segment_bytes=segment_bytes)
        for n in range(10):
            log.producer("sink").send_many("t", [b"%d" % n], sequence=n)
    with Log(tmp_path) as log:
        sink = log.producer("sink")
        assert sink.last_sequence("t") == 9
        assert sink.send_many("t", [b"9"], sequence=9)[0].duplicate
        assert sink.send_many("t", [b"0"], sequence=0)[0] == ("t", 0, -1, 1, True)
        sink.send_many("t", [b"10"])
    with Log(tmp_path) as log:
        assert values(log) == [b"%d" % n for n in range(11)]


def test_what_producers_wrote_is_found_again_without_the_snapshots(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create_topic("t", segment_bytes=256)
        for n in range(10):
            log.producer("sink").send_many("t", [b"%d" % n], sequence=n)
    for snapshot in tmp_path.rglob("*.producers"):
        snapshot.unlink()
    with Log(tmp_path) as log:
        assert log.producer("sink").last_sequence("t") == 9


def test_what_producers_wrote_survives_compaction_and_retention(tmp_path: Path) -> None:
    for cleanup, more in (("compact", {}), ("delete", {"retention_bytes": 0})):
        with Log(tmp_path / cleanup) as log:
            log.create_topic("t", cleanup=cleanup, segment_bytes=256, **more)
            for n in range(10):
                log.producer("sink").send_many("t", [b"%d" % n], keys=[b"k"], sequence=n)
            fill_other = log.producer()
            fill_other.send_many("t", [b"x"], keys=[b"k"])
            log.clean()
        with Log(tmp_path / cleanup) as log:
            assert len(log.read("t", 0, log.offsets("t")[0][0])) < 5
            assert log.producer("sink").last_sequence("t") == 9


def test_a_gap_in_the_sequence_is_refused(log: Log) -> None:
    log.create_topic("t")
    with log.producer() as producer:
        producer.send_many("t", [b"a"], sequence=0)
        with pytest.raises(OutOfOrderSequence, match="1 comes next"):
            producer.send_many("t", [b"c"], sequence=2)
        with pytest.raises(OutOfOrderSequence):
            producer.send_many("t", [b"a", b"b"], sequence=0)
        producer.send_many("t", [b"b"])
    assert values(log) == [b"a", b"b"]


def test_a_sequence_needs_one_partition(log: Log) -> None:
    log.create_topic("t", 2)
    with log.producer() as producer:
        with pytest.raises(BadRecord, match="one partition"):
            producer.send_many("t", [b"a"], keys=[b"k"], sequence=0)
        producer.send_many("t", [b"a"], keys=[b"k"], sequence=0, partition=1)


def test_an_older_producer_of_a_name_is_fenced_at_once(tmp_path: Path) -> None:
    with Log(tmp_path) as one, Log(tmp_path) as two:
        one.create_topic("t", 2)
        zombie = one.producer("sink")
        zombie.send_many("t", [b"1"], partition=0)
        newer = two.producer("sink")
        for partition in (0, 1):
            with pytest.raises(ProducerFenced):
                zombie.send_many("t", [b"2"], partition=partition)
        with pytest.raises(ProducerFenced):
            zombie.send("t", b"3").result()
        newer.send_many("t", [b"4"], partition=0)
        assert values(one) == [b"1", b"4"]
        assert newer.last_sequence("t", 0) == 1


def test_the_batches_themselves_fence_a_producer_that_got_past_the_register(log: Log) -> None:
    """A zombie that was stopped between its check and its write finds a newer epoch in the partition."""
    log.create_topic("t")
    old = log.producer("sink")
    old.send_many("t", [b"1"])
    log.producer("sink").last_sequence("t")
    writer = log._topics.get("t").partition(0).writer
    late = Stamp(old._identity.producer, old._identity.epoch, 1)
    with pytest.raises(ProducerFenced, match="epoch 0"):
        writer.append(body_of(columns([b"late"], None, None, 0)), late)
    assert values(log) == [b"1"]


def test_a_batch_of_many_records_is_whole_or_not_there(log: Log) -> None:
    log.create_topic("t")
    with log.producer() as producer, pytest.raises(BadRecord):
        producer.send_many("t", [b"a"] * 50 + [3])  # type: ignore[list-item]
    assert values(log) == []


def test_threads_share_the_fsync(log: Log) -> None:
    log.create_topic("t")
    producer = log.producer()
    writer = log._topics.get("t").partition(0).writer
    body = body_of(columns([b"x"], None, None, 0))
    offsets: list[int] = []

    def append() -> None:
        offsets.extend(writer.append(body).offset for _ in range(50))

    threads = [threading.Thread(target=append) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.close()
    assert sorted(offsets) == list(range(400))
    assert len(values(log)) == 400


def test_many_threads_send_through_one_producer(log: Log) -> None:
    log.create_topic("t", 3)
    with log.producer(linger_ms=1) as producer:

        def send(name: int) -> None:
            for n in range(200):
                producer.send("t", b"%d" % n, b"%d" % name)

        threads = [threading.Thread(target=send, args=(n,)) for n in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for name in range(5):
        partition = partition_for(b"%d" % name, 3)
        mine = [r.value for r in log.read("t", partition, 0) if r.key == b"%d" % name]
        assert mine == [b"%d" % n for n in range(200)]


def test_a_write_that_finds_no_room_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    """No partial record, and the log goes on when there is room again."""
    with Log(tmp_path) as log:
        log.create_topic("t")
        producer = log.producer()
        producer.send_many("t", [b"1"])
        size = segments(tmp_path)[0].stat().st_size
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, before[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                producer.send_many("t", [b"2" * 1000])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert segments(tmp_path)[0].stat().st_size == size
        assert values(log) == [b"1"]
        producer.send_many("t", [b"3"])
        assert values(log) == [b"1", b"3"]
        assert log.verify() == []


def test_the_buffer_of_a_producer_is_bounded(log: Log) -> None:
    log.create_topic("t")
    with log.producer(linger_ms=0, buffer_bytes=2000) as producer:
        for _ in range(300):
            producer.send("t", b"x" * 100)
            assert producer._buffered <= 2200
    assert len(values(log)) == 300


def test_the_key_hash_is_kafkas() -> None:
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536, b"abc": 479470107}
    assert {k: murmur2(k) for k in known} == {k: v & 0xFFFFFFFF for k, v in known.items()}


def test_sends_to_several_partitions_are_all_acknowledged(log: Log) -> None:
    log.create_topic("t", 4)
    with log.producer() as producer:
        acks = [producer.send("t", b"x", b"%d" % n) for n in range(100)]
        where = [ack.result(300) for ack in acks]
    for n, place in enumerate(where):
        record = log.read("t", place.partition, place.offset, max_records=1)[0]
        assert record.key == b"%d" % n
    fill(log, 1)
