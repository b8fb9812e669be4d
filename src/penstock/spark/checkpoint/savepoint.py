"""Savepoints: a consistent copy of one version of a running or stopped flow, from which it, or a changed one, can start.

A savepoint has the layout of a checkpoint folder: the state of a version, Spark's offsets of that batch (and of the one before, which
Spark asks for) and of the one that had begun after it, what the sources have noted and fed. All of these are objects that never change, so where they are
files hard links do, and the flow runs on meanwhile.

Its list makes it a savepoint. Whoever takes one first puts a list there that names only the attempt, and at the end swaps it for the finished one, with
checksums. An attempt that died is taken over, and if it was not dead its last swap fails.
"""

from __future__ import annotations

import json
import time
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import CheckpointError, StateError, nearest
from penstock.live.ack_log import ACKS, file_at
from penstock.location import Address, address_of
from penstock.spark.checkpoint.changes import FLOW, Change, note_of
from penstock.spark.checkpoint.loop_files import batch_of
from penstock.spark.checkpoint.sparklog import SparkLog, moved_name
from penstock.spark.checkpoint.state_store import state_store_of
from penstock.state.notes import put_note
from penstock.storage import (
    Conflict,
    NotFound,
    Storage,
    Version,
    checksum,
    copy_object,
    delete_under,
    exists,
    names_under,
    open_storage,
    read_if_present,
)
from penstock.version import __version__

if TYPE_CHECKING:
    from penstock.state.store import StateStore

NOTE = "savepoint.json"
_TRIES = 5


@dataclass(frozen=True)
class Savepoint:
    """A savepoint as its list tells it."""

    folder: Address
    id: str
    flow: str
    version: int
    made: str
    origin: Address
    """The checkpoint folder it was made of; what Spark has noted of files inside names that folder."""
    files: dict[str, list[int]]

    @property
    def size(self) -> int:
        """The bytes of all its files."""
        return sum(size for size, _ in self.files.values())

    def verify(self) -> None:
        """Every file must be what it was."""
        storage = open_storage(self.folder)
        for name, (size, crc) in self.files.items():
            if not exists(storage, name) or checksum(storage, name) != (size, crc):
                raise CheckpointError(f"savepoint {self.folder}: {name} is missing or damaged; use another savepoint")


def take(checkpoint: Address, target: Address, version: int | None = None, *, copy: bool = False) -> Savepoint:
    """Makes a savepoint of the newest version that is through, or of an older one that is still kept.

    A flow that runs sweeps versions and files that were read away meanwhile; then it is tried again.
    """
    if note_of(checkpoint) is None:
        raise CheckpointError(f"{checkpoint} is no checkpoint folder: it has no {FLOW}; has the flow run yet?")
    attempt = _Attempt.begin(target)
    try:
        return _tried(checkpoint, attempt, version, copy=copy)
    except BaseException:
        attempt.give_up()
        raise


def _tried(checkpoint: Address, attempt: _Attempt, version: int | None, *, copy: bool) -> Savepoint:
    for left in reversed(range(_TRIES)):
        try:
            return _Taking(checkpoint, attempt, version, copy=copy).take()
        except NotFound as error:
            if not left:
                raise CheckpointError(f"no savepoint was made of {checkpoint}: {error}") from None
        except StateError:
            if not left or version is not None:
                raise
        attempt.clear()
    raise AssertionError


@dataclass
class _Attempt:
    """The directory of a savepoint while it is taken: `version` is that of its list, which names this attempt."""

    target: Address
    id: str
    version: Version

    @classmethod
    def begin(cls, target: Address) -> _Attempt:
        """Takes the directory, also over from an attempt that died; one that is not dead fails when it finishes."""
        storage, name = open_storage(target), uuid.uuid4().hex[:12]
        before = read_if_present(storage, NOTE)
        is_taken = before is None and bool(storage.children())
        if is_taken or (before is not None and _is_finished(before[0])):
            raise CheckpointError(f"{target} is there already; give the savepoint another name, or remove it")
        expected = None if before is None else before[1]
        try:
            made = cls(target, name, storage.compare_and_swap(NOTE, expected, _sealed({"id": name})))
        except Conflict:
            raise CheckpointError(f"{target} is being made by another; give the savepoint another name") from None
        made.clear()
        return made

    @property
    def storage(self) -> Storage:
        """Where its objects go."""
        return open_storage(self.target)

    def clear(self) -> None:
        """Removes what has been put there, but for the list."""
        self.storage.delete(*(name for name in names_under(self.storage, "") if name != NOTE))

    def finish(self, note: dict[str, Any]) -> Savepoint:
        """Replaces its own list by the finished one."""
        try:
            self.storage.compare_and_swap(NOTE, self.version, _sealed({"id": self.id, **note}))
        except Conflict:
            raise CheckpointError(f"{self.target} was replaced by another meanwhile") from None
        return load(self.target)

    def give_up(self) -> None:
        """Leaves nothing behind, unless another has taken the directory."""
        current = read_if_present(self.storage, NOTE)
        if current is not None and current[1] == self.version:
            delete_under(self.storage, "")


