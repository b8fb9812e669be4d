"""The drivers of `penstock verify jobs`: `python -m penstock.testing.verify.job_driver DIRECTORY BUNDLE`.

A job whose target is `LIGHT` counts into a file, which takes no JVM; what it has counted it finds there when it starts again. All others are those of Penstock. Both claim a name that the
kernel knows as long as the process lives, by other means than the locks of jobs; a driver that finds it taken says so.
"""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import sys
import time
from pathlib import Path

from penstock.jobs.exit_codes import FAILED
from penstock.jobs.manager.processes import driver
from penstock.jobs.manager.processes.directory import DRIVER, JobDirectory

LIGHT = "light.txt"
"""The target of jobs that need no JVM."""
COUNTED, TWICE = "counted.txt", "twice.txt"
PACE = 0.01
"""Seconds between two numbers."""
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


def count(directory: JobDirectory) -> None:
    """Counts until it is told to stop; the last line that is whole says where it was."""
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    lock = directory.lock(DRIVER, TURN)
    job = directory.wanted()
    if lock is None or job is None:
        sys.exit(FAILED)
    claim(directory.path)
    path = directory.path / COUNTED
    text = path.read_bytes() if path.exists() else b""
    with path.open("ab", buffering=0) as file:
        file.truncate(text.rfind(b"\n") + 1)
        n, told = text.count(b"\n"), 0.0
        while not stopped:
            file.write(f"{n}\n".encode())
            n += 1
            if time.monotonic() - told > 0.5:
                told = time.monotonic()
                directory.write_progress({"pid": os.getpid(), "phase": "running", "generation": job.generation})
            time.sleep(PACE)


def main() -> None:
    """What the supervisor starts."""
    directory = JobDirectory(Path(sys.argv[1]))
    job = directory.wanted()
    count(directory) if job is not None and job.target == LIGHT else driver.main()


if __name__ == "__main__":
    main()
