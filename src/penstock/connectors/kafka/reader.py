"""Kafka read by Python: a data source of Spark on confluent-kafka, for where Spark's own connector and its JARs cannot go.

It plans by offsets as that one does, reads each partition in a task, and hands over Arrow batches.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow

from penstock.connectors.base import SourceContext
from penstock.connectors.kafka.admin import PATIENCE, Cluster, is_passing
from penstock.connectors.kafka.settings import confluent, python_settings
from penstock.connectors.sharing import shares
from penstock.errors import RunError
from penstock.graph.endpoints.kafka import ABOUT
from penstock.kernels.records.arrow import known_times

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

Offsets = dict[str, dict[str, int]]
CHUNK = 10_000
_NO_BOUND = 2**62
SCHEMA = f"value binary, {ABOUT}"
_ARROW = pa.schema(
    [
        ("value", pa.binary()),
        ("key", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))),
    ]
)


@dataclass(frozen=True)
class TopicReading:
    """What the tasks need to know. It travels inside the data source, not as options, which Spark shows."""

    servers: str
    client: Mapping[str, str]
    topics: tuple[str, ...]
    pattern: bool
    start: Any
    end: Any
    most: int | None
    fail_on_data_loss: bool
    read_committed: bool
    headers: bool
    pace: str

    def limit(self) -> int | None:
        """How many records a batch may have: what the user says, or fewer when the driver has noted that batches take too long."""
        try:
            noted = int(Path(self.pace).read_text())
        except (OSError, ValueError):
            return self.most
        return noted if self.most is None else min(self.most, noted)

    def __repr__(self) -> str:
        return f"Reading({', '.join(self.topics)})"


def reading_of(context: SourceContext) -> TopicReading:
    """What the options of a source say."""
    given = context.options
    return TopicReading(
        servers=given["servers"],
        client=dict(given["client"]),
        topics=tuple(given["topics"]),
        pattern=bool(given.get("pattern")),
        start=given["start"],
        end=given["end"],
        most=given.get("rows_per_batch"),
        fail_on_data_loss=given["fail_on_data_loss"],
        read_committed=given["read_committed"],
        headers="headers" in given["also"],
        pace=str(context.folder / "pace"),
    )


class PythonKafka:
    """The frames of a source."""

    def __init__(self, spark: SparkSession, context: SourceContext) -> None:
        reading = reading_of(context)
        self.spark, self.name = spark, f"kafka_python_{id(self):x}"
        spark.dataSource.register(_source_class(self.name, reading))

    def stream(self) -> DataFrame:
        """What is there from the start on, then what comes."""
        return self.spark.readStream.format(self.name).load()

    def bounded(self) -> DataFrame:
        """What is there between the start and the end."""
        return self.spark.read.format(self.name).load()


def _source_class(called: str, reading: TopicReading) -> type[DataSource]:
    """A data source for one reading; made here, so that it travels by value and with all it knows."""

    class KafkaInPython(DataSource):
        @classmethod
        def name(cls) -> str:
            return called

        def schema(self) -> str:
            return SCHEMA

        def reader(self, schema: StructType) -> DataSourceReader:
            return BoundedReader(reading)

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
            return StreamReader(reading)

    return KafkaInPython


class Range(InputPartition):
    """Offsets of one partition, from `begin` up to but without `end`."""

    def __init__(self, topic: str, partition: int, begin: int, end: int) -> None:
        super().__init__((topic, partition, begin, end))
        self.topic, self.partition, self.begin, self.end = topic, partition, begin, end


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches, and reads them."""

    def __init__(self, reading: TopicReading) -> None:
        self.reading = reading
        self._planner: Planner | None = None
        self._goal: Offsets | None = None

    @property
    def planner(self) -> Planner:
        """Made where it is used: it holds connections."""
        if self._planner is None:
            self._planner = Planner(self.reading)
        return self._planner

    def __getstate__(self) -> dict[str, Any]:
        return {"reading": self.reading, "_planner": None, "_goal": None}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """A run that ends with what is there now."""
        self._goal = self.planner.position("latest")

    def initialOffset(self) -> Offsets:  # noqa: N802 - Spark's name
        """Where a new flow begins."""
        return self.planner.position(self.reading.start)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """As many records as a batch may have."""
        return ReadMaxRows(self.reading.most or _NO_BOUND)

    def latestOffset(self, start: Any, limit: ReadLimit) -> Offsets:  # noqa: N802 - Spark's name
        """Where the next batch ends."""
        most = self.reading.limit() if isinstance(limit, ReadMaxRows) else None
        return limited(start, self._goal or self.planner.position("latest"), most)

    def reportLatestOffset(self) -> Offsets:  # noqa: N802 - Spark's name
        """The end of every partition."""
        return self.planner.position("latest")

    def partitions(self, start: Any, end: Any) -> Sequence[InputPartition]:
        """A range of offsets for each partition with records."""
        return self.planner.ranges(start, end)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of a range."""
        assert isinstance(partition, Range)
        return read_range(self.reading, partition)


class BoundedReader(DataSourceReader):
    """Reads what is there."""

    def __init__(self, reading: TopicReading) -> None:
        self.reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        """A range of offsets for each partition with records."""
        planner = Planner(self.reading)
        return planner.ranges(planner.position(self.reading.start), planner.position(self.reading.end))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of a range."""
        assert isinstance(partition, Range)
        return read_range(self.reading, partition)


