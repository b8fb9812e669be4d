"""Savepoints: a consistent copy of one version of a running or stopped flow, from which it, or a changed one, can start.

A savepoint has the layout of a checkpoint folder: the state of a version, Spark's offsets of that batch (and of the one before, which
Spark asks for) and of the one that had begun after it, what the sources have noted and fed. All of these are files that never change, so hard links do, and the flow
runs on meanwhile. A list with checksums, written last, makes it whole.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import CheckpointError, StateError, nearest
from penstock.spark.checkpoint.changes import Change, note_of
from penstock.spark.checkpoint.sparklog import SparkLog
from penstock.state.file import put_safely
from penstock.state.store import StateStore
from penstock.storage import LocalStorage
from penstock.storage.private import make_private
from penstock.version import __version__

NOTE = "savepoint.json"
_TRIES = 5


@dataclass(frozen=True)
class Savepoint:
    """A savepoint as its list tells it."""

    folder: Path
    id: str
    flow: str
    version: int
    made: str
    origin: Path
    """The checkpoint folder it was made of; what Spark has noted of files inside names that folder."""
    files: dict[str, list[int]]

    @property
    def size(self) -> int:
        """The bytes of all its files."""
        return sum(size for size, _ in self.files.values())

    def verify(self) -> None:
        """Every file must be what it was."""
        for name, (size, crc) in self.files.items():
            if _sum_of(self.folder / name) != (size, crc):
                raise CheckpointError(f"savepoint {self.folder}: {name} is missing or damaged; use another savepoint")


def take(checkpoint: Path, target: Path, version: int | None = None, *, copy: bool = False) -> Savepoint:
    """Makes a savepoint of the newest version that is through, or of an older one that is still kept.

    A flow that runs sweeps versions and files that were read away meanwhile; then it is tried again.
    """
    if target.exists():
        raise CheckpointError(f"{target} is there already; give the savepoint another name, or remove it")
    if note_of(checkpoint) is None:
        raise CheckpointError(f"{checkpoint} is no checkpoint folder: it has no flow.json; has the flow run yet?")
    for left in reversed(range(_TRIES)):
        aside = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
        try:
            return _Taking(checkpoint, aside, version, _copied if copy else _linked).take(target)
        except FileNotFoundError as error:
            if not left:
                raise CheckpointError(f"no savepoint was made of {checkpoint}: {error.filename} is not there") from None
        except StateError:
            if not left or version is not None:
                raise
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    raise AssertionError


class _Taking:
    """One attempt at a savepoint."""

    def __init__(self, checkpoint: Path, aside: Path, version: int | None, put: Callable[[Path, Path], None]) -> None:
        self.checkpoint, self.aside, self.put = checkpoint, aside, put
        self.log, self.store = SparkLog(checkpoint / "spark"), StateStore(LocalStorage(checkpoint / "state"))
        self.note = note_of(checkpoint) or {}
        self.version = self._version(version)

    def _version(self, asked: int | None) -> int:
        through = self.log.committed()
        if not through:
            raise CheckpointError(
                f"flow {self.note['flow']!r} has not finished a batch yet ({self.checkpoint}); wait for it"
            )
        if asked is not None and asked not in through:
            listed = f"{through[0]} to {through[-1]}"
            raise CheckpointError(f"version {asked} of {self.checkpoint} is not there; there are {listed}")
        return through[-1] if asked is None else asked

    def take(self, target: Path) -> Savepoint:
        """Puts all files aside, lists them, and gives the whole its name."""
        files: dict[str, list[int]] = {}
        for path in dict.fromkeys(self._paths()):
            name = str(path.relative_to(self.checkpoint))
            make_private((self.aside / name).parent)
            self.put(path, self.aside / name)
            files[name] = list(_sum_of(self.aside / name))
        self._check_spouts()
        _write_list(self.aside, self.note["flow"], self.version, self.checkpoint, files)
        make_private(target.parent)
        self.aside.rename(target)
        return load(target)

    def _paths(self) -> Iterator[Path]:
        """All files, in an order in which none can name one that was not there yet."""
        yield self.checkpoint / "flow.json"
        yield from self._of_spark()
        yield from self._of_state(self.version)
        if self.version == self.log.last():
            yield from self._of_begun(self.version + 1)
        for part in ("sources", "claims"):
            yield from _plain_files(self.checkpoint / part)
        yield from (p for p in _plain_files(self.checkpoint / "loops") if _batch_of(p) <= self.version)

    def _of_spark(self) -> Iterator[Path]:
        spark, last = self.log.folder, self.version
        if (spark / "metadata").exists():
            yield spark / "metadata"
        yield spark / "commits" / str(last)
        yield from (spark / "offsets" / str(n) for n in range(max(0, last - 1), last + 1))
        if (spark / "offsets" / str(last + 1)).exists():
            last += 1
            yield spark / "offsets" / str(last)
        for place, offset in enumerate(self.log.offsets(last)):
            yield from self.log.source_files(place, offset)

    def _of_state(self, version: int) -> Iterator[Path]:
        if not self.note.get("schemas") and not (self.checkpoint / "state").exists():
            return
        files = self.store.read(version)
        yield self.checkpoint / "state" / self.store.manifest(version)
        yield from (self.checkpoint / "state" / f.path for step in files.values() for f in step)

    def _of_begun(self, version: int) -> Iterator[Path]:
        """What a batch that is not through has written of its state: it holds the processing time of the batch when it runs again."""
        if self.store.has(version):
            paths = list(self._of_state(version))
            yield from paths if all(p.exists() for p in paths) else ()

    def _check_spouts(self) -> None:
        """Where a spout stood must be there with the newest tuples it gave; a spout that runs may have been quicker."""
        for folder in (self.aside / "sources").glob("*"):
            stands = {p.name for p in folder.glob("stand-*.pickle")}
            newest = max((p.stem.split("-")[1] for p in folder.glob("feed/feed-*.parquet")), default=None)
            if stands and f"stand-{newest}.pickle" not in stands:
                raise FileNotFoundError(f"{folder}/stand-{newest}.pickle")


def load(folder: Path) -> Savepoint:
    """The savepoint in a folder."""
    path = folder / NOTE
    if not path.exists():
        others = [p.name for p in folder.parent.glob("*") if (p / NOTE).exists()] if folder.parent.exists() else []
        hint = f"; {nearest(folder.name, sorted(others))}" if others else ""
        raise CheckpointError(f"{folder} is no savepoint: it has no {NOTE}{hint}")
    body, _, crc = path.read_text(errors="replace").rpartition("\n")
    if f"{zlib.crc32(body.encode()):08x}" != crc:
        raise CheckpointError(f"savepoint {folder}: {NOTE} is damaged; use another savepoint")
    note = json.loads(body)
    return Savepoint(
        folder, note["id"], note["flow"], note["version"], note["made"], Path(note["origin"]), note["files"]
    )


def lay_out(savepoint: Savepoint, folder: Path, change: Change) -> None:
    """Puts the files of a savepoint into a checkpoint folder, as the flow at hand wants them; all but its note."""
    for name in savepoint.files:
        if name != "flow.json":
            make_private((folder / name).parent)
            _linked(savepoint.folder / name, folder / name)
    log = SparkLog(folder / "spark")
    log.move_paths(savepoint.origin, folder)
    for batch in range(max(0, savepoint.version - 1), log.begun() + 1):
        log.arrange(batch, change.places)
    log.arrange_sources(change.places)


def place_of(name: str, checkpoint: Path) -> Path:
    """Where the savepoint of a name is: a path as it is, a plain name beside the checkpoints.

    >>> place_of("before-upgrade", Path(".penstock/count"))
    PosixPath('.penstock/savepoints/count/before-upgrade')
    """
    return Path(name) if "/" in name else checkpoint.parent / "savepoints" / checkpoint.name / name


def find(name: str, checkpoint: Path, flow: str) -> Path:
    """Where the savepoint that somebody names is: beside the checkpoint at hand, or beside the one a flow has by default."""
    default = Path(".penstock").absolute() / flow
    places = [place_of(name, c) for c in (checkpoint, checkpoint.with_name(flow), default)]
    return next((p for p in places if (p / NOTE).exists()), places[-1])


def saved(checkpoint: Path) -> list[Savepoint]:
    """The savepoints of a flow that stand where plain names are put, oldest first."""
    found = [load(p.parent) for p in place_of("x", checkpoint).parent.glob(f"*/{NOTE}")]
    return sorted(found, key=lambda s: (s.version, s.made))


def fresh_name(version: int, now: float | None = None) -> str:
    """A name for a savepoint that was given none."""
    return f"v{version}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}"


def _write_list(aside: Path, flow: str, version: int, origin: Path, files: dict[str, list[int]]) -> None:
    made = {
        "id": uuid.uuid4().hex[:12],
        "flow": flow,
        "version": version,
        "made": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "penstock": __version__,
        "origin": str(origin.absolute()),
        "files": files,
    }
    body = json.dumps(made, indent=1)
    put_safely(aside / NOTE, [f"{body}\n{zlib.crc32(body.encode()):08x}".encode()])


def _plain_files(folder: Path) -> Iterator[Path]:
    """Finished files: those that are being written have a name with a dot before it or end in .tmp."""
    if folder.exists():
        yield from (
            p for p in sorted(folder.rglob("*")) if p.is_file() and not p.name.startswith(".") and p.suffix != ".tmp"
        )


def _batch_of(path: Path) -> int:
    """The batch that wrote a file of a loop."""
    number = path.name.removeprefix(f"{path.parent.name}-").split("-")[0]
    return int(number) if number.isdigit() else -1


def _linked(old: Path, new: Path) -> None:
    """A second name for the same file, where the file system can do that; a copy elsewhere."""
    try:
        os.link(old, new)
    except FileNotFoundError:
        raise
    except OSError:
        _copied(old, new)


def _copied(old: Path, new: Path) -> None:
    shutil.copy2(old, new)


def _sum_of(path: Path) -> tuple[int, int]:
    """The size and the checksum of a file; of none, what no file has."""
    crc, size = 0, 0
    try:
        with path.open("rb") as file:
            while part := file.read(1 << 20):
                crc, size = zlib.crc32(part, crc), size + len(part)
    except FileNotFoundError:
        return -1, 0
    return size, crc


def describe(savepoint: Savepoint) -> dict[str, Any]:
    """What is to be known of a savepoint, for people and programs."""
    return {
        "savepoint": str(savepoint.folder),
        "flow": savepoint.flow,
        "version": savepoint.version,
        "made": savepoint.made,
        "files": len(savepoint.files),
        "bytes": savepoint.size,
    }
