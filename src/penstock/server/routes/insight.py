"""What a job does inside: rules and queries, checkpoints, messages that are followed, where its time goes."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from penstock.errors import OptionError
from penstock.jobs.manager.insight.checkpoints import checkpoints_of
from penstock.jobs.manager.insight.log_levels import LOGGER, OWN, Level, change_level, shown_levels
from penstock.jobs.manager.insight.pool_use import pool_uses
from penstock.jobs.manager.insight.rule_sets import Op, change, described
from penstock.jobs.manager.insight.watching import Kind, renew_kind, seen_kind
from penstock.server.bodies import Body
from penstock.server.bodies import described as described_text
from penstock.server.depends import JobName, Jobs, OwnJob
from penstock.server.guard import Known, Viewer, asker_of
from penstock.server.pages import AT_MOST
from penstock.server.routes.live import Events, EventStream, Open, streamed
from penstock.server.views import plain_json

router = APIRouter()
RuleStep = Annotated[str, Path(description="the step that has the rule, pattern or query")]


class RuleBody(Body):
    """A change of a rule, pattern or standing query. `runs` says what becomes of the runs of a pattern that are under way: drop, keep or drain."""

    op: Op = Field(description="what is done with it")
    rule: str = Field("", max_length=200, description="the name of the rule, pattern or query")
    text: str = Field("", max_length=100_000, description="its new text, where it is added or changed")
    runs: str = Field("", max_length=20, description="drop, keep or drain the runs of a pattern")


@router.get(
    "/jobs/{name}/rules", summary="The rules, patterns and standing queries of a job", response_model=dict[str, Any]
)
def list_rules(manager: Jobs, own: OwnJob, name: JobName) -> Response:
    """By step: their texts and versions, whether they are enabled, who changed them last, and their runs, for those who may change the job."""
    directory = manager.directory(name)
    with directory.acting():
        return plain_json({"sets": described(directory, own.progress)})


@router.post("/jobs/{name}/rules/{step}", status_code=202, summary="Change a rule, a pattern or a standing query")
def change_rule(
    manager: Jobs, asker: Known, own: OwnJob, name: JobName, step: RuleStep, body: RuleBody
) -> dict[str, Any]:
    """By the topic from which the job takes changes; it takes effect with one of the next batches."""
    directory = manager.directory(name)
    manager.records.begin()
    with directory.acting():
        made = change(directory, step, body.op, body.rule, body.text, body.runs, by=asker.owner)
    manager.records.note(asker.owner, f"{body.op} rule", name, f"{step}: {made.rule}, version {made.version}")
    return asdict(made)


class LogLevelBody(Body):
    """From which level on a logger logs; `default` is as usual. `penstock` is Penstock's own, `spark` that of Spark's JVM, `root` all others of Python."""

    level: Level | Literal["default"] = Field(description="the least that is logged; default: as usual")
    logger: Annotated[str, described_text(LOGGER)] = Field(
        OWN, description="penstock, spark, root or the name of a logger"
    )


@router.get("/jobs/{name}/log-levels", summary="How much a job logs")
def list_log_levels(manager: Jobs, asker: Viewer, name: JobName) -> dict[str, Any]:
    """By logger, what was asked for."""
    manager.last_state(name)
    return shown_levels(manager.directory(name))


@router.put("/jobs/{name}/log-levels", summary="Change how much a job logs")
def set_log_level(manager: Jobs, asker: Known, own: OwnJob, name: JobName, body: LogLevelBody) -> dict[str, Any]:
    """Takes effect within a second in the driver, and with the next batch in its Python workers, without a restart; drivers that start later follow it too."""
    directory = manager.directory(name)
    with directory.acting():
        change_level(directory, body.logger, body.level)
    manager.records.note(asker.owner, "log level", name, f"{body.logger}: {body.level}")
    return shown_levels(directory)


@router.get("/jobs/{name}/checkpoints", summary="The versions of a job's checkpoint", response_model=dict[str, Any])
def list_checkpoints(
    manager: Jobs, asker: Viewer, name: JobName, limit: Annotated[int, Query(ge=1, le=200, description=AT_MOST)] = 50
) -> Response:
    """The newest first: when each was written, and how much state it names."""
    manager.last_state(name)
    directory = manager.directory(name)
    with directory.acting():
        return plain_json({"checkpoints": checkpoints_of(directory, limit)})


@router.get("/pool-uses", summary="How full pools are, and who waits", response_model=dict[str, Any])
def list_pool_uses(manager: Jobs, asker: Viewer) -> Response:
    """The limits of each pool, what its jobs take, by owner, and which jobs wait for what; `default` is always among them."""
    return plain_json({"pools": pool_uses(manager.last_states(), manager.records.pools())})


@router.get("/live/jobs/{name}/trace", summary="A few messages with all their tuples", response_class=EventStream)
def follow_messages(
    manager: Jobs, own: OwnJob, opened: Open, request: Request, name: JobName, events: Events = 0
) -> EventStream:
    """Server-sent events: `trace` has a few messages of spouts of a batch, and every tuple of theirs that a bolt has taken. For those who may change the job."""
    if not manager.directory(name).plan().get("traceable", False):
        raise OptionError("this job has no spouts and bolts, so there are no messages to follow")
    return _looked(manager, opened, request, name, "trace", events)


@router.get("/live/jobs/{name}/profile", summary="Where the time of a job goes", response_class=EventStream)
def follow_profile(
    manager: Jobs, own: OwnJob, opened: Open, request: Request, name: JobName, events: Events = 0
) -> EventStream:
    """Server-sent events: `profile` has how often each stack was seen in the driver and in its Python workers since somebody began to look."""
    return _looked(manager, opened, request, name, "profile", events)


def _looked(manager: Jobs, opened: Open, request: Request, name: JobName, kind: Kind, events: int) -> EventStream:
    directory = manager.directory(name)

    def looked() -> str:
        renew_kind(directory, kind)
        return json.dumps(seen_kind(directory, kind))

    return streamed(request, asker_of(request), opened, kind, looked, events)
