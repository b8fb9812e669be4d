"""Consumers and their groups: positions, commits, seeks, lag, and predicates."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from penstock.log import (
    BadPredicate,
    BadSetting,
    Log,
    LogDamaged,
    LogError,
    NotAssigned,
    OffsetOutOfRange,
    Record,
    TopicPartition,
    predicate,
)
from tests.log.helpers import fill, segments

T0 = TopicPartition("t", 0)


def test_a_group_goes_on_where_it_committed(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        log.create_topic("t")
        sent = fill(log, 5)
        with log.consumer("g", "t") as consumer:
            assert [r.value for r in consumer.poll(3)] == sent[:3]
            consumer.commit()
            assert [r.value for r in consumer.poll(3)] == sent[3:6]
    with Log(tmp_path) as log, log.consumer("g", "t") as consumer:
        assert [r.value for r in consumer.poll()] == sent[3:]
        assert consumer.poll() == []
        assert consumer.lag() == {T0: 0}
        assert log.groups.describe("g").lag == 7


def test_what_was_read_slowly_is_committed_though_another_member_has_come(tmp_path: Path) -> None:
    """A partition is given up at the next poll, not by the commit itself."""
    with Log(tmp_path) as log:
        log.create_topic("t", 2)
        for partition in (0, 1):
            log.producer().send_many("t", [b"x"] * 5, partition=partition)
        slow = log.consumer("g", "t")
        assert len(slow.poll()) == 10
        with slow, log.consumer("g", "t") as other:
            time.sleep(0.25)
            slow.commit()
            assert log.groups.committed("g") == {T0: 5, TopicPartition("t", 1): 5}
            assert slow.poll() == []
            time.sleep(0.25)
            assert other.poll() == []
            assert sorted(slow.assignment() + other.assignment()) == [T0, TopicPartition("t", 1)]


def test_a_slow_on_revoke_may_use_the_consumer(tmp_path: Path) -> None:
    """What it calls does not share out the partitions once more, however long it takes."""
    revoked: list[list[TopicPartition]] = []
    with Log(tmp_path) as log:
        log.create_topic("t", 2)
        fill(log, 1)

        def on_revoke(lost: list[TopicPartition]) -> None:
            time.sleep(0.25)
            revoked.append(lost)
            consumer.commit()
            assert len(consumer.lag()) == 2

        consumer = log.consumer("g", "t", on_revoke=on_revoke)
        with consumer:
            consumer.poll()
            with log.consumer("g", "t"):
                time.sleep(0.25)
                consumer.poll()
                assert len(revoked) == 1
                assert len(consumer.assignment()) == 1


def test_a_consumer_begins_where_it_is_told(log: Log) -> None:
    log.create_topic("t")
    sent = fill(log, 3)
    log.groups.commit("g", {T0: 4})
    for start, expected in (("committed", sent[4:]), ("earliest", sent), ("latest", [])):
        with log.consumer("g", "t", from_=start) as consumer:
            assert [r.value for r in consumer.poll()] == expected
    with log.consumer("other", "t") as consumer:
        assert [r.value for r in consumer.poll()] == sent
    with pytest.raises(BadSetting, match="'earliest', 'latest', 'committed'"):
        log.consumer("g", "t", from_="begin")


def test_a_consumer_seeks_to_offset_time_beginning_and_end(log: Log) -> None:
    log.create_topic("t", 2)
    with log.producer() as producer:
        for partition in (0, 1):
            for n in range(5):
                producer.send_many("t", [b"%d" % n], timestamps=n * 10, partition=partition)
    with log.consumer(None, "t") as consumer:
        consumer.seek("t", 0, 3)
        consumer.seek("t", 1, 5)
        assert [(r.partition, r.offset) for r in consumer.poll()] == [(0, 3), (0, 4)]
        consumer.seek_to_time(35)
        assert sorted((r.partition, r.offset) for r in consumer.poll()) == [(0, 4), (1, 4)]
        consumer.seek_to_beginning()
        assert len(consumer.poll()) == 10
        consumer.seek_to_beginning()
        assert len(consumer.poll(3)) == 3
        consumer.seek_to_end()
        assert consumer.poll() == []
        consumer.seek("t", 0, 99)
        with pytest.raises(OffsetOutOfRange):
            consumer.poll()


def test_a_poll_waits_for_the_first_record(log: Log) -> None:
    log.create_topic("t")
    with log.consumer(None, "t") as consumer, log.producer(linger_ms=50) as producer:
        producer.send("t", b"late")
        assert [r.value for r in consumer.poll(timeout=300)] == [b"late"]
        assert consumer.poll(timeout=0.01) == []


def test_a_static_assignment_reads_only_its_partitions(log: Log) -> None:
    log.create_topic("t", 3)
    with log.producer() as producer:
        for partition in range(3):
            producer.send_many("t", [b"x"], partition=partition)
    with log.consumer("g", assignment=[("t", 1)]) as consumer:
        assert [r.partition for r in consumer.poll()] == [1]
        consumer.commit()
        with pytest.raises(NotAssigned, match="it reads t-1"):
            consumer.seek("t", 0, 0)
    assert log.groups.committed("g") == {TopicPartition("t", 1): 1}


def test_all_partitions_get_their_turn(log: Log) -> None:
    log.create_topic("t", 3)
    with log.producer() as producer:
        for partition in range(3):
            producer.send_many("t", [b"x"] * 1000, partition=partition)
    with log.consumer(None, "t") as consumer:
        first = [r.partition for _ in range(3) for r in consumer.poll(10)]
    assert set(first) == {0, 1, 2}


def test_members_in_one_process_never_share_a_partition(tmp_path: Path) -> None:
    revoked: list[TopicPartition] = []
    with Log(tmp_path) as log:
        log.create_topic("t", 4)
        with log.producer() as producer:
            producer.send_many("t", [b"%d" % n for n in range(100)], keys=[b"%d" % n for n in range(100)])

        def on_revoke(lost: list[TopicPartition]) -> None:
            revoked.extend(lost)
            one.commit()

        one = log.consumer("g", "t", on_revoke=on_revoke)
        seen = [(r.partition, r.offset) for r in one.poll(40)]
        assert len(one.assignment()) == 4
        two = log.consumer("g", "t")
        assert two.assignment() == []
        one._looked = float("-inf")
        assert len(one.assignment()) == len(revoked) == 2
        two._looked = float("-inf")
        assert two.assignment() == revoked
        for consumer in (one, two):
            while batch := consumer.poll():
                seen += [(r.partition, r.offset) for r in batch]
        assert len(seen) == len(set(seen)) == 100
        with pytest.raises(NotAssigned):
            one.commit({revoked[0]: 1})
        one.close()
        two._looked = float("-inf")
        assert len(two.assignment()) == 4
        two.close()


def test_groups_are_listed_described_reset_and_deleted(log: Log) -> None:
    log.create_topic("t", 2)
    with log.producer() as producer:
        for partition in (0, 1):
            producer.send_many("t", [b"x"] * 5, timestamps=[10, 20, 30, 40, 50], partition=partition)
    assert log.groups.names() == []
    consumer = log.consumer("g", "t")
    consumer.poll()
    consumer.commit()
    info = log.groups.describe("g")
    assert [(o.partition, o.committed, o.lag) for o in info.offsets] == [(0, 5, 0), (1, 5, 0)]
    assert [o.owner for o in info.offsets] == [info.members[0]] * 2
    with pytest.raises(LogError, match="live members"):
        log.groups.reset("g", "t", "earliest")
    consumer.close()
    t1 = TopicPartition("t", 1)
    assert log.groups.reset("g", "t", "earliest") == {T0: 0, t1: 0}
    assert log.groups.reset("g", "t", 2, partition=1) == {t1: 2}
    assert log.groups.reset_to_time("g", "t", 35) == {T0: 3, t1: 3}
    assert log.groups.reset_to_time("g", "t", 99) == {T0: 5, t1: 5}
    assert log.groups.reset("g", "t", "latest", partition=0) == {T0: 5}
    with pytest.raises(OffsetOutOfRange):
        log.groups.reset("g", "t", 6)
    with pytest.raises(BadSetting):
        log.groups.reset("g", "t", "middle")
    assert log.groups.names() == ["g"]
    log.groups.delete("g")
    assert log.groups.names() == []
    with pytest.raises(LogError, match="no group 'g'"):
        log.groups.describe("g")


def test_a_consumer_without_a_group_cannot_commit(log: Log) -> None:
    log.create_topic("t")
    with log.consumer(None, "t") as consumer, pytest.raises(LogError, match="without a group"):
        consumer.commit()
    with pytest.raises(LogError, match="needs topics"):
        log.consumer("g")


def test_a_predicate_lets_only_matching_records_through(log: Log) -> None:
    log.create_topic("t")
    with log.producer() as producer:
        producer.send_many("t", [b'{"n": %d, "odd": %s}' % (n, b"true" if n % 2 else b"false") for n in range(10)])
    with log.consumer("g", "t", where="odd = true and n > 2") as consumer:
        assert [r.offset for r in consumer.poll()] == [3, 5, 7, 9]
        consumer.commit()
    assert log.groups.committed("g") == {T0: 10}
    with log.consumer("f", "t", where=lambda r: r.offset < 2) as consumer:
        assert [r.offset for r in consumer.poll(1)] == [0]
        assert consumer.position("t") == 1
        assert [r.offset for r in consumer.poll(1)] == [1]
        assert consumer.position("t") == 10


def test_a_predicate_that_fails_loses_nothing(log: Log) -> None:
    log.create_topic("t")
    sent = fill(log, 3)
    broken = [True]

    def wants(record: Record) -> bool:
        if record.offset == 3 and broken:
            raise ZeroDivisionError
        return True

    with log.consumer(None, "t", where=wants) as consumer:
        with pytest.raises(ZeroDivisionError):
            consumer.poll()
        broken.clear()
        assert [r.value for r in consumer.poll()] == sent


def test_damage_in_one_partition_does_not_take_records_of_another(log: Log) -> None:
    log.create_topic("t", 2)
    with log.producer() as producer:
        for partition in (0, 1):
            producer.send_many("t", [b"x"], partition=partition)
    raw = bytearray(segments(log.path, partition=1)[0].read_bytes())
    raw[-1] ^= 1
    segments(log.path, partition=1)[0].write_bytes(raw)
    seen: list[int] = []
    with log.consumer(None, "t") as consumer:
        for _ in range(4):
            try:
                seen += [r.partition for r in consumer.poll()]
            except LogDamaged as error:
                seen.append(10 + error.damage.partition)
    assert sorted(set(seen)) == [0, 11]
    assert seen.count(0) == 1


ROW = Record(
    "t",
    2,
    7,
    99,
    b"key",
    b'{"a": 1, "b": {"c": "x"}, "d": null, "e": [1, "y"], "f": true, "and-so": 1.5}',
    (("h", b"v"), ("n", None)),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", True),
        ("a == 1.0", True),
        ("a != 1", False),
        ("a <> 2", True),
        ("a < 2 and a > 0 and a <= 1 and a >= 1", True),
        ("b.c = 'x'", True),
        ('b.c = "x"', True),
        ("b.c > 'w'", True),
        ("b.c = 1", False),
        ("b.c != 1", True),
        ("b.c < 1", False),
        ("missing = 1", False),
        ("missing != 1", False),
        ("missing is null", True),
        ("d is null and a is not null", True),
        ("d = null", False),
        ("a in (3, 2, 1)", True),
        ("a in ('1')", False),
        ("e.1 = 'y'", True),
        ("e.9 = 'y'", False),
        ("e contains 'y'", True),
        ("e contains 2", False),
        ("b.c contains 'x'", True),
        ("f = true", True),
        ("f = 1", False),
        ("and-so = 1.5", True),
        ("NOT a = 1 OR f = true", True),
        ("not (a = 1 or f = true)", False),
        ("a = 2 or a = 1 and f = false", False),
        ("(a = 2 or a = 1) and f = true", True),
        ("$key = 'key' and $partition = 2 and $offset = 7 and $timestamp < 100", True),
        ("$headers.h = 'v'", True),
        ("$headers.n is null and $headers.gone is null", True),
        (r"b.c = 'it\'s' or b.c != 'it''s'", True),
        ("a > -1e3", True),
    ],
)
def test_predicates_say_what_they_mean(text: str, expected: bool) -> None:
    assert predicate(text)(ROW) is expected


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"not json", b"[1]", b"3", b"[" * 100_000])
def test_a_value_that_is_not_an_object_matches_nothing(value: bytes | None) -> None:
    assert not predicate("a = 1")(Record("t", 0, 0, 0, None, value))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a =",
        "a = b",
        "= 1",
        "a = 1 and",
        "(a = 1",
        "a = 1)",
        "a in ()",
        "a is 1",
        "a = 1 b = 2",
        "a ~ 1",
        "$x = 1",
    ],
)
def test_a_predicate_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(BadPredicate, match="predicate "):
        predicate(text)
