"""Which files a batch takes, by Spark's log of a source of files: entries that each name a few files, older ones put together now and then."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from penstock.spark.checkpoint.sparklog import SparkLog, entry_of, log_offset, uri


def paths_read(log: SparkLog, index: int, first: int, last: int) -> list[str]:
    """The paths of the files that a source has noted after one entry and up to another, as far as its log still tells.

    Raises:
        NotFound: Spark has put its log together meanwhile.
    """
    texts = [log.storage.read(name).decode() for name in pieces(log.noted(index), last)]
    return [path for text in texts for path in _paths(text, first, last)]


def pieces(names: Sequence[str], last: int) -> list[str]:
    """The pieces of Spark's log of files that tell of the entries up to one: Spark puts older pieces together now and then.

    >>> pieces(["sources/0/9.compact", "sources/0/10", "sources/0/11", "sources/0/12"], 11)
    ['sources/0/9.compact', 'sources/0/10', 'sources/0/11']
    """
    entries = [(number, name) for name in names if (number := entry_of(name)) is not None]
    compact = sorted((number, name) for number, name in entries if name.endswith(".compact"))
    later = [name for number, name in compact if number >= last]
    if later:
        return later[:1]
    end = compact[-1][0] if compact else -1
    single = [name for number, name in entries if "." not in name.rpartition("/")[2] and end < number <= last]
    return [*(name for _, name in compact[-1:]), *single]


def _paths(text: str, first: int, last: int) -> Iterator[str]:
    for entry in (json.loads(line) for line in text.splitlines() if line.startswith("{")):
        if first < entry["batchId"] <= last:
            yield unquote(entry["path"])


@dataclass(frozen=True)
class FedFiles:
    """The files that the flow itself has put into its checkpoint, by the batches that take them.

    Attributes:
        log: Spark's log.
        work: the directory in which Spark finds the names of the files.
    """

    log: SparkLog
    work: Path

    def names(self, batch: int) -> dict[int, list[str]]:
        """The files that a batch takes, below the checkpoint, by the index of the source; of sources that take any."""
        ends = list(map(log_offset, self.log.offsets(batch)))
        begins = list(map(log_offset, self.log.offsets(batch - 1))) if self.log.has_offsets(batch - 1) else []
        begins += [None] * (len(ends) - len(begins))
        found = {
            index: self._between(index, -1 if begin is None else begin, end)
            for index, (begin, end) in enumerate(zip(begins, ends, strict=False))
            if end is not None and end != begin
        }
        return {index: names for index, names in found.items() if names}

    def _between(self, index: int, first: int, last: int) -> list[str]:
        base = unquote(uri(self.work))
        paths = paths_read(self.log, index, first, last)
        return [path.removeprefix(base) for path in paths if path.startswith(base)]