class _Taking:
    """One try at the content of a savepoint."""

    def __init__(self, checkpoint: Address, attempt: _Attempt, version: int | None, *, copy: bool) -> None:
        self.checkpoint, self.attempt, self.copy = checkpoint, attempt, copy
        self.storage = open_storage(checkpoint)
        self.log, self.store = SparkLog(checkpoint / "spark"), state_store_of(checkpoint)
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

    def take(self) -> Savepoint:
        """Copies all objects, and lists them."""
        target = self.attempt.storage
        files: dict[str, list[int]] = {}
        names = list(dict.fromkeys(self._names()))
        for name in sorted(names, key=_is_lasting):
            copy_object(self.storage, name, target, name, link=not self.copy)
            files[name] = list(checksum(target, name))
        _check_spouts(names, names_under(self.storage, "sources/"))
        return self.attempt.finish(
            {
                "flow": self.note["flow"],
                "version": self.version,
                "made": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                "penstock": __version__,
                "origin": str(self.checkpoint.absolute()),
                "files": {name: files[name] for name in names},
            }
        )

    def _names(self) -> Iterator[str]:
        """All objects, in an order in which none can name one that was not there yet."""
        yield FLOW
        yield from (f"spark/{name}" for name in self._of_spark())
        yield from self._of_state(self.version)
        if self.version == self.log.last():
            yield from self._of_begun(self.version + 1)
        messages = file_at(names_under(self.storage, f"{ACKS}/"), self.version)
        yield from (messages,) if messages else ()
        for part in ("sources/", "claims/"):
            yield from _finished(names_under(self.storage, part))
        loops = _finished(names_under(self.storage, "loops/"))
        yield from (name for name in loops if batch_of(name) <= self.version)

    def _of_spark(self) -> Iterator[str]:
        last = self.version
        if exists(self.log.storage, "metadata"):
            yield "metadata"
        yield f"commits/{last}"
        yield from (f"offsets/{n}" for n in range(max(0, last - 1), last + 1))
        if self.log.has_offsets(last + 1):
            last += 1
            yield f"offsets/{last}"
        for index, offset in enumerate(self.log.offsets(last)):
            yield from self.log.source_files(index, offset)

    def _of_state(self, version: int) -> Iterator[str]:
        if not self.note.get("schemas") and not names_under(self.storage, "state/"):
            return
        files = self.store.read(version)
        yield f"state/{self.store.manifest(version)}"
        yield from (f"state/{f.path}" for step in files.values() for f in step)

    def _of_begun(self, version: int) -> Iterator[str]:
        """What a batch that is not through has written of its state: it holds the processing time of the batch when it runs again."""
        if self.store.has(version):
            names = list(self._of_state(version))
            yield from names if all(exists(self.storage, name) for name in names) else ()


def _is_lasting(name: str) -> bool:
    """Whether an object stays for a while in a flow that runs on. What does not is copied first: where a spout stood three files ago is gone at the fourth.

    >>> [_is_lasting(f"sources/words/{name}") for name in ("feed/feed-000000003.parquet", "stand-000000003.pickle")]
    [True, False]
    """
    return not (name.startswith("sources/") and name.rpartition("/")[2].startswith(("stand-", "settled-", "ids-")))


def _check_spouts(names: list[str], there: list[str]) -> None:
    """Where a spout stood must be there with the newest tuples it gave, and what acks have changed since; a spout that runs may have been quicker."""
    sources = [name.split("/") for name in names if name.startswith("sources/")]
    for source in {parts[1] for parts in sources}:
        mine = ["/".join(parts[2:]) for parts in sources if parts[1] == source]
        stands = {name for name in mine if name.startswith("stand-")}
        fed = [name for name in mine if name.startswith("feed/feed-")]
        newest = max((name.removeprefix("feed/feed-").split(".")[0] for name in fed), default=None)
        if stands and f"stand-{newest}.pickle" not in stands:
            raise NotFound(f"sources/{source}/stand-{newest}.pickle is not there")
        settled = f"settled-{newest}.pickle"
        if settled not in mine and f"sources/{source}/{settled}" in there:
            raise NotFound(f"sources/{source}/{settled} was not there")


