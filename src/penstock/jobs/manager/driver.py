"""The driver of a job: `python -m penstock.jobs.manager.driver DIRECTORY BUNDLE` runs its flow until it is told to stop by SIGTERM."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from penstock.graph.run import RunSpec
from penstock.jobs.exit_codes import FAILED, code_of
from penstock.jobs.launch import Watchers
from penstock.jobs.load import LoadedFlow, load_flow
from penstock.jobs.logs import batch_fields, configure, event, log_batches, log_failure
from penstock.jobs.manager.directory import DRIVER, JobDirectory
from penstock.jobs.manager.job import Job
from penstock.jobs.run import Run, start
from penstock.jobs.signals import stop_signals
from penstock.live.report import BatchReport

_TURN = 30.0
"""How many seconds a driver waits for the one before it to be gone."""


class ProgressFile:
    """Writes how far a run is, when a batch ends and at each look, at most once a second."""

    def __init__(self, directory: JobDirectory, generation: int) -> None:
        self.directory, self.generation = directory, generation
        self.last: dict[str, object] = {}
        self._written = 0.0

    def observe(self, report: BatchReport) -> None:
        """Takes in one batch."""
        self.last = {"finished": report.finished or time.time(), **batch_fields(report)}

    def write(self, run: Run, *, is_last: bool = False) -> None:
        """Writes how the run is now."""
        now = time.time()
        if now - self._written < 1.0 and not is_last:
            return
        self._written = now
        status = run.status()
        self.directory.write_progress(
            {
                "pid": os.getpid(),
                "generation": self.generation,
                "flow": status.flow,
                "phase": status.phase,
                "batches": status.batches,
                "rows": status.rows_in,
                "under_way": status.under_way,
                "last": self.last,
                "time": now,
            }
        )


def run_job(directory: JobDirectory, job: Job, bundle: Path) -> None:
    """Runs the flow of a job; returns when it has ended well."""
    flow = _flow_of(job, bundle)
    progress = ProgressFile(directory, job.generation)
    observers = (log_batches(flow.graph.name), progress.observe)
    run = start(spec_of(directory, job, flow), flow, Watchers(observers))
    with stop_signals(run.stop):
        try:
            while not run.wait(0.5).has_ended:
                progress.write(run)
        finally:
            progress.write(run, is_last=True)


def spec_of(directory: JobDirectory, job: Job, flow: LoadedFlow) -> RunSpec:
    """The options of a run: those that the file of the flow sets, those of the job, and the manager's own."""
    given = {**flow.options, **job.options, "json_logs": True}
    is_bounded = given.get("mode") == "batch"
    return RunSpec.of(**({} if is_bounded else {"checkpoint": directory.checkpoint}) | _without(given, "checkpoint"))


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
    turn = directory.lock(DRIVER, _TURN)
    job = directory.wanted()
    if turn is None or job is None:
        event("refused", reason="another driver of this job runs" if turn is None else "nothing is wanted")
        sys.exit(FAILED)
    os.chdir(directory.path / "work")
    try:
        run_job(directory, job, bundle)
    except KeyboardInterrupt:
        sys.exit(FAILED)
    except Exception as error:
        log_failure(error, flow=job.name)
        sys.exit(code_of(error))


if __name__ == "__main__":
    main()
