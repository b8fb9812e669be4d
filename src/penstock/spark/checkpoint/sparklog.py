"""Spark's own part of a checkpoint: which offsets each batch had, and which batches are through.

Spark knows the sources of a query by their position alone. A flow whose sources have moved, come or gone gets a log
written anew, in which each source finds what it had read under its new position; a new one has read nothing.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from penstock.errors import CheckpointError
from penstock.state.file import put_safely

NOTHING_READ = "-"
COMPACT_EVERY = 10
"""Spark puts the log of a source of files together every so many entries."""
_PLAIN = "/!$&'()*+,;=:@~-._"


@dataclass(frozen=True)
class SparkLog:
    """The folder that Spark calls the checkpoint location."""

    folder: Path

    def committed(self) -> list[int]:
        """The batches that are through, oldest first."""
        return _numbers(self.folder / "commits")

    def last(self) -> int:
        """The last batch that is through; -1 when none is."""
        return max(self.committed(), default=-1)

    def begun(self) -> int:
        """The last batch whose offsets are noted, through or not."""
        return max(_numbers(self.folder / "offsets"), default=-1)

    def offsets(self, batch: int) -> list[str]:
        """What each source had read at the end of a batch."""
        return self._lines(batch)[2:]

    def _lines(self, batch: int) -> list[str]:
        path = self.folder / "offsets" / str(batch)
        try:
            _check_checksum(path)
            lines = path.read_text().split("\n")
            readable = lines[0].startswith("v") and isinstance(_parsed(lines[1]), dict)
            for line in lines[2:]:
                _parsed(line)
        except (OSError, UnicodeDecodeError, ValueError, IndexError) as error:
            raise CheckpointError(f"{path} cannot be read ({error}); {_FIX}") from None
        if not readable or len(lines) < 3:
            raise CheckpointError(f"{path} is damaged: it does not read as offsets of Spark; {_FIX}")
        return lines

    def check(self, sources: int) -> None:
        """Spark would fail on a damaged log in its own words; this says which file it is before Spark starts."""
        if self.last() >= 0:
            self._check_commit(self.folder / "commits" / str(self.last()))
        for batch in sorted({self.last(), self.begun()} - {-1}):
            found = len(self.offsets(batch))
            if found != sources:
                raise CheckpointError(
                    f"{self.folder / 'offsets' / str(batch)} is damaged: it has offsets of {found} sources, the flow had {sources}; {_FIX}"
                )
        for place in range(sources):
            for path in self._newest_source_files(place):
                _check_entries(path)

    def _newest_source_files(self, place: int) -> list[Path]:
        """What a source of files has noted lately: back to the last entry that puts the earlier ones together."""
        files = [p for p in (self.folder / "sources" / str(place)).glob("*") if p.name.split(".")[0].isdigit()]
        return sorted(files, key=lambda p: int(p.name.split(".")[0]))[-COMPACT_EVERY:]

    @staticmethod
    def _check_commit(path: Path) -> None:
        try:
            _check_checksum(path)
            first, body = path.read_text().split("\n", 1)
            json.loads(body)
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path} is damaged ({error}); {_FIX}") from None
        if not first.startswith("v"):
            raise CheckpointError(f"{path} is damaged: it does not read as a commit of Spark; {_FIX}")

    def source_files(self, place: int, offset: str) -> list[Path]:
        """What a source has noted up to an offset, as far as Spark's log of files can be cut there; all of it otherwise."""
        files = sorted(p for p in (self.folder / "sources" / str(place)).glob("*") if not p.name.startswith("."))
        last = log_offset(offset)
        if last is None or not all(p.name.split(".")[0].isdigit() for p in files):
            return files
        kept = [p for p in files if int(p.name.split(".")[0]) <= last]
        return kept if {p.name for p in kept} >= _needed(last) else files

    def arrange(self, batch: int, places: Sequence[int | None]) -> None:
        """Writes the offsets of a batch anew: the source at each place is the one that was at the given place before."""
        lines = self._lines(batch)
        before = lines[2:]
        after = [NOTHING_READ if p is None else before[p] for p in places]
        path = self.folder / "offsets" / str(batch)
        _without_checksum(path)
        put_safely(path, ["\n".join([*lines[:2], *after]).encode()])

    def arrange_sources(self, places: Sequence[int | None]) -> None:
        """Moves what each source has noted to its new place."""
        folder, aside = self.folder / "sources", self.folder / "sources.before"
        if not folder.exists():
            return
        folder.rename(aside)
        for new, old in enumerate(places):
            if old is not None and (aside / str(old)).exists():
                folder.mkdir(exist_ok=True)
                (aside / str(old)).rename(folder / str(new))
        shutil.rmtree(aside)

    def move_paths(self, before: Path, after: Path) -> None:
        """Files inside the checkpoint are known by their whole path: those under `before` are now under `after`."""
        if before == after:
            return
        for path in sorted((self.folder / "sources").glob("*/*")):
            if path.is_file() and not path.name.startswith("."):
                _rewrite(path, lambda line: _moved(line, uri(before), uri(after)))


