"""The REST API of the manager of jobs, as an ASGI application."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse

from penstock.bridge.asgi.bodies import TimelyBody
from penstock.bridge.limits import Limits
from penstock.errors import PenstockError, UnknownName
from penstock.graph.state.key_groups import SLOTS
from penstock.jobs.manager.access.tokens import Identity, Role, Token
from penstock.jobs.manager.alerts.center import AlertCenter
from penstock.jobs.manager.alerts.notify import Notifier
from penstock.jobs.manager.disk import DiskGuard, DiskLimits
from penstock.jobs.manager.insight.clusters import ClusterLooks
from penstock.jobs.manager.insight.logs import tail
from penstock.jobs.manager.job import TRIAL, Job
from penstock.jobs.manager.manager import JobPhase, JobState, Manager, Upgrade
from penstock.jobs.manager.pools import DEFAULT, Pool
from penstock.jobs.manager.savepoints import take_savepoint
from penstock.jobs.manager.store.answers import Answers
from penstock.jobs.manager.store.audit import AuditEntry, AuditVerification
from penstock.jobs.manager.store.records import Event
from penstock.server.assets import ConsoleAssets, assets
from penstock.server.bodies import LARGEST, TEN_YEARS, Body, Digest, Name, Options, Owner, described
from penstock.server.contract import describe, operation_id
from penstock.server.depends import JobName, Jobs, OwnJob, PoolName, TokenId
from penstock.server.guard import Administrator, Gate, Known, Submitter, Viewer
from penstock.server.oidc import routes as oidc_routes
from penstock.server.packages import check_packages
from penstock.server.pages import AT_MOST, Paging
from penstock.server.problems import handle_problems, problem
from penstock.server.reading import HeadRequests, check_query
from penstock.server.replays import Replays
from penstock.server.routes import (
    alerts,
    figures,
    insight,
    live,
    metrics,
    planning,
    records,
    signing_in,
    stored,
    topics,
)
from penstock.server.served_log import ServedLog
from penstock.server.tags import AnswerTags, check_unchanged, current_tag
from penstock.server.views import JobView, Views, etag_of, view_of
from penstock.version import __version__

PREFIX = "/api/v1"
PUBLIC = frozenset(
    {
        ("GET", "/health"),
        ("GET", "/openapi.json"),
        ("POST", "/session"),
        ("GET", "/oidc"),
        ("GET", "/oidc/start"),
        ("GET", "/oidc/callback"),
    }
)
"""What the API answers without a token; beside it the console's own files are for all."""
LIMITS = Limits(connections=512, idle_seconds=30.0)
"""What a client may cost."""
ABOUT = "HEAD is answered as GET is, without the content, but for streams (`/live`). A parameter of the query that a route does not know is refused."
MOST = 1_000
"""How many entries one answer has at most."""

Packages = Annotated[
    dict[str, str],
    Field(
        max_length=100,
        description="packages that the flow imports, each with the extra of Penstock that installs it, or nothing",
    ),
]

router = APIRouter()


class JobBody(Body):
    """A job to be run: a bundle that was sent before, the flow in it, and the options of its run."""

    name: Name = Field(description="the name of the job")
    bundle: Digest = Field(description="the name of the bundle, as sending it has returned it")
    target: str = Field(min_length=1, max_length=1_000, description="the flow in the bundle: count.py, count.py:flow")
    options: Options = Field({}, description="options of the run, as `penstock run` has them: interval, master")
    pool: Name = Field(DEFAULT, description="the pool that it runs in")
    cores: int = Field(0, ge=0, le=100_000, description="what it asks for; 0 is what Spark takes by itself")
    memory: int = Field(0, ge=0, le=1 << 30, description="in MiB; 0 is what Spark takes by itself")
    priority: int = Field(0, ge=-1_000, le=1_000, description="jobs with a higher one start first")
    packages: Packages = {}


Limit = Annotated[int, Field(ge=1, le=LARGEST)]


class PoolBody(Body):
    """The limits of a pool and of each owner in it: cores, and memory in MiB; null is no limit."""

    cores: Limit | None = Field(None, description="of all its jobs together")
    memory: Limit | None = Field(None, description="of all its jobs together, in MiB")
    owner_cores: Limit | None = Field(None, description="of the jobs of one owner")
    owner_memory: Limit | None = Field(None, description="of the jobs of one owner, in MiB")


class RescaleBody(Body):
    """Another number of tasks."""

    tasks: int = Field(ge=1, le=SLOTS, description="tasks of each keyed step")


