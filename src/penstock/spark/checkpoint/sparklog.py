"""Spark's own part of a checkpoint: which offsets each batch had, and which batches are through.

Spark knows the sources of a query by their position alone. A flow whose sources have moved, come or gone gets a log
written anew, in which each source finds what it had read under its new position; a new one has read nothing.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from penstock.errors import CheckpointError
from penstock.location import Address, Location
from penstock.storage import Storage, StorageError, exists, names_under, open_storage

NOTHING_READ = "-"
COMPACT_EVERY = 10
"""Spark puts the log of a source of files together every so many entries."""
_PLAIN = "/!$&'()*+,;=:@~-._"
OWN = "file:///penstock/checkpoint/"
"""How the log of a checkpoint that is a URL names files inside it: each driver has them in a directory of its own."""


@dataclass(frozen=True)
class SparkLog:
    """The folder that Spark calls the checkpoint location."""

    folder: Address

    @property
    def storage(self) -> Storage:
        """What keeps it."""
        return open_storage(self.folder)

    def committed(self) -> list[int]:
        """The batches that are through, oldest first."""
        return self._numbers("commits")

    def _numbers(self, part: str) -> list[int]:
        names = (name.removeprefix(f"{part}/") for name in names_under(self.storage, f"{part}/"))
        return sorted(int(name) for name in names if name.isdigit())

    def has_offsets(self, batch: int) -> bool:
        """Whether the offsets of a batch are noted."""
        return exists(self.storage, f"offsets/{batch}")

    def last(self) -> int:
        """The last batch that is through; -1 when none is."""
        return max(self.committed(), default=-1)

    def begun(self) -> int:
        """The last batch whose offsets are noted, through or not."""
        return max(self._numbers("offsets"), default=-1)

    def offsets(self, batch: int) -> list[str]:
        """What each source had read at the end of a batch."""
        return self._lines(batch)[2:]

    def _lines(self, batch: int) -> list[str]:
        path = self.folder / "offsets" / str(batch)
        try:
            lines = self._checked_text(f"offsets/{batch}").split("\n")
            readable = lines[0].startswith("v") and isinstance(_parsed(lines[1]), dict)
            for line in lines[2:]:
                _parsed(line)
        except (StorageError, ValueError, IndexError) as error:
            raise CheckpointError(f"{path} cannot be read ({error}); {_FIX}") from None
        if not readable or len(lines) < 3:
            raise CheckpointError(f"{path} is damaged: it does not read as offsets of Spark; {_FIX}")
        return lines

    def check(self, sources: int) -> None:
        """Spark would fail on a damaged log in its own words; this says which file it is before Spark starts."""
        if self.last() >= 0:
            self._check_commit(f"commits/{self.last()}")
        for batch in sorted({self.last(), self.begun()} - {-1}):
            found = len(self.offsets(batch))
            if found != sources:
                raise CheckpointError(
                    f"{self.folder / 'offsets' / str(batch)} is damaged: it has offsets of {found} sources, the flow had {sources}; {_FIX}"
                )
        for index in range(sources):
            for name in self._newest_source_files(index):
                self._check_entries(name)

    def _newest_source_files(self, index: int) -> list[str]:
        """What a source of files has noted lately: back to the last entry that puts the earlier ones together."""
        files = [name for name in self.noted(index) if entry_of(name) is not None]
        return sorted(files, key=lambda name: entry_of(name) or 0)[-COMPACT_EVERY:]

    def noted(self, index: int) -> list[str]:
        """The names of all that a source has noted."""
        above = f"sources/{index}/"
        return [name for name in names_under(self.storage, above) if "/" not in name.removeprefix(above)]

    def _checked_text(self, name: str) -> str:
        _check_checksum(self.storage.local_path(name))
        return self.storage.read(name).decode()

    def _check_commit(self, name: str) -> None:
        path = self.folder / name
        try:
            first, body = self._checked_text(name).split("\n", 1)
            json.loads(body)
        except (StorageError, ValueError) as error:
            raise CheckpointError(f"{path} is damaged ({error}); {_FIX}") from None
        if not first.startswith("v"):
            raise CheckpointError(f"{path} is damaged: it does not read as a commit of Spark; {_FIX}")

    def _check_entries(self, name: str) -> None:
        """An entry of a source: a version, then lines of JSON. Spark would fail on a truncated one in its own words."""
        path = self.folder / name
        try:
            first, *lines = self._checked_text(name).lstrip("\0").rstrip("\n").split("\n")
            if len(first) <= 4:  # a version; what another source writes in a form of its own is not ours to judge
                int(first.removeprefix("v"))
                json.loads(lines[-1])
        except IndexError:
            raise CheckpointError(f"{path} is damaged (it is cut off); {_FIX}") from None
        except (StorageError, ValueError) as error:
            raise CheckpointError(f"{path} is damaged ({error}); {_FIX}") from None

    def source_files(self, index: int, offset: str) -> list[str]:
        """What a source has noted up to an offset, as far as Spark's log of files can be cut there; all of it otherwise."""
        files, last = self.noted(index), log_offset(offset)
        entries = [entry_of(name) for name in files]
        if last is None or None in entries:
            return files
        kept = [name for name, entry in zip(files, entries, strict=True) if entry is not None and entry <= last]
        return kept if {name.rpartition("/")[2] for name in kept} >= _needed(last) else files

    def arrange(self, batch: int, indexes: Sequence[int | None]) -> None:
        """Writes the offsets of a batch anew: the source at each index is the one that was at the given index before."""
        lines = self._lines(batch)
        before = lines[2:]
        after = [NOTHING_READ if p is None else before[p] for p in indexes]
        self.storage.write(f"offsets/{batch}", "\n".join([*lines[:2], *after]).encode())

    def move_paths(self, before: Address, after: Address) -> None:
        """Files inside the checkpoint are known by their whole path: those under `before` are now under `after`."""
        if before == after:
            return
        for name in names_under(self.storage, "sources/"):
            if name.count("/") == 2:
                self._rewrite(name, lambda line: moved(line, uri(before), uri(after)))

    def _rewrite(self, name: str, change: Callable[[str], str]) -> None:
        """Writes an object of lines anew, if any changes; another name of the same file keeps what it has."""
        before = self.storage.read(name).decode()
        after = "\n".join(map(change, before.split("\n")))
        if after != before:
            self.storage.write(name, after.encode())


