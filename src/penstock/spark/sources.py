"""Reads all sources of a flow as one: tagged, unioned, and parted again inside each batch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.connectors.base import Place, SourceConnector, Spot
from penstock.connectors.registry import source_connector
from penstock.errors import PenstockError, StepError
from penstock.graph.graph import Graph
from penstock.graph.nodes import Endpoint, Node, Port, Source
from penstock.graph.types import Struct, quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass
class Sources:
    """The sources of a plan's graph, loops among them, in order."""

    graph: Graph
    folder: Path
    steps: frozenset[str]
    connectors: dict[str, SourceConnector] = field(default_factory=dict)

    @property
    def nodes(self) -> list[Node]:
        """The sources that the plan reads."""
        return [n for n in (*self.graph.sources, *self.graph.loops) if n.name in self.steps]

    def stream(self, spark: SparkSession) -> DataFrame:
        """One streaming frame of all of them."""
        return self._tagged([self._read(spark, n, live=True) for n in self.nodes])

    def bounded(self, spark: SparkSession) -> dict[Port, DataFrame]:
        """A plain frame for each source; loops are empty at first."""
        return {Port(n.name): self._read(spark, n, live=False) for n in self.nodes}

    def _read(self, spark: SparkSession, node: Node, *, live: bool) -> DataFrame:
        place = self._place(node)
        if not isinstance(node, Source):
            place.folder.mkdir(parents=True, exist_ok=True)
            if not live:
                return spark.createDataFrame([], str(place.schema))
        connector = source_connector(node.name, place.endpoint)
        self.connectors[node.name] = connector
        frame = connector.stream(spark, place) if live else connector.bounded(spark, place)
        return frame.select(*(f.col(quote(x.name)).cast(str(x.type)).alias(x.name) for x in place.schema.fields))

    def _place(self, node: Node) -> Place:
        schema = node.output().schema
        if isinstance(node, Source):
            return Place(node.name, node.endpoint, schema, self.folder / "sources" / node.name)
        folder = self.folder / "loops" / node.name
        return Place(node.name, Endpoint("files", {"path": str(folder), "format": "parquet"}, schema), schema, folder)

    def _tagged(self, frames: list[DataFrame]) -> DataFrame:
        if len(frames) == 1:
            return frames[0]
        return reduce(lambda one, other: one.unionByName(other), map(self._tag, range(len(frames)), frames))

    def _tag(self, at: int, frame: DataFrame) -> DataFrame:
        columns: list[Column] = [f.lit(at).alias("__source")]
        for i, node in enumerate(self.nodes):
            kind = str(Struct(node.output().schema.fields))
            made = f.struct(*(f.col(quote(c)) for c in frame.columns)) if i == at else f.lit(None)
            columns.append(made.cast(kind).alias(f"__s{i}"))
        return frame.select(*columns)

    def part(self, batch: DataFrame) -> tuple[dict[Port, DataFrame], DataFrame | None]:
        """The frame of each source inside a batch, and what must be let go of afterwards."""
        if len(self.nodes) == 1:
            return {Port(self.nodes[0].name): batch}, None
        kept = batch.persist()
        parted = {Port(n.name): kept.where(f"__source = {i}").selectExpr(f"__s{i}.*") for i, n in enumerate(self.nodes)}
        return parted, kept

    def trace(self, spark: SparkSession, error: StepError, batch: int = -1, log: Path | None = None) -> StepError:
        """The error with the place its record came from, where the stage reads a source that can tell."""
        failure = error.failure
        node = next((n for n in self.nodes if n.name == failure.stream), None)
        position = f"batch {batch}, {failure.position}" if batch >= 0 else failure.position
        if node is not None and len(self.nodes) == 1:
            spot = Spot(failure.partition, failure.number, failure.origin, batch, log / "0" if log else None)
            try:
                found = self.connectors[node.name].locate(spark, self._place(node), spot)
            except Exception:  # an error message is no place to fail
                found = ""
            position = f"{found} ({position})" if found else position
        return StepError(replace(failure, position=position))

    def failure(self) -> PenstockError | None:
        """What went wrong in a source that works beside the query, if anything did."""
        return next((c.failure for c in self.connectors.values() if c.failure is not None), None)

    def close(self) -> None:
        """Stops the connectors."""
        for connector in self.connectors.values():
            connector.close()
