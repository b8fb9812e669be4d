"""Spark's own part of a checkpoint: which offsets each batch had, and which batches are through.

Spark knows the sources of a query by their position alone. A flow whose sources have moved, come or gone gets a log
written anew, in which each source finds what it had read under its new position; a new one has read nothing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from penstock.errors import CheckpointError
from penstock.spark.statefile import put_safely

NOTHING_READ = "-"


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
            lines = path.read_text().split("\n")
            readable = lines[0].startswith("v") and all(isinstance(_parsed(x), dict | int) for x in lines[1:])
        except (OSError, UnicodeDecodeError, ValueError, IndexError) as error:
            raise CheckpointError(f"{path} cannot be read ({error}); {_FIX}") from None
        if not readable or len(lines) < 3:
            raise CheckpointError(f"{path} is damaged: it does not read as offsets of Spark; {_FIX}")
        return lines

    def check(self, sources: int) -> None:
        """Spark would fail on a damaged log in its own words; this says which file it is before Spark starts."""
        for batch in sorted({self.last(), self.begun()} - {-1}):
            found = len(self.offsets(batch))
            if found != sources:
                raise CheckpointError(
                    f"{self.folder / 'offsets' / str(batch)} is damaged: it has offsets of {found} sources, the flow had {sources}; {_FIX}"
                )

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


def _parsed(line: str) -> object:
    return {} if line == NOTHING_READ else json.loads(line)


def uri(folder: Path) -> str:
    """A folder as Spark writes it."""
    return f"file://{quote(str(folder), safe="/!$&'()*+,;=:@~-._")}/"


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


def _without_checksum(path: Path) -> None:
    """Hadoop keeps a checksum beside a file; it would not fit any more."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
