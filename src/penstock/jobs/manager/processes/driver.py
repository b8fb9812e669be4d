"""The driver of a job: `python -m penstock.jobs.manager.processes.driver DIRECTORY BUNDLE` runs its flow until SIGTERM stops it."""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.compiler.describe import describe
from penstock.errors import PenstockError
from penstock.graph.graph import Graph
from penstock.graph.nodes import Bolt
from penstock.graph.run import RunSpec
from penstock.jobs.exit_codes import FAILED, code_of
from penstock.jobs.launch import Watchers
from penstock.jobs.load import LoadedFlow, load_flow
from penstock.jobs.logs import batch_fields, configure, event, failure_fields, log_batches, log_failure
from penstock.jobs.manager.bundle import lay_out
from penstock.jobs.manager.insight.clusters import uses_of
from penstock.jobs.manager.insight.log_levels import FollowedLevels
from penstock.jobs.manager.insight.looking import look_at_streams
from penstock.jobs.manager.insight.ruled_steps import rule_sets
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.pools import spark_options
from penstock.jobs.manager.processes.directory import DRIVER, JobDirectory
from penstock.jobs.manager.upgrade import begin
from penstock.jobs.metrics import lags
from penstock.jobs.run import Run, start
from penstock.jobs.signals import stop_signals
from penstock.live.report import BatchReport
from penstock.live.totals import Totals

_TURN = 30.0
"""How many seconds a driver waits for the one before it to be gone."""


_IN_TOTALS = ("load", "state", "timers", "native", "cores")
"""What the totals have already."""


class ProgressFile:
    """Writes how far a run is, when a batch ends and at each look, at most once a second."""

    def __init__(self, directory: JobDirectory, job: Job) -> None:
        self.directory, self.job = directory, job
        self.last: dict[str, object] = {}
        self.lags: list[tuple[str, str, float]] = []
        self.totals = Totals()
        self.is_bounded = job.options.get("mode") == "batch"
        self.began = time.time()
        self._written = self._since = 0.0
        self._phase = ""

    def observe(self, report: BatchReport) -> None:
        """Takes in one batch."""
        fields = {name: value for name, value in batch_fields(report).items() if name not in _IN_TOTALS}
        self.last = {"finished": report.finished or time.time(), **fields}
        self.lags = list(lags(report))
        self.totals.add(report)

    def write(self, run: Run, *, is_last: bool = False) -> None:
        """Writes how the run is now."""
        now = time.time()
        if now - self._written < 1.0 and not is_last:
            return
        self._written = now
        status = run.status()
        if status.phase != self._phase:
            self._phase, self._since = status.phase, now
        self.directory.write_progress(
            {
                "pid": os.getpid(),
                "generation": self.job.generation,
                "checkpoint": self.job.checkpoint,
                "flow": status.flow,
                "phase": status.phase,
                "since": self._since,
                "batches": status.batches,
                "rows": status.rows_in,
                "under_way": status.under_way,
                "waits_since": self._since if self.is_bounded else status.waits_since,
                "last": self.last,
                "lags": self.lags,
                "totals": self.totals.as_dict(),
                "began": self.began,
                "time": now,
            }
        )


def run_job(directory: JobDirectory, job: Job, bundle: Path) -> None:
    """Runs the flow of a job; returns when it has ended well."""
    flow = _flow_of(job, bundle)
    spec = spec_of(directory, job, flow)
    directory.write_plan(plan_of(flow.graph, live=spec.mode != "batch", place=spec.place))
    progress = ProgressFile(directory, job)
    levels, aside = FollowedLevels(_level_of(spec)), Aside()
    observers = (log_batches(flow.graph.name), progress.observe)
    run = start(spec, flow, Watchers(observers))
    with stop_signals(run.stop):
        try:
            while not run.wait(0.5).has_ended:
                with aside():
                    progress.write(run)
                    look_at_streams(directory)
                    levels.follow(directory, run)
        finally:
            with aside():
                progress.write(run, is_last=True)


class Aside:
    """What a driver says of itself, and shows to who looks on, fails on a full disk. The flow goes on, and the next look tries again."""

    def __init__(self) -> None:
        self.reason = ""

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Logs what goes wrong, once for each reason."""
        try:
            yield
        except (OSError, PenstockError) as error:
            if str(error) != self.reason:
                self.reason = str(error)
                event("not said", level=logging.WARNING, reason=self.reason)


def _level_of(spec: RunSpec) -> str:
    """How much the driver logs by itself: as the options say, and each batch where they say nothing."""
    level = spec.log_level or "info"
    configure(level, as_json=True)
    return level


def plan_of(graph: Graph, *, live: bool = True, place: Iterable[str] = ()) -> dict[str, object]:
    """What a flow will do; the logs and Kafka topics that it reads and writes, its rules and standing queries, and whether it has bolts."""
    endpoints = [*(source.endpoint for source in graph.sources), *(sink.endpoint for sink in graph.sinks)]
    used = [e.options for e in endpoints if e.capabilities.topics_in == "log"]
    logs = sorted({str(Path(options["path"]).absolute()) for options in used})
    beside = {"logs": logs, "kafka": uses_of(graph), "rules": rule_sets(graph)}
    return {
        **describe(graph, live=live, place=place),
        **beside,
        "traceable": any(isinstance(node, Bolt) for node in graph.nodes),
    }


def spec_of(directory: JobDirectory, job: Job, flow: LoadedFlow) -> RunSpec:
    """The options of a run: those that the file of the flow sets, those of the job, and the manager's own."""
    given = spark_options(job, {**flow.options, **job.options}) | {"json_logs": True}
    given["checkpoint"] = directory.path / job.checkpoint
    if given.get("mode") == "batch":
        return RunSpec.of(**_without(given, "checkpoint"))
    return RunSpec.of(**(_without(given, "savepoint") | begin(directory, job) if job.previous else given))


def _without(options: dict[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in options.items() if key != name}


def _flow_of(job: Job, bundle: Path) -> LoadedFlow:
    sys.path.insert(0, str(bundle))
    file, colon, name = job.target.partition(":")
    return load_flow(f"{bundle / file}{colon}{name}" if (bundle / file).is_file() else job.target)


def main() -> None:
    """What the supervisor starts."""
    directory, bundle = JobDirectory(Path(sys.argv[1])), Path(sys.argv[2])
    configure("info", as_json=True)
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # where it is, into its log, when somebody asks
    turn = directory.lock(DRIVER, _TURN)
    wanted = directory.wanted()
    job = None if wanted is None else directory.course().followed(wanted)
    if turn is None or job is None:
        event("refused", reason="another driver of this job runs" if turn is None else "nothing is wanted")
        sys.exit(FAILED)
    os.chdir(directory.path / "work")
    try:
        lay_out(bundle, directory.path / "work", directory.path / "laid_out.json")
        run_job(directory, job, bundle)
    except KeyboardInterrupt:
        sys.exit(FAILED)
    except Exception as error:
        log_failure(error, flow=job.name)
        directory.write_failure({"time": time.time(), "generation": job.generation, **failure_fields(error)})
        sys.exit(code_of(error))


if __name__ == "__main__":
    main()
