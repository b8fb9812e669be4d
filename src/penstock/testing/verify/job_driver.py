"""The drivers of `penstock verify jobs`: `python -m penstock.testing.verify.job_driver DIRECTORY BUNDLE`.

A job whose target is `LOCAL` runs a flow with state on the local host, which takes no JVM: what a batch wrote, what the flow keeps after it and how far it has read are one line of a file, so
that a driver that is killed leaves all of it or nothing. All other jobs have the driver of Penstock. Both claim a name that the kernel knows as long as the process lives, by other means than the
locks of jobs; a driver that finds it taken says so.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.jobs.exit_codes import FAILED
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.processes.directory import DRIVER, JobDirectory

LOCAL = "local.txt"
"""The target of jobs that need no JVM."""
WRITTEN, TWICE = "written.jsonl", "twice.txt"
PACE, RECORDS = 0.1, 10
"""Seconds between two batches, and how many records each has."""
KEYS = 7
TURN = 30.0
"""How many seconds a driver waits for the one before it to be gone."""
LAST = 1 << 16
"""The last line is in so many bytes."""
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


class LocalFlow:
    """The flow of `penstock verify` on the local host, from where a file says it was."""

    def __init__(self, path: Path) -> None:
        from penstock.graph.endpoints.log import write_topic
        from penstock.local.bounded import read_table
        from penstock.local.clock import Clock
        from penstock.local.run import CommittedState, LocalRun
        from penstock.testing.verify.program import flow_of

        self.path, self.upto = path, 0
        last = self._cut()
        self.upto = last.get("upto", 0)
        states = {step: base64.b64decode(text) for step, text in last.get("states", {}).items()}
        graph = flow_of(path.parent, write_topic("out", path=path.parent)).graph  # it is this file that is written
        self.run = LocalRun(graph, read_table, Clock(time.time()), CommittedState(states))

    def _cut(self) -> dict[str, Any]:
        """Takes away what was written in part; returns the last line that is whole."""
        if not self.path.exists():
            return {}
        with self.path.open("r+b") as file:
            file.seek(max(0, self.path.stat().st_size - LAST))
            begin, text = file.tell(), file.read()
            whole = text.rfind(b"\n") + 1
            file.truncate(begin + whole)
        lines = text[:whole].splitlines()
        return dict(json.loads(lines[-1])) if lines else {}

    def batch(self) -> bytes:
        """One more batch, as the line that commits it."""
        ids = range(self.upto, self.upto + RECORDS)
        self.run.push("numbers", *({"key": f"k{n % KEYS}", "id": n} for n in ids))
        self.run.barrier(waiting=True)
        kept, self.upto = self.run.committed, ids.stop
        rows = [[row.key, row.nth, row.id] for row in kept.results.pop("out")]
        states = {step: base64.b64encode(state).decode() for step, state in kept.states.items()}
        return json.dumps({"upto": self.upto, "rows": rows, "states": states}).encode() + b"\n"


def run_local(directory: JobDirectory) -> None:
    """Runs until it is told to stop."""
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    lock = directory.lock(DRIVER, TURN)
    job = directory.wanted()
    if lock is None or job is None:
        sys.exit(FAILED)
    claim(directory.path)
    flow = LocalFlow(directory.path / WRITTEN)
    with flow.path.open("ab", buffering=0) as file:
        while not stopped:
            file.write(flow.batch())
            _tell(directory, job, flow)
            time.sleep(PACE)


def _tell(directory: JobDirectory, job: Job, flow: LocalFlow) -> None:
    if flow.run.batches % 5 == 1:
        told = {"pid": os.getpid(), "phase": "running", "generation": job.generation, "batches": flow.run.batches}
        directory.write_progress({**told, "rows": flow.upto, "time": time.time()})


def main() -> None:
    """What the supervisor starts."""
    directory = JobDirectory(Path(sys.argv[1]))
    job = directory.wanted()
    if job is not None and job.target == LOCAL:
        run_local(directory)
    else:
        from penstock.jobs.manager.processes import driver

        driver.main()


if __name__ == "__main__":
    main()
