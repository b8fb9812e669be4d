"""What alerts measure of a job and of the machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from penstock.jobs.manager.alerts.rule import Measure
from penstock.jobs.manager.manager import JobState
from penstock.jobs.manager.store.history import Point

STRETCH = 300.0
"""Shares are those of so many seconds."""


def measures_of(state: JobState, recent: Point | None, now: float) -> dict[Measure, float]:
    """The measures of a job; `recent` is what it did in the last five minutes."""
    if state.job.wish != "running" or state.phase == "finished":
        return {}
    made: dict[Measure, float] = {"failures": float(max(state.course.failures, state.course.phase == "held"))}
    waiting = _waiting(state)
    if state.course.has_driver:
        made["lag"] = waiting
        made["silence"] = _silence(state, waiting, now)
    if recent is not None:
        rows = max(recent.figures.get("rows", 0.0), 1.0)
        made["late"] = 100.0 * _sum(recent, "late") / rows
        made["dead"] = 100.0 * _sum(recent, "dead") / rows
    return made


def _waiting(state: JobState) -> float:
    lags = state.progress.get("lags")
    return sum(float(value) for _, unit, value in lags if unit == "records") if isinstance(lags, list) else 0.0


def _silence(state: JobState, waiting: float, now: float) -> float:
    """Seconds since the last batch, where there is work: records wait, a batch is under way, or the run has not begun."""
    last = state.progress.get("last")
    finished = float(last.get("finished") or 0.0) if isinstance(last, dict) else 0.0
    has_work = waiting > 0 or bool(state.progress.get("under_way")) or state.phase == "starting"
    return max(now - max(finished, state.course.since), 0.0) if has_work else 0.0


def _sum(point: Point, prefix: str) -> float:
    return sum(value for name, value in point.figures.items() if name == prefix or name.startswith(f"{prefix}:"))


def disk_used(path: Path) -> float:
    """How much of the disk is used on which a directory is, in percent."""
    found = shutil.disk_usage(path)
    return 100.0 * (found.total - found.free) / found.total
