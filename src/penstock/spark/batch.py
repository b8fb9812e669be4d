"""Runs one batch of a plan: source frames in, sinks written, state version published."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.accumulators import AccumulatorParam

from penstock.compiler.counts import complete
from penstock.compiler.plan import Plan
from penstock.connectors.base import Batch, Place, SinkConnector, Staged
from penstock.connectors.registry import sink_connector, source_connector
from penstock.graph.nodes import Endpoint, Node, Port, Sink
from penstock.graph.times import Times
from penstock.spark.lower.context import Lowering, Union
from penstock.spark.lower.lower import lower
from penstock.spark.lower.time import observed
from penstock.spark.pack import Packer
from penstock.spark.report import BatchReport
from penstock.spark.statestore import StateStore
from penstock.spark.timekeeper import Timekeeper
from penstock.spark.worker import add_counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class CountsParam(AccumulatorParam[Any]):
    """Adds up the rows in and out that tasks report."""

    def zero(self, value: Any) -> Any:
        """Nothing yet."""
        return (Counter(), Counter())

    def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802 - Spark's name
        """Two reports together."""
        return add_counts(value1, value2)


@dataclass
class BatchRunner:
    """What stays the same from batch to batch."""

    plan: Plan
    packer: Packer
    tasks: int
    live: bool
    folder: Path
    lineage: str
    keeper: Timekeeper
    store: StateStore | None = None
    loops: dict[str, SinkConnector] = field(default_factory=dict)
    _sinks: dict[str, SinkConnector] = field(default_factory=dict)
    _tables: dict[str, DataFrame] = field(default_factory=dict)
    _seconds: dict[str, float] = field(default_factory=dict)
    _counts: Any = None

    def run(
        self,
        spark: SparkSession,
        batch: int,
        base: int,
        frames: dict[Port, DataFrame],
        union: Union = lambda ports: None,
    ) -> BatchReport:
        """One batch, from the state of version `base` to that of version `batch`.

        `union` gives the union of some sources in one pass, where the host has a quicker way than to add them up.
        """
        self._seconds = {}
        counts = self._counter(spark)
        before = counts.value
        at = Lowering(spark, self.plan, self.packer, self.tasks, self.live, counts, self._table, union, frames=frames)
        staged: dict[str, Staged] = {}
        try:
            with self._timed("plan"):
                at.states = self._states(batch, base)
                at.times = self._times(batch, base)
                lower(at)
            with self._timed("compute"):
                self._stage(at, batch, staged)
            with self._timed("state"):
                bad = self._publish(batch, at)
            with self._timed("sinks"):
                for work in staged.values():
                    work.commit()
        except BaseException:
            _abort(staged)
            raise
        finally:
            at.release()
        return self._report(batch, _difference(counts.value, before), staged, bad)

    def _counter(self, spark: SparkSession) -> Any:
        """One accumulator for the whole run: Spark never forgets one."""
        if self._counts is None:
            self._counts = spark.sparkContext.accumulator((Counter(), Counter()), CountsParam())
        return self._counts

    def _states(self, batch: int, base: int) -> dict[str, Any]:
        if self.store is None:
            return {}
        kept = {
            store: n.parallelism or self.tasks
            for s in self.plan.stages
            if s.state
            for n in s.nodes
            for store in n.stores
        }
        return self.store.begin(batch, kept, base)

    def _times(self, batch: int, base: int) -> dict[str, Times]:
        if self.store is None:
            return self.keeper.begin({})
        return self.keeper.begin(self.store.time(base), self.store.time(batch, missing=True))

    def _publish(self, batch: int, at: Lowering) -> dict[str, int]:
        """Makes the new state real, with the times of the batch; gives the number of bad records by step."""
        found = {step: observed(observation) for step, observation in at.observed.items()}
        time = self.keeper.finish({step: highs for step, (highs, _) in found.items()})
        if self.store is not None:
            self.keeper.wakes = self.store.publish(batch, time)
        return {step: bad for step, (_, bad) in found.items() if bad}

    def _stage(self, at: Lowering, batch: int, staged: dict[str, Staged]) -> None:
        for sink in self.plan.graph.sinks:
            about = Batch(batch, sink.name, dict(sink.endpoint.options), self.lineage)
            staged[sink.name] = self._sink(sink).stage(at.input(sink), about)
        for loop in self.plan.graph.loops:
            if loop.fed_by is not None:
                about = Batch(
                    batch,
                    loop.name,
                    {"path": str(self.folder / "loops" / loop.name), "format": "parquet"},
                    self.lineage,
                )
                staged[loop.name] = self.loops[loop.name].stage(at.frames[loop.fed_by], about)

    def _sink(self, node: Sink) -> SinkConnector:
        if node.name not in self._sinks:
            self._sinks[node.name] = sink_connector(node.name, node.endpoint)
        return self._sinks[node.name]

    def _table(self, node: Node, endpoint: Endpoint) -> DataFrame:
        """A static table: read at its first use, and kept."""
        from pyspark.sql import SparkSession

        if node.name not in self._tables:
            spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
            assert endpoint.schema is not None
            place = Place(node.name, endpoint, endpoint.schema, self.folder / "tables" / node.name)
            self._tables[node.name] = source_connector(node.name, endpoint).bounded(spark, place).persist()
        return self._tables[node.name]

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[phase] = time.perf_counter() - begin

    def _report(self, batch: int, counts: Any, staged: dict[str, Staged], bad: dict[str, int]) -> BatchReport:
        taken, given = (dict(each) for each in counts)
        late = {s.removesuffix(".late"): taken.pop(s) for s in list(taken) if s.endswith(".late")}
        given |= {s: given.get(s, 0) for s in taken if not s.endswith(".parts")}
        taken |= {s: w.rows for s, w in staged.items() if w.rows is not None}
        steps = complete(self.plan.graph, taken, given)
        fed = {n.name: taken[n.name] for n in self.plan.graph.loops}
        return BatchReport(
            batch,
            {},
            steps,
            dict(self._seconds),
            finished=time.time(),
            taken=taken,
            given=given,
            fed=fed,
            late=late,
            bad=bad,
            watermarks=dict(self.keeper.marks.at),
        )

    def close(self) -> None:
        """Closes the sinks and lets go of the tables."""
        for sink in self._sinks.values():
            sink.close()
        for table in self._tables.values():
            table.unpersist()


def _difference(after: Any, before: Any) -> Any:
    return tuple(Counter(a) - Counter(b) for a, b in zip(after, before, strict=True))


def _abort(staged: dict[str, Staged]) -> None:
    for work in staged.values():
        try:
            work.abort()
        except Exception:
            continue
