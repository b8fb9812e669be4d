"""What a ledger needs of Spark's log: the fingerprint of a batch, and ways to bring the log in line with the ledger."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import CheckpointError
from penstock.spark.checkpoint.entries import pieces
from penstock.spark.checkpoint.sparklog import NOTHING_READ, OWN, SparkLog, log_offset, moved, uri
from penstock.storage import NotFound

_HEADER = 2
"""Lines in front of the offsets: the version, and settings with the time of the batch."""
_FILES = "files "
"""Begins the line with the files of a batch after its offsets."""
_VERSION = "v1"
"""The first line of an entry in Spark's log of files."""
_COMPACT = 10
"""Spark puts the entries of its log of files together in every tenth, as it does by default."""
MOST_NOTED = 100_000
"""Characters of the names of files that a ledger keeps; a batch of more files is restored by the log of its own checkpoint alone."""


@dataclass(frozen=True)
class OffsetLog(SparkLog):
    """Spark's log, as the keeper of ledgers sees it.

    `own` is the directory whose files belong to the checkpoint; a fingerprint names them in the same way wherever that is.
    """

    own: Path | None = None

    def text(self, batch: int) -> str:
        """The file of a batch, as Spark wrote it; empty when there is none."""
        return self._text(f"offsets/{batch}")

    def _text(self, name: str) -> str:
        try:
            return self.storage.read(name).decode()
        except NotFound:
            return ""

    def fingerprint(self, batch: int) -> str:
        """A hash of the offsets at which a batch begins and ends, and of the files that file sources take for it."""
        made = hashlib.sha256()
        for each in (batch - 1, batch):
            made.update(("\n".join(self.text(each).splitlines()[_HEADER:]) + "\0").encode())
        for at, line in enumerate(self.text(batch).splitlines()[_HEADER:]):
            made.update(self._files(at, line).encode())
        return made.hexdigest()

    def _files(self, source: int, line: str) -> str:
        offset = None if line == NOTHING_READ else json.loads(line)
        if not isinstance(offset, dict) or "logOffset" not in offset:
            return ""
        text = self._text(f"sources/{source}/{offset['logOffset']}")
        if self.own is None:
            return text
        return "\n".join(moved(each, uri(self.own), OWN) for each in text.split("\n"))

    def recorded(self, batch: int) -> str:
        """What a ledger keeps of a batch: its offsets, and the files that file sources take for it, without which the offsets mean nothing."""
        text = self.text(batch)
        ends = [log_offset(line) if line != NOTHING_READ else None for line in text.splitlines()[_HEADER:]]
        taken = {f"sources/{at}/{end}": self._taken(at, end) for at, end in enumerate(ends) if end is not None}
        noted = json.dumps({name: lines for name, lines in taken.items() if lines})
        return f"{text}\n{_FILES}{noted}" if len(noted) <= MOST_NOTED and taken else text

    def _taken(self, source: int, end: int) -> list[str]:
        """The lines of Spark's log of files that name those of one entry; Spark may have put it together with older ones."""
        text = self._text(f"sources/{source}/{end}") or self._text(f"sources/{source}/{end}.compact")
        likely = [
            line for line in text.splitlines() if line.startswith("{") and f'"batchId":{end}' in line.replace(" ", "")
        ]
        return [line for line in likely if json.loads(line)["batchId"] == end]

    def restore(self, batch: int, recorded: str) -> None:
        """Writes again what a ledger has kept of a batch: the log of file sources first, without which Spark reads no offsets."""
        text, _, noted = recorded.partition(f"\n{_FILES}")
        if not text:
            raise CheckpointError(f"the offsets of batch {batch} are lost, and no ledger has them")
        for name, lines in json.loads(noted or "{}").items():
            self._restore_entry(name, lines)
        self.storage.write(f"offsets/{batch}", text.encode())

    def _restore_entry(self, name: str, lines: list[str]) -> None:
        """An entry of the log of a file source, if it is not there; every tenth has all files before it too."""
        above, _, number = name.rpartition("/")
        if self._text(name) or self._text(f"{name}.compact"):
            return
        is_compact = (int(number) + 1) % _COMPACT == 0
        names = pieces(self.noted(int(above.rpartition("/")[2])), int(number) - 1) if is_compact else []
        before = [line for each in names for line in self._text(each).splitlines() if line.startswith("{")]
        target = f"{name}.compact" if is_compact else name
        self.storage.write(target, "\n".join([_VERSION, *before, *lines]).encode())

    def rewind(self, batch: int) -> None:
        """Makes `batch` the last one that is done; the one after it runs again, over the same offsets."""
        begun = self.begun()
        self.storage.delete(*(f"commits/{number}" for number in range(batch + 1, begun + 1)))
        self.storage.delete(*(f"offsets/{number}" for number in range(batch + 2, begun + 1)))
