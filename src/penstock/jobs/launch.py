"""Launches a flow: starts Spark, sends the user's code, runs the flow, and stops it when asked.

It blocks, prints nothing and takes no signals; `penstock.jobs.run` starts one without blocking.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.compiler.compile import check_runnable
from penstock.compiler.placement import check_placement
from penstock.connectors.kafka.jars import endpoints_of, jars_of
from penstock.connectors.preflight import check_outside
from penstock.errors import PenstockError
from penstock.graph.graph import Graph
from penstock.graph.run import RunSpec
from penstock.graph.run.master import is_on_one_machine
from penstock.jobs.archives import Archive, check_archives, read_archives, send_archives, worker_python
from penstock.jobs.logs import event
from penstock.jobs.ship import Parcel, penstock_itself, ship, user_modules
from penstock.jobs.tracing.observe import check_traced, traced
from penstock.live.dead_letters.store import DEAD_LETTERS
from penstock.live.hold import Hold, LeaseSeeker, check_free
from penstock.live.report import BatchReport, Observer
from penstock.live.until import StopTest, check_stop_test
from penstock.location import Address, Location
from penstock.spark.checkpoint.changes import FlowLayout
from penstock.spark.checkpoint.restart import Restart, check_start
from penstock.spark.checkpoint.savepoint import find
from penstock.spark.failures import as_run_error, start_failure
from penstock.spark.jvm.gateway import spark_log
from penstock.spark.jvm.java import use_java
from penstock.spark.jvm.session import master_of, session
from penstock.spark.jvm.warm import rehearse, warm_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.live.live import LiveRun

Tell = Callable[[str], None]
Revise = Callable[[], Graph | None]
log = logging.getLogger("penstock")


REHEARSAL = 30.0
"""How many seconds a driver that takes over waits for its rehearsal to end, at most: the two would only be in each other's way."""


class Revision:
    """Asks in a thread of its own whether a flow that runs has become another one, and ends the run when it has."""

    def __init__(self, revise: Revise, end: Callable[[], None], pause: float = 1.0) -> None:
        self.revise, self.end, self.pause = revise, end, pause
        self.found: Graph | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="penstock-revision", daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while self.found is None and not self._over.wait(self.pause):
            try:
                self.found = self.revise()
            except Exception as error:  # the flow goes on as it is
                log.warning("cannot plan what has changed of the flow: %s", error)
        if self.found is not None:
            self.end()

    def stop(self) -> Graph | None:
        """Asks no more; returns what the flow has become, if anything."""
        self._over.set()
        self._thread.join()
        return self.found


def resumed(spec: RunSpec, seconds: float, batches: int, records: int) -> RunSpec:
    """How a run goes on that has taken so many seconds, batches and records: from its own checkpoint, for what is left."""
    return replace(
        spec,
        fresh=False,
        savepoint="",
        drop_state=(),
        rename_state={},
        duration=None if spec.duration is None else max(spec.duration - seconds, 0.1),
        batches=None if spec.batches is None else max(spec.batches - batches, 1),
        records=None if spec.records is None else max(spec.records - records, 1),
    )


@dataclass(frozen=True)
class Watchers:
    """Who follows a run: observers get the report of each batch, `until` says after a batch whether to stop, `tell` gets each phase."""

    observers: tuple[Observer, ...] = ()
    until: StopTest | None = None
    tell: Tell = lambda phase: None


