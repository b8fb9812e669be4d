"""A checkpoint that machines share, and the directory that Spark works in.

Spark keeps its offsets and commits in a private directory of the driver. What makes a batch real is in the shared storage: before anything of batch N is shown, the
offsets of N are there (`begin`), and when all of N is shown, its commit is (`finish`). A driver that starts, on whatever machine, builds Spark's directory of that
(`build`), so it runs batch N again over the same offsets.

Names cannot be put twice: of two drivers that begin or finish the same batch differently, one fails. So a driver that was paused and wakes does no harm,
whatever it believes about its lease.

Spark knows files by their whole path. Those inside the checkpoint (feeds, loops, ticks) bear the prefix `OWN` in the shared storage and that of the working directory on this machine.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from penstock.location import Address, Location
from penstock.spark.checkpoint.loop_files import batch_of
from penstock.spark.checkpoint.sparklog import OWN, SparkLog, entry_of, log_offset, moved, uri
from penstock.storage import (
    LocalStorage,
    MirroredStorage,
    ScopedStorage,
    Storage,
    delete_under,
    mounted,
    names_under,
    number_of,
    open_storage,
)
from penstock.storage.lease import LeaseLost

LOG = "spark/"
FED = ("sources/", "loops/")
"""What the flow itself has put there for its sources."""
_COMMIT = "v1\n" + '{"nextBatchWatermarkMs":0}'
"""A commit as Spark reads it; Penstock keeps its own watermarks."""
TICK = b"tick\n"
_AT_ONCE = 32
"""How many objects are read at once: each takes as long as the way to the storage and back."""


@dataclass
class LogMirror:
    """The shared side and the working directory of one run.

    Attributes:
        folder: the address of the checkpoint.
        work: the working directory.
        epoch: that of the lease under which this driver writes.
        check: raises where this driver may not write any more.
        is_apart: tasks do not see the working directory. It has only the names of feeds and loops, and tasks read them from the shared side.
    """

    folder: Address
    work: Path
    epoch: int = 0
    check: Callable[[], None] = lambda: None
    is_apart: bool = False
    _known: set[str] = field(default_factory=set)
    """The names that are in the shared storage, of those that the working directory has too."""

    @property
    def shared(self) -> Storage:
        """The storage of the checkpoint."""
        return open_storage(self.folder)

    @property
    def local(self) -> LocalStorage:
        """The working directory."""
        return LocalStorage(self.work)

    def mirrored(self, part: str) -> MirroredStorage:
        """What keeps a part of the checkpoint of which Spark reads the files."""
        shared, local = ScopedStorage(self.shared, part), LocalStorage(self.work / part)
        names = is_fed if self.is_apart else _is_none
        return MirroredStorage(shared, local, self.check, _is_final, _is_pace, names, _is_settled)

    def build(self) -> None:
        """Makes the working directory of what is shared; it must be empty."""
        self._drop_unfinished()
        names = [name for prefix in (LOG, *FED) for name in names_under(self.shared, prefix)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self._copy, names))
        self._known.update(names)
        self._date([name for name in names if name.startswith(FED)])
        self._make_ticks()

    def _copy(self, name: str) -> None:
        if self.is_apart and name.startswith(FED) and is_fed(name):
            _write(self.work / name, b"")
            return
        content = self.shared.read(name)
        if name.startswith(f"{LOG}commits/"):
            content = _COMMIT.encode()
        elif name.startswith(f"{LOG}sources/"):
            content = _moved(content, OWN, uri(self.work))
        _write(self.work / name, content)

    def _date(self, names: list[str]) -> None:
        """Dates the files that Spark reads: those that it has read as it has noted them, the others in the order of their names.

        Spark forgets files that are a week older than the newest it has seen, and leaves out such files. So one that it has read must not be younger than it was, and one that it
        has not read must not be older.
        """
        noted = dict(self._noted())
        now = time.time_ns() // 1_000_000
        for at, name in enumerate(names):
            date = noted.get(name) or _date_of_item(name) or now - len(names) + at
            os.utime(self.work / name, ns=(date * 1_000_000, date * 1_000_000))

    def _noted(self) -> Iterator[tuple[str, int]]:
        """The files inside the checkpoint that Spark has noted, with their dates in milliseconds."""
        base = uri(self.work)
        for name in names_under(self.local, f"{LOG}sources/"):
            for line in (self.work / name).read_text().splitlines():
                entry = json.loads(line) if line.startswith("{") else {}
                if str(entry.get("path", "")).startswith(base):
                    yield unquote(entry["path"].removeprefix(base)), int(entry["timestamp"])

    def _drop_unfinished(self) -> None:
        """Removes what a driver has put there for a batch that it did not finish, and that the batch makes anew."""
        last = SparkLog(self.folder / "spark").last()
        loops = [name for name in names_under(self.shared, "loops/") if batch_of(name) > last]
        self.shared.delete(*loops, *_stray_stands(names_under(self.shared, "sources/")))

    def _make_ticks(self) -> None:
        """Makes the ticks of a batch that runs again: they say nothing, so they need not be kept."""
        ticks = uri(self.work / "ticks")
        for path in self._unread_paths():
            if path.startswith(ticks):
                _write(self.work / "ticks" / path.removeprefix(ticks), TICK)

    def _unread_paths(self) -> Iterator[str]:
        """The files of entries that no batch that is through has read."""
        log = SparkLog(self.work / "spark")
        offsets = log.offsets(log.last()) if log.last() >= 0 else []
        for name in names_under(LocalStorage(self.work / "spark"), "sources/"):
            source, entry = name.split("/")[1], entry_of(name)
            read = log_offset(offsets[int(source)]) if int(source) < len(offsets) else None
            if entry is not None and entry > (-1 if read is None else read):
                lines = (self.work / "spark" / name).read_text().splitlines()
                yield from (json.loads(line)["path"] for line in lines if line.startswith("{"))

    def begin(self, batch: int) -> None:
        """Makes the offsets of a batch durable, with what its sources have noted; returns when the batch may be shown.

        Raises:
            LeaseLost: another driver has begun this batch with other offsets, or holds the lease.
        """
        self.check()
        for name in self._new():
            self._put(name, _moved((self.work / name).read_bytes(), uri(self.work), OWN))
        self._put(f"{LOG}offsets/{batch}", self.local.read(f"{LOG}offsets/{batch}"))

    def _new(self) -> list[str]:
        """What Spark has noted since the last batch: entries of sources, and once the id of the query."""
        names = [f"{LOG}metadata", *names_under(self.local, f"{LOG}sources/")]
        return [name for name in names if name not in self._known and (self.work / name).is_file()]

    def _put(self, name: str, content: bytes) -> None:
        if name in self._known:
            return
        if not self.shared.put_if_absent(name, content) and self.shared.read(name) != content:
            raise LeaseLost(f"another driver of this flow has written {name}; this one stops, and the other goes on")
        self._known.add(name)

    def finish(self, batch: int) -> None:
        """Says that all of a batch is shown.

        Raises:
            LeaseLost: another driver has finished it.
        """
        self.check()
        for name in () if self.is_apart else names_under(self.local, "loops/"):
            if batch_of(name) >= 0 and name not in self._known:
                self._put(name, self.local.read(name))
        self._put(f"{LOG}commits/{batch}", f'v1\n{{"nextBatchWatermarkMs":0,"epoch":{self.epoch}}}'.encode())

    def sweep(self) -> None:
        """Deletes from the shared storage what Spark has dropped from its log.

        Raises:
            LeaseLost: another driver has the checkpoint; what has the same names there now may be its own, if it has started over.
        """
        self.check()
        known = {name for name in self._known.copy() if name.startswith(LOG)}
        there = {f"{LOG}{name}" for name in names_under(LocalStorage(self.work / "spark"), "")}
        newest = max((name for name in known if name.startswith(f"{LOG}commits/")), key=_number, default="")
        gone = known - there - {newest}  # Spark writes the commit of a batch after Penstock has
        self.shared.delete(*sorted(gone))
        self._known -= gone


def _date_of_item(name: str) -> int | None:
    """The date that a part of `ps.items` always has, in milliseconds; None for any other file.

    >>> _date_of_item("sources/numbers/items/part-000003-ab.parquet"), _date_of_item("sources/a/feed/feed-000000003.parquet")
    (1000000003000, None)
    """
    found = re.fullmatch(r"sources/[^/]+/items/part-(\d+)-.*", name)
    return None if found is None else (1_000_000_000 + int(found[1])) * 1000


def _write(path: Path, content: bytes) -> None:
    """Writes a file of the working directory, which need not survive this process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _number(name: str) -> int:
    return int(name.rpartition("/")[2])


