"""Feeds: what comes from this process is put on disk before the flow sees it, so that a replay has it.

A feed is a folder of Parquet files. A thread in the driver writes them; Spark reads them as a stream.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.base import SourceConnector, SourceContext
from penstock.connectors.malformed import ARROW, MALFORMED, kept_schema
from penstock.errors import PenstockError, RunError
from penstock.graph.schema import Schema
from penstock.kernels.records.arrow import to_batch
from penstock.kernels.records.chunk import shape_of
from penstock.location import file_url
from penstock.storage import make_directory, names_under, number_of, open_storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_MOST_WAITING = 10_000
"""So many lines of standard input may wait to be put on disk."""


class Feed:
    """The writing side of a feed folder."""

    def __init__(self, folder: Path, schema: Schema) -> None:
        self.folder, self.schema = folder, schema
        make_directory(folder)
        self.storage = open_storage(folder.parent)
        self.number = 1 + max(map(number_of, names_under(self.storage, f"{folder.name}/feed-")), default=-1)

    def append(self, records: list[Any]) -> None:
        """Puts records on disk; they are safe when this returns."""
        if not records:
            return
        self.append_columns(shape_of(self.schema).split(records, quick=False))

    def append_columns(
        self,
        columns: Sequence[Sequence[Any]],
        malformed: list[dict[str, Any] | None] | None = None,
        *,
        is_checked: bool = False,
    ) -> None:
        """Puts records on disk that are there as columns; those that are none are described beside. `is_checked` where every value is known to be of its type."""
        fitting = columns if is_checked else shape_of(self.schema).checked(columns)
        table = pa.Table.from_batches([to_batch(fitting, self.schema)])
        if malformed is not None:
            table = table.append_column(pa.field(MALFORMED, ARROW), pa.array(malformed, ARROW))
        name = f"{self.folder.name}/feed-{self.number:09d}.parquet"
        self.storage.write(name, parquet_bytes(table))
        self.number += 1


def parquet_bytes(table: pa.Table) -> memoryview:
    """A table as a Parquet file, made in a quarter of the time: numbers and roots occur once each, so a dictionary of them helps nobody."""
    own = [name for name in table.column_names if not name.startswith("__")]
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, use_dictionary=own or False, write_statistics=False)
    return memoryview(sink.getvalue())


class FeedSource(SourceConnector):
    """The base of sources that this process feeds. `pull` returns records, or None when there are none just now."""

    pause = 0.05
    most = 5_000
    reads_to_end = False
    """Whether a run that ends when it has read what is there waits for all of it first."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.thread: threading.Thread | None = None

    def pull(self, context: SourceContext) -> Iterator[Any]:
        """The records, one by one; None when there are none just now."""
        raise NotImplementedError

    def kept(self, records: list[Any], context: SourceContext) -> None:
        """Called when records are safe on disk."""

    def stream(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """Starts the thread, and reads what it writes."""
        feed = Feed(context.folder / "feed", context.schema)
        self.thread = threading.Thread(target=self._run, args=(feed, context), daemon=True, name=f"feed-{context.step}")
        self.thread.start()
        if context.once and self.reads_to_end:
            self.thread.join()
        schema = kept_schema(context.schema, keeps_malformed=context.keeps_malformed)
        return spark.readStream.schema(str(schema)).parquet(file_url(feed.folder))

    def _run(self, feed: Feed, context: SourceContext) -> None:
        try:
            self._feed(feed, context)
        except Exception as error:
            self.failure = error if isinstance(error, PenstockError) else RunError(f"source {context.step!r}: {error}")

    def _feed(self, feed: Feed, context: SourceContext) -> None:
        held: list[Any] = []
        since = time.monotonic()
        for record in self.pull(context):
            if record is not None:
                held.append(record)
            if self.stopped.is_set():
                break
            if len(held) >= self.most or (held and time.monotonic() - since > self.pause):
                self._keep(feed, held, context)
                held, since = [], time.monotonic()
            if record is None:
                self.stopped.wait(self.pause / 5)
        self._keep(feed, held, context)

    def _keep(self, feed: Feed, held: list[Any], context: SourceContext) -> None:
        feed.append(held)
        self.kept(held, context)

    def close(self) -> None:
        """Stops the thread."""
        self.stopped.set()
        if self.thread is not None:
            self.thread.join(timeout=2)


def _read_lines(lines: Queue[str]) -> None:
    """Hands over each line with its end, and an empty one after the last."""
    while line := sys.stdin.readline():
        lines.put(line)
    lines.put("")


class StdinSource(FeedSource):
    """Lines from standard input."""

    reads_to_end = True

    def pull(self, context: SourceContext) -> Iterator[Any]:
        """Each line, without its end; None while there is none, so that the lines before it need not wait for the next one."""
        lines: Queue[str] = Queue(_MOST_WAITING)
        threading.Thread(target=_read_lines, args=(lines,), daemon=True, name="penstock-stdin").start()
        while True:
            try:
                line = lines.get(timeout=self.pause)
            except Empty:
                yield None
                continue
            if not line:
                return
            yield (line.rstrip("\n"),)

    def bounded(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """All lines up to the end of the input."""
        records = [(line.rstrip("\n"),) for line in sys.stdin]
        return spark.createDataFrame(records, schema=str(context.schema))
