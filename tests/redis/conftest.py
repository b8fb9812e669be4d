"""A real server for the tests of this folder: Valkey, which speaks as Redis does. Each test finds it empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from penstock.testing.servers import Server, redis_server


@pytest.fixture(scope="session")
def redis_running() -> Iterator[Server]:
    """The server; one for the whole run. It answers a write when it is on disk."""
    with redis_server() as server:
        yield server


@pytest.fixture
def client(redis_running: Server) -> Iterator[redis.Redis]:
    """A connection, to an empty server."""
    made = redis.Redis.from_url(redis_running.url)
    made.flushall()
    yield made
    made.close()


@pytest.fixture
def url(redis_running: Server, client: redis.Redis) -> str:
    """Its address."""
    return redis_running.url
