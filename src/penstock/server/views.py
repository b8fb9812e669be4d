"""What the API shows of jobs: state and figures for all, options for those who may change the job."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from fastapi import Response
from pydantic import BaseModel, Field

from penstock.jobs.manager.access.tokens import Identity
from penstock.jobs.manager.manager import JobState, Manager
from penstock.jobs.manager.processes.directory import FAILURE
from penstock.jobs.manager.store.conditions import tag_of
from penstock.jobs.manager.store.history import SPAN


class JobView(BaseModel):
    """A job: what is wanted, where it is, and how far."""

    name: str
    owner: str
    phase: str = Field(description="queued, starting, running, stopping, waiting, held, finished, paused or stopped")
    wish: str = Field(description="what is wanted: running, paused or stopped")
    target: str
    bundle: str
    generation: int
    restarts: int
    failures: int
    reason: str = Field(
        description="why the last driver ended, what a queued job waits for, or why the server has stopped it"
    )
    pool: str
    cores: int = Field(description="what it asks for; 0 is what Spark takes by itself")
    memory: int = Field(description="in MiB; 0 is what Spark takes by itself")
    priority: int
    upgrade: str = Field("", description="on trial; settled; or why the last upgrade went back")
    since: float
    created: float
    flow: str = ""
    batches: int = 0
    rows: int = 0
    rate: float | None = Field(None, description="records a second of the last batch")
    batch_seconds: float | None = None
    lag: dict[str, dict[str, int]] = {}
    lags: list[list[str | float]] = Field([], description="source, unit and how much it has waiting")
    behind: dict[str, dict[str, int]] = Field({}, description="records that wait, by source and partition")
    under_way: str = ""
    health: str = Field("off", description="good, warning, bad or off")
    health_reason: str = ""
    throughput: float | None = Field(None, description="records a second over the last ten seconds")
    error: str = Field("", description="what ended the last driver of a job that waits or is held, with what mends it")
    has_failed: bool = Field(False, description="whether there is a failure to look at")
    options: dict[str, Any] | None = Field(None, description="for those who may change the job")
    etag: str


@dataclass
class Views:
    """The jobs as they are shown to all, made once for each look of the manager, however many ask."""

    known: dict[str, tuple[JobState, str]] = field(default_factory=dict)

    def texts(self, manager: Manager, states: list[JobState]) -> list[str]:
        """Each job as JSON, without its options."""
        return [self.text(manager, state) for state in states]

    def text(self, manager: Manager, state: JobState) -> str:
        """A job as JSON, without its options."""
        name = state.job.name
        found = self.known.get(name)
        if found is None or found[0] is not state:
            found = self.known[name] = (state, view_of(manager, state).model_dump_json())
            if len(self.known) > 2 * len(manager.seen) + 100:
                self.known = {each: kept for each, kept in list(self.known.items()) if each in manager.seen}
        return found[1]


def plain_json(found: object) -> Response:
    """An answer of plain values, which need no check: it is several times as quick as one that is checked."""
    return Response(json.dumps(found, separators=(",", ":")), media_type="application/json")


def measured_of(state: JobState) -> dict[str, float]:
    """What a driver has measured last of its steps."""
    totals = state.progress.get("totals")
    found = totals.get("measured") if isinstance(totals, dict) else None
    return {str(k): float(v) for k, v in found.items()} if isinstance(found, dict) else {}


def view_of(manager: Manager, state: JobState, asker: Identity | None = None) -> JobView:
    """A job as it is shown to who asks; to nobody in particular, without its options."""
    job, course, progress = state.job, state.course, state.progress
    last: dict[str, Any] = dict(progress.get("last") or {})  # type: ignore[call-overload]
    seconds, health = last.get("seconds"), manager.health(state)
    return JobView(
        name=job.name,
        owner=job.owner,
        phase=state.phase,
        wish=job.wish,
        target=job.target,
        bundle=job.bundle,
        generation=job.generation,
        restarts=course.restarts,
        failures=course.failures,
        reason=(state.waits if state.phase == "queued" else "") or job.why or course.reason,
        pool=job.pool,
        cores=job.cores,
        memory=job.memory,
        priority=job.priority,
        upgrade=_upgrade_of(state),
        since=course.since,
        created=job.created,
        flow=str(progress.get("flow", "")),
        batches=int(str(progress.get("batches", 0))),
        rows=int(str(progress.get("rows", 0))),
        rate=round(last.get("rows", 0) / seconds, 1) if seconds else None,
        batch_seconds=seconds,
        lag=last.get("lag") or {},
        lags=progress.get("lags") or [],  # type: ignore[arg-type]  # as its driver says, checked here
        behind=last.get("behind") or {},
        under_way=str(progress.get("under_way", "")),
        health=health.health,
        health_reason=health.reason,
        throughput=_throughput(manager, state),
        error=_error_of(manager, state),
        has_failed=bool(course.reason) and (manager.directory(job.name).path / FAILURE).exists(),
        options=job.options if asker is not None and asker.may_change(job.owner) else None,
        etag=etag_of(state),
    )


def _error_of(manager: Manager, state: JobState) -> str:
    """The message of the last failure, where it keeps the job from running."""
    if state.phase not in ("waiting", "held"):
        return ""
    found = manager.directory(state.job.name).failure()
    return str(found.get("message", "")) if found.get("generation") == state.course.generation else ""


def _throughput(manager: Manager, state: JobState) -> float | None:
    found = manager.history.summary(state.job.name, 10.0, time.time()) if state.phase == "running" else None
    return None if found is None else round(found.figures.get("rows", 0.0) / max(found.figures[SPAN], 0.001), 1)


def _upgrade_of(state: JobState) -> str:
    """How the last upgrade of a job went; empty for one that has had none."""
    if state.course.trial_of(state.job):
        return "on trial"
    if state.job.previous is None or state.course.gone_back == state.job.checkpoint:
        return f"went back: {state.course.why_back}" if state.course.gone_back else ""
    return "settled"


def etag_of(state: JobState) -> str:
    """Changes with what is wanted, not with each batch: a change that was made meanwhile is not overwritten."""
    return tag_of(state.job)
