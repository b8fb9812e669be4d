"""Where a partition lives on disk, and the small files beside its segments."""

from __future__ import annotations

import struct
import time
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from penstock.log.storage.files import File, read_json, unlink, write_json


@dataclass(frozen=True)
class PartitionDirectory:
    """The directory of a partition; `ident` is the topic's own, which a new topic of the same name does not share."""

    topic: str
    partition: int
    path: Path
    ident: str

    @cached_property
    def tag(self) -> int:
        """Stands in every batch and says that it belongs here."""
        return zlib.crc32(f"{self.ident}/{self.partition}".encode())

    def alive(self) -> bool:
        """Whether the topic is still there, and still the same."""
        data = read_json(self.path.parent / "topic.json")
        return data is not None and data["id"] == self.ident

    def segment(self, base: int) -> Path:
        """The file that holds the records from offset `base` on."""
        return self.path / f"{base:020d}.log"

    def index(self, base: int) -> Path:
        """The sparse index of a segment."""
        return self.path / f"{base:020d}.idx"

    def snapshot(self, base: int) -> Path:
        """What producers had written before a segment began."""
        return self.path / f"{base:020d}.producers"

    @property
    def append_lock(self) -> Path:
        """Held while records are appended."""
        return self.path / "append.lock"

    @property
    def clean_lock(self) -> Path:
        """Held while segments are deleted or compacted."""
        return self.path / "clean.lock"

    def bases(self) -> list[int]:
        """The first offsets of the segments, in order."""
        return sorted(int(p.stem) for p in self.path.iterdir() if p.suffix == ".log" and p.stem.isdigit())

    def start(self) -> int:
        """The first offset that retention has left."""
        data = read_json(self.path / "start.json")
        return 0 if data is None else int(data["start"])

    def set_start(self, start: int) -> None:
        """Note that offsets below `start` are deleted on purpose; before the files go."""
        write_json(self.path / "start.json", {"start": start})

    def drop(self, base: int) -> None:
        """Delete a segment and what belongs to it; the caller syncs the directory."""
        for path in (self.segment(base), self.index(base), self.snapshot(base)):
            unlink(path)


class Mark(NamedTuple):
    """How far the partition is committed: the offset after the last record, and where in which segment that is."""

    end: int
    base: int
    position: int


_MARK = struct.Struct("<QQQI")
_TRIES = 10


class MarkFile:
    """The committed mark, written after every commit and read by every reader.

    It is never synced: after a power loss it may lie behind the data (recovery finds the rest), never ahead of it.
    """

    def __init__(self, path: Path, *, write: bool = False) -> None:
        self._file = File(path / "committed", write=write, create=write)

    def read(self) -> Mark | None:
        """The mark; None when there is none or it is damaged."""
        for _ in range(_TRIES):
            raw = self._file.read(_MARK.size, 0)
            if len(raw) < _MARK.size:
                return None
            if zlib.crc32(raw[:-4]) == int.from_bytes(raw[-4:], "little"):
                return Mark(*_MARK.unpack(raw)[:3])
            time.sleep(0.0002)
        return None

    def write(self, mark: Mark) -> None:
        """Publish: from here on readers see the records below the mark."""
        raw = _MARK.pack(*mark, 0)[:-4]
        self._file.write([raw + zlib.crc32(raw).to_bytes(4, "little")], 0)

    def gone(self) -> bool:
        """Whether the partition has been deleted."""
        return self._file.gone()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
