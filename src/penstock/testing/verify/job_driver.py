"""The drivers of `penstock verify jobs`: `python -m penstock.testing.verify.job_driver DIRECTORY BUNDLE`.

A job whose target is `LOCAL` runs a flow with state on the local host, which takes no JVM: what a batch wrote, what the flow keeps after it and how far it has read are one line of a file, so
that a driver that is killed leaves all of it or nothing. All other jobs have the driver of Penstock. Both claim a name that the kernel knows as long as the process lives, by other means than the
locks of jobs; a driver that finds it taken says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.jobs.exit_codes import FAILED
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.processes.directory import DRIVER, JobDirectory

if TYPE_CHECKING:
    from penstock.testing.verify.local_flow import LocalFlow

LOCAL = "local.txt"
"""The target of jobs that need no JVM."""
WRITTEN, TWICE = "written.jsonl", "twice.txt"
PACE = 0.1
"""Seconds between two batches."""
TURN = 30.0
"""How many seconds a driver waits for the one before it to be gone."""
_CLAIMS: list[socket.socket] = []


def claim(directory: Path) -> None:
    """Notes in the directory of a job when another driver of it lives."""
    name = hashlib.sha256(str(directory).encode()).hexdigest()[:32]
    made = socket.socket(socket.AF_UNIX)
    try:
        made.bind(f"\0penstock-verify-{name}")
    except OSError:
        with (directory / TWICE).open("a") as file:
            file.write(f"{os.getpid()}\n")
    _CLAIMS.append(made)


def claim_here() -> None:
    """For flows: claims in the driver, which works in a directory of the job; in a worker it does nothing."""
    if any(part.endswith("job_driver") for part in sys.orig_argv):
        claim(Path(sys.argv[1]))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The batches that were committed: lines that are whole."""
    with path.open("rb") as file:
        yield from (json.loads(line) for line in file if line.endswith(b"\n"))


def run_local(directory: JobDirectory) -> None:
    """Runs until it is stopped."""
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    lock = directory.lock(DRIVER, TURN)
    job = directory.wanted()
    if lock is None or job is None:
        sys.exit(FAILED)
    claim(directory.path)
    from penstock.testing.verify.local_flow import LocalFlow  # drivers of other jobs load no local host

    flow = LocalFlow(directory.path / WRITTEN)
    with flow.path.open("ab", buffering=0) as file:
        while not stopped:
            file.write(flow.batch())
            _tell(directory, job, flow)
            time.sleep(PACE)


def _tell(directory: JobDirectory, job: Job, flow: LocalFlow) -> None:
    if flow.run.batches % 5 == 1:
        progress = {"pid": os.getpid(), "phase": "running", "generation": job.generation, "batches": flow.run.batches}
        directory.write_progress({**progress, "rows": flow.upto, "time": time.time()})


def main() -> None:
    """What the supervisor starts."""
    directory = JobDirectory(Path(sys.argv[1]))
    job = directory.wanted()
    if job is not None and job.target == LOCAL:
        run_local(directory)
    else:
        from penstock.jobs.manager.processes import driver  # it loads pyspark

        driver.main()


if __name__ == "__main__":
    main()
