"""Redis holds the contracts of sinks and sources."""

from __future__ import annotations

from typing import Any

import pytest
import redis

import penstock.graph.endpoints.servers as ps
from penstock.graph.nodes import Endpoint
from penstock.testing.connectors import SinkContract, SourceContract

pytestmark = pytest.mark.spark


def texts(found: Any) -> dict[str, str]:
    return {k.decode(): v.decode() for k, v in found.items()}


class TestHashes(SinkContract):
    kinds = "id bigint, word string, number double, flag boolean"

    @pytest.fixture
    def endpoint(self, url: str, client: redis.Redis) -> Endpoint:
        self.client = client
        return ps.write_redis(url, "hash", key="id", name="rows")

    def left_aside(self, endpoint: Endpoint) -> int:
        return len(list(self.client.scan_iter(match="penstock:*:stage:*")))

    def shown(self, endpoint: Endpoint) -> list[tuple[Any, ...]]:
        """All hashes at one moment, by a script: single reads would see a batch come in between."""
        script = """local made = {}
            for _, key in ipairs(redis.call('KEYS', 'rows:*')) do made[#made + 1] = {key, redis.call('HGETALL', key)} end
            return made"""
        found: Any = self.client.eval(script, 0)
        return [self._row(key, dict(zip(parts[::2], parts[1::2], strict=True))) for key, parts in found]

    def _row(self, key: bytes, fields: dict[bytes, bytes]) -> tuple[Any, ...]:
        row, number = texts(fields), int(key.decode().removeprefix("rows:"))
        if set(row) == {"word"} and number not in (1, 2, 3):
            return number, row["word"]
        return (number, row["word"]) if set(row) == {"word"} else self._kinds(number, row)

    def _kinds(self, number: int, row: dict[str, str]) -> tuple[Any, ...]:
        flag = None if "flag" not in row else row["flag"] == "true"
        return number, row.get("word"), float(row["number"]) if "number" in row else None, flag

    def test_values_come_back_as_they_went(self, endpoint: Endpoint, penstock_spark: Any) -> None:
        """A hash of nulls alone is no hash; so that row is not looked for."""
        from penstock.testing.connectors import OpenSink

        made = OpenSink(self, endpoint, penstock_spark, self.kinds)
        made.write(0, [(1, 'a "b" é\n', 2.5, True), (3, "", -0.5, False)])
        self.same(endpoint, [(1, 'a "b" é\n', 2.5, True), (3, "", -0.5, False)])
        made.write(1, [(1, None, 7.0, None)])
        self.same(endpoint, [(1, None, 7.0, None), (3, "", -0.5, False)])


class TestStream(SourceContract):
    @pytest.fixture
    def endpoint(self, url: str, client: redis.Redis) -> Endpoint:
        self.client = client
        return ps.redis_stream(url, "events", "id bigint, word string, flag boolean, tags array<string>")

    def add(self, endpoint: Endpoint, first: int, many: int) -> list[tuple[Any, ...]]:
        for i in range(first, first + many):
            self.client.xadd("events", {"id": i, "word": f"w{i}\n", "flag": "true", "tags": '["a","b"]'})
        return [(i, f"w{i}\n", True, ["a", "b"]) for i in range(first, first + many)]
