"""Redis read and written without a JVM."""

from __future__ import annotations

import pytest
import redis

import penstock as ps
from penstock.errors import RunError
from penstock.testing import run_local


def test_a_local_run_reads_a_stream_and_writes_hashes_and_lists(url: str, client: redis.Redis) -> None:
    for i in range(25):
        client.xadd("events", {"id": i, "word": "ab"[i % 2]})
    flow = ps.Flow("local")
    events = flow.source("events", ps.redis_stream(url, "events", "id bigint, word string"))
    events.key_by("word").count("n").sink("counts", ps.write_redis(url, "hash", key="word", name="count"))
    events.select("ids", "id").sink("all", ps.write_redis(url, "list", name="ids", value="id"))
    run_local(flow, write=True)
    assert client.hgetall("count:a") == {b"n": b"13"}
    assert client.lrange("ids", 0, -1) == [str(i).encode() for i in range(25)]


def test_an_empty_stream_has_no_entries(url: str) -> None:
    flow = ps.Flow("empty")
    flow.source("events", ps.redis_stream(url, "nothing", "id bigint")).sink("out", ps.console())
    assert run_local(flow)["out"] == []


def test_a_key_of_another_kind_is_refused(url: str, client: redis.Redis) -> None:
    client.set("ids", "a string")
    flow = ps.Flow("refused")
    flow.source("rows", ps.items([1], "id bigint")).sink("out", ps.write_redis(url, "list", name="ids"))
    with pytest.raises(RunError, match="sink 'out': writing failed"):
        run_local(flow, write=True)
