"""How well a job is, in one word and one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.jobs.manager.store.history import SPAN, Point

Health = Literal["good", "warning", "bad", "off"]
SILENT = 90.0
"""A driver that has said nothing for so many seconds is stuck."""


@dataclass(frozen=True)
class HealthReport:
    """A word, and why."""

    health: Health
    reason: str = ""


@dataclass(frozen=True)
class Signs:
    """What health is judged by: where the job is, since when, when its driver last spoke, its restarts in a row, and its last minute."""

    phase: str
    reason: str
    failures: int
    spoke: float
    now: float
    minute: Point | None = None


def judged(signs: Signs) -> HealthReport:
    """The health of a job.

    >>> judged(Signs("held", "ended with exit code 2", 1, 0.0, 10.0))
    HealthReport(health='bad', reason='ended with exit code 2')
    >>> judged(Signs("paused", "", 0, 0.0, 10.0)).health
    'off'
    """
    if signs.phase in ("held", "waiting"):
        return HealthReport("bad", signs.reason or "its driver failed")
    if signs.phase in ("paused", "stopped", "finished"):
        return HealthReport("off", signs.phase)
    if signs.phase == "running" and signs.now - signs.spoke > SILENT:
        return HealthReport("bad", f"its driver has said nothing for {signs.now - signs.spoke:.0f} s")
    if signs.failures:
        return HealthReport("warning", f"restarted: {signs.reason}" if signs.reason else "restarted")
    return _by_figures(signs.minute) if signs.phase == "running" else HealthReport("good", signs.phase)


def _by_figures(minute: Point | None) -> HealthReport:
    """What the figures of the last minute say."""
    if minute is None:
        return HealthReport("good", "no batch yet")
    lost = {kind: minute.figures.get(kind, 0.0) for kind in ("dead", "skipped", "shed", "late")}
    rows = max(minute.figures.get("rows", 0.0), 1.0)
    for kind, many in lost.items():
        if many / rows > 0.01:
            words = {"dead": "dead letters", "late": "late records"}.get(kind, f"records {kind}")
            return HealthReport("warning", f"{many:,.0f} {words} in the last minute")
    waiting = sum(v for k, v in minute.figures.items() if k.startswith("lag:records:"))
    rate = minute.figures.get("rows", 0.0) / max(minute.figures.get(SPAN, 1.0), 1.0)
    if waiting > 60 * max(rate, 1.0):
        return HealthReport("warning", f"{waiting:,.0f} records wait, more than a minute's work")
    return HealthReport("good", "running")