_FIX = "restore it, start from a savepoint (--from), or start afresh with --fresh"


def log_offset(offset: str) -> int | None:
    """How far a source of files has read; None for another kind of source.

    >>> log_offset('{"logOffset":7}'), log_offset('{"topic":{"0":7}}')
    (7, None)
    """
    found = _parsed(offset)
    return found.get("logOffset") if isinstance(found, dict) else None


def _needed(last: int) -> set[str]:
    """The files of a log of files that tell all up to an entry.

    >>> sorted(_needed(11)), sorted(_needed(1))
    (['10', '11', '9.compact'], ['0', '1'])
    """
    whole = (last + 1) // COMPACT_EVERY * COMPACT_EVERY - 1
    return {str(n) for n in range(whole + 1, last + 1)} | ({f"{whole}.compact"} if whole >= 0 else set())


def _parsed(line: str) -> object:
    return {} if line == NOTHING_READ else json.loads(line)


def uri(folder: Path) -> str:
    """A folder as Spark writes it."""
    return f"file://{quote(str(folder), safe=_PLAIN)}/"


def _numbers(folder: Path) -> list[int]:
    return sorted(int(p.name) for p in folder.glob("*") if p.name.isdigit()) if folder.exists() else []


def _moved(line: str, before: str, after: str) -> str:
    if not line.startswith("{"):
        return line
    entry = json.loads(line)
    path = str(entry.get("path", ""))
    if not path.startswith(before):
        return line
    return json.dumps({**entry, "path": after + path.removeprefix(before)}, separators=(",", ":"))


def _rewrite(path: Path, change: Callable[[str], str]) -> None:
    """Writes a file of lines anew, if any changes; another name of the same file keeps what it has."""
    before = path.read_text()
    after = "\n".join(map(change, before.split("\n")))
    if after != before:
        _without_checksum(path)
        put_safely(path, [after.encode()])


def _check_entries(path: Path) -> None:
    """An entry of a source: a version, then lines of JSON. Spark would fail on a truncated one in its own words."""
    try:
        _check_checksum(path)
        first, *lines = path.read_text().lstrip("\0").rstrip("\n").split("\n")
        if len(first) <= 4:  # a version; what another source writes in a form of its own is not ours to judge
            int(first.removeprefix("v"))
            json.loads(lines[-1])
    except IndexError:
        raise CheckpointError(f"{path} is damaged (it is cut off); {_FIX}") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); {_FIX}") from None


def _check_checksum(path: Path) -> None:
    """Hadoop notes a CRC-32 of each chunk in a file beside (a mark, the size of a chunk, the sums); where it is, it must fit."""
    beside = path.with_name(f".{path.name}.crc")
    if not beside.exists():
        return
    sums, data = beside.read_bytes(), path.read_bytes()
    size = int.from_bytes(sums[4:8], "big")
    if sums[:4] != b"crc\0" or not size:
        raise ValueError(f"{beside.name} beside it is damaged")
    found = b"".join(zlib.crc32(data[at : at + size]).to_bytes(4, "big") for at in range(0, len(data), size))
    if found != sums[8:]:
        raise ValueError(f"its checksum in {beside.name} does not fit")


def _without_checksum(path: Path) -> None:
    """Hadoop keeps a checksum beside a file; it would not fit any more."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
