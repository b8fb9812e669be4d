"""Removes what standard input, spouts and loops have put on disk, once no batch can ask for it again.

A batch may run again as long as Spark keeps its offsets and, in a flow with state, the version it begins from is kept: after a crash,
for a sink that was restored from a backup, from a savepoint of an older version. What batches before all of those have read
can go. Which batch has read a file stands in Spark's own log of the source. To remove a file twice, or to die in between, does no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.connectors.process.feed import FeedSource
from penstock.errors import PenstockError
from penstock.spark.batch.sources import Sources
from penstock.spark.checkpoint.entries import paths_read
from penstock.spark.checkpoint.sparklog import SparkLog, log_offset
from penstock.state.store import StateStore
from penstock.storage import NotFound, names_under, open_storage

log = logging.getLogger("penstock")
EVERY = 10
"""Batches between two looks: a look reads Spark's log of each source."""


def fed_by(sources: Sources) -> dict[int, Path]:
    """The folders into which this flow itself puts what it reads, by the index of the source."""
    found: dict[int, Path] = {}
    for index, node in enumerate(sources.nodes):
        if node in sources.graph.loops:
            found[index] = sources.folder / "loops" / node.name
        elif isinstance(sources.connectors.get(node.name), FeedSource):
            found[index] = sources.folder / "sources" / node.name / "feed"
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
        through = [n for n in self.log.committed() if self.log.has_offsets(n)]
        kept = through if self.store is None else self.store.versions()
        return max(through[0], kept[0]) if through and kept else -1

    def _sweep(self, batch: int, fed: Mapping[int, Path]) -> None:
        for index, offset in enumerate(self.log.offsets(batch)):
            last = log_offset(offset)
            if index in fed and last is not None:
                _remove(fed[index], self._read(index, last))

    def _read(self, index: int, last: int) -> set[str]:
        """The names of the files that a source had read up to an entry of its log, as far as the log still tells."""
        try:
            return {path.rsplit("/", 1)[-1] for path in paths_read(self.log, index, -1, last)}
        except NotFound:  # Spark has put its log together meanwhile
            return set()


def _remove(folder: Path, names: set[str]) -> None:
    """Removes files; the newest stays, because the number of the next one follows from it."""
    storage = open_storage(folder)
    written = [name for name in names_under(storage, "") if name.endswith(".parquet")]
    storage.delete(*(name for name in written[:-1] if name in names))
