"""The REST API of the manager of jobs, as an ASGI application."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Query, Request, Response
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool

from penstock.errors import PenstockError
from penstock.jobs.manager.access import Identity, Role
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.logs import tail
from penstock.jobs.manager.manager import JobState, Manager
from penstock.jobs.manager.savepoints import take_savepoint
from penstock.server.guard import Administrator, Gate, Known, Submitter, Viewer
from penstock.server.problems import handle_problems, problem
from penstock.server.views import JobView, etag_of, view_of
from penstock.version import __version__

PREFIX = "/api/v1"
PUBLIC = frozenset({f"{PREFIX}/health", f"{PREFIX}/openapi.json"})
"""What is answered without a token."""
MOST = 1_000
"""How many entries one answer has at most."""

router = APIRouter(prefix=PREFIX)


class JobBody(BaseModel):
    """A job to be run: a bundle that was sent before, the flow in it, and the options of its run."""

    model_config = ConfigDict(extra="forbid")
    name: str
    bundle: str
    target: str
    options: dict[str, Any] = {}


class RescaleBody(BaseModel):
    """Another number of tasks."""

    model_config = ConfigDict(extra="forbid")
    tasks: int


class SavepointBody(BaseModel):
    """The name of a savepoint; empty makes one of the version and the time."""

    model_config = ConfigDict(extra="forbid")
    name: str = ""


class TokenBody(BaseModel):
    """A token for somebody."""

    model_config = ConfigDict(extra="forbid")
    owner: str
    role: Role
    seconds: float | None = None


def _manager(request: Request) -> Manager:
    found: Manager = request.app.state.manager
    return found


Jobs = Annotated[Manager, Depends(_manager)]
IfMatch = Annotated[str | None, Header()]


@router.get("/health", summary="Whether the server answers")
def health() -> dict[str, str]:
    """Needs no token."""
    return {"status": "ok", "version": __version__}


@router.get("/me", summary="Who asks")
def me(asker: Known) -> dict[str, str]:
    """The owner and the role of the token."""
    return {"owner": asker.owner, "role": asker.role}


_ZIP = {
    "requestBody": {
        "required": True,
        "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post("/bundles", status_code=201, summary="Send a bundle of code", openapi_extra=_ZIP)
async def send_bundle(manager: Jobs, asker: Submitter, request: Request) -> dict[str, str]:
    """Keeps an archive; its name is the SHA-256 of its bytes, so sending it again changes nothing."""
    return await run_in_threadpool(_keep_bundle, manager, asker, await request.body())


def _keep_bundle(manager: Manager, asker: Identity, content: bytes) -> dict[str, str]:
    digest = manager.bundles.put(content)
    manager.records.note(asker.owner, "bundle", digest)
    return {"bundle": digest}


@router.get("/jobs", summary="List jobs")
def list_jobs(
    manager: Jobs,
    asker: Viewer,
    phase: str = "",
    owner: str = "",
    after: Annotated[str, Query(description="names later than this one, for the next page")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
) -> dict[str, list[JobView]]:
    """Jobs by name."""
    found = [
        s for s in manager.states() if s.job.name > after and phase in ("", s.phase) and owner in ("", s.job.owner)
    ]
    return {"jobs": [view_of(state, asker) for state in found[:limit]]}


@router.post("/jobs", status_code=201, summary="Submit a job")
def submit(
    manager: Jobs,
    asker: Submitter,
    body: JobBody,
    idempotency_key: Annotated[str | None, Header(max_length=255)] = None,
) -> JobView:
    """Takes a job in and starts it. The same request with the same Idempotency-Key is answered with the job that it made."""
    job = Job(body.name, asker.owner, body.bundle, body.target, body.options, created=time.time())
    known = manager.records.submitted(asker.owner, idempotency_key, job) if idempotency_key else None
    state = manager.state(known) if known else manager.submit(job, asker.owner, idempotency_key or "")
    return view_of(state, asker)


@router.get("/jobs/{name}", summary="Show a job")
def show_job(manager: Jobs, asker: Viewer, name: str, response: Response) -> JobView:
    """One job, with its ETag."""
    state = manager.state(name)
    response.headers["ETag"] = f'"{etag_of(state)}"'
    return view_of(state, asker)


@router.delete("/jobs/{name}", status_code=204, summary="Forget a job that has stopped")
def remove_job(manager: Jobs, asker: Known, name: str, if_match: IfMatch = None) -> None:
    """Deletes what it kept, its checkpoint included."""
    _changed(manager, asker, name, if_match)
    manager.remove(name, asker.owner)


def _action(name: str, summary: str, act: Callable[[Manager, str, str], JobState]) -> None:
    def post(manager: Jobs, asker: Known, name: str, if_match: IfMatch = None) -> JobView:
        _changed(manager, asker, name, if_match)
        return view_of(act(manager, name, asker.owner), asker)

    router.add_api_route(
        f"/jobs/{{name}}/{name}", post, methods=["POST"], status_code=202, summary=summary, operation_id=f"{name}_job"
    )


_action("stop", "Stop a job after its batch", lambda m, name, by: m.wish(name, "stopped", by))
_action("kill", "Stop a job at once", lambda m, name, by: m.wish(name, "stopped", by, is_forced=True))
_action("pause", "Have a job read nothing and keep its state", lambda m, name, by: m.wish(name, "paused", by))
_action("resume", "Have a job run", lambda m, name, by: m.wish(name, "running", by))
_action("restart", "Start another driver", lambda m, name, by: m.restart(name, by))


@router.post("/jobs/{name}/rescale", status_code=202, summary="Change the number of tasks")
def rescale(manager: Jobs, asker: Known, name: str, body: RescaleBody, if_match: IfMatch = None) -> JobView:
    """Starts another driver, whose keyed steps have so many tasks; state moves along."""
    _changed(manager, asker, name, if_match)
    return view_of(manager.rescale(name, body.tasks, asker.owner), asker)


@router.post("/jobs/{name}/savepoints", status_code=201, summary="Take a savepoint")
def savepoint(manager: Jobs, asker: Known, name: str, body: SavepointBody) -> dict[str, Any]:
    """Copies the state and the offsets of a job, while it runs or after."""
    _changed(manager, asker, name, None)
    made = take_savepoint(manager.directory(name), body.name)
    manager.records.note(asker.owner, "savepoint", name, str(made["savepoint"]))
    return made


@router.get("/jobs/{name}/log", summary="The end of a job's log", response_class=Response)
def read_log(
    manager: Jobs,
    asker: Viewer,
    name: str,
    lines: Annotated[int, Query(ge=1, le=10_000)] = 100,
    search: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """The newest lines that have a text in them, as plain text."""
    state = manager.state(name)
    found = tail(manager.directory(state.job.name).log, lines, search)
    return Response("".join(f"{line}\n" for line in found), media_type="text/plain")


@router.get("/jobs/{name}/events", summary="What happened to a job")
def list_events(
    manager: Jobs, asker: Viewer, name: str, limit: Annotated[int, Query(ge=1, le=MOST)] = 100
) -> dict[str, list[dict[str, Any]]]:
    """The newest first."""
    manager.state(name)
    return {"events": [vars(event) for event in manager.records.events(name, limit)]}


@router.get("/tokens", summary="List tokens")
def list_tokens(manager: Jobs, asker: Administrator) -> dict[str, list[dict[str, Any]]]:
    """Whose they are, not what they are."""
    return {"tokens": [vars(token) for token in manager.tokens.all()]}


@router.post("/tokens", status_code=201, summary="Make a token")
def make_token(manager: Jobs, asker: Administrator, body: TokenBody) -> dict[str, Any]:
    """The token is in this answer and nowhere else."""
    text, token = manager.tokens.make(body.owner, body.role, body.seconds)
    manager.records.note(asker.owner, "token", token.id, f"{token.role} {token.owner}")
    return {"token": text, **vars(token)}


@router.delete("/tokens/{id}", status_code=204, summary="Revoke a token")
def revoke_token(manager: Jobs, asker: Administrator, id: str) -> None:
    """It ends at once."""
    manager.tokens.revoke(id)
    manager.records.note(asker.owner, "revoke", id)


@router.get("/audit", summary="Who changed what")
def audit(
    manager: Jobs,
    asker: Administrator,
    before: float | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
) -> dict[str, list[dict[str, Any]]]:
    """The newest first."""
    return {"entries": [vars(entry) for entry in manager.records.audit(limit, before)]}


def _changed(manager: Manager, asker: Identity, name: str, if_match: str | None) -> None:
    """Refuses a change by somebody who may not, or of a job that has changed since it was looked at."""
    state = manager.state(name)
    if not asker.may_change(state.job.owner):
        raise HTTPException(
            403, f"job {name!r} belongs to {state.job.owner}, and the role {asker.role} may not change it"
        )
    if if_match is not None and if_match.strip('"') not in (etag_of(state), "*"):
        raise HTTPException(412, f"job {name!r} has changed since; look at it again")


def make_app(manager: Manager, hosts: tuple[str, ...] = ()) -> FastAPI:
    """The application of a manager that this process has opened. `hosts` are the names it answers for beside those of loopback."""

    @asynccontextmanager
    async def watching(app: FastAPI) -> AsyncIterator[None]:
        stopping = threading.Event()
        thread = threading.Thread(target=manager.watch, args=(stopping,), name="penstock-jobs", daemon=True)
        thread.start()
        yield
        stopping.set()
        thread.join(10.0)

    app = FastAPI(
        title="Penstock jobs",
        version=__version__,
        lifespan=watching,
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{PREFIX}/openapi.json",
    )
    app.state.manager = manager
    app.include_router(router)
    app.add_middleware(Gate, tokens=manager.tokens, hosts=hosts, public=PUBLIC)
    handle_problems(app)
    app.add_exception_handler(Exception, _unexpected)
    return app


async def _unexpected(request: Request, error: Exception) -> Response:
    assert not isinstance(error, PenstockError)
    return problem(500, "the server failed on this request; its log has the reason")
