"""Removes what standard input, spouts and loops have put on disk, once no batch can ask for it again.

A batch may run again as long as Spark keeps its offsets and, in a flow with state, the version it begins from is kept: after a crash,
for a sink that was restored from a backup, from a savepoint of an older version. What batches before all of those have read
can go. Which batch has read a file stands in Spark's own log of the source. To remove a file twice, or to die in between, does no harm.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from penstock.connectors.process.feed import FeedSource
from penstock.errors import PenstockError
from penstock.spark.batch.sources import Sources
from penstock.spark.checkpoint.sparklog import SparkLog, log_offset
from penstock.state.store import StateStore

log = logging.getLogger("penstock")
EVERY = 10
"""Batches between two looks: a look reads Spark's log of each source."""


def fed_by(sources: Sources) -> dict[int, Path]:
    """The folders into which this flow itself puts what it reads, by the place of the source."""
    found: dict[int, Path] = {}
    for place, node in enumerate(sources.nodes):
        if node in sources.graph.loops:
            found[place] = sources.folder / "loops" / node.name
        elif isinstance(sources.connectors.get(node.name), FeedSource):
            found[place] = sources.folder / "sources" / node.name / "feed"
    return found


@dataclass
class Sweeper:
    """Sweeps the folders of a flow; `store` is None when it keeps no state."""

    log: SparkLog
    store: StateStore | None
    swept: int = -EVERY

    def sweep(self, fed: Mapping[int, Path]) -> None:
        """Removes what can go, if enough batches have passed. What goes wrong is logged, and tried again later."""
        if not fed:
            return
        try:
            oldest = self.oldest()
            if oldest >= self.swept + EVERY:
                self._sweep(oldest, fed)
                self.swept = oldest
        except (OSError, PenstockError) as error:
            log.warning("files that have been read were not removed: %s", error)

    def oldest(self) -> int:
        """The oldest batch after which the flow could begin again; -1 when that is its beginning."""
        through = [n for n in self.log.committed() if (self.log.folder / "offsets" / str(n)).exists()]
        kept = through if self.store is None else self.store.versions()
        return max(through[0], kept[0]) if through and kept else -1

    def _sweep(self, batch: int, fed: Mapping[int, Path]) -> None:
        for place, offset in enumerate(self.log.offsets(batch)):
            last = log_offset(offset)
            if place in fed and last is not None:
                _remove(fed[place], self._read(place, last))

    def _read(self, place: int, last: int) -> set[str]:
        """The names of the files that a source had read up to an entry of its log, as far as the log still tells."""
        try:
            texts = [p.read_text() for p in _pieces(self.log.folder / "sources" / str(place), last)]
        except FileNotFoundError:  # Spark has put its log together meanwhile
            return set()
        return {name for text in texts for name in _names(text, last)}


def _pieces(folder: Path, last: int) -> list[Path]:
    """The pieces of Spark's log of files that tell of the entries up to one: Spark puts older pieces together now and then."""
    whole = sorted((int(p.stem), p) for p in folder.glob("*.compact") if p.stem.isdigit())
    later = [p for n, p in whole if n >= last]
    if later:
        return later[:1]
    end = whole[-1][0] if whole else -1
    single = (p for p in folder.glob("*") if p.name.isdigit() and end < int(p.name) <= last)
    return [*(p for _, p in whole[-1:]), *single]


def _names(text: str, last: int) -> Iterator[str]:
    """The files of the entries up to one."""
    for entry in (json.loads(line) for line in text.splitlines() if line.startswith("{")):
        if entry["batchId"] <= last:
            yield unquote(entry["path"].rsplit("/", 1)[-1])


def _remove(folder: Path, names: set[str]) -> None:
    """Removes files; the newest stays, because the number of the next one follows from it."""
    for path in sorted(folder.glob("*.parquet"))[:-1]:
        if path.name in names:
            path.unlink(missing_ok=True)
