"""The logs that jobs read and write."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request
from pydantic import Field

from penstock.errors import PenstockError
from penstock.jobs.manager.access.tokens import Identity
from penstock.jobs.manager.insight.clusters import ClusterLooks
from penstock.jobs.manager.insight.topics import JobCluster, JobLog, clusters_of, describe_log, logs_of, peek, produce
from penstock.jobs.manager.manager import Manager
from penstock.server.bodies import Body
from penstock.server.depends import Jobs, TopicName
from penstock.server.guard import Known, Viewer, identity
from penstock.server.pages import AT_MOST, Paging

router = APIRouter()
LogId = Annotated[str, Path(description="the id of the log or cluster, as the list of logs has it")]


class RecordBody(Body):
    """A record to put into a topic."""

    value: str = Field(max_length=1 << 20, description="its value")
    key: str | None = Field(None, max_length=10_000, description="its key; null: none")


def _logs(manager: Manager, looks: ClusterLooks) -> dict[str, JobLog | JobCluster]:
    """The logs that jobs name and can reach themselves, and the Kafka clusters that they name."""
    made: dict[str, JobLog | JobCluster] = {}
    plans = []
    for job in manager.records.all():
        directory = manager.directory(job.name)
        plans.append((job.name, directory.plan()))
        with directory.acting():
            for found in logs_of(plans[-1:]).values():
                before = made[found.id].jobs if found.id in made else ()
                made[found.id] = JobLog(found.path, (*before, job.name))
    return {**made, **clusters_of(plans, looks)}


def _acting(manager: Manager, log: JobLog | JobCluster, asker: Identity | None = None) -> AbstractContextManager[None]:
    """With the rights of a job that uses a log, one that who asks may change."""
    jobs = [j for j in log.jobs if asker is None or asker.may_change(manager.records.get(j).owner)]
    return manager.directory((jobs or log.jobs)[0]).acting()


def _looks(request: Request) -> ClusterLooks:
    found: ClusterLooks = request.app.state.clusters
    return found


Looks = Annotated[ClusterLooks, Depends(_looks)]


def own_log(
    manager: Jobs, looks: Looks, asker: Annotated[Identity, Depends(identity)], log: LogId
) -> JobLog | JobCluster:
    """A log or a cluster, for who may change a job that uses it: it has what the job reads."""
    found = _logs(manager, looks).get(log)
    if not asker.may("operate") and (
        found is None or not any(asker.may_change(manager.records.get(job).owner) for job in found.jobs)
    ):
        raise HTTPException(403, f"the role {asker.role} may not look into records of jobs that are not its own")
    if found is None:
        raise HTTPException(404, f"no job uses a log {log[:80]!r}")
    return found


OwnLog = Annotated[JobLog | JobCluster, Depends(own_log)]


@router.get("/logs", summary="The logs that jobs use, with their topics and groups")
def list_logs(manager: Jobs, looks: Looks, asker: Viewer, page: Paging) -> dict[str, list[dict[str, Any]]]:
    """Offsets, sizes and lag; `kind` is `log` for one of Penstock's own, `kafka` for a cluster, which is asked beside and shown as it was at the last look."""
    found, made = sorted(_logs(manager, looks).values(), key=lambda log: log.id), []
    for log in page.of(found, lambda log: log.id):
        with _acting(manager, log), suppress(OSError, PenstockError):  # a log that is damaged hides no other
            made.append(describe_log(log))
    return {"logs": made}


@router.get("/logs/{log}/topics/{topic}/records", summary="The newest records of a topic")
def read_records(
    manager: Jobs,
    asker: Known,
    found: OwnLog,
    log: LogId,
    topic: TopicName,
    partition: Annotated[int | None, Query(ge=0, description="only records of this partition; none: of all")] = None,
    where: Annotated[str, Query(max_length=1_000, description="a filter: total > 100 and kind = 'order'")] = "",
    limit: Annotated[int, Query(ge=1, le=500, description=AT_MOST)] = 50,
) -> dict[str, list[dict[str, Any]]]:
    """The newest first. The filter is a small language over the fields of JSON; it runs no code."""
    with _acting(manager, found, asker):
        return {"records": peek(found, topic, limit, where, partition)}


@router.post("/logs/{log}/topics/{topic}/records", status_code=201, summary="Put a record into a topic")
def put_record(
    manager: Jobs, asker: Known, found: OwnLog, log: LogId, topic: TopicName, body: RecordBody
) -> dict[str, int]:
    """Where it is then."""
    manager.records.begin()
    with _acting(manager, found, asker):
        made = produce(found, topic, body.value, body.key)
    manager.records.note(asker.owner, "produce", topic, f"partition {made['partition']}, offset {made['offset']}")
    return made
