"""One driver is paused, a second takes over, the first wakes: what the sink holds then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from penstock.faults import PAUSE
from tests.connectors.drivers import RECORDS

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0


def start(kind: str, where: str, first: int, cut: int, pause: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.connectors.drivers", kind, where, str(first), str(cut)]
    environment = {**os.environ, PAUSE: pause}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def is_stopped(process: subprocess.Popen[str]) -> bool:
    """Waits until a process has come to its point; false when it ended before."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        if Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            return True
        time.sleep(0.01)
    raise AssertionError("the driver neither ended nor came to its point")


def wake(process: subprocess.Popen[str]) -> str:
    """Lets a driver go on; what it says at its end."""
    process.send_signal(signal.SIGCONT)
    return process.communicate(timeout=PATIENCE)[0]


def check_takeover(kind: str, where: str, point: str, cut: int, held: Callable[[], list[int]]) -> None:
    """Pauses a driver in batch 2, has a second take over and pauses that in batch 4, wakes the first and then the second."""
    first = start(kind, where, 0, 10, point)
    second = None
    try:
        assert is_stopped(first), f"the first driver never came to {point!r}: {first.communicate()[0]}"
        second = start(kind, where, 2, cut, "sink written@3")
        assert is_stopped(second), second.communicate()[0]
        said = wake(first)
        assert said.split() == ["fenced"], said
        said = wake(second)
        assert said.split() == ["done"], said
    finally:
        for each in (first, second):
            if each is not None and each.poll() is None:
                each.kill()
                each.communicate()
    assert sorted(held()) == list(range(RECORDS))