class UpgradeBody(Body):
    """Another version of a job: a bundle that was sent before; the flow in it and the options of its run, where they change."""

    bundle: Digest = Field(description="the name of the bundle, as sending it has returned it")
    target: str = Field("", max_length=1_000, description="the flow in the bundle; empty: as before")
    options: Options = Field({}, description="options of the run that change")
    trial: float = Field(TRIAL, ge=1.0, le=86_400.0, description="seconds that it has to come up")
    packages: Packages = {}


class SavepointBody(Body):
    """The name of a savepoint; empty makes one of the version and the time."""

    name: Annotated[str, described(r"^([A-Za-z0-9][A-Za-z0-9._-]{0,62})?$")] = Field("", description="its name")


class TokenBody(Body):
    """A token for somebody."""

    owner: Owner = Field(description="whose it is")
    role: Role = Field(description="what its owner may do")
    seconds: Annotated[float, Field(gt=0.0, le=TEN_YEARS)] | None = Field(
        None, description="how long it holds; null: for good"
    )


@router.get("/health", summary="Whether the server answers")
async def health(manager: Jobs) -> dict[str, str]:
    """Needs no token. Of two managers of one database the one that leads sees to the jobs, and both answer everything."""
    return {"status": "ok", "version": __version__, "role": "leader" if manager.leads else "standby"}


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


@router.get("/jobs", summary="List jobs", response_model=dict[str, list[JobView]])
def list_jobs(
    request: Request,
    manager: Jobs,
    asker: Viewer,
    phase: Annotated[JobPhase | Literal[""], Query(description="only jobs in this phase; empty: in any")] = "",
    owner: Annotated[str, Query(description="only jobs of this owner; empty: of all")] = "",
    after: Annotated[str, Query(description="names later than this one, for the next page")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST, description=AT_MOST)] = 100,
) -> Response:
    """Jobs by name, without their options."""
    found = [
        s for s in manager.last_states() if s.job.name > after and phase in ("", s.phase) and owner in ("", s.job.owner)
    ]
    views: Views = request.app.state.views
    made = ",".join(views.texts(manager, found[:limit]))
    return Response(f'{{"jobs":[{made}]}}', media_type="application/json")


@router.post("/jobs", status_code=201, summary="Submit a job")
def submit(
    manager: Jobs,
    asker: Submitter,
    body: JobBody,
    idempotency_key: Annotated[str | None, Header(max_length=255)] = None,
) -> JobView:
    """Takes a job in and starts it. The same request with the same Idempotency-Key is answered with the job that it made."""
    check_packages(body.packages)
    needs = {"pool": body.pool, "cores": body.cores, "memory": body.memory, "priority": body.priority}
    job = Job(body.name, asker.owner, body.bundle, body.target, body.options, created=time.time(), **needs)  # type: ignore[arg-type]  # checked by Job
    known = manager.records.submitted(asker.owner, idempotency_key, job) if idempotency_key else None
    state = manager.state(known) if known else manager.submit(job, asker.owner, idempotency_key or "")
    return view_of(manager, state, asker)


@router.get("/jobs/{name}", summary="Show a job")
def show_job(manager: Jobs, asker: Viewer, name: JobName, response: Response) -> JobView:
    """One job, with its ETag."""
    state = manager.last_state(name)
    response.headers["ETag"] = f'"{etag_of(state)}"'
    return view_of(manager, state, asker)


@router.delete("/jobs/{name}", status_code=204, summary="Forget a job that has stopped")
def remove_job(manager: Jobs, asker: Known, own: OwnJob, name: JobName) -> None:
    """Deletes what it kept, its checkpoint included."""
    manager.remove(name, asker.owner)


def _action(name: str, summary: str, act: Callable[[Manager, str, str], JobState]) -> None:
    def post(manager: Jobs, asker: Known, own: OwnJob, name: JobName) -> JobView:
        return view_of(manager, act(manager, name, asker.owner), asker)

    router.add_api_route(
        f"/jobs/{{name}}/{name}", post, methods=["POST"], status_code=202, summary=summary, name=f"{name}_job"
    )


_action("stop", "Stop a job after its batch", lambda m, name, by: m.wish(name, "stopped", by))
_action("kill", "Stop a job at once", lambda m, name, by: m.wish(name, "stopped", by, is_forced=True))
_action("pause", "Have a job read nothing and keep its state", lambda m, name, by: m.wish(name, "paused", by))
_action("resume", "Have a job run", lambda m, name, by: m.wish(name, "running", by))
_action("restart", "Start another driver", lambda m, name, by: m.restart(name, by))


