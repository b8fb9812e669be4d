"""PostgreSQL holds the contracts of sinks and sources."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import penstock.graph.endpoints.servers as ps
from penstock.connectors.postgres.changes import Changes
from penstock.graph.nodes import Endpoint
from penstock.testing.connectors import SinkContract, SourceContract

if TYPE_CHECKING:
    from tests.postgres.conftest import Database

pytestmark = pytest.mark.spark


class TestSink(SinkContract):
    @pytest.fixture
    def endpoint(self, url: str, db: Database) -> Endpoint:
        self.db = db
        return ps.write_postgres(url, "rows", create=True)

    def for_kinds(self, endpoint: Endpoint) -> Endpoint:
        return replace(endpoint, options={**endpoint.options, "table": "kinds"})

    def left_aside(self, endpoint: Endpoint) -> int:
        found = self.db.execute(
            "select count(*) from pg_class where relname like 'stage%' and relkind = 'r'"
        ).fetchone()
        assert found is not None
        return int(found[0])

    def shown(self, endpoint: Endpoint) -> list[tuple[Any, ...]]:
        return self.db.execute(f"select * from {endpoint.options['table']}".encode()).fetchall()


class TestIncremental(SourceContract):
    @pytest.fixture
    def endpoint(self, url: str, db: Database) -> Endpoint:
        self.db = db
        db.execute("create table events (id bigint primary key, word text, tags text[], at timestamptz default now())")
        return ps.postgres(url, "events", by="id", schema="id bigint, word string, tags array<string>", partitions=2)

    def add(self, endpoint: Endpoint, first: int, many: int) -> list[tuple[Any, ...]]:
        rows = [(i, f'w "{i}",\n', ["a", str(i)]) for i in range(first, first + many)]
        self.db.cursor().executemany("insert into events values (%s, %s, %s)", rows)
        return rows


class TestChanges(SourceContract):
    @pytest.fixture
    def endpoint(self, url: str, db: Database) -> Endpoint:
        self.db = db
        db.execute("create table events (id bigint primary key, word text)")
        made = ps.postgres_changes(
            url, "events", slot=f"contract_{db.info.dbname}", schema=ps.postgres_schema(url, "events")
        )
        assert made.schema is not None
        shown = replace(made, schema=made.schema.only(("op", "id", "word")))
        Changes(dict(shown.options), made.schema, "in").prepare()
        return shown

    def add(self, endpoint: Endpoint, first: int, many: int) -> list[tuple[Any, ...]]:
        rows = [(i, f"w{i}") for i in range(first, first + many)]
        self.db.cursor().executemany("insert into events values (%s, %s)", rows)
        return [("insert", *row) for row in rows]
