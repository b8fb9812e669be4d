"""A driver for tests: runs while it is wanted, takes the lock that a real one takes, and does what `plan.txt` beside the job says."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from penstock.jobs.manager.directory import DRIVER, JobDirectory


def main() -> None:
    directory = JobDirectory(Path(sys.argv[1]))
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    lock = directory.lock(DRIVER, 0.0)
    with (directory.path / "starts.txt").open("a") as file:
        file.write("twice\n" if lock is None else "start\n")
    plan = directory.path / "plan.txt"
    code = int(plan.read_text()) if plan.exists() else -1
    if code >= 0:
        sys.exit(code)
    print("driver says hello", flush=True)
    directory.write_progress({"phase": "running", "batches": 1, "rows": 10, "last": {"seconds": 0.5, "lag": {}}})
    while not stopped:
        time.sleep(0.02)


if __name__ == "__main__":
    main()