_FIX = "restore it, start from a savepoint (--from), or start afresh with --fresh"


def log_offset(offset: str) -> int | None:
    """How far a source of files has read; None for another kind of source.

    >>> log_offset('{"logOffset":7}'), log_offset('{"topic":{"0":7}}')
    (7, None)
    """
    found = _parsed(offset)
    return found.get("logOffset") if isinstance(found, dict) else None


def entry_of(name: str) -> int | None:
    """The number of an entry in Spark's log of a source of files; None for what is no entry.

    >>> entry_of("sources/0/7"), entry_of("sources/0/9.compact"), entry_of("sources/0/metadata")
    (7, 9, None)
    """
    number = name.rpartition("/")[2].split(".")[0]
    return int(number) if number.isdigit() else None


def moved_name(name: str, indexes: Sequence[int | None]) -> str | None:
    """Where an object of Spark's log goes when sources move: the source at each index is the one that was at the given index before.

    >>> moved_name("sources/1/7", (1, None)), moved_name("sources/0/7", (1, None)), moved_name("offsets/7", (1, None))
    ('sources/0/7', None, 'offsets/7')
    """
    part, _, rest = name.partition("/")
    old, _, inner = rest.partition("/")
    if part != "sources" or not old.isdigit():
        return name
    return f"sources/{indexes.index(int(old))}/{inner}" if int(old) in indexes else None


def _needed(last: int) -> set[str]:
    """The files of a log of files that tell all up to an entry.

    >>> sorted(_needed(11)), sorted(_needed(1))
    (['10', '11', '9.compact'], ['0', '1'])
    """
    whole = (last + 1) // COMPACT_EVERY * COMPACT_EVERY - 1
    return {str(n) for n in range(whole + 1, last + 1)} | ({f"{whole}.compact"} if whole >= 0 else set())


def _parsed(line: str) -> object:
    return {} if line == NOTHING_READ else json.loads(line)


def uri(folder: Address) -> str:
    """A folder as Spark writes it.

    >>> uri(Path("/a b")), uri(Location("s3://bucket/flow"))
    ('file:///a%20b/', 'file:///penstock/checkpoint/')
    """
    return OWN if isinstance(folder, Location) else f"file://{quote(str(folder), safe=_PLAIN)}/"


def moved(line: str, before: str, after: str) -> str:
    """A line of an entry; a path under one prefix is now under another."""
    if not line.startswith("{"):
        return line
    entry = json.loads(line)
    path = str(entry.get("path", ""))
    if not path.startswith(before):
        return line
    return json.dumps({**entry, "path": after + path.removeprefix(before)}, separators=(",", ":"))


def _check_checksum(path: Path | None) -> None:
    """Hadoop notes a CRC-32 of each chunk in a file beside (a mark, the size of a chunk, the sums); where it is, it must fit."""
    beside = None if path is None else path.with_name(f".{path.name}.crc")
    if path is None or beside is None or not beside.exists():
        return
    sums, data = beside.read_bytes(), path.read_bytes()
    size = int.from_bytes(sums[4:8], "big")
    if sums[:4] != b"crc\0" or not size:
        raise ValueError(f"{beside.name} beside it is damaged")
    found = b"".join(zlib.crc32(data[at : at + size]).to_bytes(4, "big") for at in range(0, len(data), size))
    if found != sums[8:]:
        raise ValueError(f"its checksum in {beside.name} does not fit")
