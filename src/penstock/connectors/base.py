"""The seam to the outside: one small base class for sources, one for sinks.

A connector of your own is a subclass, handed to a flow with `ps.connector(...)`:

    class Numbers(SourceConnector):
        def bounded(self, spark, context): return spark.range(10)

The contract of a source: `stream` and `bounded` give a DataFrame with exactly the schema of the step. The contract of
a sink: `stage` does all that can fail and shows nothing; `commit` shows it, quickly. A batch that runs again stages and
commits again with the same id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.connectors.rows import Refusal, refusals_of, rows_of
from penstock.errors import Impossible, PenstockError
from penstock.graph.capabilities import AT_LEAST_ONCE, SINK, SOURCE, Capabilities
from penstock.graph.nodes import Endpoint
from penstock.graph.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    "refusals_of",
    "rows_of",
]


@dataclass(frozen=True)
class SourceContext:
    """What a source may know of its step and of the run.

    Attributes:
        step: the name of the step.
        endpoint: what is read.
        schema: the fields of the records.
        folder: a directory to keep things in across restarts.
        once: whether the run ends when the source has read what is there.
        flow: the name of the flow.
        keeps_malformed: whether a record that cannot be read does not stop the source: it comes along with its description in the
            column `__malformed` (`penstock.connectors.malformed`).

    >>> import penstock as ps
    >>> from penstock.graph.schema import schema_of
    >>> from penstock.connectors.base import SourceConnector, SourceContext
    >>> from pathlib import Path
    >>> SourceContext("words", ps.connector(SourceConnector(), "word string", station=7), schema_of("word string"), Path("kept")).options
    {'station': 7}
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
    """The base of sources: reads something.

    Attributes:
        capabilities: what the source can do.
        failure: what stopped a source that works beside the query; None while it works.

    >>> from penstock.connectors.base import SourceConnector
    >>> class Evens(SourceConnector):
    ...     def bounded(self, spark, context):
    ...         return spark.range(0, context.options["limit"], 2).withColumnRenamed("id", "n")
    >>> import penstock as ps
    >>> ps.Flow("demo").source("evens", ps.connector(Evens(), schema="n bigint", limit=10))
    Stream('evens': n bigint)
    """

    capabilities: ClassVar[Capabilities] = SOURCE
    failure: PenstockError | None = None

    def stream(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """Reads live.

        Args:
            spark: the session of the run.
            context: the step, and what it reads.

        Returns:
            A streaming DataFrame with exactly the schema of the step.

        Raises:
            Impossible: it can be read by bounded runs only.
        """
        raise Impossible(
            f"source {context.step!r}: {context.endpoint.kind!r} cannot be read as a live stream; use --batch"
        )

    def bounded(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """Reads what is there now.

        Args:
            spark: the session of the run.
            context: the step, and what it reads.

        Returns:
            A plain DataFrame with exactly the schema of the step.

        Raises:
            Impossible: it has no end, so it can be read live only.
        """
        raise Impossible(
            f"source {context.step!r}: {context.endpoint.kind!r} has no end, so a bounded run would not finish; "
            f"give it a limit, or run it live"
        )

    def reached(self, context: SourceContext, offset: Any) -> None:
        """Called when all batches up to an offset are committed: what was kept for them is needed no more.

        Args:
            context: the step, and what it reads.
            offset: the offset, as the source's own text of it.
        """

    def shed(self, start: Any, end: Any) -> int:
        """How many records a batch has left out, because its user said so.

        Args:
            start: the offset at which the batch begins.
            end: the offset at which it ends.

        Returns:
            The number of records that nobody will read.
        """
        return 0

    def locate(self, spark: SparkSession, context: SourceContext, spot: Spot) -> str:
        """Where a record stands outside, for an error message.

        Args:
            spark: the session of the run.
            context: the step, and what it reads.
            spot: where the record stands inside the run.

        Returns:
            Its position, such as a file and a line; empty when the source cannot say.
        """
        return ""

    def positions(self, malformed: Sequence[tuple[bytes, str]]) -> list[str]:
        """Where records stand outside that could not be read.

        Args:
            malformed: each record, and what was known of its position when it was read.

        Returns:
            Their positions, in the same order.
        """
        return [position for _, position in malformed]

    def reread(self, spark: SparkSession, context: SourceContext, dead_letters: list[dict[str, Any]]) -> DataFrame:
        """Reads records once more that could not be read, and were put aside.

        Args:
            spark: the session of the run.
            context: the step, and what it reads.
            dead_letters: the records, as the dead-letter queue has them.

        Returns:
            A plain DataFrame with the schema of the step.

        Raises:
            Impossible: the source cannot do that.
        """
        raise Impossible(f"source {context.step!r}: {context.endpoint.kind!r} cannot read records from dead letters")

    def close(self) -> None:
        """Called when the run ends."""


@dataclass(frozen=True)
class Spot:
    """A record inside a run.

    Attributes:
        partition: the partition that it is in.
        number: its number there.
        record: how it reads.
        batch: the id of the batch; -1 in a bounded run.
        checkpoint: the directory of the checkpoint; None in a bounded run.

    >>> from penstock.connectors.base import Spot
    >>> Spot(0, 12, "{'n': 3}").batch
    -1
    """

    partition: int
    number: int
    record: str
    batch: int = -1
    checkpoint: Path | None = None


@dataclass(frozen=True)
class Batch:
    """What a sink may know of the batch at hand.

    Attributes:
        id: its number, which grows by one and stays the same when a batch runs again.
        sink: the name of the sink.
        options: those of the endpoint.
        lineage: the life that the id belongs to: a live flow has one until it starts over, bounded runs share one.
        delivery: the delivery guarantee.
        fingerprint: that of the offsets that the batch is made of.
        offsets: their text.

    >>> from penstock.connectors.base import Batch
    >>> Batch(3, "out").delivery
    'at_least_once'
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
    """What a sink may know before the first batch.

    Attributes:
        sink: the name of the sink.
        flow: the name of the flow.
        options: those of the endpoint.
        schema: the fields of the records.
        lineage: the life that ids of batches belong to.
        delivery: the delivery guarantee that is asked for.
        updates: the key fields, where its records replace earlier ones of the same key; else None.

    >>> from penstock.graph.schema import schema_of
    >>> from penstock.connectors.base import SinkContext
    >>> SinkContext("out", "demo", {"topic": "words"}, schema_of("word string"), "bounded").options["topic"]
    'words'
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
    """Work that is done but not shown yet: what `SinkConnector.stage` returns.

    Attributes:
        rows: how many rows it has, where that is known.
        through: whether a rehearsal, or `stage_rows`, found the batch in the sink already.
        refused: the text of the dead letters of rows that the sink refuses: what `commit` puts into the ledger, and of a batch that is through
            what it found there. A driver that takes over may not see what the one before has noted elsewhere.

    >>> from penstock.connectors.base import StagedBatch
    >>> class Renamed(StagedBatch):
    ...     def __init__(self, staged, shown):
    ...         self.staged, self.shown = staged, shown
    ...     def commit(self):
    ...         self.staged.rename(self.shown)
    ...     def abort(self):
    ...         self.staged.unlink(missing_ok=True)
    """

    rows: int | None = None
    through: bool = False
    refused: str = ""

    def rehearse(self) -> str:
        """Does what `commit` does and takes it back.

        Returns:
            What the sink says against the rows; empty when it takes them.
        """
        return ""

    def commit(self) -> None:
        """Shows it."""

    def abort(self) -> None:
        """Takes it back."""


class SinkConnector:
    """The base of sinks: writes something. `RowSink` is simpler, for sinks that take rows in the driver.

    Attributes:
        capabilities: which delivery guarantees it holds, the strongest first, and whether it reports rows that it refuses.

    >>> from penstock.connectors.base import SinkConnector, StagedBatch
    >>> class Counted(SinkConnector):
    ...     def stage(self, frame, batch):
    ...         staged = StagedBatch()
    ...         staged.rows = frame.count()
    ...         return staged
    """

    capabilities: ClassVar[Capabilities] = SINK

    def refuses(self, context: SinkContext) -> str:
        """Why this sink, with these options, cannot hold the delivery guarantee that is asked for.

        Args:
            context: the options, and the guarantee.

        Returns:
            The reason, with what to do; empty when it can hold it.
        """
        return ""

    def open(self, context: SinkContext) -> Entry | None:
        """Called once before the first batch.

        Args:
            context: what the sink may know.

        Returns:
            The last entry of this lineage, of a sink with a ledger; else None.
        """
        return None

    def stage(self, frame: DataFrame, batch: Batch) -> StagedBatch:
        """Does all that can fail, and shows nothing yet.

        Args:
            frame: the rows of the batch.
            batch: which batch it is.

        Returns:
            What `commit` shows, and `abort` takes back.

        Raises:
            NotImplementedError: a subclass writes it.
        """
        raise NotImplementedError

    def stage_rows(self, frame: DataFrame, batch: Batch) -> tuple[StagedBatch, list[Refusal]]:
        """Called instead of `stage` where the user has said `on_error`: reports the rows that are refused.

        With `row_errors="reported"` it delivers at once, at least once; with "staged" it shows nothing before `commit`, and says `through` of a batch
        that the sink holds already.

        Args:
            frame: the rows of the batch.
            batch: which batch it is.

        Returns:
            What is staged, and the rows that the sink refuses.

        Raises:
            NotImplementedError: a subclass writes it whose `capabilities` say that it reports row errors.
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
    """The base of sinks that take rows in the driver: `write` is called once for each batch.

    >>> from penstock.connectors.base import RowSink
    >>> class Printed(RowSink):
    ...     def write(self, rows, batch):
    ...         print(batch.id, rows)
    >>> import penstock as ps
    >>> numbers = ps.Flow("demo").source("numbers", ps.items([1, 2], "n int"))
    >>> numbers.sink("out", ps.connector(Printed()))
    """

    def write(self, rows: list[Any], batch: Batch) -> None:
        """Writes all rows of a batch.

        Args:
            rows: the rows.
            batch: which batch it is; the same when it runs again.

        Raises:
            NotImplementedError: a subclass writes it.
        """
        raise NotImplementedError

    def stage(self, frame: DataFrame, batch: Batch) -> StagedBatch:
        """Collects the rows.

        Args:
            frame: the rows of the batch.
            batch: which batch it is.

        Returns:
            The rows, which `commit` writes.
        """
        return StagedRows(self, rows_of(frame), batch)


class StagedRows(StagedBatch):
    """Collected rows that wait to be written: what `RowSink.stage` returns.

    Attributes:
        sink: the sink that writes them.
        taken: the rows.
        batch: which batch it is.

    >>> from penstock.connectors.base import RowSink
    >>> class Printed(RowSink):
    ...     def write(self, rows, batch):
    ...         print(batch.id, rows)
    >>> from penstock.connectors.base import Batch, StagedRows
    >>> StagedRows(Printed(), [("a",)], Batch(3, "out")).commit()
    3 [('a',)]
    """

    def __init__(self, sink: RowSink, rows: list[Any], batch: Batch) -> None:
        self.sink, self.taken, self.batch = sink, rows, batch
        self.rows = len(rows)

    def commit(self) -> None:
        """Writes them."""
        self.sink.write(self.taken, self.batch)
