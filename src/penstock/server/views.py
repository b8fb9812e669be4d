"""What the API shows of jobs: state and figures for all, options for those who may change the job."""

from __future__ import annotations

import hashlib
from typing import Any

from pydantic import BaseModel, Field

from penstock.jobs.manager.access import Identity
from penstock.jobs.manager.manager import JobState


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
    reason: str = Field(description="why the last driver ended")
    since: float
    created: float
    flow: str = ""
    batches: int = 0
    rows: int = 0
    rate: float | None = Field(None, description="records a second of the last batch")
    batch_seconds: float | None = None
    lag: dict[str, str] = {}
    under_way: str = ""
    options: dict[str, Any] | None = Field(None, description="for those who may change the job")
    etag: str


def view_of(state: JobState, asker: Identity) -> JobView:
    """A job as it is shown to who asks."""
    job, course, progress = state.job, state.course, state.progress
    last: dict[str, Any] = dict(progress.get("last") or {})  # type: ignore[call-overload]
    seconds = last.get("seconds")
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
        reason=course.reason,
        since=course.since,
        created=job.created,
        flow=str(progress.get("flow", "")),
        batches=int(str(progress.get("batches", 0))),
        rows=int(str(progress.get("rows", 0))),
        rate=round(last.get("rows", 0) / seconds, 1) if seconds else None,
        batch_seconds=seconds,
        lag=last.get("lag") or {},
        under_way=str(progress.get("under_way", "")),
        options=job.options if asker.may_change(job.owner) else None,
        etag=etag_of(state),
    )


def etag_of(state: JobState) -> str:
    """Changes with what is wanted, not with each batch: a change that was made meanwhile is not overwritten."""
    return hashlib.sha256(state.job.to_json()).hexdigest()[:16]
