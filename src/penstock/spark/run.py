"""Runs a flow on Spark: live, as one query, or bounded, once over what is there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.compiler.compile import check_runnable, compile_graph
from penstock.compiler.plan import Plan
from penstock.compiler.shapes import shape_of_state
from penstock.compiler.times import Timeline
from penstock.connectors.base import SinkConnector
from penstock.connectors.files import FilesSink
from penstock.errors import Impossible, PenstockError, StepError
from penstock.graph.graph import Graph
from penstock.graph.nodes import Node, Port, Source
from penstock.spark.batch import BatchRunner
from penstock.spark.checkpoint import Checkpoint
from penstock.spark.failures import as_run_error
from penstock.spark.live import LiveRun
from penstock.spark.pack import Packer
from penstock.spark.report import BatchReport, Observer
from penstock.spark.session import power_of_two
from penstock.spark.sources import Sources
from penstock.spark.statestore import StateStore
from penstock.spark.ticks import NAME, Ticks
from penstock.spark.timekeeper import Timekeeper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class RunOptions:
    """How to run a flow."""

    checkpoint: Path | None = None
    fresh: bool = False
    once: bool = False
    interval: float = 0.0
    duration: float | None = None
    parallelism: int | None = None
    by_value: tuple[str, ...] = ()
    observers: tuple[Observer, ...] = field(default=())
    drain: bool = False
    """At the end of the run all time has passed: open windows close and timers fire."""


def run_live(graph: Graph, spark: SparkSession, options: RunOptions | None = None) -> LiveRun:
    """Starts a flow as one streaming query and gives the handle of it."""
    options = options or RunOptions()
    check_runnable(graph)
    plan = compile_graph(graph, live=True)
    folder = options.checkpoint or Path(".penstock") / graph.name
    ticks = Ticks(folder.absolute() / "ticks") if Timeline(plan.graph).timed else None
    sources = Sources(plan.graph, folder.absolute(), _steps(plan), options.once, ticks)
    read = [[n.name, _kind(n)] for n in sources.nodes]
    checkpoint = Checkpoint(folder.absolute(), graph.name, [*read, *([[NAME, "ticks"]] if ticks else [])])
    lineage = checkpoint.open(fresh=options.fresh)
    runner = _runner(plan, spark, options, checkpoint.folder, lineage)
    return LiveRun(spark, sources, runner, checkpoint, options)


def _kind(node: Node) -> str:
    return node.endpoint.kind if isinstance(node, Source) else "loop"


def run_bounded(graph: Graph, spark: SparkSession, options: RunOptions | None = None) -> list[BatchReport]:
    """Runs a flow once over bounded data; gives the report of each round (one, unless the flow has a loop)."""
    options = options or RunOptions()
    check_runnable(graph)
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        return _Bounded(graph, spark, replace(options, checkpoint=Path(folder))).run()


class _Bounded:
    """A bounded run. A flow with a loop goes round until nothing is fed back."""

    def __init__(self, graph: Graph, spark: SparkSession, options: RunOptions) -> None:
        self.spark, self.options = spark, options
        self.plan = compile_graph(graph, live=False)
        self.folder = options.checkpoint or Path()
        self.runner = _runner(self.plan, spark, options, self.folder, "bounded", live=bool(graph.loops))
        self.runner.keeper.bounded = not graph.loops
        self.sources = Sources(self.plan.graph, self.folder, _steps(self.plan))

    def run(self) -> list[BatchReport]:
        """All rounds."""
        adaptive = "false" if self.plan.graph.loops else "true"
        self.spark.conf.set("spark.sql.adaptive.enabled", adaptive)
        try:
            return list(self._rounds())
        except Exception as error:
            raise self._traced(as_run_error(error)) from error
        finally:
            self.runner.close()
            self.sources.close()

    def _traced(self, error: PenstockError) -> PenstockError:
        return self.sources.trace(self.spark, error) if isinstance(error, StepError) else error

    def _rounds(self, most: int = 1000) -> Iterable[BatchReport]:
        frames = self.sources.bounded(self.spark)
        yield self._round(0, frames)
        ended = not Timeline(self.plan.graph).timed
        for number in range(1, most):
            if not self.plan.graph.loops:
                return
            frames = {p: self._next(p, frame, number) for p, frame in frames.items()}
            if not any(frames[Port(n.name)].head(1) for n in self.plan.graph.loops):
                if ended:
                    return
                ended = self.runner.keeper.ending = True
            yield self._round(number, frames)
        raise Impossible(f"flow {self.plan.graph.name!r}: its loop went round {most} times and did not come to rest")

    def _round(self, number: int, frames: dict[Port, Any]) -> BatchReport:
        report = self.runner.run(self.spark, number, number - 1, dict(frames))
        for observer in self.options.observers:
            observer(report)
        return report

    def _empty(self, frame: Any) -> Any:
        """No rows, in a form that Spark does not see through: the tasks of keyed steps must run and report."""
        return self.spark.createDataFrame(self.spark.sparkContext.emptyRDD(), frame.schema)

    def _next(self, port: Port, frame: Any, number: int) -> Any:
        """What a source gives in a later round: a loop what was fed back, any other nothing."""
        if port.step not in {n.name for n in self.plan.graph.loops}:
            return self._empty(frame)
        folder = self.folder / "loops" / port.step
        files = [str(p) for p in folder.glob(f"{port.step}-{number - 1:08d}-*")]
        return self.spark.read.schema(frame.schema).parquet(*files) if files else self._empty(frame)


def _steps(plan: Plan) -> frozenset[str]:
    return frozenset(name for stage in plan.stages for name in stage.steps)


def _runner(
    plan: Plan, spark: SparkSession, options: RunOptions, folder: Path, lineage: str, *, live: bool = True
) -> BatchRunner:
    tasks = options.parallelism or int(spark.conf.get("spark.sql.shuffle.partitions") or 2)
    shapes = {n.name: shape_of_state(n, plan.graph) for s in plan.stages if s.state for n in s.nodes if n.keyed}
    run = f"{lineage}-{time.time_ns():x}"
    store = StateStore(folder / "state", run=run, shapes=shapes) if live and plan.stateful else None
    loops: dict[str, SinkConnector] = {n.name: FilesSink() for n in plan.graph.loops}
    keeper = Timekeeper(Timeline(plan.graph))
    return BatchRunner(plan, Packer(options.by_value), power_of_two(tasks), live, folder, lineage, keeper, store, loops)
