"""Topics: their settings, and the directory that holds them."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from penstock.errors import nearest
from penstock.log.errors import BadSetting, LogClosed, TopicExists, UnknownTopic
from penstock.log.partition import Partition
from penstock.log.storage.files import FileLock, make_dir, read_json, rename, write_json
from penstock.log.storage.position import PartitionDirectory

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,248}")
_DAY = 86_400_000


@dataclass(frozen=True)
class TopicConfig:
    """The settings of a topic; None for retention means: keep for ever.

    `cleanup` is "delete" (old segments go) or "compact" (the last record of each key stays). `tombstone_ms` is how long a
    tombstone stays readable on a compacted topic before it goes too.
    """

    partitions: int = 1
    cleanup: str = "delete"
    retention_ms: int | None = None
    retention_bytes: int | None = None
    segment_bytes: int = 64 << 20
    tombstone_ms: int = _DAY

    def __post_init__(self) -> None:
        if self.cleanup not in ("delete", "compact"):
            raise BadSetting(f"cleanup is 'delete' or 'compact', not {self.cleanup!r}")
        for name, least, most in (
            ("partitions", 1, 10_000),
            ("segment_bytes", 256, 1 << 40),
            ("tombstone_ms", 0, 1 << 62),
        ):
            if not least <= getattr(self, name) <= most:
                raise BadSetting(f"{name} is a number from {least} to {most}, not {getattr(self, name)!r}")
        for name in ("retention_ms", "retention_bytes"):
            if (getattr(self, name) or 0) < 0:
                raise BadSetting(f"{name} is at least 0, or None to keep everything, not {getattr(self, name)!r}")


def config_with(config: TopicConfig, settings: dict[str, Any]) -> TopicConfig:
    """The settings with some changed; an unknown name is refused."""
    known = [f.name for f in fields(TopicConfig)]
    for name in settings:
        if name not in known:
            raise BadSetting(f"no topic setting {name!r}; {nearest(name, known)}")
    return replace(config, **settings)


class Topic:
    """A topic with its partitions; one whose settings changed keeps the partitions it had `before`."""

    def __init__(self, name: str, path: Path, config: TopicConfig, ident: str, before: Topic | None = None) -> None:
        self.name = name
        self.path = path
        self.config = config
        self.ident = ident
        if before is None:
            directories = (PartitionDirectory(name, n, path / str(n), ident) for n in range(config.partitions))
            self.partitions = tuple(Partition(directory, config.segment_bytes) for directory in directories)
        else:
            self.partitions = before.partitions
            for partition in self.partitions:
                partition.writer.segment_bytes = config.segment_bytes

    def partition(self, number: int) -> Partition:
        """A partition by its number."""
        if not 0 <= number < len(self.partitions):
            raise UnknownTopic(f"topic {self.name!r} has partitions 0 to {len(self.partitions) - 1}, not {number}")
        return self.partitions[number]

    def close(self) -> None:
        """Close all files."""
        for partition in self.partitions:
            partition.close()


class Topics:
    """The topics of a log; notices what other processes create, change and delete."""

    def __init__(self, root: Path, on_open: Callable[[Topic], None] | None = None) -> None:
        self.root = root
        self._folder = str(root)
        self._on_open = on_open
        self._open: dict[str, tuple[tuple[int, int], Topic]] = {}
        self._lock = threading.Lock()
        self._closed = False
        make_dir(root)
        lock = FileLock(root / ".lock")
        if lock.acquire(wait=False):
            for left in [*root.glob(".new-*"), *root.glob(".deleted-*")]:
                shutil.rmtree(left, ignore_errors=True)
            lock.release()

    def names(self) -> list[str]:
        """All topics, sorted."""
        return sorted(p.parent.name for p in self.root.glob("*/topic.json") if not p.parent.name.startswith("."))

    def create(self, name: str, config: TopicConfig) -> Topic:
        """Create a topic in one step: it is there with all its partitions, or not at all."""
        if not _NAME.fullmatch(name):
            raise BadSetting(f"a topic name has 1 to 249 of A-Z a-z 0-9 . _ - and no dot in front, got {name!r}")
        beside = self.root / f".new-{name}"
        with FileLock(self.root / ".lock"):
            if (self.root / name).exists():
                raise TopicExists(f"topic {name!r} is there already; describe it, or choose another name")
            shutil.rmtree(beside, ignore_errors=True)
            for number in range(config.partitions):
                make_dir(beside / str(number))
            write_json(beside / "topic.json", {"id": secrets.token_hex(16), "config": asdict(config)})
            rename(beside, self.root / name)
        return self.get(name)

    def configure(self, name: str, settings: dict[str, Any]) -> Topic:
        """Change settings; the number of partitions is fixed, as keys would move."""
        with FileLock(self.root / ".lock"):
            topic = self.get(name)
            config = config_with(topic.config, settings)
            if config.partitions != topic.config.partitions:
                raise BadSetting(
                    "the number of partitions is fixed when a topic is created; create a new topic and copy"
                )
            path = topic.path / "topic.json"
            write_json(path, {**read_json(path), "config": asdict(config)})
        return self.get(name)

    def delete(self, name: str) -> None:
        """Delete a topic with all its records."""
        with FileLock(self.root / ".lock"):
            self.get(name)
            trash = self.root / f".deleted-{name}-{secrets.token_hex(4)}"
            rename(self.root / name, trash)
            for lock in [FileLock(p / "append.lock") for p in trash.iterdir() if p.is_dir()]:
                with lock:
                    shutil.rmtree(lock.path.parent, ignore_errors=True)
            shutil.rmtree(trash, ignore_errors=True)

    def get(self, name: str) -> Topic:
        """A topic by its name, as it is now."""
        if self._closed:
            raise LogClosed("the log is closed; open it again")
        known, topic = self._open.get(name, (None, None))
        try:
            stat = os.stat(f"{self._folder}/{name}/topic.json")  # noqa: PTH116  # for every record sent, and three times as fast
        except (FileNotFoundError, NotADirectoryError, ValueError):
            stat = None
        if stat is None or not (topic or _NAME.fullmatch(name)):
            raise UnknownTopic(f"no topic {name!r}; {nearest(name, self.names())}")
        version = (stat.st_ino, stat.st_ctime_ns)
        if topic is not None and known == version:
            return topic
        with self._lock:
            known, topic = self._open.get(name, (None, None))
            if topic is not None and known == version:
                return topic
            topic = self._load(name, topic)
            self._open[name] = (version, topic)
            return topic

    def _load(self, name: str, before: Topic | None) -> Topic:
        data = read_json(self.root / name / "topic.json")
        if data is None:
            raise UnknownTopic(f"no topic {name!r}; it has just been deleted")
        if before is not None and before.ident != data["id"]:
            before.close()
            before = None
        topic = Topic(name, self.root / name, TopicConfig(**data["config"]), data["id"], before)
        if self._on_open is not None:
            self._on_open(topic)
        return topic

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            self._closed = True
            for _, topic in self._open.values():
                topic.close()
            self._open.clear()
