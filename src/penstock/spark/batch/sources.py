"""Reads all sources of a flow as one: tagged, unioned, and parted again inside each batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from penstock.connectors.base import SourceConnector, SourceContext, Spot
from penstock.connectors.files.disk import address_of_path
from penstock.connectors.malformed import MALFORMED, NOTHING, SHOWN, UNREADABLE
from penstock.connectors.process.spout import SpoutSource
from penstock.connectors.registry import source_connector
from penstock.errors import Failure, PenstockError, StepError
from penstock.graph.endpoints.parsing import keeps_malformed, parses
from penstock.graph.graph import Graph
from penstock.graph.nodes import Endpoint, Node, Port, Source
from penstock.graph.types import quote
from penstock.kernels.records.reading import why_malformed
from penstock.kernels.topology.blocks import TupleRoute
from penstock.kernels.topology.pending import Settlement
from penstock.live.report import BatchReport, by_component
from penstock.spark.live.ticks import Ticks
from penstock.storage import make_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _cast(frame: DataFrame, context: SourceContext) -> DataFrame:
    """The fields of a source, each of the type the flow was checked with, and the description of records it could not read."""
    columns = [f.col(quote(x.name)).cast(str(x.type)).alias(x.name) for x in context.schema.fields]
    return frame.select(*columns, *([f.col(MALFORMED)] if context.keeps_malformed else []))


def _layout(node: Node) -> tuple[str, ...]:
    """The fields of a source, as the text of a struct type."""
    return tuple(f"{quote(f.name)}: {f.type}" for f in node.output().schema.fields)


@dataclass
class SourceFrames:
    """A batch, parted into its sources; `kept` is the whole of it, to be let go of afterwards."""

    frames: dict[Port, DataFrame]
    sources: Sources
    kept: DataFrame | None = None

    def several(self, ports: tuple[Port, ...]) -> DataFrame:
        """The records of some of the sources, which must have one schema, in one pass over the batch."""
        assert self.kept is not None
        names = [n.name for n in self.sources.nodes]
        indexes = [names.index(p.step) for p in ports]
        some = self.kept
        if len(indexes) < len(names) or self.sources.ticks is not None:
            some = some.where(f"__source in ({', '.join(map(str, indexes))})")
        return some.selectExpr(*self.sources.fields_of(indexes[0]))

    def union(self, ports: tuple[Port, ...]) -> DataFrame | None:
        """The union of streams, if all are sources of this batch and none appears twice; None otherwise."""
        nodes = {Port(n.name): n for n in self.sources.nodes}
        if self.kept is None or len(set(ports)) < len(ports) or not all(p in nodes for p in ports):
            return None
        if any(keeps_malformed(nodes[p]) for p in ports):
            return None
        return self.several(ports) if len({_layout(nodes[p]) for p in ports}) == 1 else None

    def release(self) -> None:
        """Lets go of what was kept."""
        if self.kept is not None:
            self.kept.unpersist()


@dataclass
class Sources:
    """The sources of a plan's graph, loops among them, in order."""

    graph: Graph
    folder: Path
    steps: frozenset[str]
    once: bool = False
    ticks: Ticks | None = None
    connectors: dict[str, SourceConnector] = field(default_factory=dict)
    is_active: bool = True
    """Whether spouts emit."""
    routes: dict[Port, tuple[TupleRoute, ...]] = field(default_factory=dict)
    """The spouts whose tuples a bounded run hands to bolts in blocks, with the way to each of these."""

    @property
    def nodes(self) -> list[Node]:
        """The sources that the plan reads."""
        return [n for n in (*self.graph.sources, *self.graph.loops) if n.name in self.steps]

    def stream(self, spark: SparkSession) -> DataFrame:
        """One streaming frame of all of them."""
        self.close()
        frames = [self._read(spark, n, live=True) for n in self.nodes]
        return self._tagged(frames, *([self.ticks.stream(spark)] if self.ticks is not None else []))

    def bounded(self, spark: SparkSession) -> dict[Port, DataFrame]:
        """A plain frame for each source; loops are empty at first."""
        return {Port(n.name): self._read(spark, n, live=False) for n in self.nodes}

    def _read(self, spark: SparkSession, node: Node, *, live: bool) -> DataFrame:
        context = self._context(node)
        if not isinstance(node, Source):
            make_directory(context.folder)
            if not live:
                return spark.createDataFrame([], str(context.schema))
        connector = source_connector(node.name, context.endpoint)
        self.connectors[node.name] = connector
        if isinstance(connector, SpoutSource):
            connector.is_active = self.is_active
            connector.routes = self.routes.get(Port(node.name))
            if connector.routes is not None and not live:
                return connector.bounded(spark, context)
        return _cast(connector.stream(spark, context) if live else connector.bounded(spark, context), context)

    def _context(self, node: Node) -> SourceContext:
        schema = node.output().schema
        if isinstance(node, Source):
            folder = self.folder / "sources" / node.name
            return SourceContext(
                node.name, node.endpoint, schema, folder, self.once, self.graph.name, keeps_malformed(node)
            )
        folder = self.folder / "loops" / node.name
        return SourceContext(
            node.name, Endpoint("files", {"path": address_of_path(folder), "format": "parquet"}, schema), schema, folder
        )

    def reread(self, spark: SparkSession, step: str, dead_letters: list[dict[str, Any]]) -> DataFrame:
        """Records that a source could not read, read once more."""
        node = next(n for n in self.nodes if n.name == step)
        context = self._context(node)
        return _cast(source_connector(step, context.endpoint).reread(spark, context, dead_letters), context)

    def _tagged(self, frames: list[DataFrame], *ticks: DataFrame) -> DataFrame:
        if len(frames) == 1 and not ticks:
            return frames[0]
        tagged = [*map(self._tag, range(len(frames)), frames), *map(self._tick, ticks)]
        return reduce(lambda one, other: one.unionByName(other), tagged)

    def _tick(self, frame: DataFrame) -> DataFrame:
        """The ticks among the sources: rows of no source, with nothing in them."""
        layouts = self._layouts()
        if len(layouts) == 1:
            fields = self.nodes[0].output().schema.fields
            nulls = [f"cast(null as {x.type}) as {quote(x.name)}" for x in fields]
            return frame.selectExpr(*nulls, "-1 as __source", *self._malformed())
        structs = [f"cast(null as struct<{', '.join(layout)}>) as __s{i}" for i, layout in enumerate(layouts)]
        return frame.selectExpr("-1 as __source", *structs, *self._malformed())

    def _malformed(self, node: Node | None = None) -> list[str]:
        """The description of records that could not be read, among the columns of the union, if any source keeps such records."""
        if node is not None and keeps_malformed(node):
            return [MALFORMED]
        return [NOTHING] if any(map(keeps_malformed, self.nodes)) else []

    def _layouts(self) -> list[tuple[str, ...]]:
        """The distinct schemas of the sources, each as the fields it has."""
        return list(dict.fromkeys(_layout(n) for n in self.nodes))

    def _tag(self, at: int, frame: DataFrame) -> DataFrame:
        """A source among several: its number, and its records in the columns of its schema.

        Sources of one schema share its columns; where schemas differ each has a struct, which is null for the others.
        """
        layouts, malformed = self._layouts(), self._malformed(self.nodes[at])
        names = [quote(n) for n in self.nodes[at].output().schema.names]
        if len(layouts) == 1:
            return frame.selectExpr(*names, f"{at} as __source", *malformed)
        columns = [f"{at} as __source"]
        for i, layout in enumerate(layouts):
            kind = f"struct<{', '.join(layout)}>"
            mine = f"struct({', '.join(names)})" if layout == _layout(self.nodes[at]) else "null"
            columns.append(f"cast({mine} as {kind}) as __s{i}")
        return frame.selectExpr(*columns, *malformed)

    def completed(self, batch: DataFrame, fed: Mapping[int, DataFrame]) -> DataFrame:
        """A batch with the records of sources that tasks read from the storage of the checkpoint, by index."""
        is_alone = len(self.nodes) == 1 and self.ticks is None
        for at, frame in fed.items():
            mine = _cast(frame, self._context(self.nodes[at]))
            batch = batch.unionByName(mine if is_alone else self._tag(at, mine))
        return batch

    def part(self, batch: DataFrame) -> SourceFrames:
        """The frame of each source inside a batch."""
        if len(self.nodes) == 1:
            mine = batch if self.ticks is None else batch.where("__source = 0").selectExpr(*self.fields_of(0))
            return SourceFrames({Port(self.nodes[0].name): mine}, self)
        kept = batch.persist()
        made = SourceFrames({}, self, kept)
        for node in self.nodes:
            made.frames[Port(node.name)] = made.several((Port(node.name),))
        return made

    def fields_of(self, index: int) -> list[str]:
        """How the fields of a source are reached in the union."""
        layouts, node = self._layouts(), self.nodes[index]
        malformed = [MALFORMED] if keeps_malformed(node) else []
        if len(layouts) == 1:
            return [*(quote(n) for n in node.output().schema.names), *malformed]
        return [f"__s{layouts.index(_layout(node))}.*", *malformed]

    def explained(
        self, spark: SparkSession, error: PenstockError, batch: int = -1, log: Path | None = None
    ) -> PenstockError:
        """The error with all that is known of the position of its record."""
        if not isinstance(error, StepError):
            return error
        node = next((n for n in self.nodes if n.name == error.failure.step), None)
        if not isinstance(node, Source) or not parses(node.endpoint):
            return self.trace(spark, error, batch, log)
        return self._step_error(node, error.failure)

    def _step_error(self, node: Source, failure: Failure) -> StepError:
        """The failure of a source, with the reason, where the record is, and what can be done."""
        form, schema = node.endpoint.options.get("format", "text"), node.output().schema
        raw, why = failure.record.encode(), failure.error
        if why == UNREADABLE:
            why = f"{UNREADABLE} as {form}"
            why += f": {why_malformed(form, raw, schema)}" if len(failure.record) < SHOWN else ""
        hint = f"To go on without such records: flow.source({node.name!r}, ..., on_error='dead_letter')"
        (position,) = source_connector(node.name, node.endpoint).positions([(raw, failure.position)])
        return StepError(replace(failure, error=why, position=position, line=node.line, traceback=hint))

    def trace(self, spark: SparkSession, error: StepError, batch: int = -1, log: Path | None = None) -> StepError:
        """The error with the position of its record, where the stage reads a source that can tell."""
        failure = error.failure
        node = next((n for n in self.nodes if n.name == failure.stream), None)
        position = f"batch {batch}, {failure.position}" if batch >= 0 else failure.position
        if node is not None and len(self.nodes) == 1:
            spot = Spot(failure.partition, failure.number, failure.origin, batch, log / "0" if log else None)
            try:
                found = self.connectors[node.name].locate(spark, self._context(node), spot)
            except Exception:  # an error message must not fail itself
                found = ""
            position = f"{found} ({position})" if found else position
        return StepError(replace(failure, position=position))

    def next_round(self, spark: SparkSession, given: Settlement) -> dict[str, DataFrame]:
        """What reliable spouts emit in the next round of a bounded run, by the name of the spout; only those that emit something."""
        found: dict[str, DataFrame] = {}
        for node in self.nodes:
            connector = self.connectors.get(node.name)
            if isinstance(node, Source) and isinstance(connector, SpoutSource) and connector.is_reliable:
                frame = connector.next_round(spark, self._context(node), given)
                if frame is not None:
                    found[node.name] = frame
        return found

    @property
    def spouts(self) -> list[SpoutSource]:
        """The spouts of the user's own classes."""
        return [c for c in self.connectors.values() if isinstance(c, SpoutSource)]

    def activate(self, on: bool) -> None:
        """Lets spouts go on, or pauses them; those that are made later too."""
        self.is_active = on
        for spout in self.spouts:
            spout.is_active = on

    def with_measurements(self, report: BatchReport) -> BatchReport:
        """The report of a batch with what the tasks of spouts have measured and reported."""
        metrics, errors = dict(report.metrics), dict(report.errors)
        for spout in self.spouts:
            measured, said = spout.reported()
            metrics |= by_component(measured)
            errors |= by_component(said)
        return replace(report, metrics=metrics, errors=errors)

    def reached(self, offsets: Sequence[Any]) -> None:
        """Tells each connector how far the batches that are through have come."""
        for node, offset in zip(self.nodes, offsets, strict=False):
            if node.name in self.connectors and offset is not None:
                self.connectors[node.name].reached(self._context(node), offset)

    def shed(self, progress: Sequence[Any]) -> dict[str, int]:
        """How many records each source has left out of a batch, from Spark's figures of it."""
        named = zip(self.nodes, progress, strict=False)
        found = {n.name: self.connectors[n.name].shed(s["startOffset"], s["endOffset"]) for n, s in named}
        return {name: many for name, many in found.items() if many}

    def failure(self) -> PenstockError | None:
        """What went wrong in a source that works beside the query, if anything did."""
        return next((c.failure for c in self.connectors.values() if c.failure is not None), None)

    def close(self) -> None:
        """Stops the connectors."""
        for connector in self.connectors.values():
            connector.close()
