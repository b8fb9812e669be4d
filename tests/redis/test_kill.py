"""A driver killed around its commits in Redis: nothing lost, nothing doubled, no batch seen in part."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import redis

from tests.postgres.killed import Killed, watching, whole

WINDOWS = (
    "offsets written@0",
    "staged@0",
    "manifest published@1",
    "before sink commit@2",
    "after sink commit@2",
    "sink written@3",
)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_killed_at_named_places(url: str, client: redis.Redis, tmp_path: Path) -> None:
    """What `penstock verify redis` tries in every run of the tests, over files; and nothing is left aside."""
    killed = Killed(tmp_path, url, 'servers.write_redis(url, "stream", name="rows")')

    def count() -> int:
        found: int = client.xlen("rows")
        return found

    with watching(count) as seen:
        for window in WINDOWS:
            assert killed.run(window) == -signal.SIGKILL, window
        assert killed.run() == 0
    entries: list[tuple[bytes, dict[bytes, bytes]]] = client.xrange("rows")  # type: ignore[assignment]
    assert sorted(int(fields[b"id"]) for _, fields in entries) == killed.expected
    whole(seen)
    assert list(client.scan_iter(match="penstock:*:stage:*")) == []
