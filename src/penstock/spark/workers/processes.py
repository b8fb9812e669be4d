"""The Python workers of a driver that runs its tasks itself: found among its processes, asked for their stacks, killed."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
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
    below = workers_below(int(jvm.java.lang.ProcessHandle.current().pid()), _parents())
    return [pid for pid in below if _catches_signal(pid)]


def answering_below(driver: int) -> list[int]:
    """The Python workers below a driver, by its process id, that write their stacks when they are asked: those below its JVM, which is its child."""
    parents = _parents() if PROC.exists() else {}
    children = [pid for pid, parent in parents.items() if parent == driver]
    below = [pid for child in children for pid in workers_below(child, parents)]
    return [pid for pid in below if _is_python(pid) and _catches_signal(pid)]


def _is_python(pid: int) -> bool:
    """Whether a process runs Python: others may take the signal for something else."""
    try:
        return "python" in (PROC / str(pid) / "comm").read_text()
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


def workers_below(root: int, parents: dict[int, int]) -> list[int]:
    """The processes that are forked by a Python daemon below `root`: children of its children.

    >>> workers_below(1, {2: 1, 3: 2, 4: 2, 5: 9})
    [3, 4]
    """
    daemons = {pid for pid, parent in parents.items() if parent == root}
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
