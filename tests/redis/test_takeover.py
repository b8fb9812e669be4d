"""A driver that is paused, replaced and woken neither loses nor doubles a record in Redis. No JVM."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from tests.connectors.takeover import check_refusing, check_takeover


@pytest.mark.parametrize("point", ["staged@2", "ledger checked@2", "after sink commit@2", "sink written@2"])
def test_a_driver_that_was_replaced_writes_nothing(url: str, client: redis.Redis, point: str) -> None:
    import json

    def held() -> list[int]:
        found: list[bytes] = client.lrange("out", 0, -1)  # type: ignore[assignment]
        return [json.loads(each)["id"] for each in found]

    check_takeover("redis", url, point, 7 if point == "staged@2" else 10, held)


@pytest.mark.parametrize("point", ["staged@2", "after sink commit@2", "sink written@2", "dead letters written@2"])
def test_refused_rows_are_dead_letters_once_whoever_takes_over(
    url: str, client: redis.Redis, tmp_path: Path, point: str
) -> None:
    def held() -> list[int]:
        found: list[bytes] = client.keys("row:*")  # type: ignore[assignment]
        return [int(key.decode()[4:]) for key in found for _ in range(int(client.llen(key)))]

    check_refusing("redis", url, tmp_path, point, held)
