"""What a ledger needs of Spark's log: the fingerprint of a batch, and ways to bring the log in line with the ledger."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import CheckpointError
from penstock.spark.checkpoint.sparklog import NOTHING_READ, OWN, SparkLog, moved, uri
from penstock.storage import NotFound

_HEADER = 2
"""Lines in front of the offsets: the version, and settings with the time of the batch."""


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

    def restore(self, batch: int, text: str) -> None:
        """Writes the offsets of a batch again."""
        if not text:
            raise CheckpointError(f"the offsets of batch {batch} are lost, and no ledger has them")
        self.storage.write(f"offsets/{batch}", text.encode())

    def rewind(self, batch: int) -> None:
        """Makes `batch` the last one that is done; the one after it runs again, over the same offsets."""
        begun = self.begun()
        self.storage.delete(*(f"commits/{number}" for number in range(batch + 1, begun + 1)))
        self.storage.delete(*(f"offsets/{number}" for number in range(batch + 2, begun + 1)))
