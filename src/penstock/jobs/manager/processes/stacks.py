"""Where a driver and its Python workers are at this moment: each writes the stacks of its threads into the log when it is asked by a signal."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from penstock.errors import OptionError
from penstock.jobs.manager.processes.directory import DRIVER, JobDirectory
from penstock.spark.workers.processes import answering_below
from penstock.spark.workers.processes import dump_stacks as dump_workers

PATIENCE = 5.0
"""How many seconds a driver may take to answer."""
_MOST = 256 << 10


def dump_stacks(directory: JobDirectory, progress: Mapping[str, object]) -> str:
    """The stacks of all threads of a driver, and of its Python workers on this machine, the most recent call first."""
    pid = _driver_of(directory, progress)
    before = directory.log.stat().st_size
    os.kill(pid, signal.SIGUSR1)
    dump_workers(answering_below(pid))
    deadline, text = time.monotonic() + PATIENCE, ""
    while time.monotonic() < deadline:
        time.sleep(0.1)
        now = _since(directory.log, before)
        if now and now == text:
            break
        text = now
    return text


def _driver_of(directory: JobDirectory, progress: Mapping[str, object]) -> int:
    """The process of the driver, which its own word alone does not make: its command names the directory of the job."""
    pid = progress.get("pid")
    if isinstance(pid, int) and pid > 1:
        try:
            command = (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")
        except OSError:
            command = []
        if str(directory.path).encode() in command:
            return pid
    if directory.is_held(DRIVER):
        raise OptionError("the driver is starting, or runs on another machine; ask again, or ask the server there")
    raise OptionError("there is no driver to ask; the job does not run")


def _since(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(start)
        return file.read(_MOST).decode(errors="replace")
