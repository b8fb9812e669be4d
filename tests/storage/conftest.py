"""Real stores for the tests of storages; each is started when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.testing.stores import StoreServer, hdfs_server, s3_server


@pytest.fixture(scope="session")
def s3_store() -> Iterator[StoreServer]:
    with s3_server() as store:
        yield store


@pytest.fixture(scope="session")
def s3(s3_store: StoreServer) -> Iterator[str]:
    """The URL of a bucket, in the environment that opens it."""
    with s3_store.as_environment() as url:
        yield url


@pytest.fixture(scope="session")
def hdfs() -> Iterator[str]:
    with hdfs_server() as store:
        yield store.url
