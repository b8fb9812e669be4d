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
from penstock.log import Log
from tests.connectors.drivers import RECORDS

ROOT = Path(__file__).resolve().parents[2]
DRIVERS = "tests.connectors.drivers"
REFUSING = "tests.connectors.refusing"
PATIENCE = 120.0


def start(kind: str, where: str, first: int, cut: int, pause: str, drivers: str = DRIVERS) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", drivers, kind, where, str(first), str(cut)]
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


def check_takeover(
    kind: str, where: str, point: str, cut: int, held: Callable[[], list[int]], drivers: str = DRIVERS
) -> None:
    """Pauses a driver in batch 2, has a second take over and pauses that in batch 4, wakes the first and then the second."""
    first = start(kind, where, 0, 10, point, drivers)
    second = None
    try:
        assert is_stopped(first), f"the first driver never came to {point!r}: {first.communicate()[0]}"
        second = start(kind, where, 2, cut, "sink written@3", drivers)
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


def check_refusing(kind: str, where: str, folder: Path, point: str, held: Callable[[], list[int]]) -> None:
    """The same of a sink that refuses every tenth record: those are in the topic of dead letters, each once, and the others in the sink."""

    def whole() -> list[int]:
        with Log(folder) as log:
            dead = [int(r.value or b"") for r in log.read("dead", 0, 0)]
        assert sorted(dead) == [n for n in range(RECORDS) if n % 10 == 9]
        return held() + dead

    check_takeover(kind, f"{where}>{folder}", point, 7 if point == "staged@2" else 10, whole, REFUSING)