def _moved(content: bytes, before: str, after: str) -> bytes:
    """An entry of a source, with the paths inside the checkpoint under another prefix."""
    return "\n".join(moved(line, before, after) for line in content.decode().split("\n")).encode()


@contextmanager
def shared_while_used(work: Path, kept: Location) -> Iterator[Location]:
    """Has what is put under a directory of this machine be under a URL, where tasks elsewhere find it; it is deleted at the end."""
    storage = open_storage(kept)
    try:
        with mounted(work, MirroredStorage(storage, LocalStorage(work), is_name=is_fed)):
            yield kept
    finally:
        delete_under(storage, "")


def is_fed(name: str) -> bool:
    """Whether an object holds records that a flow has put into its checkpoint for its own sources.

    >>> is_fed("words/feed/feed-000000001.parquet"), is_fed("words/stand-000000001.pickle"), is_fed("again/_penstock/a/part-0.parquet")
    (True, False, False)
    """
    return name.endswith(".parquet") and "_penstock/" not in name


def _is_none(name: str) -> bool:
    return False


def _is_final(name: str) -> bool:
    """Whether what a source puts there never changes: files that a batch reads, where a spout stood, and its messages."""
    last = name.rpartition("/")[2]
    return last.startswith(("feed-", "part-", "stand-", "ids-"))


def _is_settled(name: str) -> bool:
    """Where a spout stands after acks: it is written again and again."""
    return name.rpartition("/")[2].startswith("settled-")


def _is_pace(name: str) -> bool:
    """How much a batch takes is found out anew by every run."""
    return name.rpartition("/")[2] == "pace"


def _stray_stands(names: list[str]) -> list[str]:
    """Where spouts stood when they gave tuples that were never kept, and the messages in those.

    >>> stood = [f"sources/a/{kind}-00000000{n}.pickle" for kind in ("ids", "stand") for n in (1, 2)]
    >>> _stray_stands(["sources/a/feed/feed-000000001.parquet", *stood])
    ['sources/a/ids-000000002.pickle', 'sources/a/stand-000000002.pickle']
    """
    newest = {n.split("/")[1]: number_of(n) for n in sorted(names) if "/feed/feed-" in n}
    stood = [n for n in names if n.rpartition("/")[2].startswith(("stand-", "ids-"))]
    return [n for n in stood if number_of(n) > newest.get(n.split("/")[1], -1)]
