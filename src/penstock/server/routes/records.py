"""The log of the server: its topics, and their records in and out."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from penstock.bridge.request_format import RequestFormat
from penstock.jobs.manager.access.tokens import Identity
from penstock.jobs.manager.insight.topics import JobLog, describe_log, read_on
from penstock.server.depends import TopicName
from penstock.server.guard import Viewer, identity
from penstock.server.pages import AT_MOST
from penstock.server.served_log import ServedLog

router = APIRouter()


class Position(BaseModel):
    """Where records of a request are: so many from an offset on."""

    partition: int
    offset: int
    records: int


class StoredView(BaseModel):
    """What was stored, and where."""

    records: int
    positions: list[Position]


class RecordView(BaseModel):
    """A record of a topic."""

    partition: int
    offset: int
    timestamp: int = Field(description="milliseconds since 1970")
    key: str | None
    value: str | None
    headers: list[tuple[str, str | None]]


class RecordPage(BaseModel):
    """Records of a partition, and the offset to go on from."""

    records: list[RecordView]
    next: int


class TopicView(BaseModel):
    """A topic."""

    topic: str
    cleanup: str
    retention_ms: int | None
    retention_bytes: int | None
    records: int
    bytes: int
    damage: int
    partitions: list[dict[str, Any]]
    groups: list[dict[str, Any]]


class TopicPage(BaseModel):
    """Topics by name."""

    topics: list[TopicView]


def _served(request: Request) -> ServedLog:
    found: ServedLog | None = request.app.state.log
    if found is None:
        raise HTTPException(404, "this server has no log of its own; start it with --log DIR")
    return found


def _producer(found: Annotated[Identity, Depends(identity)]) -> Identity:
    if not (found.may("operate") or found.may("submit")):
        raise HTTPException(403, f"the role {found.role} may not put records into topics, nor look into them")
    return found


Served = Annotated[ServedLog, Depends(_served)]
Producer = Annotated[Identity, Depends(_producer)]
_RECORDS = {
    "requestBody": {
        "required": True,
        "description": "a record, an array of records, or a record in each line",
        "content": {
            "application/json": {"schema": {}},
            "application/x-ndjson": {"schema": {"type": "string"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@router.get("/topics", summary="The topics of the server's log")
def list_topics(
    asker: Viewer,
    served: Served,
    after: Annotated[str, Query(max_length=300, description="names later than this one, for the next page")] = "",
    limit: Annotated[int, Query(ge=1, le=1_000, description=AT_MOST)] = 100,
) -> TopicPage:
    """By name, with offsets, sizes and the groups that read them."""
    found = describe_log(JobLog(served.path, ()))["topics"]
    return TopicPage(topics=[TopicView(**t) for t in found if t["topic"] > after][:limit])


@router.post("/topics/{topic}", summary="Put records into a topic", response_model=StoredView, openapi_extra=_RECORDS)
async def put_records(
    asker: Producer,
    served: Served,
    request: Request,
    topic: TopicName,
    key_field: Annotated[str, Query(max_length=300, description="the field of the JSON that is the key: user.id")] = "",
    key_header: Annotated[str, Query(max_length=100, description="the header that is the key")] = "",
) -> Response:
    """Answers when they are on disk, as `penstock bridge http` does. An Idempotency-Key is kept with the records, so it holds also after a restart."""
    if key_field and key_header:
        raise HTTPException(422, "key_field and key_header exclude each other: one says where the key is")
    answer = await served.take(request, topic, RequestFormat(key_header, key_field))
    if "idempotent-replayed" not in answer.headers:
        many = int(json.loads(bytes(answer.body))["records"])
        await run_in_threadpool(served.audit.add, asker.owner, topic, many)
    return answer


@router.get("/topics/{topic}/records", summary="Records of a topic, from an offset on")
def read_topic(
    asker: Producer,
    served: Served,
    topic: TopicName,
    partition: Annotated[int, Query(ge=0, description="the partition to read")] = 0,
    offset: Annotated[int, Query(ge=0, description="`next` of the page before")] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000, description=AT_MOST)] = 100,
) -> RecordPage:
    """In their order. Records that retention has deleted are passed over; `next` is where to go on, also when there are none yet."""
    found, following = read_on(served.path, topic, partition, offset, limit)
    return RecordPage(records=[RecordView(**record) for record in found], next=following)
