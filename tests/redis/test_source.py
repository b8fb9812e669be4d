"""A Redis stream as a source."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from penstock.connectors.ranges import Offset, Stretch
from penstock.connectors.redis.source import Entries
from penstock.errors import RunError
from penstock.graph.endpoints.servers import redis_stream


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
    with pytest.raises(RunError, match="the field 'id' of an entry is no int64"):
        rows(source, source.first(), source.target())
