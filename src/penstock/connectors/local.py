"""Endpoints that are read and written without a JVM: the seam for the local runtime.

A connector adds two functions in its own `local.py`, and names them in its `Connector`. A bounded local run has no replays, so it keeps no ledger:
what a sink has got is written once, at the end, as a whole where the endpoint can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from penstock.connectors.base import Batch, RowSink, SinkContext
from penstock.connectors.preflight import Preflight
from penstock.connectors.registry import connector_of, kinds_with
from penstock.errors import Impossible, nearest
from penstock.graph.nodes import Endpoint
from penstock.graph.row import Row
from penstock.graph.schema import Schema
from penstock.kernels.records.chunk import Chunk

if TYPE_CHECKING:
    import pyarrow as pa

Record: TypeAlias = object
"""A record of a user may be anything that fits the schema."""
Options = dict[str, Any]


def _known(options: Endpoint) -> Options:
    return {name: value for name, value in options.options.items() if value is not None}


@dataclass(frozen=True)
class LocalSource:
    """What a reader may know: the name of the step, its endpoint, the schema of its records, and whether malformed ones are kept."""

    step: str
    endpoint: Endpoint
    schema: Schema
    keeps_malformed: bool = False

    @property
    def options(self) -> Options:
        """The options of the endpoint that are set."""
        return _known(self.endpoint)

    def preflight(self) -> Preflight:
        """The same for the check of a connector, which a reader of a server makes before it reads."""
        return Preflight(self.step, self.endpoint.options)


@dataclass(frozen=True)
class LocalSink:
    """What a writer may know: flow, step, endpoint and schema; `updates` names the key of running totals."""

    flow: str
    step: str
    endpoint: Endpoint
    schema: Schema
    updates: tuple[str, ...] | None = None

    @property
    def options(self) -> Options:
        """The options of the endpoint that are set."""
        return _known(self.endpoint)

    def context(self) -> SinkContext:
        """The same for a connector: of a bounded run, which has no lineage of its own."""
        return SinkContext(self.step, self.flow, self.options, self.schema, "bounded", updates=self.updates)

    def batch(self) -> Batch:
        """The one batch of a bounded run."""
        return Batch(0, self.step, self.options)

    def arrow(self, rows: Sequence[Row]) -> pa.RecordBatch:
        """Rows as an Arrow batch."""
        return cast("pa.RecordBatch", Chunk.of(self.schema, list(rows)).batch())


Reader = Callable[[LocalSource], Iterable[Record]]
Writer = Callable[[LocalSink, Sequence[Row]], None]


def read_locally(source: LocalSource) -> Iterable[Record]:
    """The records that an endpoint holds now.

    Raises Impossible for an endpoint that has no end, or that only Spark can read.
    """
    found = connector_of(source.endpoint, "local_reader")
    if found is None or not source.endpoint.bounded:
        raise Impossible(
            f"source {source.step!r}: a {source.endpoint.kind} source cannot be read here: it has no end, or needs Spark. "
            f"Give its records as a list, or give it a limit"
        )
    return cast("Reader", found.part("local_reader"))(source)


def write_locally(sink: LocalSink, rows: Sequence[Row]) -> None:
    """Writes all rows of a bounded run to an endpoint.

    Raises Impossible for an endpoint that only Spark can write.
    """
    kind, own = sink.endpoint.kind, sink.endpoint.connector
    if isinstance(own, RowSink):
        own.open(sink.context())
        own.write(list(rows), sink.batch())
        own.close()
        return
    found = connector_of(sink.endpoint, "local_writer")
    if own is not None:
        raise Impossible(
            f"sink {sink.step!r}: {type(own).__name__} cannot be written without Spark; a connector that takes rows can: a RowSink"
        )
    if found is None:
        known = nearest(kind, kinds_with("local_writer"))
        raise Impossible(f"sink {sink.step!r}: a {kind} cannot be written without Spark; {known}")
    cast("Writer", found.part("local_writer"))(sink, rows)
