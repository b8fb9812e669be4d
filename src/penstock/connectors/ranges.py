"""Sources that Spark reads by ranges of offsets: what they share, and the way they are handed to Spark.

A `Ranges` says where a source begins, how far a batch may go, and reads what lies between. It travels to the workers inside the class
that Spark is given, so nothing of it, a password least of all, stands in Spark's options or plans.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from penstock.graph.types import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.connectors.base import SourceContext

Offset = dict[str, Any]
_NUMBER = itertools.count()


@dataclass(frozen=True)
class Stretch(InputPartition):
    """What one task reads: after `low`, up to and with `high`."""

    low: Any
    high: Any


class Ranges:
    """The base: offsets are small dicts; equal offsets mean that nothing lies between."""

    schema: str
    pace: Path | None = None
    most: int | None = None

    def first(self) -> Offset:
        """Where a flow that begins starts to read."""
        raise NotImplementedError

    def latest(self, start: Offset, most: int | None) -> Offset:
        """Where a batch that begins at `start` may end; it should take at most so many records."""
        raise NotImplementedError

    def target(self) -> Offset:
        """How far a live run goes that ends when it has read what is there."""
        raise NotImplementedError

    def everything(self) -> Offset:
        """How far a bounded run goes."""
        return self.target()

    def within(self, offset: Offset, target: Offset) -> Offset:
        """The lesser of two offsets."""
        raise NotImplementedError

    def stretches(self, start: Offset, end: Offset) -> Sequence[Stretch]:
        """What the tasks of a batch read."""
        return [Stretch(start, end)] if start != end else []

    def read(self, part: Stretch) -> Iterator[Any]:
        """The record batches of a stretch; the same ones whenever it is read."""
        raise NotImplementedError

    def committed(self, end: Offset) -> None:
        """Called when everything up to `end` is safe in the sinks."""

    def close(self) -> None:
        """Called when the query ends."""

    def limit(self) -> int | None:
        """How many records a batch may take: what the user says, or fewer when the driver has noted that batches take too long."""
        try:
            noted = int(self.pace.read_text()) if self.pace is not None else None
        except (OSError, ValueError):
            noted = None
        return min((n for n in (self.most, noted) if n is not None), default=None)


def stream_of(spark: SparkSession, ranges: Ranges, context: SourceContext, ddl: str = "") -> DataFrame:
    """A streaming frame: of the fields of the step, or of those that `ddl` names."""
    frame = spark.readStream.format(_registered(spark, ranges, context, ddl)).load()
    return frame if ddl else frame.select(*map(quote, context.schema.names))


def bounded_of(spark: SparkSession, ranges: Ranges, context: SourceContext, ddl: str = "") -> DataFrame:
    """A plain frame of what is there now: of the fields of the step, or of those that `ddl` names."""
    frame = spark.read.format(_registered(spark, ranges, context, ddl)).load()
    return frame if ddl else frame.select(*map(quote, context.schema.names))


def _registered(spark: SparkSession, ranges: Ranges, context: SourceContext, ddl: str) -> str:
    """The name under which Spark knows a class that is made for this source alone."""
    ranges.schema, ranges.pace = ddl or str(context.schema), context.folder / "pace"
    called = f"penstock_{context.endpoint.kind}_{next(_NUMBER)}"
    made = type("Made", (RangeSource,), {"ranges": ranges, "called": called})
    spark.dataSource.register(made)
    return called


class RangeSource(DataSource):
    """A source as Spark sees it."""

    ranges: Ranges
    called: str

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return cls.called

    def schema(self) -> str:
        """The fields of a record."""
        return self.ranges.schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """For bounded reads."""
        return RangeReader(self.ranges)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """For live reads."""
        return RangeStreamReader(self.ranges)


class RangeReader(DataSourceReader):
    """A bounded read."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges

    def partitions(self) -> Sequence[Stretch]:
        """All that is there; a read without tasks would be an error to Spark."""
        start = self.ranges.first()
        return self.ranges.stretches(start, self.ranges.everything()) or [Stretch(None, None)]

    def read(self, partition: Any) -> Iterator[Any]:
        """The records of a stretch."""
        return self.ranges.read(partition) if partition.high is not None else iter(())


class RangeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A live read."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.last: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Where the first batch begins."""
        return self.ranges.first()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What is there now is all that this run reads."""
        self.last = self.ranges.target()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Where the next batch ends."""
        found = self.ranges.latest(start, self.ranges.limit())
        return found if self.last is None else self.ranges.within(found, self.last)

    def partitions(self, start: Offset, end: Offset) -> Sequence[Stretch]:
        """The stretches of a batch."""
        return self.ranges.stretches(start, end)

    def read(self, partition: Any) -> Iterator[Any]:
        """The records of a stretch."""
        return self.ranges.read(partition)

    def commit(self, end: Offset) -> None:
        """All up to here is safe."""
        self.ranges.committed(end)

    def stop(self) -> None:
        """The query has ended."""
        self.ranges.close()
