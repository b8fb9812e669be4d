"""Launches a flow: starts Spark, sends the user's code, runs the flow, and stops it when asked. Prints nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from penstock.compiler.compile import check_runnable
from penstock.connectors.kafka.jars import endpoints_of, jars_of
from penstock.errors import PenstockError, SetupError
from penstock.graph.graph import Graph
from penstock.jobs.logs import event
from penstock.jobs.ship import penstock_itself, ship, user_modules
from penstock.jobs.signals import StopSignals, stop_signals
from penstock.spark.checkpoint.changes import Wanted
from penstock.spark.checkpoint.restart import Restart, check_start
from penstock.spark.checkpoint.savepoint import find
from penstock.spark.jvm.java import use_java
from penstock.spark.jvm.warm import warm_workers
from penstock.spark.live.report import BatchReport, Observer
from penstock.spark.live.until import Until

if TYPE_CHECKING:
    from penstock.spark.live.live import LiveRun

Mode = Literal["live", "once", "batch"]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class SparkOptions:
    """Where Spark runs, and with what."""

    master: str | None = None
    conf: dict[str, str] = field(default_factory=dict)
    packages: str = ""
    py_files: tuple[str, ...] = ()
    properties_file: Path | None = None
    log_level: str = "warn"


@dataclass(frozen=True)
class LaunchOptions:
    """How to run a flow. `module` is the user's own module, which travels by value; `folder` is where it came from."""

    mode: Mode = "live"
    checkpoint: Path | None = None
    fresh: bool = False
    interval: float = 0.0
    duration: float | None = None
    parallelism: int | None = None
    module: str = ""
    folder: Path | None = None
    spark: SparkOptions = field(default_factory=SparkOptions)
    until: Until = field(default_factory=Until)
    drain: bool = False
    batch_seconds: float = 2.0
    max_rows: int | None = None
    savepoint: str = ""
    drop_state: tuple[str, ...] = ()
    keep_versions: int = 20


class Launch:
    """One run of a flow, from nothing to its end."""

    def __init__(
        self,
        graph: Graph,
        options: LaunchOptions | None = None,
        observers: tuple[Observer, ...] = (),
        *,
        tell: Tell = lambda phase: None,
        force: Callable[[], None] = lambda: None,
    ) -> None:
        self.graph, self.options = graph, options or LaunchOptions()
        self.observers = (*observers, self._count)
        self.tell, self.force = tell, force
        self.batches = self.rows_in = 0
        self.began = time.monotonic()
        self._stopping = threading.Event()
        self._live: LiveRun | None = None
        self._spark: Any = None

    def run(self) -> None:
        """Runs the flow; returns when it has ended well, raises what ended it otherwise.

        A run over bounded data that was asked to stop ends with KeyboardInterrupt: it has written nothing.
        """
        check_runnable(self.graph)
        if self.options.mode != "batch":
            self._check_place()
        event("starting", flow=self.graph.name, mode=self.options.mode)
        with stop_signals(self.ask_to_stop, self.force) as signals:
            self._start(signals)
            if not self._stopping.is_set():
                self._bounded() if self.options.mode == "batch" else self._stream()
        seconds = round(time.monotonic() - self.began, 3)
        event("stopped", flow=self.graph.name, batches=self.batches, rows=self.rows_in, seconds=seconds)

    def _check_place(self) -> None:
        """What is kept must fit the flow; said before Spark is started."""
        nothing = Wanted(self.graph.name)
        restart = Restart(self._place, nothing, self._savepoint(), self.options.drop_state)
        check_start(self.graph, restart, fresh=self.options.fresh)

    def _savepoint(self) -> Path | None:
        return find(self.options.savepoint, self._place, self.graph.name) if self.options.savepoint else None

    @property
    def _place(self) -> Path:
        """The folder in which the flow keeps what must outlast it."""
        return (self.options.checkpoint or Path(".penstock") / self.graph.name).absolute()

    def ask_to_stop(self) -> None:
        """Ends the run after the batch at hand; a run over bounded data is given up. Safe in a signal handler."""
        self._stopping.set()
        if self._live is not None:
            self._live.ask_to_stop()
        threading.Thread(target=self._on_stop, daemon=True).start()

    def _on_stop(self) -> None:
        """What a signal handler may not do itself: it may stand in the middle of a write or a call."""
        self.tell("stopping")
        if self._live is None and self._spark is not None and self.options.mode == "batch":
            self._spark.sparkContext.cancelAllJobs()

    def _start(self, signals: StopSignals) -> None:
        self.tell(use_java().text)
        self.tell("starting Spark")
        spark = self._spark = self._session()
        signals.install()
        sent = ship(spark, self._parcels(), self.options.spark.py_files)
        if any(node.runs_python or node.keyed for node in self.graph.nodes):
            warm_workers(spark)
        master = spark.sparkContext.master
        event("started", flow=self.graph.name, spark=spark.version, master=master, sent=sent)
        self.tell(f"running with Spark {spark.version} on {master}")

    def _session(self) -> Any:
        from penstock.spark.failures import headline
        from penstock.spark.jvm.session import session

        given = self.options.spark
        try:
            return session(
                self.graph.name,
                given.master,
                given.conf,
                packages=given.packages,
                jars=jars_of(endpoints_of(self.graph)),
                properties_file=given.properties_file,
                log_level=given.log_level,
            )
        except PenstockError:
            raise
        except Exception as error:
            raise SetupError(f"Spark did not start: {headline(str(error))}") from error

    def _parcels(self) -> list[Any]:
        folders = [Path.cwd(), *([self.options.folder] if self.options.folder else [])]
        parcels = [user_modules(folders)]
        local = str(self._spark.sparkContext.master).startswith("local")
        return parcels if local else [penstock_itself(), *parcels]

    def _run_options(self) -> Any:
        from penstock.spark.batch.batch import BOX
        from penstock.spark.run import RunOptions

        options = self.options
        return RunOptions(
            checkpoint=options.checkpoint,
            fresh=options.fresh,
            once=options.mode == "once",
            interval=options.interval,
            duration=options.duration,
            parallelism=options.parallelism,
            by_value=(options.module,) if options.module else (),
            observers=self.observers,
            until=options.until,
            drain=options.drain,
            batch_seconds=options.batch_seconds,
            max_rows=options.max_rows,
            savepoint=self._savepoint(),
            drop_state=options.drop_state,
            keep_versions=options.keep_versions,
            letters=self._place / BOX,
        )

    def _stream(self) -> None:
        from penstock.spark.run import run_live

        self._live = run_live(self.graph, self._spark, self._run_options())
        if self._stopping.is_set():
            self._live.ask_to_stop()
        self._live.wait()

    def _bounded(self) -> None:
        from penstock.spark.run import run_bounded

        try:
            run_bounded(self.graph, self._spark, self._run_options())
        except PenstockError:
            if self._stopping.is_set():
                raise KeyboardInterrupt from None
            raise

    def _count(self, report: BatchReport) -> None:
        self.batches += 1
        self.rows_in += report.rows_in
