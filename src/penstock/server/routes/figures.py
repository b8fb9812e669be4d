"""What a job does in figures: its plan, its history, and what ended it last."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from penstock.jobs.manager.insight.advice import advised
from penstock.jobs.manager.store.history import MEASURED, SPAN, Point
from penstock.live.totals import Figures
from penstock.server.depends import JobName, Jobs
from penstock.server.guard import Viewer
from penstock.server.views import measured_of, plain_json

router = APIRouter()


@router.get("/jobs/{name}/plan", summary="What a job's flow will do", response_model=dict[str, Any])
def read_plan(manager: Jobs, asker: Viewer, name: JobName) -> Response:
    """As `penstock describe --json` says; settings of steps are for those who may change the job."""
    state = manager.last_state(name)
    found: dict[str, Any] = manager.directory(name).plan()
    if not asker.may_change(state.job.owner):
        found["steps"] = [{**step, "settings": {}} for step in found.get("steps", [])]
        found.pop("rules", None)
    return plain_json(found)


@router.get("/jobs/{name}/failure", summary="What ended the last driver that failed")
def read_failure(manager: Jobs, asker: Viewer, name: JobName) -> dict[str, Any]:
    """The error, the step, the record and the traceback; empty where none failed."""
    manager.last_state(name)
    return manager.directory(name).failure()


@router.get("/jobs/{name}/history", summary="The figures of a job over time", response_model=dict[str, Any])
def read_history(
    manager: Jobs,
    asker: Viewer,
    name: JobName,
    span: Annotated[
        str, Query(json_schema_extra={"enum": ["5m", "1h", "1d", "all"]}, description="how far back")
    ] = "5m",
    step: Annotated[str, Query(max_length=300, description="the figures of one step")] = "",
) -> Response:
    """Figures by name, a value for each time. A figure that is counted, divided by `span`, is a rate."""
    manager.last_state(name)
    width, points = manager.history.points(name, span, time.time(), step)
    shown = [(p.time, p.figures) for p in points]
    return plain_json(
        {"span": span, "width": width, "times": [round(at, 1) for at, _ in shown], "figures": columns(shown)}
    )


@router.get("/jobs/{name}/advice", summary="How many tasks a job needs", response_model=dict[str, Any])
def read_advice(
    manager: Jobs,
    asker: Viewer,
    name: JobName,
    rate: Annotated[float | None, Query(ge=0, le=1e12, description="records a second that it is to take")] = None,
    busy: Annotated[float, Query(ge=0.05, le=1.0, description="the share of its time that a task is to be busy")] = 0.7,
) -> Response:
    """The tasks of each Python step for a rate, by how long its tasks have worked for the records of the last five minutes."""
    state = manager.last_state(name)
    recent = manager.history.recent(name, 300.0, time.time())
    return plain_json(advised(recent, measured_of(state), rate, busy))


def columns(points: Iterable[tuple[float, Figures]]) -> dict[str, list[float | None]]:
    """A list of values for each figure; what was not measured at a time is None, what was not counted is 0."""
    shown = list(points)
    names = dict.fromkeys(name for _, figures in shown for name in figures)
    return {
        name: [figures.get(name, None if name.startswith(MEASURED) else 0.0) for _, figures in shown] for name in names
    }


def rates(point: Point | None) -> Figures:
    """The figures of a point by the second; what was measured stays."""
    if point is None:
        return {}
    seconds = max(point.figures.get(SPAN, 0.0), 0.001)
    return {
        name: round(value if name.startswith(MEASURED) else value / seconds, 3)
        for name, value in point.figures.items()
        if name != SPAN
    }
