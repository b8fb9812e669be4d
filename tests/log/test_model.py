"""The log against a model that keeps everything in lists: whatever is done to both, both say the same."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from penstock.log import Consumer, Log, OffsetOutOfRange, Producer, Record, TopicPartition

data = st.one_of(st.none(), st.binary(max_size=30))
keys = st.sampled_from([b"a", b"b", b"c", b"d"])
times = st.integers(0, 100)
rows = st.lists(st.tuples(data, keys, times), min_size=1, max_size=6)
partitions = st.integers(0, 1)
T = [TopicPartition("t", 0), TopicPartition("t", 1)]


class LogMachine(RuleBasedStateMachine):
    """Appends, reads, reopens, cleans, commits and seeks, in any order."""

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        self.path = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.records: list[list[Record]] = [[], []]
        self.ends = [0, 0]
        self.starts = [0, 0]
        self.committed: dict[TopicPartition, int] = {}
        self.position: dict[TopicPartition, int] = {}
        self.sequence = 0
        self.consumer: Consumer | None = None

    @initialize(cleanup=st.sampled_from(["delete", "compact"]), segment_bytes=st.sampled_from([256, 600, 100_000]))
    def create(self, cleanup: str, segment_bytes: int) -> None:
        self.compacted = cleanup == "compact"
        self.open()
        self.log.create_topic("t", 2, cleanup=cleanup, segment_bytes=segment_bytes, tombstone_ms=0)

    def open(self) -> None:
        self.log = Log(self.path)
        self.producer: Producer = self.log.producer("p")

    @rule()
    def reopen(self) -> None:
        if self.consumer is not None:
            self.stop()
        self.log.close()
        self.open()

    def take(self, partition: int, new: list[tuple[bytes | None, bytes, int]], headers: Any = ()) -> None:
        for value, key, time in new:
            self.records[partition].append(Record("t", partition, self.ends[partition], time, key, value, headers))
            self.ends[partition] += 1

    @rule(partition=partitions, new=rows)
    def append(self, partition: int, new: list[tuple[bytes | None, bytes, int]]) -> None:
        values, keys, times = (list(column) for column in zip(*new, strict=True))
        done = self.producer.send_many("t", values, keys=keys, timestamps=times, partition=partition)[0]
        assert (done.offset, done.records, done.duplicate) == (self.ends[partition], len(new), False)
        self.take(partition, new)

    @rule(partition=partitions, new=rows)
    def send(self, partition: int, new: list[tuple[bytes | None, bytes, int]]) -> None:
        headers = (("h", b"1"), ("n", None))
        acks = [self.producer.send("t", v, k, headers, t, partition) for v, k, t in new]
        self.producer.flush()
        assert [a.result().offset for a in acks] == [self.ends[partition] + n for n in range(len(new))]
        self.take(partition, new, headers)

    @rule(partition=partitions, new=rows)
    def send_twice(self, partition: int, new: list[tuple[bytes | None, bytes, int]]) -> None:
        values, keys, times = (list(column) for column in zip(*new, strict=True))
        sequence = self.producer.last_sequence("t", partition) + 1
        done = [
            self.producer.send_many("t", values, keys=keys, timestamps=times, partition=partition, sequence=sequence)[0]
            for _ in range(2)
        ]
        assert [d.duplicate for d in done] == [False, True]
        assert done[0].offset == done[1].offset == self.ends[partition]
        self.take(partition, new)

    @rule(partition=partitions, at=st.floats(0, 1), most=st.integers(1, 20))
    def read(self, partition: int, at: float, most: int) -> None:
        start, end = self.starts[partition], self.ends[partition]
        offset = start + int(at * (end - start))
        expected = [r for r in self.records[partition] if r.offset >= offset]
        assert self.log.read("t", partition, offset, max_records=most) == expected[:most]
        table = self.log.read_arrow("t", partition, offset, min(offset + most, end))
        assert table.column("offset").to_pylist() == [r.offset for r in expected if r.offset < offset + most]
        assert table.column("value").to_pylist() == [r.value for r in expected if r.offset < offset + most]

    @rule(partition=partitions)
    def read_outside(self, partition: int) -> None:
        for offset in (self.starts[partition] - 1, self.ends[partition] + 1):
            with pytest.raises(OffsetOutOfRange):
                self.log.read("t", partition, offset)

    @rule(time=times)
    def find_time(self, time: int) -> None:
        expected = {p: next((r.offset for r in self.records[p] if r.timestamp >= time), None) for p in (0, 1)}
        assert self.log.offsets_for_time("t", time) == expected

    @precondition(lambda self: not self.compacted)
    @rule(now=st.integers(0, 150), keep=st.integers(0, 100), size=st.one_of(st.none(), st.integers(0, 2000)))
    def retain(self, now: int, keep: int, size: int | None) -> None:
        self.log.configure_topic("t", retention_ms=keep, retention_bytes=size)
        self.log.clean(now=now)
        self.log.configure_topic("t", retention_ms=None, retention_bytes=None)
        for partition, (start, end) in self.log.offsets("t").items():
            assert self.starts[partition] <= start <= end == self.ends[partition]
            gone = [r for r in self.records[partition] if r.offset < start]
            self.records[partition] = [r for r in self.records[partition] if r.offset >= start]
            self.starts[partition] = start
            assert size is not None or all(r.timestamp < now - keep for r in gone)

    @precondition(lambda self: self.compacted)
    @rule(now=st.integers(0, 150))
    def compact(self, now: int) -> None:
        self.log.clean(now=now)
        for partition in (0, 1):
            last = {r.key: r.offset for r in self.records[partition]}
            self.records[partition] = [
                r
                for r in self.records[partition]
                if last[r.key] == r.offset and (r.value is not None or r.timestamp >= now)
            ]

    @precondition(lambda self: self.consumer is None)
    @rule()
    def start(self) -> None:
        self.consumer = self.log.consumer("g", "t")
        assert self.consumer.assignment() == T
        for place in T:
            self.position[place] = self.committed.get(place, self.starts[place.partition])

    @precondition(lambda self: self.consumer is not None)
    @rule()
    def stop(self) -> None:
        assert self.consumer is not None
        self.consumer.close()
        self.consumer = None

    @precondition(lambda self: self.consumer is not None)
    @rule(place=st.sampled_from(T), at=st.floats(0, 1))
    def seek(self, place: TopicPartition, at: float) -> None:
        assert self.consumer is not None
        start, end = self.starts[place.partition], self.ends[place.partition]
        self.position[place] = start + int(at * (end - start))
        self.consumer.seek(*place, self.position[place])

    @precondition(lambda self: self.consumer is not None)
    @rule()
    def poll_all(self) -> None:
        """Retention may have overtaken a position: then the consumer is reported, and begins anew."""
        assert self.consumer is not None
        for place in T:
            if self.position[place] < self.starts[place.partition]:
                self.position[place] = self.starts[place.partition]
                self.consumer.seek(*place, self.position[place])
        seen: list[Record] = []
        while batch := self.consumer.poll(7):
            seen += batch
        for place in T:
            mine = [r for r in seen if r.partition == place.partition]
            assert [r.offset for r in mine] == sorted({r.offset for r in mine})
            kept = [r for r in self.records[place.partition] if r.offset >= self.position[place]]
            assert [r for r in mine if r in kept] == kept
            self.position[place] = self.ends[place.partition]
        assert self.consumer.positions() == self.position

    @precondition(lambda self: self.consumer is not None)
    @rule()
    def commit(self) -> None:
        assert self.consumer is not None
        self.consumer.commit()
        self.committed = dict(self.position)

    @invariant()
    def committed_offsets_are_those_of_the_model(self) -> None:
        if hasattr(self, "log"):
            assert self.log.groups.committed("g") == self.committed

    def teardown(self) -> None:
        if hasattr(self, "log"):
            for partition in (0, 1):
                assert self.log.read("t", partition, self.starts[partition]) == self.records[partition]
            assert self.log.verify() == []
            if self.consumer is not None:
                self.consumer.close()
            self.log.close()
        shutil.rmtree(self.path)


def run(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        LogMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def test_the_log_does_what_the_model_does() -> None:
    run(examples=40, steps=25)


@pytest.mark.slow
def test_the_log_does_what_the_model_does_for_long() -> None:
    run(examples=1500, steps=50)
