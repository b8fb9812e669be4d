"""Redis read and written without a JVM."""

from __future__ import annotations

import pytest
import redis

import penstock as ps
from penstock.errors import RunError, StepError
from penstock.kernels.errors.payload import read_payload
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


HOSTILE = [
    {"id": "x"},
    {"id": "9223372036854775808"},
    {"id": b"\xff"},
    {"id": "1", "at": "0000-01-01T00:00:00Z"},
    {"id": "1", "at": "10000-01-01T00:00:00Z"},
    {"id": "1", "more": "[" * 100_000},
    {"id": "1", "more": '{"a":"x"}'},
]


def test_a_hostile_entry_is_a_dead_letter_and_stops_nothing(url: str, client: redis.Redis) -> None:
    for i, entry in enumerate(HOSTILE):
        client.xadd("hostile", {"id": i, "at": "2026-01-01T00:00:00Z", "more": '{"a":1}'})
        client.xadd("hostile", entry)  # type: ignore[arg-type]  # texts and bytes
    flow = ps.Flow("hostile")
    source = ps.redis_stream(url, "hostile", "id bigint, at timestamp, more struct<a: int>")
    flow.source("entries", source, on_error="dead_letter").sink("out", ps.console())
    flow.dead_letters("dead", ps.console())
    results = run_local(flow)
    assert [r.id for r in results["out"]] == list(range(len(HOSTILE)))
    assert len(results["dead"]) == len(HOSTILE)
    assert all("hostile, entry " in r.position and r.cause.startswith("field '") for r in results["dead"])
    assert read_payload(results["dead"][0].payload).raw == b'{"id": "x"}'


def test_without_a_policy_a_hostile_entry_is_named(url: str, client: redis.Redis) -> None:
    client.xadd("wrong", {"id": "x"})
    flow = ps.Flow("wrong")
    flow.source("entries", ps.redis_stream(url, "wrong", "id bigint")).sink("out", ps.console())
    with pytest.raises(StepError, match="wrong, entry "):
        run_local(flow)
