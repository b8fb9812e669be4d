"""Launches a flow: starts Spark, sends the user's code, runs the flow, and stops it when asked.

It blocks, prints nothing and takes no signals; `penstock.jobs.run` starts one without blocking.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.compiler.compile import check_runnable
from penstock.connectors.kafka.jars import endpoints_of, jars_of
from penstock.connectors.preflight import check_outside
from penstock.errors import PenstockError
from penstock.graph.graph import Graph
from penstock.graph.run import RunSpec
from penstock.graph.run.master import is_on_one_machine
from penstock.jobs.archives import Archive, check_archives, read_archives, send_archives, worker_python
from penstock.jobs.logs import event
from penstock.jobs.ship import Parcel, penstock_itself, ship, user_modules
from penstock.live.hold import Hold, LeaseSeeker, check_free
from penstock.live.report import BatchReport, Observer
from penstock.live.until import StopTest, check_stop_test
from penstock.location import Address, Location
from penstock.spark.checkpoint.changes import FlowLayout
from penstock.spark.checkpoint.restart import Restart, check_start
from penstock.spark.checkpoint.savepoint import find
from penstock.spark.failures import as_run_error, start_failure
from penstock.spark.jvm.java import use_java
from penstock.spark.jvm.warm import rehearse, warm_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.live.live import LiveRun

Tell = Callable[[str], None]


REHEARSAL = 30.0
"""How many seconds a driver that takes over waits for its rehearsal to end, at most: the two would only be in each other's way."""


@dataclass(frozen=True)
class Watchers:
    """Who follows a run: observers get the report of each batch, `until` says after a batch whether to stop, `tell` gets each phase."""

    observers: tuple[Observer, ...] = ()
    until: StopTest | None = None
    tell: Tell = lambda phase: None


class Launch:
    """One run of a flow, from nothing to its end. `folder` is where the user's modules are, which travel to the workers."""

    def __init__(
        self,
        graph: Graph,
        spec: RunSpec | None = None,
        watchers: Watchers | None = None,
        *,
        folder: Path | None = None,
    ) -> None:
        self.graph, self.spec, self.folder = graph, spec or RunSpec(), folder
        self.watchers = watchers or Watchers()
        self.batches = self.rows_in = 0
        self.phase = "starting"
        self.archives: tuple[Archive, ...] = ()
        self.live: LiveRun | None = None
        self._began = time.monotonic()
        self._stopping = threading.Event()
        self._session: SparkSession | None = None
        self._hold: Hold | None = None

    def check(self) -> None:
        """Refuses what cannot work, before Spark is started."""
        check_stop_test(self.watchers.until)
        check_runnable(self.graph)
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
        from penstock.spark.jvm.session import master_of

        return master_of(self.spec.master or None, self.spec.conf, self.spec.properties_file)

    def run(self) -> None:
        """Runs the flow, which `check` has let pass; returns when it has ended well, raises what ended it otherwise.

        A run over bounded data that was asked to stop ends with KeyboardInterrupt: it has written nothing.
        """
        event("starting", flow=self.graph.name, mode=self.spec.mode)
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
        from penstock.spark.jvm.session import session

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
        from penstock.spark.run import run_live

        until, hold = self.watchers.until, self._hold
        self.live = run_live(self.graph, spark, self.spec, observers=self._observers, until=until, hold=hold)
        if self._stopping.is_set():
            self.live.ask_to_stop()
        try:
            self.live.wait()
        except PenstockError:
            raise
        except Exception as error:
            raise as_run_error(error) from error

    def _bounded(self, spark: SparkSession) -> None:
        from penstock.live.dead_letters.store import DEAD_LETTERS
        from penstock.spark.run import run_bounded

        spec = replace(self.spec, dead_letters=self.spec.dead_letters or self._checkpoint / DEAD_LETTERS)
        try:
            run_bounded(self.graph, spark, spec, observers=self._observers)
        except PenstockError:
            if self._stopping.is_set():
                raise KeyboardInterrupt from None
            raise

    @property
    def _observers(self) -> tuple[Observer, ...]:
        return (*self.watchers.observers, self._count)

    def _count(self, report: BatchReport) -> None:
        self.batches += 1
        self.rows_in += report.rows_in