def load(folder: Address) -> Savepoint:
    """The savepoint in a folder."""
    found = read_if_present(open_storage(folder), NOTE)
    if found is None:
        others = [s.folder.name for s in _savepoints(folder.parent)]
        hint = f"; {nearest(folder.name, sorted(others))}" if others else ""
        raise CheckpointError(f"{folder} is no savepoint: it has no {NOTE}{hint}")
    note = _unsealed(found[0])
    if note is None:
        raise CheckpointError(f"savepoint {folder}: {NOTE} is damaged; use another savepoint")
    if "files" not in note:
        raise CheckpointError(f"{folder} is no savepoint: it is being made, or whoever made it has died")
    return Savepoint(
        folder, note["id"], note["flow"], note["version"], note["made"], address_of(note["origin"]), note["files"]
    )


def discard(folder: Address) -> None:
    """Removes a savepoint, finished or not: first its list, so that what a crash leaves is none."""
    storage = open_storage(folder)
    storage.delete(NOTE)
    delete_under(storage, "")


def is_savepoint(folder: Address) -> bool:
    """Whether a finished savepoint is there, damaged or not."""
    found = read_if_present(open_storage(folder), NOTE)
    return found is not None and _is_finished(found[0])


def _is_finished(content: bytes) -> bool:
    note = _unsealed(content)
    return note is None or "files" in note


def _sealed(note: dict[str, Any]) -> bytes:
    """A list as bytes, with a checksum at its end."""
    body = json.dumps(note, indent=1)
    return f"{body}\n{zlib.crc32(body.encode()):08x}".encode()


def _unsealed(content: bytes) -> dict[str, Any] | None:
    """The list in some bytes; None when they are damaged."""
    body, _, crc = content.decode(errors="replace").rpartition("\n")
    if f"{zlib.crc32(body.encode()):08x}" != crc:
        return None
    note: dict[str, Any] = json.loads(body)
    return note


def lay_out(savepoint: Savepoint, folder: Address, change: Change) -> None:
    """Puts the objects of a savepoint into a checkpoint folder, as the flow at hand wants them; all but its note."""
    source, target = open_storage(savepoint.folder), open_storage(folder)
    for name in savepoint.files:
        laid = _laid(name, change)
        if laid is not None:
            copy_object(source, name, target, laid)
    _forget_epochs(state_store_of(folder), savepoint.version)
    log = SparkLog(folder / "spark")
    log.move_paths(savepoint.origin, folder)
    for batch in range(max(0, savepoint.version - 1), log.begun() + 1):
        log.arrange(batch, change.indexes)


def _forget_epochs(store: StateStore, version: int) -> None:
    """Drivers of another folder count their epochs anew: none is to take what runs again for that of a later driver."""
    for later in (v for v in store.versions() if v > version):
        made = store.load(later) or {}
        if made.pop("epoch", 0):
            put_note(store.storage, store.manifest(later), made)


def _laid(name: str, change: Change) -> str | None:
    """Where an object of a savepoint goes; None when it does not go along."""
    if name == FLOW:
        return None
    part, _, rest = name.partition("/")
    if part != "spark":
        return name
    inner = moved_name(rest, change.indexes)
    return None if inner is None else f"spark/{inner}"


def directory_of(name: str, checkpoint: Address) -> Address:
    """Where the savepoint of a name is: a path as it is, a plain name beside the checkpoints.

    >>> directory_of("before-upgrade", Path(".penstock/count"))
    PosixPath('.penstock/savepoints/count/before-upgrade')
    """
    return address_of(name) if "/" in name else checkpoint.parent / "savepoints" / checkpoint.name / name


def find(name: str, checkpoint: Address, flow: str) -> Address:
    """Where the savepoint that somebody names is: beside the checkpoint at hand, or beside the one a flow has by default."""
    default = Path(".penstock").absolute() / flow
    directories = [directory_of(name, c) for c in (checkpoint, checkpoint.with_name(flow), default)]
    return next((p for p in directories if is_savepoint(p)), directories[-1])


def saved(checkpoint: Address) -> list[Savepoint]:
    """The savepoints of a flow that stand where plain names are put, oldest first."""
    return sorted(_savepoints(directory_of("x", checkpoint).parent), key=lambda s: (s.version, s.made))


def _savepoints(folder: Address) -> Iterator[Savepoint]:
    """The savepoints that stand in a folder."""
    for name in open_storage(folder).children():
        if is_savepoint(folder / name):
            yield load(folder / name)


def fresh_name(version: int, now: float | None = None) -> str:
    """A name for a savepoint that was given none."""
    return f"v{version}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}"


def _finished(names: list[str]) -> Iterator[str]:
    """Finished objects: those that a source of the user's own is writing may end in .tmp."""
    return (name for name in names if not name.endswith(".tmp"))


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