def limited(start: Offsets, latest: Offsets, most: int | None) -> Offsets:
    """The end of a batch: at most so many records, each partition in proportion to what waits there.

    >>> limited({"t": {"0": 0, "1": 0}}, {"t": {"0": 300, "1": 100}}, 100)
    {'t': {'0': 75, '1': 25}}
    """
    begins = {(t, p): start.get(t, {}).get(p, 0) for t, each in latest.items() for p in each}
    waiting = {(t, p): max(0, latest[t][p] - begin) for (t, p), begin in begins.items()}
    made: Offsets = {}
    for (topic, partition), taken in shares(waiting, most).items():
        made.setdefault(topic, {})[partition] = begins[topic, partition] + taken
    return made


class Planner:
    """Finds offsets."""

    def __init__(self, reading: TopicReading) -> None:
        self.reading = reading
        self.cluster = Cluster(reading.servers, reading.client)
        kafka = confluent()
        level = "read_committed" if reading.read_committed else "read_uncommitted"
        self.consumer = kafka.Consumer(
            {**self.cluster.settings, "group.id": "penstock-planner", "isolation.level": level}
        )

    def _partitions(self) -> list[tuple[str, int]]:
        known, wanted = self.cluster.topics(), self.reading.topics
        if self.reading.pattern:
            wanted = tuple(n for n in known if re.fullmatch(wanted[0], n))
        return [(name, p) for name in sorted(wanted) for p in known.get(name, [])]

    def position(self, where: Any) -> Offsets:
        """Offsets of every partition: the first, the end, those at a time, or those the user gave."""
        made: Offsets = {}
        for topic, partition in self._partitions():
            made.setdefault(topic, {})[str(partition)] = self._offset(topic, partition, where)
        return made

    def _offset(self, topic: str, partition: int, where: Any) -> int:
        kafka = confluent()
        asked = kafka.TopicPartition(topic, partition)
        low, high = self.consumer.get_watermark_offsets(asked, timeout=PATIENCE)
        if isinstance(where, str):
            return int(low if where == "earliest" else high)
        if "at" in where:
            asked.offset = where["at"]
            found = self.consumer.offsets_for_times([asked], timeout=PATIENCE)[0].offset
            return int(found if found >= 0 else high)
        given = where["offsets"].get(topic, {}).get(str(partition), -2)
        return int({-2: low, -1: high}.get(given, given))

    def ranges(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """What lies between two offsets. Records that are gone already are an error, unless that was allowed."""
        made: list[InputPartition] = []
        for topic, ends in end.items():
            for partition, stop in ends.items():
                begin = start.get(topic, {}).get(partition, 0)
                if begin < stop:
                    made.append(Range(topic, int(partition), self._kept(topic, int(partition), begin), stop))
        return made

    def _kept(self, topic: str, partition: int, begin: int) -> int:
        low, high = self.consumer.get_watermark_offsets(confluent().TopicPartition(topic, partition), timeout=PATIENCE)
        if low <= begin <= high:
            return begin
        if self.reading.fail_on_data_loss:
            raise RunError(
                f"topic {topic!r}, partition {partition}: the flow goes on at offset {begin}, and the topic has {low} to {high}. Records are "
                f"lost, or the topic is another one. Start afresh with --fresh, or say fail_on_data_loss=False to go on with what is there"
            )
        return int(low)


def read_range(reading: TopicReading, part: Range) -> Iterator[Any]:
    """The records of a range as Arrow batches. Offsets may have gaps: compacted records, marks of transactions."""
    kafka = confluent()
    level = "read_committed" if reading.read_committed else "read_uncommitted"
    own = {"group.id": "penstock-reader", "enable.auto.commit": False, "isolation.level": level}
    own |= {"enable.partition.eof": True, "auto.offset.reset": "error", "check.crcs": True}
    consumer = kafka.Consumer({**python_settings(reading.servers, reading.client), **own})
    try:
        consumer.assign([kafka.TopicPartition(part.topic, part.partition, part.begin)])
        yield from _chunks(consumer, part, reading.headers)
    finally:
        consumer.close()


def _chunks(consumer: Consumer, part: Range, headers: bool) -> Iterator[Any]:
    at, heard = part.begin, time.monotonic()
    while at < part.end:
        found = consumer.consume(CHUNK, timeout=1.0)
        good, at = _sorted_out(found, part, at)
        if good:
            yield _batch(good, part, headers)
        if found:
            heard = time.monotonic()
        elif time.monotonic() - heard > PATIENCE * 4:
            raise RunError(f"topic {part.topic!r}, partition {part.partition}: got no record from offset {at} on")


def _sorted_out(found: list[Any], part: Range, at: int) -> tuple[list[Any], int]:
    """The records inside the range, and how far reading has come."""
    eof = confluent().KafkaError._PARTITION_EOF
    good = []
    for message in found:
        error = message.error()
        if error is None:
            at = message.offset() + 1
            if at <= part.end:
                good.append(message)
        elif error.code() == eof:
            at = max(at, message.offset())
        elif not is_passing(error):
            raise RunError(f"topic {part.topic!r}, partition {part.partition}: {error.str()}")
    return good, at


def _batch(messages: list[Any], part: Range, headers: bool) -> pa.RecordBatch:
    size = len(messages)
    columns = [
        pa.array([m.value() for m in messages], pa.binary()),
        pa.array([m.key() for m in messages], pa.binary()),
        pa.array([part.topic] * size, pa.string()),
        pa.array([part.partition] * size, pa.int32()),
        pa.array([m.offset() for m in messages], pa.int64()),
        known_times(pa.array([m.timestamp()[1] for m in messages], pa.int64())),
        pa.array([_headers(m) for m in messages] if headers else [None] * size, _ARROW.field("headers").type),
    ]
    return pa.record_batch(columns, schema=_ARROW)


def _headers(message: Message) -> list[dict[str, Any]] | None:
    found = message.headers()
    return (
        None
        if found is None
        else [{"key": k, "value": v if v is None or isinstance(v, bytes) else str(v).encode()} for k, v in found]
    )
