"""Consumer groups: how far each has come, kept on disk, changed in one step."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import nearest
from penstock.log.consume.membership import live_members, owner
from penstock.log.errors import BadSetting, LogError, OffsetOutOfRange
from penstock.log.partition import Partition
from penstock.log.record import TopicPartition
from penstock.log.storage.files import FileLock, make_dir, read_json, write_json
from penstock.log.topic import Topics

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True)
class GroupOffset:
    """How far a group has come in a partition, and how much is left."""

    topic: str
    partition: int
    committed: int
    end: int
    owner: str | None

    @property
    def lag(self) -> int:
        """How many offsets lie between the committed one and the end."""
        return self.end - self.committed


@dataclass(frozen=True)
class GroupInfo:
    """A group: its live members and its committed offsets."""

    name: str
    members: tuple[str, ...]
    offsets: tuple[GroupOffset, ...]

    @property
    def lag(self) -> int:
        """The lag over all partitions."""
        return sum(o.lag for o in self.offsets)


class Groups:
    """The consumer groups of a log."""

    def __init__(self, root: Path, topics: Topics) -> None:
        self.root = root
        self._topics = topics

    def path(self, group: str) -> Path:
        """The directory of a group."""
        if not _NAME.fullmatch(group):
            raise BadSetting(f"a group name has 1 to 200 of A-Z a-z 0-9 . _ - and no dot in front, got {group!r}")
        return self.root / group

    def names(self) -> list[str]:
        """All groups, sorted."""
        return sorted(p.name for p in self.root.iterdir() if p.is_dir()) if self.root.is_dir() else []

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """The committed offsets; those of topics that were deleted since are left out."""
        data = read_json(self.path(group) / "offsets.json") or {}
        known = {name: self._topics.get(name) for name in self._topics.names() if name in data}
        return {
            TopicPartition(name, int(number)): int(offset)
            for name, topic in known.items()
            if data[name]["id"] == topic.ident
            for number, offset in data[name]["offsets"].items()
        }

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets of any partitions, all in one step; on disk on return."""
        path = self.path(group)
        make_dir(path)
        with FileLock(path / ".lock"):
            data = read_json(path / "offsets.json") or {}
            for tp, offset in offsets.items():
                topic = self._topics.get(tp.topic)
                _check_offset(topic.partition(tp.partition), offset)
                entry = data.get(tp.topic)
                if entry is None or entry["id"] != topic.ident:
                    entry = data[tp.topic] = {"id": topic.ident, "offsets": {}}
                entry["offsets"][str(tp.partition)] = offset
            write_json(path / "offsets.json", data)

    def describe(self, group: str) -> GroupInfo:
        """Members, committed offsets and lag."""
        path = self._existing(group)
        rows = [
            GroupOffset(p.topic, p.partition, offset, self._partition(p).end(), owner(path, p))
            for p, offset in sorted(self.committed(group).items())
        ]
        return GroupInfo(group, tuple(live_members(path)), tuple(rows))

    def reset(self, group: str, topic: str, to: str | int, partition: int | None = None) -> dict[TopicPartition, int]:
        """Move the committed offsets to "earliest", "latest" or an offset; only while no member lives."""
        partitions = self._partitions_of(topic, partition)
        return self.move(group, {p: _resolve(self._partition(p), to) for p in partitions})

    def reset_to_time(
        self, group: str, topic: str, timestamp: int, partition: int | None = None
    ) -> dict[TopicPartition, int]:
        """Move the committed offsets to the first records that are at least as new as `timestamp` (ms)."""
        found: dict[TopicPartition, int] = {}
        for tp in self._partitions_of(topic, partition):
            offset = self._partition(tp).offset_for_time(timestamp)
            found[tp] = self._partition(tp).end() if offset is None else offset
        return self.move(group, found)

    def move(self, group: str, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Move the committed offsets to these, all in one step; only while no member lives."""
        self._refuse_live(group)
        self.commit(group, offsets)
        return offsets

    def delete(self, group: str) -> None:
        """Forget a group; only while no member lives."""
        path = self._existing(group)
        self._refuse_live(group)
        shutil.rmtree(path)

    def _refuse_live(self, group: str) -> None:
        members = live_members(self.path(group))
        if members:
            raise LogError(
                f"group {group!r} has live members {list(members)}: stop them first, as they hold their own positions"
            )

    def _existing(self, group: str) -> Path:
        if not self.path(group).is_dir():
            raise LogError(f"no group {group!r}; {nearest(group, self.names())}")
        return self.path(group)

    def _partitions_of(self, topic: str, partition: int | None) -> list[TopicPartition]:
        numbers = range(len(self._topics.get(topic).partitions)) if partition is None else [partition]
        return [TopicPartition(topic, n) for n in numbers]

    def _partition(self, tp: TopicPartition) -> Partition:
        return self._topics.get(tp.topic).partition(tp.partition)


def _check_offset(partition: Partition, offset: int) -> None:
    end = partition.end()
    if not 0 <= offset <= end:
        raise OffsetOutOfRange(partition.directory.topic, partition.directory.partition, offset, partition.start(), end)


def _resolve(partition: Partition, to: str | int) -> int:
    if isinstance(to, int):
        return to
    if to not in ("earliest", "latest"):
        raise BadSetting(f"offsets are reset to 'earliest', 'latest' or a number, not {to!r}")
    return partition.start() if to == "earliest" else partition.end()