@router.post("/jobs/{name}/rescale", status_code=202, summary="Change the number of tasks")
def rescale(manager: Jobs, asker: Known, own: OwnJob, name: JobName, body: RescaleBody) -> JobView:
    """Starts another driver, whose keyed steps have so many tasks; state moves along."""
    return view_of(manager, manager.rescale(name, body.tasks, asker.owner), asker)


@router.post("/jobs/{name}/upgrade", status_code=202, summary="Run another version")
def upgrade(manager: Jobs, asker: Submitter, own: OwnJob, name: JobName, body: UpgradeBody) -> JobView:
    """Starts the new version from a savepoint of the one that runs, which goes on if the new one does not come up within `trial` seconds."""
    check_packages(body.packages)
    wanted = Upgrade(body.bundle, body.target, body.options, body.trial)
    return view_of(manager, manager.upgrade(name, wanted, asker.owner), asker)


@router.post("/jobs/{name}/savepoints", status_code=201, summary="Take a savepoint")
def savepoint(manager: Jobs, asker: Known, own: OwnJob, name: JobName, body: SavepointBody) -> dict[str, Any]:
    """Copies the state and the offsets of a job, while it runs or after."""
    directory = manager.directory(name)
    with directory.acting():
        made = take_savepoint(directory, body.name)
    manager.records.note(asker.owner, "savepoint", name, str(made["savepoint"]))
    return made


@router.get("/jobs/{name}/log", summary="The end of a job's log", response_class=PlainTextResponse)
def read_log(
    manager: Jobs,
    asker: Viewer,
    name: JobName,
    lines: Annotated[int, Query(ge=1, le=10_000, description="how many lines the answer has at most")] = 100,
    search: Annotated[str, Query(max_length=200, description="only lines that have this text in them")] = "",
) -> Response:
    """The newest lines that have a text in them, as plain text."""
    state = manager.state(name)
    found = tail(manager.directory(state.job.name).log, lines, search)
    return Response("".join(f"{line}\n" for line in found), media_type="text/plain")


@router.get("/jobs/{name}/events", summary="What happened to a job")
def list_events(
    manager: Jobs,
    asker: Viewer,
    name: JobName,
    before: Annotated[
        float | None, Query(allow_inf_nan=False, description="the time of the last one of the page before")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST, description=AT_MOST)] = 100,
) -> dict[str, list[Event]]:
    """The newest first, of the newest thousand."""
    manager.state(name)
    found = manager.records.events(name, limit if before is None else MOST)
    return {"events": [event for event in found if before is None or event.time < before][:limit]}


@router.get("/pools", summary="List pools")
def list_pools(manager: Jobs, asker: Viewer, page: Paging) -> dict[str, list[Pool]]:
    """The limits of each, by name; `default` is listed when it has any."""
    found = sorted(manager.records.pools().values(), key=lambda pool: pool.name)
    return {"pools": page.of(found, lambda pool: pool.name)}


@router.get("/pools/{name}", summary="Show a pool")
def show_pool(manager: Jobs, asker: Viewer, name: PoolName, request: Request, response: Response) -> Pool:
    """Its limits, with its ETag."""
    found = manager.records.pools().get(name)
    if found is None:
        raise UnknownName(f"there is no pool {name!r} with limits")
    response.headers["ETag"] = f'"{current_tag(request, "pools", name)}"'
    return found


@router.put("/pools/{name}", summary="Set the limits of a pool")
def put_pool(manager: Jobs, asker: Administrator, name: PoolName, body: PoolBody) -> Pool:
    """Jobs that run go on, also where they are more than the new limits allow."""
    pool = Pool(name, body.cores, body.memory, body.owner_cores, body.owner_memory)
    manager.records.put_pool(pool, asker.owner)
    return pool


@router.delete("/pools/{name}", status_code=204, summary="Forget a pool")
def remove_pool(manager: Jobs, asker: Administrator, name: PoolName) -> None:
    """One that has no jobs."""
    manager.records.remove_pool(name, asker.owner)


@router.get("/tokens", summary="List tokens")
def list_tokens(manager: Jobs, asker: Administrator, page: Paging) -> dict[str, list[Token]]:
    """Whose they are, not what they are; the newest first."""
    return {"tokens": page.by_time(manager.tokens.all(), lambda token: token.id)}


