"""A driver that is paused, replaced and woken neither loses nor doubles a record in Redis. No JVM."""

from __future__ import annotations

import pytest
import redis

from tests.connectors.takeover import check_takeover


@pytest.mark.parametrize("point", ["staged@2", "ledger checked@2", "after sink commit@2", "sink written@2"])
def test_a_driver_that_was_replaced_writes_nothing(url: str, client: redis.Redis, point: str) -> None:
    import json

    def held() -> list[int]:
        found: list[bytes] = client.lrange("out", 0, -1)  # type: ignore[assignment]
        return [json.loads(each)["id"] for each in found]

    check_takeover("redis", url, point, 7 if point == "staged@2" else 10, held)
