"""What a job has stored: dead letters, savepoints, and where its driver is at this moment."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import Field

from penstock.jobs.manager.insight.dead_letters import JobDeadLetters
from penstock.jobs.manager.processes.stacks import dump_stacks
from penstock.jobs.manager.savepoints import savepoints_of
from penstock.server.bodies import Body
from penstock.server.depends import JobName, Jobs, OwnJob
from penstock.server.guard import Known, Viewer
from penstock.server.pages import AT_MOST, Page, Paging

router = APIRouter()
LetterId = Annotated[str, Path(description="the id of the dead letter, as the list has it")]
MOST = 10_000
"""How many dead letters can be looked at page by page."""


class DeadLetterIds(Body):
    """Which dead letters."""

    ids: list[Annotated[str, Field(max_length=200)]] = Field(
        min_length=1, max_length=10_000, description="their ids, as the list has them"
    )


class PayloadBody(Body):
    """The payload of a dead letter: `schema` and `record`, or the bytes that could not be read as `raw`."""

    payload: dict[str, Any] = Field(description="what is sent to the step in place of the payload before")


@router.get("/jobs/{name}/dead-letters", summary="The records that steps of a job have put aside")
def list_dead_letters(
    manager: Jobs,
    own: OwnJob,
    name: JobName,
    step: Annotated[str, Query(max_length=300, description="only those of this step; empty: of all")] = "",
    after: Annotated[str, Query(max_length=200, description="the id of the last one of the page before")] = "",
    limit: Annotated[int, Query(ge=1, le=1_000, description=AT_MOST)] = 100,
) -> dict[str, Any]:
    """The newest first, with their causes and records, for those who may change the job; and how many each step has."""
    directory = manager.directory(name)
    with directory.acting():
        found, counts = JobDeadLetters(directory).newest(MOST if after else limit, step)
    found = Page(after, limit).by_time(found, lambda letter: str(letter["id"])) if after else found
    return {"dead_letters": found, "steps": counts}


@router.post("/jobs/{name}/dead-letters/replay", status_code=202, summary="Send dead letters back")
def replay_dead_letters(manager: Jobs, asker: Known, own: OwnJob, name: JobName, body: DeadLetterIds) -> dict[str, int]:
    """They go to the step that failed on them, with the next batch."""
    directory = manager.directory(name)
    with directory.acting():
        many = JobDeadLetters(directory).replay(body.ids)
    manager.records.note(asker.owner, "replay", name, f"{many} dead letters")
    return {"replayed": many}


@router.post("/jobs/{name}/dead-letters/drop", summary="Remove dead letters for good")
def drop_dead_letters(manager: Jobs, asker: Known, own: OwnJob, name: JobName, body: DeadLetterIds) -> dict[str, int]:
    """There is no way back."""
    directory = manager.directory(name)
    with directory.acting():
        many = JobDeadLetters(directory).drop(body.ids)
    manager.records.note(asker.owner, "drop", name, f"{many} dead letters")
    return {"dropped": many}


@router.put("/jobs/{name}/dead-letters/{id}", summary="Change the record of a dead letter")
def edit_dead_letter(
    manager: Jobs, asker: Known, own: OwnJob, name: JobName, id: LetterId, body: PayloadBody
) -> dict[str, str]:
    """Before it is sent back; a request to send it back that still waits is taken back."""
    directory = manager.directory(name)
    with directory.acting():
        JobDeadLetters(directory).edit(id, body.payload)
    manager.records.note(asker.owner, "edit dead letter", name, id[:200])
    return {"id": id}


@router.get("/jobs/{name}/savepoints", summary="The savepoints of a job")
def list_savepoints(manager: Jobs, asker: Viewer, name: JobName, page: Paging) -> dict[str, list[dict[str, Any]]]:
    """The oldest first."""
    manager.state(name)
    directory = manager.directory(name)
    with directory.acting():
        found = savepoints_of(directory)
    return {"savepoints": page.by_time(found, lambda savepoint: str(savepoint["savepoint"]))}


@router.post("/jobs/{name}/stacks", summary="Where the driver of a job is at this moment")
def read_stacks(manager: Jobs, asker: Known, own: OwnJob, name: JobName) -> dict[str, str]:
    """The Python stacks of all its threads, and of its workers where they are on the same machine; the job runs on."""
    return {"stacks": dump_stacks(manager.directory(name), own.progress)}
