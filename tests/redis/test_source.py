"""A Redis stream as a source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis

import penstock as ps
from penstock.connectors.ranges import Offset, Stretch
from penstock.connectors.redis.source import Entries
from penstock.errors import RunError
from penstock.graph.endpoints.servers import redis_stream
from penstock.graph.run import RunSpec
from penstock.live.dead_letters.replay import Replays
from penstock.live.dead_letters.store import DeadLetterStore
from penstock.spark.run import run_live


def reading(url: str, **options: Any) -> Entries:
    endpoint = redis_stream(url, "events", "id bigint, entry string", id_field="entry", **options)
    assert endpoint.schema is not None
    return Entries({k: v for k, v in endpoint.options.items() if v is not None}, endpoint.schema, "in")


def rows(source: Entries, start: Offset, end: Offset) -> list[dict[str, Any]]:
    return [row for batch in source.read(Stretch(start, end)) for row in batch.to_pylist()]


def add(client: redis.Redis, first: int, many: int) -> None:
    for i in range(first, first + many):
        client.xadd("events", {"id": i})


def test_batches_follow_each_other(url: str, client: redis.Redis) -> None:
    source = reading(url)
    at = source.first()
    assert source.latest(at, 10) == at, "a stream that is not there yet is empty"
    add(client, 0, 25)
    found, sizes = [], []
    while (end := source.latest(at, 10)) != at:
        part = rows(source, at, end)
        assert rows(source, at, end) == part
        found += [r["id"] for r in part]
        sizes.append(len(part))
        at = end
    assert found == list(range(25))
    assert sizes == [10, 10, 5]
    assert part[-1]["entry"] == at["id"]


def test_entries_that_were_trimmed_unread_are_noticed(url: str, client: redis.Redis) -> None:
    add(client, 0, 10)
    client.xtrim("events", maxlen=8, approximate=False)
    source = reading(url)
    start = source.first()
    end = source.latest(start, None)
    assert [r["id"] for r in rows(source, start, end)] == list(range(2, 10)), (
        "what went before the flow began is no loss"
    )
    add(client, 10, 10)
    client.xtrim("events", maxlen=5, approximate=False)
    later = source.latest(end, None)
    with pytest.raises(RunError, match=r"of the 10 entries of 'events' .* only 5 are there"):
        rows(source, end, later)
    assert [r["id"] for r in rows(reading(url, accept_loss=True), end, later)] == list(range(15, 20))


def test_what_is_no_number_says_so(url: str, client: redis.Redis) -> None:
    client.xadd("events", {"id": "many"})
    source = reading(url)
    with pytest.raises(RunError, match=r"entry .*: field 'id' is no int64"):
        rows(source, source.first(), source.target())


@pytest.mark.spark
def test_a_hostile_entry_is_a_dead_letter_on_spark_and_is_replayed_mended(
    url: str, client: redis.Redis, penstock_spark: Any, tmp_path: Path
) -> None:
    for text in ("1", "x", "2"):
        client.xadd("hostile", {"id": text})
    got: list[Any] = []
    flow = ps.Flow("hostile")
    source = redis_stream(url, "hostile", "id bigint, entry string", id_field="entry")
    flow.source("entries", source, on_error="dead_letter").sink(
        "out", ps.callback(lambda rows, _: got.extend(r.id for r in rows))
    )
    spec = RunSpec(checkpoint=tmp_path / "c", mode="once")
    run_live(flow.graph, penstock_spark, spec).wait(pause=0.02)
    assert sorted(got) == [1, 2]
    kept = DeadLetterStore(tmp_path / "c" / "dead-letters")
    (letter,) = kept.dead_letters()
    assert "hostile, entry " in letter["position"]
    assert letter["cause"].startswith("field 'id' is no int64")
    replays = Replays(tmp_path / "c" / "replay")
    mended = json.loads(json.dumps(letter["payload"]).replace('\\"x\\"', '\\"7\\"'))
    replays.ask([{**letter, "payload": mended}])
    run_live(flow.graph, penstock_spark, spec).wait(pause=0.02)
    assert sorted(got) == [1, 2, 7]