class Launch:
    """One run of a flow, from nothing to its end.

    Args:
        graph: the flow.
        spec: how it runs.
        watchers: who follows it.
        folder: where the user's modules are, which travel to the workers.
        revise: asked every second while the flow runs live: a graph it returns takes the place of the one that runs, from the same checkpoint.
    """

    def __init__(
        self,
        graph: Graph,
        spec: RunSpec | None = None,
        watchers: Watchers | None = None,
        *,
        folder: Path | None = None,
        revise: Revise | None = None,
    ) -> None:
        self.graph, self.spec, self.folder, self.revise = graph, spec or RunSpec(), folder, revise
        self.watchers = watchers or Watchers()
        self.batches = self.rows_in = 0
        self.phase = "starting"
        self.archives: tuple[Archive, ...] = ()
        self.live: LiveRun | None = None
        self._began = time.monotonic()
        self._stopping = threading.Event()
        self._session: SparkSession | None = None
        self._hold: Hold | None = None
        self._traces: tuple[Observer, ...] = ()

    def check(self) -> None:
        """Refuses what cannot work, before Spark is started."""
        check_stop_test(self.watchers.until)
        check_runnable(self.graph)
        check_traced(self.spec)
        check_placement(self.graph, self.spec.place, live=self.spec.mode != "batch", master=self._master())
        self.archives = read_archives(self.spec.archives)
        check_archives(self.archives)
        if self.spec.mode != "batch":
            self._take_checkpoint()
        try:
            if self.spec.mode != "batch" and not self.spec.standby:
                self._check_checkpoint()
            check_outside(self.graph, self._master())
        except BaseException:
            self._release()
            raise

    def _master(self) -> str:
        return master_of(self.spec.master or None, self.spec.conf, self.spec.properties_file)

    def run(self) -> None:
        """Runs the flow, which `check` has let pass; returns when it has ended well, raises what ended it otherwise.

        A run over bounded data that was asked to stop ends with KeyboardInterrupt: it has written nothing.
        """
        event("starting", flow=self.graph.name, mode=self.spec.mode)
        with traced(self.graph.name, self.spec) as self._traces:
            try:
                spark = self._start()
                if not self._stopping.is_set() and self._has_turn(spark):
                    self._bounded(spark) if self.spec.mode == "batch" else self._stream(spark)
            finally:
                self._release()
        seconds = round(time.monotonic() - self._began, 3)
        event("stopped", flow=self.graph.name, batches=self.batches, rows=self.rows_in, seconds=seconds)

    def under_way(self) -> str:
        """The batch under way in a line: its rows, its tasks, its time; empty between batches and where it is not known."""
        status = getattr(self.live, "status", None)
        try:
            return str(status().text) if status is not None else ""
        except Exception:  # asked of a run that ends at this moment
            return ""

    def waits_since(self) -> float | None:
        """Since when (Unix) all sources were asked and none had anything; None while there is something to do, and where it is not known."""
        status = getattr(self.live, "status", None)
        try:
            found = status().waits_since if status is not None else None
        except Exception:  # asked of a run that ends at this moment
            return None
        return float(found) if found is not None else None

    def ask_to_stop(self) -> None:
        """Ends the run after the current batch; a run over bounded data is given up. Safe in a signal handler."""
        self._stopping.set()
        self.phase = "stopping"
        if self.live is not None:
            self.live.ask_to_stop()
        threading.Thread(target=self._on_stop, daemon=True).start()

    def _on_stop(self) -> None:
        """What a signal handler may not do itself: it may interrupt a write or a call."""
        self.watchers.tell("stopping")
        if self.live is None and self._session is not None and self.spec.mode == "batch":
            self._session.sparkContext.cancelAllJobs()

    @property
    def spark_log(self) -> str:
        """Where Spark's own log is; empty where it has none of this run's."""
        found = spark_log()
        return "" if found is None else str(found)

    def set_spark_log(self, level: str) -> bool:
        """Has the driver's JVM log from a level on; False where there is none yet."""
        if self._session is None:
            return False
        self._session.sparkContext.setLogLevel(level)
        return True

    @property
    def _checkpoint(self) -> Address:
        return self.spec.checkpoint_of(self.graph.name)

    def _take_checkpoint(self) -> None:
        """Refuses a checkpoint that another driver has, before Spark is started; that of a URL is taken at once."""
        if isinstance(self._checkpoint, Path):
            check_free(self._checkpoint, self.graph.name)
        elif not self.spec.standby:
            self._hold = self._seeker(self._checkpoint).take()

    def _has_turn(self, spark: SparkSession) -> bool:
        """Whether this driver may run: one that stands by waits for it, with Spark at hand."""
        if not self.spec.standby or isinstance(self._checkpoint, Path):
            return True
        self.phase = "standing by"
        rehearsal = rehearse(spark)
        self._hold = self._seeker(self._checkpoint).wait()
        rehearsal.join(REHEARSAL)
        if self._hold is None:
            return False
        self.phase = "running"
        self._check_checkpoint()
        return True

    def _seeker(self, folder: Location) -> LeaseSeeker:
        return LeaseSeeker(folder, self.graph.name, self.spec.lease, self._stopping.is_set, self.watchers.tell)

    def _release(self) -> None:
        """Gives the checkpoint up, if this driver has it."""
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.close()

    def _check_checkpoint(self) -> None:
        """What is kept must fit the flow."""
        name = self.spec.savepoint
        savepoint = find(name, self._checkpoint, self.graph.name) if name else None
        restart = Restart(
            self._checkpoint,
            FlowLayout(self.graph.name, key_groups=self.spec.key_groups),
            savepoint,
            self.spec.drop_state,
            self.spec.rename_state,
        )
        check_start(self.graph, restart, fresh=self.spec.fresh)

    def _start(self) -> SparkSession:
        self.watchers.tell(use_java().text)
        self.watchers.tell("starting Spark")
        spark = self._session = self._make_session()
        sent = ship(spark, self._parcels(spark), self.spec.py_files)
        send_archives(spark, self.archives)
        if any(node.runs_python or node.keyed for node in self.graph.nodes):
            warm_workers(spark)
        master = spark.sparkContext.master
        event("started", flow=self.graph.name, spark=spark.version, master=master, sent=sent)
        self.phase = "stopping" if self._stopping.is_set() else "running"
        self.watchers.tell(f"running with Spark {spark.version} on {master}")
        return spark

    def _make_session(self) -> SparkSession:
        spec = self.spec
        try:
            return session(
                self.graph.name,
                spec.master or None,
                spec.conf,
                packages=",".join(spec.packages),
                jars=jars_of(endpoints_of(self.graph)),
                properties_file=spec.properties_file,
                log_level="info" if spec.log_level == "debug" else "warn",
                worker_python=worker_python(self.archives),
            )
        except PenstockError:
            raise
        except Exception as error:
            raise start_failure(error, spec.master) from error

    def _parcels(self, spark: SparkSession) -> list[Parcel]:
        folders = [Path.cwd(), *([self.folder] if self.folder else [])]
        parcels = [user_modules(folders)]
        is_local = is_on_one_machine(str(spark.sparkContext.master))
        return parcels if is_local and not worker_python(self.archives) else [penstock_itself(), *parcels]

    def _stream(self, spark: SparkSession) -> None:
        """Runs live until the end; a flow that is revised goes on as another query, from its own checkpoint."""
        graph: Graph | None = self.graph
        while graph is not None:
            self.graph = graph
            graph = self._run_live(spark)

    def _run_live(self, spark: SparkSession) -> Graph | None:
        """Runs the flow as it is; returns what it has become, where that is why it ended."""
        from penstock.spark.run import run_live  # it loads pyspark

        until, hold = self.watchers.until, self._hold
        self.live = run_live(self.graph, spark, self.spec, observers=self._observers, until=until, hold=hold)
        if self._stopping.is_set():
            self.live.ask_to_stop()
        revises = self.revise if self.spec.mode == "live" else None
        revision = None if revises is None else Revision(revises, self.live.ask_to_stop)
        try:
            self.live.wait()
        except PenstockError:
            raise
        except Exception as error:
            raise as_run_error(error) from error
        finally:
            found = None if revision is None else revision.stop()
        if found is None or self._stopping.is_set():
            return None
        event("revised", flow=self.graph.name)
        self.watchers.tell("going on with new plans")
        self.spec = resumed(self.spec, time.monotonic() - self._began, self.batches, self.rows_in)
        if hold is not None and not isinstance(self._checkpoint, Path):
            self._hold = self._seeker(self._checkpoint).take()
        return found

    def _bounded(self, spark: SparkSession) -> None:
        from penstock.spark.run import run_bounded  # it loads pyspark

        spec = replace(self.spec, dead_letters=self.spec.dead_letters or self._checkpoint / DEAD_LETTERS)
        try:
            run_bounded(self.graph, spark, spec, observers=self._observers)
        except PenstockError:
            if self._stopping.is_set():
                raise KeyboardInterrupt from None
            raise

    @property
    def _observers(self) -> tuple[Observer, ...]:
        return (*self.watchers.observers, *self._traces, self._count)

    def _count(self, report: BatchReport) -> None:
        self.batches += 1
        self.rows_in += report.rows_in
