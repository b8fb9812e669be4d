"""What the Redis sink does beyond the contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis

import penstock as ps
from penstock.connectors.base import SinkContext
from penstock.connectors.redis.sink import RedisSink
from penstock.errors import FlowError, Impossible, RunError
from penstock.graph.endpoints.servers import write_redis
from penstock.graph.nodes import Endpoint
from penstock.graph.run import RunSpec
from penstock.graph.schema import schema_of
from penstock.log import Log
from penstock.spark.run import run_live
from penstock.testing.connectors import OpenSink, SinkContract
from penstock.testing.servers import redis_server

spark = pytest.mark.spark


def opened(endpoint: Endpoint, session: Any, schema: str = "id bigint, word string") -> OpenSink:
    return OpenSink(SinkContract(), endpoint, session, schema)


def refusal(endpoint: Endpoint, delivery: str = "exactly_once") -> str:
    context = SinkContext("out", "flow", dict(endpoint.options), schema_of("id bigint"), "life", delivery)
    return RedisSink().refuses(context)


def test_exactly_once_needs_a_server_that_does_not_forget(url: str) -> None:
    assert refusal(write_redis(url, key="id")) == ""
    with redis_server(appendfsync="everysec") as server:
        endpoint = write_redis(server.url, key="id")
        assert "appendonly yes, appendfsync everysec" in refusal(endpoint)
        assert "accept_rollback=True" in refusal(endpoint)
        assert refusal(endpoint, "at_least_once") == ""
        assert refusal(write_redis(server.url, key="id", accept_rollback=True)) == ""


@spark
def test_a_flow_on_a_server_that_forgets_is_refused_before_it_starts(penstock_spark: Any, tmp_path: Path) -> None:
    with redis_server(appendonly="no") as server:
        flow = ps.Flow("refused")
        flow.source("in", ps.items([1], "id bigint")).sink("out", write_redis(server.url, key="id", kind="string"))
        with pytest.raises(Impossible, match="appendonly no"):
            run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path / "c", mode="once")).wait()


@spark
def test_strings_lists_and_streams(url: str, client: redis.Redis, penstock_spark: Any) -> None:
    text = opened(write_redis(url, "string", key="id", name="s"), penstock_spark)
    text.write(0, [(1, "a"), (2, None)])
    assert json.loads(client.get("s:1") or "") == {"word": "a"}
    plain = opened(write_redis(url, "string", key="id", name="p", value="word"), penstock_spark)
    plain.write(1, [(1, "a")])
    assert client.get("p:1") == b"a"
    listed = opened(write_redis(url, "list", name="all", value="word", max_length=3), penstock_spark)
    listed.write(2, [(i, f"w{i}") for i in range(5)], parts=1)
    assert client.lrange("all", 0, -1) == [b"w2", b"w3", b"w4"]
    stream = opened(write_redis(url, "stream", name="events"), penstock_spark)
    stream.write(3, [(1, "a"), (2, None)], parts=1)
    stream.write(3, [(1, "a"), (2, None)], parts=1)
    entries: Any = client.xrange("events")
    assert [fields for _, fields in entries] == [{b"id": b"1", b"word": b"a"}, {b"id": b"2"}]


@spark
def test_a_key_of_another_type_stops_the_batch_before_anything_is_written(
    url: str, client: redis.Redis, penstock_spark: Any
) -> None:
    """A script is not undone when it fails half-way, so it looks first."""
    client.set("rows:3", "in the way")
    made = opened(write_redis(url, key="id", name="rows"), penstock_spark)
    with pytest.raises(RunError, match="the key 'rows:3' holds a string, not a hash"):
        made.write(0, [(i, "w") for i in range(6)])
    assert client.keys("rows:*") == [b"rows:3"]
    client.delete("rows:3")
    made.write(0, [(i, "w") for i in range(6)])
    assert len(client.keys("rows:*")) == 6


@spark
def test_what_a_server_has_answered_survives_its_crash(penstock_spark: Any) -> None:
    """With fsync before the answer a kill loses nothing, and what was staged is there still."""
    with redis_server() as server:
        made = opened(write_redis(server.url, key="id", name="rows"), penstock_spark)
        made.write(0, [(i, "w") for i in range(50)])
        staged = made.stage(1, [(i, "w") for i in range(50, 60)])
        server.kill()
        server.start()
        staged.commit()
        client = redis.Redis.from_url(server.url)
        assert len(client.keys("rows:*")) == 60
        client.close()


@spark
def test_a_row_without_a_key_is_refused(url: str, penstock_spark: Any) -> None:
    made = opened(write_redis(url, key="id", name="rows"), penstock_spark)
    with pytest.raises(Exception, match="a row has no key: id is null"):
        made.write(0, [(None, "a")])


def test_what_cannot_be_is_said_when_the_flow_is_built() -> None:
    with pytest.raises(FlowError, match="did you mean 'hash'"):
        write_redis("redis://h", "hahs", key="id")
    with pytest.raises(FlowError, match="key= names"):
        write_redis("redis://h", "hash")
    with pytest.raises(FlowError, match="name= is the Redis key"):
        write_redis("redis://h", "stream")


def test_the_password_is_never_shown(url: str) -> None:
    wrong = write_redis(url.replace("geheim", "geheim-falsch"), key="id")
    with pytest.raises(RunError) as failed:
        refusal(wrong)
    for text in (str(failed.value), repr(wrong), str(wrong.shown())):
        assert "geheim" not in text


@spark
def test_a_live_flow_writes_running_totals(url: str, client: redis.Redis, penstock_spark: Any, tmp_path: Path) -> None:
    flow = ps.Flow("totals")
    words = flow.source("words", ps.items(["a", "b", "a", "c", "a"], "word string", batches=2))
    words.key_by("word").count("n").sink("out", write_redis(url, key="word", name="n"), delivery="exactly_once")
    run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path / "c", mode="once")).wait()
    assert {k: client.hget(f"n:{k}", "n") for k in "abc"} == {"a": b"3", "b": b"1", "c": b"1"}


@spark
def test_a_row_that_leaves_a_table_is_deleted(
    url: str, client: redis.Redis, penstock_spark: Any, tmp_path: Path
) -> None:
    """As a hash, as a string by more than its key, and as a record without a value in a topic of the log."""
    flow = ps.Flow("leaving")
    given = [
        ("insert", 1, 9),
        ("insert", 2, 8),
        ("insert", 3, 7),
        ("update_after", 1, 1),
        ("delete", 2, 8),
        ("update_after", 3, 6),
    ]
    table = flow.source("given", ps.items(given, "op string, id int, n int", batches=2)).as_table("table", "id")
    large = table.where("large", "n > 5")
    large.sink("hashes", write_redis(url, key="id", name="large"))
    table.sink("strings", write_redis(url, "string", key=("id", "n"), name="both"))
    large.sink("topic", ps.write_topic("large", path=tmp_path / "log"))
    large.key_by("id", "n").aggregate("pairs", m="count(*)").sink("two", ps.write_topic("pairs", path=tmp_path / "log"))
    run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path / "c", mode="once")).wait(pause=0.02)
    assert {k: client.hgetall(k) for k in client.keys("large:*")} == {b"large:3": {b"n": b"6"}}
    assert set(client.keys("both:*")) == {b"both:1:1", b"both:3:6"}
    with Log(tmp_path / "log") as log:
        rows = {r.key: r.value and json.loads(r.value) for r in log.read("large", 0, 0)}
        pairs = {r.key: r.value and json.loads(r.value) for r in log.read("pairs", 0, 0)}
    assert rows == {b"1": None, b"2": None, b"3": {"id": 3, "n": 6}}
    assert pairs[b'{"id":3,"n":7}'] is None
    assert pairs[b'{"id":3,"n":6}'] == {"id": 3, "n": 6, "m": 1}
