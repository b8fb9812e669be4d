"""A live run: one streaming query, and the handle by which it is watched and stopped.

What the run does and when it ends is decided by the state machine (`machine.py`); this is the shell that tells it what has happened and
carries out what it says. Batches run in a thread of Spark's; all else happens in the thread that waits.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.faults import passing
from penstock.graph.graph import Graph
from penstock.graph.nodes import Source
from penstock.graph.run import RunSpec
from penstock.live import machine as m
from penstock.live.activation import Activation
from penstock.live.pace import FIRST, FIRST_NATIVE, Pace
from penstock.live.report import BatchReport, Observer
from penstock.live.timekeeper import processing_time
from penstock.live.until import StopTest, check_stop_test
from penstock.live.watchdog import Finding, Watchdog
from penstock.location import file_url
from penstock.spark.batch.batch import BatchRunner
from penstock.spark.batch.result import BatchInput, BatchResult
from penstock.spark.batch.settings import batch_settings, set_for, stall_settings
from penstock.spark.batch.sources import Sources
from penstock.spark.checkpoint.directory import Checkpoint
from penstock.spark.checkpoint.offsets import OffsetLog
from penstock.spark.checkpoint.sparklog import SparkLog
from penstock.spark.checkpoint.sweep import Sweeper, fed_by
from penstock.spark.dead_letters.search import searches, without_breakers
from penstock.spark.failures import as_run_error, is_passing
from penstock.spark.live.acks import AckDelivery
from penstock.spark.live.backlog import Backlog
from penstock.spark.live.fed import FedInput
from penstock.spark.live.progress import Progress, completed
from penstock.spark.live.status import RunStatus, rows_of, tasks_of
from penstock.spark.live.task_time import TaskTime
from penstock.spark.workers.processes import dump_stacks, kill, python_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


log = logging.getLogger("penstock")
BUSY = "a Python process of Spark's did not start within ten seconds, as on a machine that is very busy; the query is started again"


class Stopping(Exception):
    """Ends a batch that must not run any more; its offsets are replayed at the next start."""


class BatchFailed(Exception):
    """Ends a batch that failed; why is kept in this process, so that Spark has little to log."""


class LiveRun:
    """A flow that runs. `wait` returns when it ends; `stop` lets the batch under way finish first."""

    def __init__(
        self,
        spark: SparkSession,
        sources: Sources,
        runner: BatchRunner,
        checkpoint: Checkpoint,
        spec: RunSpec,
        observers: tuple[Observer, ...] = (),
        until: StopTest | None = None,
    ) -> None:
        check_stop_test(until)
        self.spark, self.sources, self.runner = spark, sources, runner
        self.checkpoint, self.spec, self.observers, self.until = checkpoint, spec, observers, until
        self.failure: PenstockError | None = None
        self.reports: dict[int, BatchReport] = {}
        self.last: BatchReport | None = None
        self.pace = _pace(sources, runner.plan.graph, spec)
        self.pace.begin()
        self.sweeper = Sweeper(SparkLog(checkpoint.spark), runner.store)
        self.activation = Activation(checkpoint.folder / "topology")
        self._follow_activation()
        self.fed = FedInput.of(spark, sources, checkpoint)
        self.backlog = Backlog.of(runner.plan.graph, sources.nodes)
        self.machine = m.Machine(_course(spec, has_ticks=sources.ticks is not None))
        self.acks = AckDelivery(sources, SparkLog(checkpoint.spark), runner.acks)
        self.query: Any = None
        self._lock = threading.RLock()
        self._commands: deque[m.Command] = deque()
        self._wants_stop = threading.Event()
        self._batch_began = 0.0
        self._waits_since: float | None = None
        self.task_time = TaskTime(spark)
        self.watchdog = Watchdog(spec.stalled_after, spec.kill_stalled_after)
        self._looks_at = self._asks_at = 0.0
        self._waits = False
        self._is_closed = False
        self._start()

    def _start(self) -> None:
        settings = batch_settings(self.runner.plan, self.runner.tasks, is_adaptive=False)
        settings |= stall_settings(str(self.spark.sparkContext.master), self.spec.kill_stalled_after)
        try:
            with set_for(self.spark, settings):
                self.query = self._started(m.RESTARTS)
        except Exception as error:
            self._close()
            raise as_run_error(error) from error
        self.acks.deliver(SparkLog(self.checkpoint.spark).last())
        self._tell(m.QueryStarted(time.monotonic()))

    def _started(self, again: int) -> Any:
        try:
            writer = self.sources.stream(self.spark).writeStream.foreachBatch(self._batch)
            writer = writer.queryName(f"penstock-{self.runner.plan.graph.name}-{time.time_ns():x}")
            writer = writer.option("checkpointLocation", file_url(self.checkpoint.spark)).trigger(**self._trigger())
            return writer.start()
        except Exception as error:
            if not again or not is_passing(error):
                raise
            log.warning(BUSY)
        return self._started(again - 1)

    def _trigger(self) -> dict[str, Any]:
        if self.spec.is_once:
            return {"availableNow": True}
        return {"processingTime": f"{0 if self._is_immediate else self.spec.interval} seconds"}

    @property
    def _is_immediate(self) -> bool:
        """Whether somebody waits for an answer, so that a batch begins as soon as there is something to do."""
        return any(source.endpoint.capabilities.is_immediate for source in self.runner.plan.graph.sources)

    # In Spark's thread: a batch.

    def _batch(self, frame: DataFrame, batch: int) -> None:
        with self._lock:
            (command,) = self.machine.handle(m.BatchStarted(batch))
            self._batch_began, self._waits_since = time.monotonic(), None
        if not isinstance(command, m.RunBatch):
            raise Stopping
        passing("offsets written", batch)
        try:
            self.checkpoint.begin(batch)
            result = self._run(frame, batch, ended=command.ended)
            if self.fed is not None:
                self.fed.finish(batch)
            passing("sinks written", batch)
            self.checkpoint.finish(batch)
        except BaseException as error:
            if self.machine.has_abandoned:
                raise Stopping from None
            self.failure = self._traced(as_run_error(error), frame, batch)
            self._tell(m.BatchFailed())
            raise BatchFailed from None
        with self._lock:
            self.reports[batch], self.runner.time.wakes = result.report, result.wakes
            self._tell(m.BatchFinished(time.monotonic(), result.has_fed))

    def _run(self, frame: DataFrame, batch: int, *, ended: bool) -> BatchResult:
        spark = frame.sparkSession
        times = self.runner.time.begin(batch, batch - 1, self._waiting(batch - 1), ended=ended)
        parted = self.sources.part(frame if self.fed is None else self.fed.completed(frame, batch))
        try:
            given = BatchInput(batch, batch - 1, parted.frames, times, parted.union, reread=self._reread(spark))
            return self._run_or_search(spark, given)
        finally:
            parted.release()

    def _reread(self, spark: SparkSession) -> Any:
        return lambda step, dead_letters: self.sources.reread(spark, step, dead_letters)

    def _waiting(self, batch: int) -> frozenset[str]:
        """The event times of sources that had more records than a batch took, or of which that is not known."""
        progress = self.query.lastProgress if self.query is not None else None
        if progress is None or progress["batchId"] != batch:
            return self.backlog.inputs
        return self.backlog.waiting(progress["sources"])

    def _run_or_search(self, spark: SparkSession, given: BatchInput) -> BatchResult:
        """Runs the batch. If it fails and the flow keeps dead letters, the records that break it are found and become such."""
        try:
            return self.runner.run(spark, given)
        except Exception as error:
            if self.machine.has_abandoned or not searches(self.runner.plan.graph):
                raise
            found = without_breakers(self.runner, spark, given)
            if found is None:
                raise
            log.warning(
                "batch %d failed (%s); it goes on without %d records", given.batch, _first(error), len(found[1])
            )
            return self.runner.run(spark, given.without(*found))

    def _traced(self, error: PenstockError, frame: DataFrame, batch: int) -> PenstockError:
        return self.sources.explained(frame.sparkSession, error, batch, self.checkpoint.spark / "sources")

    # In the thread that waits.

    def wait(self, pause: float = 0.1) -> None:
        """Returns when the run has ended; raises what ended it, if that was an error."""
        try:
            while not self.machine.is_over:
                self._turn()
                if not self.machine.is_over:
                    time.sleep(pause)
        except KeyboardInterrupt:
            self._wants_stop.set()
        finally:
            self.stop()
        self._raise_failure()

    def ask_to_stop(self) -> None:
        """Says that the run is to end after the batch under way; safe to call from a signal handler."""
        self._wants_stop.set()

    def stop(self, pause: float = 0.02) -> None:
        """Ends the run: the batch under way finishes and is committed, then the query stops."""
        if self._is_closed:
            return
        try:
            self._tell(m.StopForced(time.monotonic()))
            while not self.machine.is_over:
                self._turn()
                time.sleep(pause)
        finally:
            self._close()

    def status(self) -> RunStatus:
        """What the run is doing at the moment: the batch under way, its rows and its tasks."""
        with self._lock:
            machine, began = self.machine, self._batch_began
            phase, ran, records, batch = machine.phase.value, machine.ran, machine.records, machine.batch
            waits = self._waits_since
        if batch is None:
            return RunStatus(phase, ran, records, waits_since=waits)
        rows = rows_of(OffsetLog(self.checkpoint.spark), batch)
        return RunStatus(phase, ran, records, batch, time.monotonic() - began, rows, *tasks_of(self.spark))

    def _tell(self, event: m.Event) -> None:
        """Tells the machine; what it says is carried out by the thread that waits."""
        with self._lock:
            self._commands += self.machine.handle(event)

    def _turn(self) -> None:
        """Looks what has happened, and does what follows."""
        is_active = self.query.isActive
        self._report()
        if self._wants_stop.is_set():
            self._tell(m.StopRequested(time.monotonic()))
        failure = self.sources.failure() or self.checkpoint.failure
        if failure is not None and self.failure is None:
            self.failure = failure
            self._tell(m.SourceFailed())
        self._poll() if is_active else self._ended()
        self._watch(time.monotonic())
        while self._commands:
            self._carry_out(self._commands.popleft())

    def _poll(self) -> None:
        with self._lock:
            now, is_free = processing_time(), self.machine.batch is None
            is_idle = is_free and self._is_idle()
            if is_idle:
                self._waits_since = self._waits_since or time.time()
                self.runner.time.nothing_waits(now - round(self.spec.interval * 1_000_000))
            is_due = is_free and self.runner.time.is_due(now)
            event_time = self.runner.time.event_time(now) if is_free else self.runner.time.reached
            self._tell(m.Poll(time.monotonic(), is_idle, is_due, self._has_replays, event_time))

    def _watch(self, now: float) -> None:
        """Looks every second whether the batch under way makes progress."""
        if now < self._looks_at:
            return
        self._looks_at = now + 1.0
        with self._lock:
            batch = self.machine.batch
        if batch is None:
            self._follow_activation()
        done, tasks = tasks_of(self.spark)
        is_asking = self.runner.sinks.watch.at_work and not tasks  # then the watch over sinks speaks
        sign = None if batch is None or is_asking else (batch, done, tasks)
        finding = self.watchdog.look(now, sign)
        if finding is not None and sign is not None:
            self._act(finding, *sign)

    def _follow_activation(self) -> None:
        """Pauses spouts, or lets them go on, as was asked for; between two batches."""
        has_spouts = any(n.endpoint.capabilities.emits_tuples for n in self.runner.plan.graph.sources)
        if not has_spouts or (is_active := self.activation.is_active) == self.sources.is_active:
            return
        self.sources.activate(is_active)
        others = [n.name for n in self.runner.plan.graph.sources if not n.endpoint.capabilities.emits_tuples]
        beside = f"; {', '.join(others)} is no spout and goes on" if others and not is_active else ""
        log.warning(
            "the topology is %s%s", "activated" if is_active else "deactivated: its spouts emit nothing", beside
        )

    def _act(self, finding: Finding, batch: int, done: int, tasks: int) -> None:
        workers = python_workers(self.spark)
        asked = self.runner.sinks.watch.at_work
        where = f"batch {batch} ({done} of {tasks} tasks done{f'; {asked}' if asked else ''})"
        if finding is Finding.KILL:
            log.warning(
                "%s: no task has ended for too long; killing Python workers %s, Spark runs their tasks again",
                where,
                workers,
            )
            kill(workers)
            return
        seconds = self.watchdog.quiet_for(time.monotonic())
        log.warning("%s: no task has ended for %.0f s; the stacks of Python workers %s follow", where, seconds, workers)
        dump_stacks(workers)

    def _is_idle(self) -> bool:
        """Whether Spark has asked all sources at its last trigger, at most an interval ago, and none had anything.

        A query that is being started has no data and no trigger either; it waits for nothing yet.
        """
        status = self.query.status
        is_waiting = str(status["message"]).startswith("Waiting")
        return is_waiting and not status["isTriggerActive"] and not status["isDataAvailable"]

    @property
    def _has_replays(self) -> bool:
        """Whether dead letters wait for a replay; a storage that is asked over a network is asked every other second."""
        if time.monotonic() >= self._asks_at:
            self._waits = self.runner.replays.has_pending
            self._asks_at = time.monotonic() + (0.0 if isinstance(self.checkpoint.folder, Path) else 2.0)
        return self._waits

    def _ended(self) -> None:
        error = self.query.exception()
        has_failed = error is not None and "Stopping" not in str(error)
        is_due = bool(self.runner.time.wakes.event) and self.runner.time.is_due(processing_time())
        self._tell(m.QueryEnded(has_failed, is_due, self._has_replays, has_failed and is_passing(error)))
        if has_failed and not self.machine.is_over:
            log.warning(BUSY)
        elif has_failed and self.failure is None:
            self.failure = as_run_error(error)

    def _carry_out(self, command: m.Command) -> None:
        match command:
            case m.RunTick():
                assert self.sources.ticks is not None
                self.sources.ticks.put()
            case m.StartQuery():
                self._start()
            case m.StopQuery():
                self.query.stop()
                self._report()
                self._ended()

    def _report(self) -> None:
        """Hands the reports of finished batches, completed by Spark's own figures, to the observers."""
        found = self._progress()
        for progress in found:
            report = self.reports.pop(progress["batchId"], None)
            if report is not None:
                passing("commit logged", report.batch)
                self.acks.deliver(report.batch)
                self.sweeper.sweep(fed_by(self.sources))
                self.checkpoint.sweep(report.batch)
                self.sources.reached([s["endOffset"] for s in progress["sources"]])
                fed = self.fed.rows(report.batch) if self.fed is not None else None
                whole = completed(report, progress, self.sources, self.runner.plan.graph, fed)
                self._hand_out(self.task_time.added_to(self.sources.with_measurements(whole)))
        last = found[-1]["batchId"] if found else -1
        for batch in [b for b in self.reports if b < last]:
            self._hand_out(self.reports.pop(batch))  # Spark keeps the figures of the last 100 batches

    def _hand_out(self, report: BatchReport) -> None:
        self.last = report
        self.pace.learn(report)
        is_goal = self.until is not None and self.until(report)
        for observer in self.observers:
            observer(report)
        self._tell(m.BatchReported(report.rows_in, is_goal))

    def _progress(self) -> list[Progress]:
        """Spark's figures of the batches not reported yet. Asking for the last alone is cheap, and mostly enough."""
        waiting = list(self.reports)
        if not waiting:
            return []
        last = self.query.lastProgress
        if last is None or last["batchId"] < min(waiting):
            return []
        return [last] if waiting == [last["batchId"]] else list(self.query.recentProgress)

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self.machine.has_abandoned and self.machine.ran == 0:
            log.warning("stopped before the first batch was done; its records are read again at the next start")

    def _close(self) -> None:
        self._is_closed = True
        with contextlib.ExitStack() as closing:
            for part in (self.checkpoint, self.sources, self.runner):
                closing.callback(part.close)


def _pace(sources: Sources, graph: Graph, spec: RunSpec) -> Pace:
    """The pace of a run: careful where code of the user's runs, of which nobody knows how long it takes."""
    paced = tuple(n.name for n in sources.nodes if isinstance(n, Source) and n.endpoint.capabilities.is_paced)
    is_native = not any(node.runs_python or node.keyed for node in graph.nodes)
    is_native &= all(sink.endpoint.capabilities.is_bulk for sink in graph.sinks)
    return Pace(
        sources.folder / "sources", paced, spec.batch_seconds, spec.max_rows, FIRST_NATIVE if is_native else FIRST
    )


def _course(spec: RunSpec, *, has_ticks: bool) -> m.Course:
    return m.Course(
        once=spec.is_once,
        drains=spec.drain and has_ticks,
        has_ticks=has_ticks,
        duration=spec.duration,
        batches=spec.batches,
        records=spec.records,
        time=spec.until_time,
        idle=spec.until_idle,
    )


def _first(error: Exception) -> str:
    return str(as_run_error(error)).split("\n", 1)[0]
