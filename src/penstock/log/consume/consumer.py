"""Consumers: records out, in order within a partition, from where the reader says."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from penstock.log.consume.cursor import Cursor
from penstock.log.consume.groups import Groups
from penstock.log.consume.membership import Member
from penstock.log.consume.predicate import Predicate
from penstock.log.errors import BadSetting, Damage, LogClosed, LogDamaged, LogError, NotAssigned
from penstock.log.partition import Partition
from penstock.log.record import Record, TopicPartition
from penstock.log.storage import quarantine
from penstock.log.topic import Topics

_FETCH = 1 << 20
_REBALANCE = 0.2
_START = ("earliest", "latest", "committed")


class _Reading:
    """A partition that is being read: a cursor, and records that were read but not handed out yet."""

    def __init__(self, partition: Partition, offset: int, where: Predicate | None) -> None:
        self.partition = partition
        self.position = offset
        self._where = where
        self._cursor: Cursor = partition.cursor(offset)
        self._ready: deque[Record] = deque()

    def take(self, most: int) -> list[Record]:
        """Up to `most` records, and the position after them."""
        if not self._ready:
            self._fill()
        taken = [self._ready.popleft() for _ in range(min(most, len(self._ready)))]
        if self._ready:
            self.position = self._ready[0].offset
        elif self._cursor.offset > self.position:
            self.position = self._cursor.offset
        return taken

    def _fill(self) -> None:
        directory = self.partition.directory
        batches = self._cursor.fetch(_FETCH)
        try:
            for batch in batches:
                records = batch.records(directory.topic, directory.partition)
                self._ready.extend(records if self._where is None else filter(self._where, records))
        except BaseException:
            self.seek(self.position)
            raise

    def seek(self, offset: int) -> None:
        self._ready.clear()
        self._cursor.seek(offset)
        self.position = offset

    def close(self) -> None:
        self._cursor.close()


class Consumer:
    """Reads topics; with a group, shares the partitions with the other members and remembers its position.

    Not for use from several threads at once.
    """

    def __init__(
        self,
        topics: Topics,
        groups: Groups,
        group: str | None,
        names: Sequence[str],
        *,
        from_: str,
        where: Predicate | None,
        assignment: Iterable[TopicPartition] | None,
        on_revoke: Callable[[list[TopicPartition]], None] | None,
    ) -> None:
        if from_ not in _START:
            raise BadSetting(f"a consumer begins from one of {', '.join(map(repr, _START))}, not {from_!r}")
        self.group = group
        self._topics, self._groups, self._names = topics, groups, list(names)
        self._from, self._where, self._on_revoke = from_, where, on_revoke
        self._reading: dict[TopicPartition, _Reading] = {}
        self._turn = 0
        self._looked = float("-inf")
        self._closed = self._joined = False
        self._all = [TopicPartition(n, p) for n in self._names for p in range(len(topics.get(n).partitions))]
        self._member = Member(groups.path(group), self._names) if group is not None and assignment is None else None
        if self._member is None:
            self._begin(self._all if assignment is None else assignment)

    def poll(self, max_records: int = 500, timeout: float = 0.0) -> list[Record]:
        """The next records, waiting up to `timeout` seconds for the first; an empty list when there are none."""
        deadline = time.monotonic() + timeout
        pause = 0.001
        while True:
            self._check_open()
            self._rebalance()
            records = self._collect(max_records)
            left = deadline - time.monotonic()
            if records or left <= 0:
                return records
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, 0.02)

    def assignment(self) -> list[TopicPartition]:
        """The partitions this consumer reads now."""
        self._check_open()
        self._rebalance()
        return sorted(self._reading)

    def position(self, topic: str, partition: int = 0) -> int:
        """The offset after the last record that was handed out."""
        return self._read(topic, partition).position

    def positions(self) -> dict[TopicPartition, int]:
        """The position in every partition this consumer reads."""
        return {tp: r.position for tp, r in self._reading.items()}

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit the positions of all partitions (or these offsets) in one step; on disk on return.

        Partitions are not given up meanwhile: what this consumer has read it can also commit.
        """
        self._check_open()
        if self.group is None:
            raise LogError("a consumer without a group has nowhere to commit to; give it a group")
        offsets = self.positions() if offsets is None else offsets
        for tp in offsets:
            self._held(*tp)
        if offsets:
            self._groups.commit(self.group, offsets)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Read on from an offset."""
        self._read(topic, partition).seek(offset)

    def seek_to_beginning(self) -> None:
        """Read all partitions from their first offset."""
        for reading in self._assigned():
            reading.seek(reading.partition.start())

    def seek_to_end(self) -> None:
        """Read only what is appended from now on."""
        for reading in self._assigned():
            reading.seek(reading.partition.end())

    def seek_to_time(self, timestamp: int) -> None:
        """Read all partitions from the first record that is at least as new as `timestamp` (ms)."""
        for reading in self._assigned():
            offset = reading.partition.offset_for_time(timestamp)
            reading.seek(reading.partition.end() if offset is None else offset)

    def lag(self) -> dict[TopicPartition, int]:
        """How many offsets lie between the position and the end of each partition."""
        self._assigned()
        return {tp: r.partition.end() - r.position for tp, r in self._reading.items()}

    def skip_damage(self, topic: str, partition: int = 0) -> Damage:
        """Go on after the damage this consumer stands before; put on record with the group's name."""
        reading = self._read(topic, partition)
        try:
            reading.partition.cursor(reading.position).fetch(1)
        except LogDamaged as error:
            quarantine.record_skip(
                reading.partition.directory, error.damage, self.group or "a consumer without a group"
            )
            reading.seek(error.damage.next)
            return error.damage
        raise LogError(f"there is no damage at offset {reading.position} of {topic}-{partition}; nothing was skipped")

    def close(self) -> None:
        """Leave the group and close the files; nothing is committed. Again does nothing."""
        if self._closed:
            return
        self._closed = True
        for reading in self._reading.values():
            reading.close()
        if self._member is not None:
            self._member.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise LogClosed("the consumer is closed; make a new one")

    def _assigned(self) -> list[_Reading]:
        self._check_open()
        self._rebalance()
        return list(self._reading.values())

    def _read(self, topic: str, partition: int) -> _Reading:
        self._check_open()
        self._rebalance()
        return self._held(topic, partition)

    def _held(self, topic: str, partition: int) -> _Reading:
        found = self._reading.get(TopicPartition(topic, partition))
        if found is None:
            held = ", ".join(map(str, sorted(self._reading))) or "none"
            raise NotAssigned(f"this consumer does not read {topic}-{partition}; it reads {held}")
        return found

    def _collect(self, most: int) -> list[Record]:
        """Records from the partitions in turn; an error waits until those read before it are handed out."""
        partitions = list(self._reading)
        self._turn += 1
        records: list[Record] = []
        for number in range(len(partitions)):
            if len(records) >= most:
                break
            reading = self._reading[partitions[(number + self._turn) % len(partitions)]]
            try:
                records += reading.take(most - len(records))
            except Exception:
                if not records:
                    raise
        return records

    def _rebalance(self) -> None:
        """Give up partitions that are another member's share now, and take those that are ours and free.

        What `on_revoke` calls does not come back in here.
        """
        if self._member is None or time.monotonic() - self._looked < _REBALANCE:
            return
        self._looked = float("inf")
        try:
            self._share_out(self._member)
        finally:
            self._looked = time.monotonic()

    def _share_out(self, member: Member) -> None:
        wanted = member.wanted(self._all)
        lost = sorted(member.held - wanted)
        if lost and self._on_revoke is not None:
            self._on_revoke(lost)
        for tp in lost:
            self._reading.pop(tp).close()
            member.release(tp)
        self._begin([p for p in sorted(wanted - member.held) if member.claim(p)])

    def _begin(self, partitions: Iterable[TopicPartition]) -> None:
        """Start to read partitions; what was committed is looked up after they were claimed, not before."""
        committed = self._committed()
        for tp in (TopicPartition(*p) for p in partitions):
            partition = self._topics.get(tp.topic).partition(tp.partition)
            offset = committed.get(tp)
            if offset is None:
                offset = partition.end() if self._from == "latest" else partition.start()
            self._reading[tp] = _Reading(partition, offset, self._where)
        self._joined = True

    def _committed(self) -> dict[TopicPartition, int]:
        """Where the group stands; not asked at the start when the reader names another position."""
        if self.group is None or not (self._joined or self._from == "committed"):
            return {}
        return self._groups.committed(self.group)
