"""Runs a flow on Spark: live, as one query, or bounded, once over what is there."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.compiler.compile import check_runnable, compile_graph
from penstock.compiler.placement import placed
from penstock.compiler.plan import Plan
from penstock.compiler.times import Timeline
from penstock.connectors.base import SinkConnector
from penstock.connectors.files.sink import FilesSink
from penstock.connectors.kafka.jars import endpoints_of, jars_of
from penstock.connectors.process.fed import fed_frame
from penstock.errors import Impossible, PenstockError
from penstock.faults import passing
from penstock.graph.graph import Graph
from penstock.graph.ids import owner_of
from penstock.graph.nodes import Endpoint, Keyed, Port, Sink
from penstock.graph.run import RunSpec
from penstock.graph.state.key_groups import SLOTS
from penstock.kernels.topology.pending import Settlement
from penstock.kernels.topology.spout import reliable_spouts
from penstock.live.ack_log import ACKS, AckLog
from penstock.live.answering import SinkWatch
from penstock.live.dead_letters.store import DEAD_LETTERS, DeadLetterStore
from penstock.live.hold import Hold
from penstock.live.report import BatchReport, Observer
from penstock.live.timekeeper import RunTime
from penstock.live.until import StopTest
from penstock.location import Location
from penstock.spark.batch import bootstrap
from penstock.spark.batch.batch import BOUNDED, BatchRunner, RunFolders
from penstock.spark.batch.loops import LoopSink
from penstock.spark.batch.result import BatchInput
from penstock.spark.batch.settings import batch_settings, set_for
from penstock.spark.batch.sinks import Sinks, reconcile
from penstock.spark.batch.sources import Sources
from penstock.spark.checkpoint.changes import flow_layout_of, key_groups_of, note_of
from penstock.spark.checkpoint.directory import Checkpoint, removed_if_failed
from penstock.spark.checkpoint.mirror import shared_while_used
from penstock.spark.checkpoint.restart import Restart
from penstock.spark.checkpoint.savepoint import find
from penstock.spark.failures import as_run_error
from penstock.spark.jvm.jars import use_jars
from penstock.spark.jvm.plain_json import offer_plain_json
from penstock.spark.jvm.reach import check_reach, runs_here
from penstock.spark.live.live import LiveRun
from penstock.spark.live.status import tasks_of
from penstock.spark.live.ticks import Ticks, has_ticks
from penstock.spark.lower.placing import check_cores
from penstock.spark.lower.topology import spout_routes
from penstock.spark.tasks.pack import Packer
from penstock.state.store import FORGET_EVERY, StateStore, state_storage
from penstock.storage import names_under, open_storage
from penstock.temporary import temporary_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCHES = 100
"""So many batches Spark keeps the offsets of, from each of which a flow without state may go on."""


def run_live(
    graph: Graph,
    spark: SparkSession,
    spec: RunSpec | None = None,
    *,
    observers: tuple[Observer, ...] = (),
    until: StopTest | None = None,
    hold: Hold | None = None,
) -> LiveRun:
    """Starts a flow as one streaming query and returns the handle of it.

    `observers` get the report of each batch; `until` gets it too and says whether the run ends. `hold` is the right to the checkpoint, where it was taken before.
    """
    spec = spec or RunSpec()
    check_runnable(graph)
    plan = placed(compile_graph(graph, live=True), spec.place)
    check_cores(spark, plan)
    folder = spec.checkpoint_of(graph.name)
    savepoint = find(spec.savepoint, folder, graph.name) if spec.savepoint else None
    layout = flow_layout_of(plan, spec.key_groups)
    restart = Restart(folder, layout, savepoint, spec.drop_state, spec.rename_state)
    checkpoint = Checkpoint(restart, hold, spec.lease, is_apart=not runs_here(spark))
    ticks = Ticks(checkpoint.work / "ticks") if has_ticks(plan.graph) else None
    sources = Sources(plan.graph, checkpoint.work, _steps(plan), spec.is_once, ticks)
    with removed_if_failed(folder):
        lineage = checkpoint.open(fresh=spec.fresh)
        try:
            if isinstance(folder, Path):
                check_reach(spark, folder, "the checkpoint")
            at = RunFolders(
                folder, checkpoint.work, checkpoint.epoch, checkpoint.is_apart and folder != checkpoint.work
            )
            if bootstrap.wanted(graph, folder):
                bootstrap.fill(graph, spark, checkpoint.work, lambda p: _runner(p, spark, spec, at, BOUNDED))
            runner = _runner(plan, spark, spec, at, lineage)
            _reconcile(runner, checkpoint)
            checkpoint.build()
            runner.sinks.offsets = checkpoint.log
            runner.time.resume(checkpoint.log.last())
            if runner.acks is not None:
                runner.acks.load(checkpoint.log.last())
            return LiveRun(spark, sources, runner, checkpoint, spec, observers, until)
        except BaseException:
            checkpoint.close()
            raise


def _reconcile(runner: BatchRunner, checkpoint: Checkpoint) -> None:
    """Fences older drivers off the sinks, and brings the checkpoint in line with their ledgers."""
    passing("reconcile", 0)
    log = checkpoint.kept_log
    versions = runner.store.versions() if runner.store is not None else []
    for done in reconcile(runner.sinks.open(), log, versions):
        logging.getLogger("penstock").warning(done)
    passing("reconciled", 0)


def run_bounded(
    graph: Graph, spark: SparkSession, spec: RunSpec | None = None, *, observers: tuple[Observer, ...] = ()
) -> list[BatchReport]:
    """Runs a flow once over bounded data; returns the report of each round (one, unless the flow has a loop)."""
    spec = spec or RunSpec()
    check_runnable(graph)
    if graph.bootstraps:
        raise Impossible(
            f"flow {graph.name!r}: a bounded run begins with nothing kept, so the bootstrap of {graph.bootstraps[0].step!r} cannot be "
            f"used in it; let the step read the union of those records and the others, or run live"
        )
    with _bounded_folders(graph, spark, spec) as at:
        try:
            return _BoundedRun(graph, spark, spec, at, observers).run()
        finally:
            if spec.dead_letters is not None:
                DeadLetterStore(at.kept / DEAD_LETTERS).hand_over(spec.dead_letters)


@contextmanager
def _bounded_folders(graph: Graph, spark: SparkSession, spec: RunSpec) -> Iterator[RunFolders]:
    """Where a bounded run keeps what it needs until its end: a directory of this machine, and under a URL what tasks elsewhere must see."""
    with temporary_directory("bounded") as work:
        checkpoint = spec.checkpoint_of(graph.name)
        if isinstance(checkpoint, Location) and not runs_here(spark):
            with shared_while_used(work, checkpoint / "bounded" / uuid.uuid4().hex) as kept:
                yield RunFolders(kept, work, is_apart=True)
            return
        if graph.loops:
            check_reach(spark, work, "what a bounded run with a loop needs")
        yield RunFolders(work, work)


class _BoundedRun:
    """A bounded run. A flow with a loop goes round until nothing is fed back."""

    def __init__(
        self, graph: Graph, spark: SparkSession, spec: RunSpec, at: RunFolders, observers: tuple[Observer, ...]
    ) -> None:
        self.spark, self.folder, self.observers = spark, at.work, observers
        self.plan = placed(compile_graph(graph, live=False), spec.place)
        check_cores(spark, self.plan)
        self.goes_round = bool(graph.loops) or bool(reliable_spouts(graph))
        self.runner = _runner(self.plan, spark, spec, at, BOUNDED, live=self.goes_round)
        self.runner.time.is_bounded = not self.goes_round
        routes = spout_routes(self.plan) if runs_here(spark) else {}
        self.sources = Sources(self.plan.graph, self.folder, _steps(self.plan), routes=routes)

    def run(self) -> list[BatchReport]:
        """All rounds."""
        self.runner.sinks.open()
        settings = batch_settings(self.plan, self.runner.tasks, is_adaptive=not self.goes_round)
        try:
            with set_for(self.spark, settings):
                return list(self._rounds())
        except Exception as error:
            raise self.sources.failure() or self._traced(as_run_error(error)) from error
        finally:
            self.runner.close()
            self.sources.close()

    def _traced(self, error: PenstockError) -> PenstockError:
        return self.sources.explained(self.spark, error)

    def _rounds(self, most: int = 1000) -> Iterable[BatchReport]:
        frames = self.sources.bounded(self.spark)
        yield self._round(0, frames)
        ended = not Timeline(self.plan.graph).timed
        for number in range(1, most):
            if not self.goes_round:
                return
            again, fed = self._emitted_again(), self._fed_back(frames, number)
            is_over = not again and not any(frame.head(1) for frame in fed.values())
            if is_over and ended:
                return
            ended = ended or is_over
            rest = {p: self._empty(frame) for p, frame in frames.items() if p not in fed and p not in again}
            frames = {**rest, **fed, **again}
            yield self._round(number, frames, ended=is_over)
        raise Impossible(
            f"flow {self.plan.graph.name!r}: its loop or its spouts went round {most} times and did not come to rest"
        )

    def _emitted_again(self) -> dict[Port, DataFrame]:
        """What reliable spouts emit once they know what became of their messages."""
        acks = self.runner.acks
        if acks is None:
            return {}
        given = Settlement((), frozenset(acks.ledger.open), tuple(acks.ledger.failed), acks.renewed)
        made = {Port(name): frame for name, frame in self.sources.next_round(self.spark, given).items()}
        acks.forget(set(acks.ledger.failed))
        return made

    def _round(self, number: int, frames: dict[Port, Any], *, ended: bool = False) -> BatchReport:
        times = self.runner.time.begin(number, number - 1, ended=ended)
        result = self.runner.run(self.spark, BatchInput(number, number - 1, frames, times))
        report = self.sources.with_measurements(result.report)
        for observer in self.observers:
            observer(report)
        return report

    def _empty(self, frame: DataFrame) -> DataFrame:
        """No rows, in a form that Spark does not see through: the tasks of keyed steps must run and report."""
        return self.spark.createDataFrame(self.spark.sparkContext.emptyRDD(), frame.schema)

    def _fed_back(self, frames: Mapping[Port, DataFrame], number: int) -> dict[Port, DataFrame]:
        """What the round before has fed back, for each loop."""
        ports = [Port(n.name) for n in self.plan.graph.loops]
        return {port: self._looped(port, frames[port], number) for port in ports}

    def _looped(self, port: Port, frame: DataFrame, number: int) -> DataFrame:
        folder = self.folder / "loops" / port.step
        names = names_under(open_storage(folder), f"{port.step}-{number - 1:08d}-")
        schema = self.plan.graph.output(port).schema
        return fed_frame(self.spark, folder, names, schema) if names else self._empty(frame)


def _steps(plan: Plan) -> frozenset[str]:
    return frozenset(name for stage in plan.stages for name in stage.steps)


def _runner(
    plan: Plan, spark: SparkSession, spec: RunSpec, at: RunFolders, lineage: str, *, live: bool = True
) -> BatchRunner:
    use_jars(spark, jars_of(endpoints_of(plan.graph)))
    if _reads_json(plan.graph):
        offer_plain_json(spark)
    note = note_of(at.kept)
    groups = SLOTS if note is None else key_groups_of(note)
    tasks = spec.parallelism or min(int(spark.conf.get("spark.sql.shuffle.partitions") or 2), groups)
    _check_tasks(plan, tasks, groups)
    run, schemas = f"{lineage}-{time.time_ns():x}", flow_layout_of(plan).schemas
    store = None
    if live and plan.stateful:
        store = StateStore(state_storage(at.kept), spec.keep_versions, run, schemas, groups, epoch=at.epoch)
    loops: dict[str, SinkConnector] = {n.name: LoopSink() if at.is_apart else FilesSink() for n in plan.graph.loops}
    time_ = RunTime(Timeline(plan.graph), store)
    watch = SinkWatch(spec.stalled_after, spec.kill_stalled_after, lambda: tasks_of(spark)[1] > 0)
    sinks = Sinks(plan.graph, lineage, at.kept / "claims" if lineage != BOUNDED else None, watch=watch)
    packer = Packer(spec.by_value)
    keep = _BATCHES if store is None else store.keep + FORGET_EVERY
    acks = AckLog(open_storage(at.kept / ACKS), keep, at.epoch) if reliable_spouts(plan.graph) else None
    return BatchRunner(plan, packer, tasks, live, at, lineage, time_, sinks, store, loops, groups, acks)


def _reads_json(graph: Graph) -> bool:
    """Whether a source, or a table of a join, has its records as JSON."""
    readers = (node for node in graph.nodes if not isinstance(node, Sink))
    read = (getattr(node, name, None) for node in readers for name in ("endpoint", "table"))
    return any(isinstance(each, Endpoint) and each.options.get("format") == "json" for each in read)


def _check_tasks(plan: Plan, tasks: int, groups: int) -> None:
    """Each task of a keyed step owns at least one key group."""
    for node in (n for stage in plan.stages if stage.state for n in stage.nodes if isinstance(n, Keyed)):
        if (node.parallelism or tasks) > groups:
            raise Impossible(
                f"step {owner_of(node.name)!r}: expected at most {groups:,} tasks, as the flow has {groups:,} key groups, got "
                f"{node.parallelism or tasks:,}; a new checkpoint, or one from a savepoint, may have up to {SLOTS:,}: --key-groups"
            )
