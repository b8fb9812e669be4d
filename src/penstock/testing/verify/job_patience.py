"""Waiting as long as there is progress: on a machine that is busy with other things no time says that something has failed."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import RunError

STILL = 300.0
"""After so many seconds without a sign of progress nothing is waited for any more."""
STEP = 10.0
"""So many seconds of processor time are a sign of progress; a driver that stands still takes less in `STILL`."""
LABOUR = 900.0
"""Who has worked for so many seconds of processor time without any other sign gets nowhere. Spark starts in 22."""
_TICK = os.sysconf("SC_CLK_TCK")


def processes(*words: object) -> list[int]:
    """The processes whose command line has all these words."""
    asked = {str(word).encode() for word in words}
    return [int(entry.name) for entry in _all() if asked <= _command(entry)]


def labour_of(pids: Collection[int]) -> float:
    """The processor time that processes have taken until now, with those that they have started and that run."""
    parents: dict[int, list[int]] = defaultdict(list)
    times: dict[int, float] = {}
    for pid, parent, seconds in _times():
        parents[parent].append(pid)
        times[pid] = seconds
    return sum(times[pid] for pid in _below(pids, parents) if pid in times)


def _below(pids: Iterable[int], parents: dict[int, list[int]]) -> set[int]:
    found: set[int] = set()
    left = list(pids)
    while left:
        pid = left.pop()
        if pid not in found:
            found.add(pid)
            left += parents[pid]
    return found


def _times() -> Iterator[tuple[int, int, float]]:
    for entry in _all():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        yield int(entry.name), int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICK


def _all() -> list[Path]:
    return [entry for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _command(process: Path) -> set[bytes]:
    try:
        return set((process / "cmdline").read_bytes().split(b"\0"))
    except OSError:
        return set()


@dataclass
class Patience:
    """One wait. `sign` is compared with what it was before; `pids` are the processes whose work counts, with all that they have started."""

    what: Callable[[], str]
    sign: Callable[[], object]
    pids: Callable[[], Collection[int]] = tuple
    still: float = STILL
    clock: Callable[[], float] = time.monotonic
    labour: Callable[[Collection[int]], float] = labour_of
    worked: float = 0.0
    """Seconds of processor time in all."""

    def __post_init__(self) -> None:
        self._sign: object = None
        self._looked = self._since = self.clock()
        self._labour = self._counted = self._fruitless = 0.0

    def look(self) -> None:
        """Looks for progress, at most once a second; raises RunError when there is none."""
        now = self.clock()
        if now - self._looked < 1.0:
            return
        self._looked = now
        self._work()
        found = self.sign()
        if found != self._sign:
            self._sign, self._since, self._counted, self._fruitless = found, now, self.worked, self.worked
        elif self.worked - self._counted >= STEP:
            self._since, self._counted = now, self.worked
        self._judge(now)

    def _work(self) -> None:
        labour = self.labour(self.pids())
        self.worked += max(0.0, labour - self._labour)
        self._labour = labour

    def _judge(self, now: float) -> None:
        if now - self._since > self.still:
            raise RunError(f"{self.what()}: no progress for {self.still:g} s")
        if self.worked - self._fruitless > LABOUR:
            raise RunError(f"{self.what()}: no progress in {LABOUR:g} s of processor time")
