"""The seam to the outside: one small base class for sources, one for sinks.

A connector of your own is a subclass, handed to a flow with `ps.connector(...)`:

    class Numbers(SourceConnector):
        def bounded(self, spark, context): return spark.range(10)

The contract of a source: `stream` and `bounded` give a DataFrame with exactly the schema of the step. The contract of
a sink: `stage` does all that can fail and shows nothing; `commit` shows it, quickly. A batch that runs again stages and
commits again with the same id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from penstock.errors import Impossible, PenstockError
from penstock.graph.capabilities import AT_LEAST_ONCE, SINK, SOURCE, Capabilities
from penstock.graph.nodes import Endpoint
from penstock.graph.row import row_class
from penstock.graph.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType as SparkType

    from penstock.connectors.delivery import Entry

__all__ = [
    "REFUSED",
    "Batch",
    "Capabilities",
    "SourceContext",
    "Refusal",
    "RowSink",
    "SinkConnector",
    "SinkContext",
    "SourceConnector",
    "Spot",
    "StagedBatch",
    "StagedRows",
    "rows_of",
]


@dataclass(frozen=True)
class SourceContext:
    """What a source may know: its step's name, endpoint and schema, and a folder to keep things in across restarts.

    `once` says that the run ends when it has read what is there. With `keeps_malformed` a record that cannot be read does not stop the source: it
    comes along with its description in the column `__malformed` (`penstock.connectors.malformed`).
    """

    step: str
    endpoint: Endpoint
    schema: Schema
    folder: Path
    once: bool = False
    flow: str = ""
    keeps_malformed: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """The endpoint's options, without those left at None."""
        return {k: v for k, v in self.endpoint.options.items() if v is not None}


