"""How many tasks the steps of a job need for a rate, by how long their tasks have worked for the records of the last minutes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from penstock.jobs.manager.store.history import SPAN, Point

LEAST_ROWS = 100.0
"""Of fewer records nothing is said."""


def advised(recent: Point | None, measured: Mapping[str, float], rate: float | None, busy: float) -> dict[str, Any]:
    """The tasks that steps need: how much work a record of the sources makes for a step, times the rate, over the share of its time that a task is to be busy.

    >>> point = Point(0.0, {"span": 10.0, "rows": 1000.0, "busy:split": 5.0, "in:split": 1000.0})
    >>> advised(point, {"tasks:split": 2.0}, 400.0, 0.5)["steps"]
    [{'step': 'split', 'tasks': 2, 'busy': 0.25, 'micros': 5000.0, 'skew': 1.0, 'needed': 4}]
    """
    figures = recent.figures if recent is not None else {}
    rows, span = figures.get("rows", 0.0), max(figures.get(SPAN, 0.0), 0.001)
    wanted = rows / span if rate is None else rate
    steps = [
        _step(name.partition(":")[2], seconds, figures, measured, wanted, busy)
        for name, seconds in figures.items()
        if name.startswith("busy:") and rows >= LEAST_ROWS and seconds > 0
    ]
    steps.sort(key=lambda step: -float(step["busy"]))
    needed = max((int(step["needed"]) for step in steps), default=0)
    advice = {"rate": round(wanted, 1), "now": round(rows / span, 1), "target": busy, "tasks": needed, "steps": steps}
    return advice | {"native": _native(figures, measured)}


def _native(figures: Mapping[str, float], measured: Mapping[str, float]) -> dict[str, float] | None:
    """How many of the cores of a job work inside Spark, for native steps, sources, shuffles and sinks; None where that is not known.

    >>> _native({"span": 10.0, "native": 5.0}, {"cores": 2.0})
    {'cores': 2, 'used': 0.5, 'busy': 0.25}
    """
    cores = int(measured.get("cores", 0))
    if not cores or "native" not in figures:
        return None
    used = figures["native"] / max(figures.get(SPAN, 0.0), 0.001)
    return {"cores": cores, "used": round(used, 4), "busy": round(used / cores, 4)}


def _step(
    step: str, seconds: float, figures: Mapping[str, float], measured: Mapping[str, float], rate: float, busy: float
) -> dict[str, Any]:
    tasks, skew = max(int(measured.get(f"tasks:{step}", 1)), 1), measured.get(f"skew:{step}", 1.0)
    work = rate * seconds / figures["rows"]  # seconds of work in a second
    taken = figures.get(f"in:{step}", 0.0)
    return {
        "step": step,
        "tasks": tasks,
        "busy": round(seconds / figures[SPAN] / tasks, 4),
        "micros": round(seconds / taken * 1e6, 2) if taken else None,
        "skew": skew,
        "needed": max(math.ceil(round(work / busy, 6)), 1),
    }
