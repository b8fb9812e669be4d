"""The embedded log as a source: Arrow batches straight from its segments, live and bounded."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from penstock.connectors.base import SourceConnector, SourceContext
from penstock.connectors.log.shedding import SHED, Offsets, begins, left_out, plain, records_shed
from penstock.connectors.malformed import not_text, position_in, raw_rows, read_texts, read_values
from penstock.connectors.parsing import json_reading, literal, reads_plainly
from penstock.connectors.sharing import shares
from penstock.graph.endpoints.shedding import ShedRule
from penstock.graph.types import quote
from penstock.kernels.records.arrow import known_times
from penstock.log import Log, TopicPartition
from penstock.storage import StorageError, open_storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

RAW = (
    "partition int, offset bigint, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)
_NAMES = ("partition", "offset", "timestamp", "key", "value", "headers")
NAME = "penstock_log"
SLICE = 250_000
"""Records that one task reads at most; longer stretches of a partition are cut."""
TASKS = 64
"""How many tasks read a topic at most, unless it takes more for stretches of that length."""


class LogSource(SourceConnector):
    """A topic. Its records come as they are, or with the value read as text or JSON."""

    def stream(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """What the topic holds, then what comes."""
        spark.dataSource.register(LogDataSource)
        reader = spark.readStream.format(NAME).options(**_options(context))
        return shaped(reader.load(), context)

    def bounded(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """What the topic holds now."""
        spark.dataSource.register(LogDataSource)
        return shaped(spark.read.format(NAME).options(**_options(context)).load(), context)

    def reread(self, spark: SparkSession, context: SourceContext, dead_letters: list[dict[str, Any]]) -> DataFrame:
        """Reads the values of dead letters."""
        return shaped(spark.createDataFrame(raw_rows(dead_letters, _NAMES), RAW), context)

    def reached(self, context: SourceContext, offset: Any) -> None:
        """Tells the consumer group, so that its lag can be seen."""
        if not context.options.get("group"):
            return
        found = plain(_offsets(offset))
        topic = context.options["topic"]
        with Log(context.options["path"]) as log:
            log.groups.commit(context.options["group"], {TopicPartition(topic, int(p)): n for p, n in found.items()})

    def shed(self, start: Any, end: Any) -> int:
        """How many records a batch has left out."""
        return records_shed(_offsets(start) if start else None, _offsets(end))


def _offsets(offset: Any) -> Offsets:
    made: Offsets = json.loads(offset) if isinstance(offset, str) else offset
    return made


def _options(context: SourceContext) -> dict[str, str]:
    given = context.options
    start = given["start"] if isinstance(given["start"], str) else json.dumps(given["start"])
    made = {"path": str(Path(given["path"]).absolute()), "topic": given["topic"], "start": start, "step": context.step}
    shed = {"shed": json.dumps(asdict(given["shed"]))} if "shed" in given else {}
    return made | {"pace": str(context.folder)} | shed


def shaped(frame: DataFrame, context: SourceContext) -> DataFrame:
    """The records in the form that the endpoint says."""
    if context.options["format"] == "raw":
        return frame.select(*map(quote, context.schema.names))
    position = position_in(literal(f"topic {context.options['topic']}"))
    if context.options["format"] == "text":
        return read_texts(frame, context, ("value",), position)
    reading = json_reading("cast(value as string)", context.schema, plainly=reads_plainly(frame.sparkSession))
    return read_values(frame, context, context.schema, reading, position, (), not_text("value"))


class LogDataSource(DataSource):
    """The log, as Spark sees it."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return NAME

    def schema(self) -> str:
        """The fields of a record."""
        return RAW

    def reader(self, schema: StructType) -> DataSourceReader:
        """For bounded reads."""
        return LogReader(dict(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """For live reads."""
        return LogStreamReader(dict(self.options))


@dataclass(frozen=True)
class Slice:
    """A stretch of a partition."""

    partition: int
    begin: int
    end: int


@dataclass(frozen=True)
class Bundle(InputPartition):
    """The stretches that one task reads, one after the other."""

    slices: tuple[Slice, ...]


def bundled(slices: Sequence[Slice], tasks: int = TASKS) -> list[Bundle]:
    """Stretches as tasks: each its own, or, when there are many, several short ones together; a task costs more than a short stretch.

    >>> [len(bundle.slices) for bundle in bundled([Slice(p, 0, 10) for p in range(6)], tasks=3)]
    [2, 2, 2]
    """
    if len(slices) <= tasks:
        return [Bundle((part,)) for part in slices]
    fair = -(-sum(part.end - part.begin for part in slices) // tasks)
    made: list[list[Slice]] = [[]]
    for part in slices:
        if sum(p.end - p.begin for p in made[-1]) >= fair:
            made.append([])
        made[-1].append(part)
    return [Bundle(tuple(parts)) for parts in made]


class _Reading:
    """What bounded and live reads share."""

    def __init__(self, options: dict[str, str]) -> None:
        self.path, self.topic, self.start = options["path"], options["topic"], options["start"]
        self.step, self.pace = options["step"], Path(options["pace"])
        self.shed = ShedRule(**json.loads(options["shed"])) if "shed" in options else None

    def ends(self) -> dict[int, tuple[int, int]]:
        """The first and the next offset of each partition."""
        with Log(self.path) as log:
            return log.offsets(self.topic)

    def first(self) -> Offsets:
        """Where a flow that begins starts to read."""
        found = self.ends()
        if self.start in ("earliest", "latest"):
            return {str(p): ends[self.start == "latest"] for p, ends in found.items()}
        given = json.loads(self.start)
        if isinstance(given, dict):
            return {str(p): int(given.get(str(p), ends[0])) for p, ends in found.items()}
        with Log(self.path) as log:
            at = log.offsets_for_time(self.topic, int(given))
        return {str(p): at[p] if at[p] is not None else ends[1] for p, ends in found.items()}

    def slices(self, start: Offsets, end: Offsets) -> Sequence[Bundle]:
        """The stretches between two offsets, bundled for tasks."""
        made = [
            Slice(int(p), at, min(at + SLICE, last))
            for p, last in plain(end).items()
            for at in range(begins(start, end).get(p, 0), last, SLICE)
        ]
        return bundled(made)

    def records(self, bundle: Bundle) -> Iterator[Any]:
        """The Arrow batches of the stretches of a task."""
        for part in bundle.slices:
            yield from self._records(part)

    def _records(self, part: Slice) -> Iterator[Any]:
        import pyarrow as pa

        wanted = pa.timestamp("us", tz="UTC")
        with Log(self.path) as log:
            table = log.read_arrow(self.topic, part.partition, part.begin, part.end)
            at = table.schema.get_field_index("timestamp")
            times = known_times(table.column(at).cast(pa.int64()))
            table = table.set_column(at, pa.field("timestamp", wanted), times)
            yield from table.combine_chunks().to_batches(max_chunksize=50_000)


class LogReader(_Reading, DataSourceReader):
    """A bounded read."""

    def partitions(self) -> Sequence[Bundle]:
        """All that is there."""
        ends = {str(p): end for p, (_, end) in self.ends().items()}
        return self.slices(self.first(), ends)

    def read(self, partition: Any) -> Iterator[Any]:
        """The records of a stretch."""
        return self.records(partition)


class LogStreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A live read. How much a batch takes is limited by the pace that the driver has noted, if it has."""

    last: Offsets | None = None

    def initialOffset(self) -> Offsets:  # noqa: N802 - Spark's name
        """Where the first batch begins."""
        return self.first()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What is there now is all that this run reads."""
        self.last = {str(p): end for p, (_, end) in self.ends().items()}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802 - Spark's name
        """Where the next batch ends, and what it leaves out, if the flow sheds. What is there when a run begins that reads just that is not shed."""
        ends = self.last or {str(p): end for p, (_, end) in self.ends().items()}
        shed = self._left_out(plain(start), ends) if self.shed is not None and self.last is None else {}
        made: Offsets = paced(begins(start, {SHED: shed}), ends, self._pace())
        if shed:
            return made | {SHED: shed}
        return start if made == plain(start) else made

    def _left_out(self, start: Offsets, ends: Offsets) -> dict[str, Any]:
        assert self.shed is not None
        with Log(self.path) as log:
            return left_out(self.shed, log, self.topic, start, ends, time.time_ns() // 1_000_000)

    def reportLatestOffset(self) -> Offsets:  # noqa: N802 - Spark's name
        """How far the topic reaches."""
        return {str(p): end for p, (_, end) in self.ends().items()}

    def _pace(self) -> int | None:
        try:
            return int(open_storage(self.pace).read("pace"))
        except (StorageError, ValueError):
            return None

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[Bundle]:
        """The stretches of a batch."""
        return self.slices(start, end)

    def read(self, partition: Any) -> Iterator[Any]:
        """The records of a stretch."""
        return self.records(partition)


def paced(start: Offsets, ends: Offsets, most: int | None) -> Offsets:
    """Where a batch ends that takes at most so many records, spread over the partitions by what they have waiting.

    >>> paced({"0": 0, "1": 0}, {"0": 900, "1": 100}, 100)
    {'0': 90, '1': 10}
    """
    waiting = {p: end - start.get(p, 0) for p, end in ends.items()}
    return {p: start.get(p, 0) + many for p, many in shares(waiting, most).items()}
