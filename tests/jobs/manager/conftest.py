"""A manager of jobs whose drivers are small programs."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager

DRIVER = (sys.executable, str(Path(__file__).with_name("driver.py")))


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    made = Manager(tmp_path / "data", DRIVER)
    with made.opened(), ending(made):
        yield made


@contextmanager
def ending(manager: Manager) -> Iterator[None]:
    """Leaves no job running, however it ends."""
    try:
        yield
    finally:
        _end_jobs(manager)


def _end_jobs(manager: Manager) -> None:
    manager.lease.seize()  # a test may have had another manager lead
    for state in manager.states():
        manager.wish(state.job.name, "stopped", "test", is_forced=True)
    for process in list(manager.supervisors.values()):
        process.wait(300)
    for pid in supervisors_of(manager):
        kill(pid)
    manager.lease.lose()  # whoever looks on starts no more
    with manager._turn:
        left = list(manager.supervisors.values())
    for process in left:
        process.wait(300)


def kill(pid: int) -> None:
    """Kills a process, which may have ended just before."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    """What a process started, that of its first thread; nothing, if it has ended."""
    try:
        return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    except (FileNotFoundError, ProcessLookupError):
        return []


def supervisors_of(manager: Manager) -> list[int]:
    """The supervisors of a manager that run, started by it or by an earlier one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"penstock.jobs.manager.processes.supervisor" in line and str(manager.root).encode() in line:
                found.append(int(entry.name))
    return found


@pytest.fixture
def job(manager: Manager, tmp_path: Path) -> Job:
    file = tmp_path / "count.py"
    file.write_text("x = 1\n")
    return Job("count", "ada", manager.bundles.put(pack([("count.py", file)])), "count.py")
