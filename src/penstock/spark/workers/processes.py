"""The Python workers of a driver that runs its tasks itself: found among its processes, asked for their stacks, killed."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.graph.run.master import is_on_one_machine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROC = Path("/proc")


def python_workers(spark: SparkSession) -> list[int]:
    """The process ids of the Python workers below this driver's JVM that run steps; none when tasks run on other machines."""
    if not is_on_one_machine(str(spark.sparkContext.master)) or not PROC.exists():
        return []
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    return _answering(int(jvm.java.lang.ProcessHandle.current().pid()), _parents())


def answering_below(driver: int) -> list[int]:
    """The Python workers below a driver, by its process id, that write their stacks when they are asked: those below its JVM, which is its child."""
    parents = _parents() if PROC.exists() else {}
    children = [pid for pid, parent in parents.items() if parent == driver]
    return [pid for child in children for pid in _answering(child, parents)]


def _answering(jvm: int, parents: dict[int, int]) -> list[int]:
    """The Python workers of a JVM, and of the executors that it has started, as `local-cluster` does: those that catch the signal."""
    executors = [pid for pid, parent in parents.items() if parent == jvm and _runs(pid, "java")]
    return [pid for pid in workers_below(jvm, parents, executors) if _runs(pid, "python") and _catches_signal(pid)]


def _runs(pid: int, program: str) -> bool:
    """Whether a process runs a program: others than Python may take the signal for something else."""
    try:
        return program in (PROC / str(pid) / "comm").read_text()
    except OSError:
        return False


def _catches_signal(pid: int) -> bool:
    """Whether a process has a handler for the signal, as workers that have run a step do; others would die of it."""
    try:
        status = (PROC / str(pid) / "status").read_text()
    except OSError:
        return False
    caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (signal.SIGUSR1 - 1) & 1)


def workers_below(root: int, parents: dict[int, int], executors: Collection[int] = ()) -> list[int]:
    """The processes that are forked by a Python daemon below `root` or one of its executors: children of their children.

    >>> workers_below(1, {2: 1, 3: 2, 4: 2, 5: 9})
    [3, 4]
    >>> workers_below(1, {2: 1, 3: 2, 4: 3, 5: 4}, executors=[2])
    [4]
    """
    above = {root, *executors}
    daemons = {pid for pid, parent in parents.items() if parent in above and pid not in above}
    return sorted(pid for pid, parent in parents.items() if parent in daemons)


def _parents() -> dict[int, int]:
    found: dict[int, int] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                found[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
    return found


def dump_stacks(pids: Iterable[int]) -> None:
    """Has workers write the Python stack of each thread to their standard error; a stopped one cannot."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGUSR1)


def kill(pids: Iterable[int]) -> None:
    """Ends workers, whatever they are doing."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
