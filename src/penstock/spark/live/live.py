"""A live run: one streaming query, and the handle by which it is watched and stopped."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.compiler.balance import balance
from penstock.compiler.counts import complete
from penstock.errors import PenstockError
from penstock.faults import passing
from penstock.graph.ids import owner_of
from penstock.graph.nodes import Endpoint, Source
from penstock.graph.run import RunSpec
from penstock.kernels.watermarks import BatchTimes
from penstock.spark.batch.batch import BatchRunner
from penstock.spark.batch.sources import Parted, Sources
from penstock.spark.checkpoint.directory import Checkpoint
from penstock.spark.checkpoint.sparklog import SparkLog
from penstock.spark.checkpoint.sweep import Sweeper, fed_by
from penstock.spark.dead_letters.search import searches, without_breakers
from penstock.spark.failures import as_run_error
from penstock.spark.live.backlog import Backlog
from penstock.spark.live.pace import Pace
from penstock.spark.live.report import BatchReport, Observer
from penstock.spark.live.timekeeper import processing_time
from penstock.spark.live.until import Goal, StopTest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


log = logging.getLogger("penstock")


class Stopping(Exception):
    """Ends a batch that shall not run any more; its offsets are replayed at the next start."""


class BatchFailed(Exception):
    """Ends a batch that failed; why is kept in this process, so that Spark has little to log."""


class LiveRun:
    """A flow that runs. `wait` returns when it ends; `stop` lets the batch at hand finish first."""

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
        self.spark, self.sources, self.runner = spark, sources, runner
        self.checkpoint, self.spec, self.observers = checkpoint, spec, observers
        self.failure: PenstockError | None = None
        self.reports: dict[int, BatchReport] = {}
        self.last: BatchReport | None = None
        self.pace = Pace(
            sources.folder / "sources",
            tuple(n.name for n in sources.nodes if isinstance(n, Source) and _is_paced(n.endpoint)),
            spec.batch_seconds,
            spec.max_rows,
        )
        self.pace.begin()
        runner.again = lambda step, letters: sources.again(spark, step, letters)
        self.sweeper = Sweeper(SparkLog(checkpoint.spark), runner.store)
        self._stopping = threading.Event()
        self._busy = threading.Lock()
        self._ended = self._given_up = False
        self._fed = self._drained = False
        self._drains = spec.drain and not spec.is_once and sources.ticks is not None
        self.goal = Goal(spec, until)
        self._ran, self._ticked = 0, -1
        self._ending = False
        self.backlog = Backlog.of(runner.plan.graph, sources.nodes)
        self.query: Any = None
        self.query = self._start()
        self.began = time.monotonic()

    def _start(self) -> Any:
        self.spark.conf.set("spark.sql.adaptive.enabled", "false")
        try:
            writer = self.sources.stream(self.spark).writeStream.foreachBatch(self._batch)
            writer = writer.queryName(f"penstock-{self.runner.plan.graph.name}-{time.time_ns():x}")
            writer = writer.option("checkpointLocation", str(self.checkpoint.spark)).trigger(**self._trigger())
            return writer.start()
        except Exception as error:
            self._close()
            raise as_run_error(error) from error

    def _trigger(self) -> dict[str, Any]:
        if self.spec.is_once:
            return {"availableNow": True}
        return {"processingTime": f"{self.spec.interval} seconds"}

    def _batch(self, frame: DataFrame, batch: int) -> None:
        with self._busy:
            if self._refuses():
                raise Stopping
            passing("offsets written", batch)
            last, self._ending = self._ending, False
            try:
                self.reports[batch] = self._run(frame, batch, ended=last)
                passing("sinks written", batch)
            except BaseException as error:
                if self._given_up:
                    raise Stopping from None
                self.failure = self._traced(as_run_error(error), frame, batch)
                raise BatchFailed from None

            if self.goal.ran() and not self._drains:
                self._stopping.set()
            self._drained |= last

    def _refuses(self) -> bool:
        """Whether no further batch shall run; a run that ends with all time passed has one more to go."""
        return self._stopping.is_set() and (self._drained or not self._drains)

    def _traced(self, error: PenstockError, frame: DataFrame, batch: int) -> PenstockError:
        return self.sources.explained(frame.sparkSession, error, batch, self.checkpoint.spark / "sources")

    def _run(self, frame: DataFrame, batch: int, *, ended: bool) -> BatchReport:
        times = self.runner.time.begin(batch, batch - 1, self._waiting(batch - 1), ended=ended)
        parted = self.sources.part(frame)
        try:
            report = self._run_or_search(frame.sparkSession, batch, parted, times)
            self._fed |= any(report.fed.values())
            self._ran += 1
            return report
        finally:
            parted.release()

    def _waiting(self, batch: int) -> frozenset[str]:
        """The event times of sources that had more records than a batch took, or of which that is not known."""
        progress = self.query.lastProgress if self.query is not None else None
        if progress is None or progress["batchId"] != batch:
            return self.backlog.inputs
        return self.backlog.waiting(progress["sources"])

    def _run_or_search(self, spark: SparkSession, batch: int, parted: Parted, times: BatchTimes) -> BatchReport:
        """Runs the batch. If it fails and the flow keeps dead letters, the records that break it are found and put aside."""
        try:
            return self.runner.run(spark, batch, batch - 1, dict(parted.frames), parted.union, times=times)
        except Exception as error:
            if self._given_up or not searches(self.runner.plan.graph):
                raise
            found = without_breakers(self.runner, spark, batch, parted.frames, times)
            if found is None:
                raise
            log.warning("batch %d failed (%s); it goes on without %d records", batch, _first(error), len(found[1]))
            return self.runner.run(spark, batch, batch - 1, found[0], letters=found[1], times=times)

    def wait(self, pause: float = 0.1) -> None:
        """Returns when the run has ended; raises what ended it, if that was an error."""
        try:
            self._watch(pause)
            while not self._over() and self.failure is None and self._more():
                self._fed = False
                self.query = self._start()
                self._watch(pause)
            if self._drains and self.failure is None:
                self._drain(pause)
        except KeyboardInterrupt:
            self._stopping.set()
        finally:
            self.stop()
        if self.failure is not None:
            raise self.failure
        self._raise_own()

    def _watch(self, pause: float) -> None:
        while self.query.isActive and not self._over():
            self._tell()
            self._tick()
            time.sleep(pause)
        self._tell()

    def _drain(self, pause: float) -> None:
        """One more batch, in which all time passes."""
        assert self.sources.ticks is not None
        self._ending = True
        self.sources.ticks.put()
        while self.query.isActive and not self._drained and self.failure is None:
            time.sleep(pause)

    def _tick(self) -> None:
        """Has a batch run although no record may come, if time has work to do and none has run since it was asked for."""
        ticks = self.sources.ticks
        if ticks is None or self.spec.is_once or not self._busy.acquire(blocking=False):
            return
        try:
            self._note_idle()
            if self._ticked != self._ran and self.runner.time.is_due(processing_time()):
                self._ticked = self._ran
                ticks.put()
        finally:
            self._busy.release()

    def _note_idle(self) -> None:
        """Tells the timekeeper when Spark has asked all sources and none had anything: at the last trigger, at most an interval ago."""
        now, status = processing_time(), self.query.status
        if not status["isTriggerActive"] and not status["isDataAvailable"]:
            self.runner.time.nothing_waits(now - round(self.spec.interval * 1_000_000))

    def _more(self) -> bool:
        """Whether a run that took what was there has more to do: loops that were fed, time that has work, or its end."""
        ticks, time_ = self.sources.ticks, self.runner.time
        if not self.spec.is_once:
            return False
        if ticks is not None and not self._fed:
            if self.spec.drain and not self._drained:
                self._drained = self._ending = True
                ticks.put()
                return True
            if self._ran > 0 and time_.wakes.event and time_.is_due(processing_time()):
                ticks.put()
                return True
        return self._fed

    def _over(self) -> bool:
        if self._stopping.is_set():
            return True
        self.failure = self.failure or self.sources.failure()
        if self.failure is not None:
            return True
        if self.goal.reached(
            self.runner.time.event_time(processing_time()), working=self._busy.locked() or bool(self.reports)
        ):
            return True
        limit = self.spec.duration
        return limit is not None and time.monotonic() - self.began >= limit

    def _raise_own(self) -> None:
        error = self.query.exception()
        if error is not None and "Stopping" not in str(error):
            raise as_run_error(error) from error

    def ask_to_stop(self) -> None:
        """Says that the run shall end after the batch at hand; safe to call from a signal handler."""
        self._stopping.set()

    def stop(self, patience: float = 7.0) -> None:
        """Ends the run: the batch at hand finishes and is committed, then the query stops."""
        if self._ended:
            return
        self._stopping.set()
        self._drained = True
        deadline = time.monotonic() + patience
        if self._busy.acquire(timeout=patience):
            self._busy.release()
        while self.query.isActive and time.monotonic() < deadline and not self._settled():
            time.sleep(0.02)
        try:
            if self.query.isActive:
                self._given_up = True
                self.query.stop()
            self._tell()
        finally:
            self._close()

    def _settled(self) -> bool:
        """Whether Spark has logged the commit of the last batch that ran."""
        if not self.reports:
            return True
        progress = self.query.lastProgress
        return progress is not None and progress["batchId"] >= max(self.reports)

    def _close(self) -> None:
        self._ended = True
        with contextlib.ExitStack() as closing:
            for part in (self.checkpoint, self.sources, self.runner):
                closing.callback(part.close)

    def _tell(self) -> None:
        """Hands the reports of finished batches, completed by Spark's own figures, to the observers."""
        for progress in self._progress():
            report = self.reports.pop(progress["batchId"], None)
            if report is not None:
                passing("commit logged", report.batch)
                self.sweeper.sweep(fed_by(self.sources))
                self.sources.reached([s["endOffset"] for s in progress["sources"]])
                self.last = self._completed(report, progress)
                self.pace.learn(self.last)
                self.goal.told(self.last)
                for observer in self.observers:
                    observer(self.last)

    def _progress(self) -> list[Any]:
        """Spark's figures of the batches not told yet. Asking for the last alone is cheap, and mostly enough."""
        waiting = list(self.reports)
        if not waiting:
            return []
        last = self.query.lastProgress
        if last is None or last["batchId"] < min(waiting):
            return []
        return [last] if waiting == [last["batchId"]] else list(self.query.recentProgress)

    def _completed(self, report: BatchReport, progress: Any) -> BatchReport:
        names = [owner_of(n.name) for n in self.sources.nodes]
        rows = {n: int(s["numInputRows"]) for n, s in zip(names, progress["sources"], strict=False)}
        lag = {n: _lag(s) for n, s in zip(names, progress["sources"], strict=False) if _lag(s)}
        times = {k: v / 1000 for k, v in progress["durationMs"].items()}
        seconds = {**report.seconds, "trigger": times.get("triggerExecution", 0.0), "log": _log(times)}
        aside = Counter(report.dead) + Counter(report.skipped)
        given = report.given | {
            n.name: int(s["numInputRows"]) - aside[n.name]
            for n, s in zip(self.sources.nodes, progress["sources"], strict=False)
        }
        steps = complete(self.runner.plan.graph, report.taken, given)
        shed = self.sources.shed(progress["sources"])
        counted = (report.late, report.bad, report.dead, report.skipped, shed)
        books = balance(self.runner.plan.graph, rows, steps, *counted)
        for wrong in books.open:
            log.warning("batch %d does not add up: %s", report.batch, wrong)
        return replace(report, sources=rows, steps=steps, seconds=seconds, lag=lag, books=books, shed=shed)


def _is_paced(endpoint: Endpoint) -> bool:
    """Whether a source can be told how much to take. Spark's Kafka connector cannot: it has `rows_per_batch`."""
    return endpoint.kind == "log" or (endpoint.kind == "kafka" and endpoint.options["via"] == "python")


def _log(times: dict[str, float]) -> float:
    return times.get("walCommit", 0.0) + times.get("commitOffsets", 0.0)


def _lag(source: Any) -> str:
    metrics = source["metrics"] or {}
    shown = {
        k: metrics[k] for k in ("maxOffsetsBehindLatest", "numFilesOutstanding", "numBytesOutstanding") if k in metrics
    }
    return ", ".join(f"{k}={v}" for k, v in shown.items())


def _first(error: Exception) -> str:
    return str(as_run_error(error)).split("\n", 1)[0]