class SourceConnector:
    """Reads something. A source that works beside the query says in `failure` what stopped it."""

    capabilities: ClassVar[Capabilities] = SOURCE
    failure: PenstockError | None = None

    def stream(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """A streaming DataFrame."""
        raise Impossible(
            f"source {context.step!r}: {context.endpoint.kind!r} cannot be read as a live stream; use --batch"
        )

    def bounded(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """All that is there now, as a plain DataFrame."""
        raise Impossible(
            f"source {context.step!r}: {context.endpoint.kind!r} has no end, so a bounded run would not finish; "
            f"give it a limit, or run it live"
        )

    def reached(self, context: SourceContext, offset: Any) -> None:
        """Called when all batches up to an offset (as the source's own text of it) are through."""

    def shed(self, start: Any, end: Any) -> int:
        """How many records a batch between two offsets has left out, because its user said so."""
        return 0

    def locate(self, spark: SparkSession, context: SourceContext, spot: Spot) -> str:
        """The position of a record outside, for an error message; empty when the source cannot tell."""
        return ""

    def positions(self, malformed: Sequence[tuple[bytes, str]]) -> list[str]:
        """Where outside records stand that could not be read, from what was known when they were."""
        return [position for _, position in malformed]

    def reread(self, spark: SparkSession, context: SourceContext, dead_letters: list[dict[str, Any]]) -> DataFrame:
        """Reads records that could not be read, and were put aside, once more."""
        raise Impossible(f"source {context.step!r}: {context.endpoint.kind!r} cannot read records from dead letters")

    def close(self) -> None:
        """Called when the run ends."""


@dataclass(frozen=True)
class Spot:
    """A record inside a run: its partition and its number there, how it reads, and the batch (-1 in a bounded run)."""

    partition: int
    number: int
    record: str
    batch: int = -1
    checkpoint: Path | None = None


@dataclass(frozen=True)
class Batch:
    """What a sink may know of the batch at hand. `id` grows by one and stays the same when a batch runs again.

    `lineage` is the life the id belongs to: a live flow has one until it starts afresh, bounded runs share one. The
    `fingerprint` is that of the offsets the batch is made of, `offsets` their text.
    """

    id: int
    sink: str
    options: dict[str, Any] = field(default_factory=dict)
    lineage: str = "bounded"
    delivery: str = AT_LEAST_ONCE
    fingerprint: str = ""
    offsets: str = ""


@dataclass(frozen=True)
class SinkContext:
    """What a sink may know before the first batch: its name, options and schema, the lineage, and what is asked of it.

    `updates` names the key fields when its records replace earlier ones of the same key.
    """

    sink: str
    flow: str
    options: dict[str, Any]
    schema: Schema
    lineage: str
    delivery: str = AT_LEAST_ONCE
    updates: tuple[str, ...] | None = None


REFUSED = "refuses a row:"
"""Stands in the message of a sink that refuses rows while they are staged; what it says against them follows."""


class StagedBatch:
    """Work that is done but not shown yet. `through` says that a rehearsal, or `stage_rows`, found the batch in the sink already.

    `refused` is the text of the dead letters of rows that the sink refuses: what `commit` puts into the ledger, and of a batch that is through what it
    found there. A driver that takes over may not see what the one before has noted elsewhere.
    """

    rows: int | None = None
    through: bool = False
    refused: str = ""

    def rehearse(self) -> str:
        """Does what `commit` does and takes it back; returns what the sink says against the rows, empty when it takes them."""
        return ""

    def commit(self) -> None:
        """Shows it."""

    def abort(self) -> None:
        """Takes it back."""


class Refusal(NamedTuple):
    """A row that a sink does not take: its index in the batch, its values, and what is said against it."""

    number: int
    row: tuple[Any, ...]
    said: str


class SinkConnector:
    """Writes something. `capabilities` says which deliveries it holds, the strongest first, and whether it reports rows that it refuses."""

    capabilities: ClassVar[Capabilities] = SINK

    def refuses(self, context: SinkContext) -> str:
        """Why this sink, with these options, cannot hold the delivery asked for; empty when it can."""
        return ""

    def open(self, context: SinkContext) -> Entry | None:
        """Called once before the first batch. A sink with a ledger returns the last entry of this lineage."""
        return None

    def stage(self, frame: DataFrame, batch: Batch) -> StagedBatch:
        """Does all that can fail, and shows nothing yet."""
        raise NotImplementedError

    def stage_rows(self, frame: DataFrame, batch: Batch) -> tuple[StagedBatch, list[Refusal]]:
        """Instead of `stage` where the user has said `on_error`: tells the rows that are refused.

        With `row_errors="reported"` it delivers at once, at least once; with "staged" it shows nothing before `commit`, and says `through` of a batch
        that the sink holds already.
        """
        raise NotImplementedError

    def interrupt(self) -> bool:
        """Called from another thread when the sink does not answer: whatever it waits for ends with an error.

        Returns:
            Whether it can do that; what it waits for goes on if it cannot.
        """
        return False

    def close(self) -> None:
        """Called when the run ends."""


class RowSink(SinkConnector):
    """The base of sinks that take rows in the driver: `write` is called once for each batch."""

    def write(self, rows: list[Any], batch: Batch) -> None:
        """All rows of a batch."""
        raise NotImplementedError

    def stage(self, frame: DataFrame, batch: Batch) -> StagedBatch:
        """Collects the rows."""
        return StagedRows(self, rows_of(frame), batch)


class StagedRows(StagedBatch):
    """Collected rows that wait to be written."""

    def __init__(self, sink: RowSink, rows: list[Any], batch: Batch) -> None:
        self.sink, self.taken, self.batch = sink, rows, batch
        self.rows = len(rows)

    def commit(self) -> None:
        """Writes them."""
        self.sink.write(self.taken, self.batch)


def rows_of(frame: DataFrame) -> list[Any]:
    """The rows of a frame as Penstock's rows, by Arrow."""
    from penstock.kernels.records.arrow import to_columns  # it loads pyarrow

    table = arrow_of(frame)
    make = row_class(tuple(frame.columns))
    rows: Iterable[Any] = zip(*to_columns(table), strict=True) if table.num_rows else ()
    return [tuple.__new__(make, values) for values in rows]


def arrow_of(frame: DataFrame) -> pa.Table:
    """The rows of a frame as an Arrow table, with whatever is inside a field as nullable: Arrow takes no null struct with a part that is declared not null."""
    schema = frame.schema
    loose = _nullable(schema)
    return (frame if loose == schema else frame.to(loose)).toArrow()  # type: ignore[arg-type]  # a struct type makes one


def _nullable(kind: SparkType, *, is_inside: bool = False) -> SparkType:
    """A type whose parts may be null; what is declared of the fields themselves stays."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(kind, StructType):
        return StructType(
            [
                StructField(f.name, _nullable(f.dataType, is_inside=True), is_inside or f.nullable, f.metadata)
                for f in kind.fields
            ]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType, is_inside=True), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _nullable(kind.valueType, is_inside=True), kind.valueContainsNull)
    return kind
