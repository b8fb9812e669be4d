"""A real PostgreSQL for the tests of this folder, and a database of its own for each of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from penstock.testing.servers import Server, postgres_server

if TYPE_CHECKING:
    Database = psycopg.Connection[tuple[Any, ...]]

_NUMBER = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """The server; one for the whole run."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def url(postgres: Server) -> Iterator[str]:
    """The address of a fresh database."""
    name = f"test{next(_NUMBER)}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"create database {name}".encode())
    yield (
        postgres.url.replace("/postgres", f"/{name}", 1)
        if "/postgres?" in postgres.url
        else postgres.url[: -len("postgres")] + name
    )
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        dropped = (
            "select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = %s and not active"
        )
        connection.execute(dropped, [name])
        connection.execute(f"drop database if exists {name} with (force)".encode())


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    """A connection to it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set timezone = 'UTC'")
        yield connection
