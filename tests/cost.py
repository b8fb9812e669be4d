"""What tests cost: processor time, that of the processes they start included, by test and by file."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def tree_seconds(pid: int | None = None) -> float:
    """The processor time of a process, of all that it started, and of those of them that have ended.

    What a killed process leaves to nobody is not counted.
    """
    mine = os.getpid() if pid is None else pid
    return _own_seconds(mine) + sum(tree_seconds(child) for child in _children(mine))


def _own_seconds(pid: int) -> float:
    """Of a process and of its children that it has waited for."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    return sum(map(int, text.rpartition(")")[2].split()[11:15])) / TICK


def _children(pid: int) -> list[int]:
    """The processes that any thread of a process started and that are there still."""
    try:
        threads = [*Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []
    return [child for thread in threads for child in _children_of(thread)]


def _children_of(thread: Path) -> list[int]:
    try:
        return [*map(int, (thread / "children").read_text().split())]
    except OSError:
        return []


class Meter:
    """The processor time of this process and of what it started, from one look to the next.

    A look at a JVM takes milliseconds, so there are at most two a second: what is shorter counts with what comes after it.
    """

    def __init__(self, least: float = 0.5) -> None:
        self.least, self.at, self.cpu = least, time.monotonic(), tree_seconds()

    def lap(self) -> float:
        """What was used since the last look; 0 when that was a moment ago."""
        now = time.monotonic()
        if now - self.at < self.least:
            return 0.0
        before, self.cpu, self.at = self.cpu, tree_seconds(), now
        return max(0.0, self.cpu - before)


@dataclass
class Cost:
    """Seconds by the clock, and of processors."""

    wall: float = 0.0
    cpu: float = 0.0

    def add(self, wall: float, cpu: float) -> None:
        self.wall += wall
        self.cpu += cpu


@dataclass
class Costs:
    """What each test and each file has cost so far."""

    tests: defaultdict[str, Cost] = field(default_factory=lambda: defaultdict(Cost))

    def add(self, test: str, wall: float, cpu: float) -> None:
        self.tests[test].add(wall, cpu)

    @property
    def total(self) -> Cost:
        """Of all tests."""
        return Cost(sum(c.wall for c in self.tests.values()), sum(c.cpu for c in self.tests.values()))

    def by_file(self) -> list[tuple[str, Cost]]:
        """The files and their costs, the dearest first."""
        return self._by(lambda file: file)

    def by_folder(self) -> list[tuple[str, Cost]]:
        """The folders right under that of the tests, each with all below it, and their costs, the dearest first."""
        return self._by(lambda file: "/".join(file.split("/")[:2]))

    def _by(self, group: Callable[[str], str]) -> list[tuple[str, Cost]]:
        groups: defaultdict[str, Cost] = defaultdict(Cost)
        for test, cost in self.tests.items():
            groups[group(test.partition("::")[0])].add(cost.wall, cost.cpu)
        return sorted(groups.items(), key=lambda item: -item[1].wall)


def left_of(budget: float, used: float) -> str:
    """What a run says of the processor time that its tier may take.

    >>> left_of(1560.0, 1400.0)
    '1400 s of processor time; the tier may take 1560 s, so 160 s are left'
    >>> left_of(1560.0, 1700.0)
    "1700 s of processor time; the tier may take 1560 s: OVER by 140 s, see 'Tests' in CONTRIBUTING.md"
    """
    said = f"{used:.0f} s of processor time; the tier may take {budget:.0f} s"
    left = f"{said}, so {budget - used:.0f} s are left"
    return left if used <= budget else f"{said}: OVER by {used - budget:.0f} s, see 'Tests' in CONTRIBUTING.md"