@router.post("/tokens", status_code=201, summary="Make a token")
def make_token(manager: Jobs, asker: Administrator, body: TokenBody) -> dict[str, Any]:
    """The token is in this answer and nowhere else."""
    text, token = manager.tokens.make(body.owner, body.role, body.seconds, asker.owner)
    return {"token": text, **vars(token)}


@router.delete("/tokens/{id}", status_code=204, summary="Revoke a token")
def revoke_token(manager: Jobs, asker: Administrator, id: TokenId) -> None:
    """It ends at once."""
    manager.tokens.revoke(id, asker.owner)


@router.get("/audit", summary="Who changed what")
def audit(
    manager: Jobs,
    asker: Administrator,
    before: Annotated[
        float | None, Query(allow_inf_nan=False, description="the time of the last one of the page before")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST, description=AT_MOST)] = 100,
) -> dict[str, list[AuditEntry]]:
    """The newest first."""
    return {"entries": manager.records.audit(limit, before)}


@router.get("/audit/verification", summary="Whether the audit is what was written")
def verify_audit(
    manager: Jobs,
    asker: Administrator,
    noted: Annotated[
        str, Query(max_length=100, description="a head that an earlier look returned, kept elsewhere")
    ] = "",
) -> AuditVerification:
    """Looks at every entry: one that was edited, dropped or moved does not fit those beside it."""
    return manager.records.verify_audit(noted)


@contextmanager
def _in_background(targets: Mapping[str, Callable[[threading.Event], None]]) -> Iterator[None]:
    """Runs each in a thread of its own, until it is asked to stop."""
    stopping = threading.Event()
    threads = [
        threading.Thread(target=target, args=(stopping,), name=f"penstock-{name}", daemon=True)
        for name, target in targets.items()
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join(10.0)


def make_app(
    manager: Manager,
    hosts: tuple[str, ...] = (),
    notifier: Notifier | None = None,
    log: Path | None = None,
    oidc: oidc_routes.OidcSignIn | None = None,
    disk: DiskLimits | None = None,
) -> FastAPI:
    """The application of a manager that this process has opened. `hosts` are the names it answers for beside those of loopback; `log` is the
    directory of the log that it serves.
    """
    center, disk_guard = AlertCenter(manager, notifier or Notifier()), DiskGuard(manager, disk or DiskLimits())
    threads_of = {"jobs": manager.watch, "alerts-look": center.run, "disk": disk_guard.run}

    @asynccontextmanager
    async def watching(app: FastAPI) -> AsyncIterator[None]:
        with _in_background(threads_of):
            assets()  # compressed before the first page is asked for
            app.state.log = None if log is None else ServedLog(log, manager.records)
            yield
            if app.state.log is not None:
                await app.state.log.close()

    app = FastAPI(
        title="Penstock jobs",
        version=__version__,
        description=ABOUT,
        lifespan=watching,
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{PREFIX}/openapi.json",
        generate_unique_id_function=operation_id,
        dependencies=[Depends(check_query), Depends(check_unchanged)],
    )
    app.state.manager, app.state.streams, app.state.is_ending = manager, live.Streams(), False
    app.state.views, app.state.clusters = Views(), ClusterLooks()
    app.state.alerts, app.state.log, app.state.oidc = center, None, oidc
    modules = (signing_in, oidc_routes, figures, live, insight, alerts, metrics, stored, topics, records, planning)
    for each in (router, *(module.router for module in modules)):
        app.include_router(each, prefix=PREFIX)
    app.mount("/", ConsoleAssets())
    app.add_middleware(AnswerTags)
    app.add_middleware(Replays, answers=Answers(manager.database), keeps_own=_keeps_own)
    app.add_middleware(Gate, tokens=manager.tokens, sessions=manager.sessions, hosts=hosts, is_public=_is_public)
    app.add_middleware(HeadRequests)
    app.add_middleware(TimelyBody, limits=LIMITS)
    describe(app, PREFIX, PUBLIC)
    handle_problems(app)
    app.add_exception_handler(Exception, _unexpected)
    return app


def _is_public(method: str, path: str) -> bool:
    if not path.startswith("/api"):
        return True
    return (method, path.removeprefix(PREFIX)) in PUBLIC


def _keeps_own(method: str, path: str) -> bool:
    """What is kept with a job or with records, or changes nothing when it is sent again."""
    short = path.removeprefix(PREFIX)
    return (method, short) in (("POST", "/jobs"), ("POST", "/bundles")) or short.startswith("/topics/")


async def _unexpected(request: Request, error: Exception) -> Response:
    assert not isinstance(error, PenstockError)
    return problem(500, "the server failed on this request; its log has the reason")
