"""Tells spouts, batch by batch, what became of their messages."""

from __future__ import annotations

from penstock.connectors.process.spout import SpoutSource
from penstock.kernels.topology.pending import Settlement
from penstock.live.ack_log import AckLog
from penstock.spark.batch.sources import Sources
from penstock.spark.checkpoint.entries import paths_read
from penstock.spark.checkpoint.sparklog import SparkLog, log_offset
from penstock.storage import NotFound, number_of


class AckDelivery:
    """The way from a committed batch to the spouts whose messages it has read."""

    def __init__(self, sources: Sources, log: SparkLog, acks: AckLog | None) -> None:
        self.sources, self.log, self.acks = sources, log, acks
        self.read: dict[int, int] = {}

    def deliver(self, batch: int) -> None:
        """Hands each reliable spout what a committed batch says of its messages; does nothing where there is none."""
        if self.acks is None or batch < 0:
            return
        for index, node in enumerate(self.sources.nodes):
            spout = self.sources.connectors.get(node.name)
            if isinstance(spout, SpoutSource) and spout.is_reliable:
                self.acks.forget(spout.confirmed())
                spout.settle(self._settlement(index, batch))

    def _settlement(self, index: int, batch: int) -> Settlement:
        assert self.acks is not None
        ledger = self.acks.ledger
        files = self._files(index, batch)
        return Settlement(files, frozenset(ledger.open), tuple(ledger.failed), self.acks.renewed)

    def _files(self, index: int, batch: int) -> frozenset[int]:
        """The numbers of the files of a feed that batches have read since the last time."""
        last = log_offset(self.log.offsets(batch)[index])
        if last is None:
            return frozenset()
        try:
            paths = paths_read(self.log, index, self.read.get(index, -1), last)
        except NotFound:  # Spark has put its log together meanwhile; the next batch tells
            return frozenset()
        self.read[index] = last
        return frozenset(number_of(path) for path in paths)
