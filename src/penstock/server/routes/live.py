"""What moves, as server-sent events: the list of jobs, and one job with the figures of its steps.

A stream sends what the manager has seen at its last look, which it takes for itself anyway: who looks on costs a job nothing.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from penstock.jobs.manager.access.tokens import Identity
from penstock.jobs.manager.insight.watching import check_stream, renew, seen
from penstock.jobs.manager.manager import LOOK, JobState, Manager
from penstock.server.depends import JobName, Jobs, OwnJob
from penstock.server.guard import Credential, Viewer, asker_of
from penstock.server.routes.figures import rates
from penstock.server.views import Views, measured_of, view_of

router = APIRouter()
MOST_STREAMS, MOST_OF_ONE = 200, 20
"""How many streams are open at once: in all, and of one owner."""
ASKED_AGAIN = 5.0
"""After so many seconds it is looked at again whether who watches still may."""
KEPT_ALIVE = 15.0


class EventStream(StreamingResponse):
    """Server-sent events. `leave` is called when it ends, also where the browser goes before the first of them."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[str], leave: Callable[[], None], status_code: int = 200) -> None:
        super().__init__(events, status_code)  # FastAPI reads the default of this parameter for the OpenAPI
        self.leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends them."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.leave()


Snapshot = Callable[[], str]
Events = Annotated[int, Query(ge=0, le=100_000, description="end after so many events; 0 never")]


@dataclass
class Streams:
    """The streams that are open."""

    by_owner: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, owner: str) -> None:
        """Takes one more; raises 429 when there are too many."""
        with self._lock:
            if self.by_owner[owner] >= MOST_OF_ONE or self.by_owner.total() >= MOST_STREAMS:
                raise HTTPException(429, "too many streams are open; close a page of the console")
            self.by_owner[owner] += 1

    def leave(self, owner: str) -> None:
        """One less."""
        with self._lock:
            self.by_owner[owner] -= 1


def _streams(request: Request) -> Streams:
    found: Streams = request.app.state.streams
    return found


Open = Annotated[Streams, Depends(_streams)]


@router.get("/live/jobs", summary="All jobs, as they move", response_class=EventStream)
def follow_jobs(manager: Jobs, asker: Viewer, opened: Open, request: Request, events: Events = 0) -> EventStream:
    """Server-sent events: `jobs` has the list, each time that it has changed."""
    views: Views = request.app.state.views
    return streamed(request, asker, opened, "jobs", lambda: jobs_text(manager, views), events)


@router.get("/live/jobs/{name}", summary="One job, as it moves", response_class=EventStream)
def follow_job(
    manager: Jobs, asker: Viewer, opened: Open, request: Request, name: JobName, events: Events = 0
) -> EventStream:
    """Server-sent events: `job` has the job, the rates of its steps over the last seconds, and their totals."""
    manager.state(name)
    return streamed(request, asker, opened, "job", lambda: job_text(manager, name, asker), events)


@dataclass(frozen=True)
class StreamQuery:
    """Which stream is looked at, and which of its records."""

    step: Annotated[str, Query(max_length=300, description="the step whose output is looked at")]
    port: Annotated[str, Query(max_length=100, description="which output of the step, such as a side output")] = "out"
    where: Annotated[str, Query(max_length=500, description="a condition, as an expression: n > 3")] = ""


@router.get("/live/jobs/{name}/sample", summary="A few records of a stream, as they pass", response_class=EventStream)
def follow_stream(
    manager: Jobs,
    own: OwnJob,
    opened: Open,
    request: Request,
    name: JobName,
    stream: Annotated[StreamQuery, Depends()],
    events: Events = 0,
) -> EventStream:
    """Server-sent events: `sample` has at most 50 records of each batch. Nothing is sampled when nobody looks; for those who may change the job."""
    directory, asked = manager.directory(name), (stream.step, stream.port, stream.where)
    check_stream(directory.plan(), *asked)
    renew(directory, *asked)

    def looked() -> str:
        renew(directory, *asked)
        return json.dumps(seen(directory, *asked))

    return streamed(request, asker_of(request), opened, "sample", looked, events)


def jobs_text(manager: Manager, views: Views) -> str:
    """The list of jobs, as JSON."""
    seen = manager.seen.copy()
    return f'{{"jobs":[{",".join(views.texts(manager, [seen[name] for name in sorted(seen)]))}]}}'


def job_text(manager: Manager, name: JobName, asker: Identity) -> str:
    """One job with its figures, as JSON; empty when it is gone."""
    state = manager.seen.get(name)
    if state is None:
        return "{}"
    totals: dict[str, Any] = dict(state.progress.get("totals") or {})  # type: ignore[call-overload]
    recent = manager.history.recent(name, 10.0, time.time()) if state.phase == "running" else None
    return json.dumps(
        {
            "job": view_of(manager, state, asker).model_dump(),
            "rates": {**rates(recent), **(measured_of(state) if recent is not None else {})},
            "runs": _last_batch(state, "active_runs"),
            "metrics": _last_batch(state, "metrics"),
            "totals": totals.get("figures", {}),
            "watermarks": totals.get("watermarks", {}),
        }
    )


def _last_batch(state: JobState, what: str) -> object:
    """What the last batch says: the runs of patterns under way by step and pattern, the metrics of spouts and bolts by component and task."""
    last = state.progress.get("last")
    return last.get(what, {}) if isinstance(last, dict) else {}


def streamed(
    request: Request, asker: Identity, opened: Streams, event: str, snapshot: Snapshot, most: int
) -> EventStream:
    """A stream of events: what `snapshot` says, each time that it has changed."""
    opened.enter(asker.owner)
    return EventStream(_sent(request, asker, event, snapshot, most), lambda: opened.leave(asker.owner))


async def _sent(request: Request, asker: Identity, event: str, snapshot: Snapshot, most: int) -> AsyncIterator[str]:
    """The events, until the browser goes away, the server ends, or who watches may not any more."""
    before, sent = "", 0
    asked = spoke = time.monotonic()
    while not request.app.state.is_ending:
        text, now = await run_in_threadpool(snapshot), time.monotonic()
        if text != before:
            before, spoke, sent = text, now, sent + 1
            yield f"event: {event}\ndata: {text}\n\n"
        elif now - spoke > KEPT_ALIVE:
            spoke = now
            yield ": still here\n\n"
        if most and sent >= most:
            return
        if now - asked > ASKED_AGAIN:
            asked = now
            if not await _still_may(request, asker):
                return
        await asyncio.sleep(LOOK)


async def _still_may(request: Request, asker: Identity) -> bool:
    manager: Manager = request.app.state.manager
    shown: Credential = request.scope["credential"]
    return await run_in_threadpool(shown.identity, manager.tokens, manager.sessions) == asker
