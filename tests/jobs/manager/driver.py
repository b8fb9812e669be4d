"""A driver for tests: runs while it is wanted, takes the lock that a real one takes, and does what `plan.txt` beside the job says."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from penstock.jobs.manager.processes.directory import DRIVER, JobDirectory


def commit(checkpoint: Path) -> None:
    """One batch more than any checkpoint of the job has."""
    last = max((int(file.name) for file in checkpoint.parent.glob("checkpoint*/spark/commits/*")), default=-1)
    commits = checkpoint / "spark" / "commits"
    commits.mkdir(parents=True, exist_ok=True)
    (commits / str(last + 1)).touch()


def main() -> None:
    directory = JobDirectory(Path(sys.argv[1]))
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    lock = directory.lock(DRIVER, 30.0)  # as a real one: what the kernel has killed may take a moment to end
    with (directory.path / "starts.txt").open("a") as file:
        file.write("twice\n" if lock is None else "start\n")
    plan, wanted = directory.path / "plan.txt", directory.wanted()
    code = int(plan.read_text()) if plan.exists() else -1
    if code >= 0:
        sys.exit(code)
    assert wanted is not None
    job = directory.course().followed(wanted)
    (directory.path / "version.txt").write_text(f"{job.target} {job.checkpoint}")
    match job.target:
        case "broken.py":
            sys.exit(1)
        case "silent.py":
            time.sleep(600)
    commit(directory.path / job.checkpoint)
    print("driver says hello", flush=True)
    directory.write_progress({"phase": "running", "batches": 1, "rows": 10, "last": {"seconds": 0.5, "lag": {}}})
    while not stopped:
        time.sleep(0.02)


if __name__ == "__main__":
    main()
