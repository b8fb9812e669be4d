"""Rows read by a growing column: none is left out, although transactions end in another order than they began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import penstock.graph.endpoints.servers as ps
from penstock.connectors.postgres.source import Incremental
from penstock.connectors.ranges import Offset
from penstock.errors import FlowError, SchemaError
from penstock.graph.nodes import Endpoint

if TYPE_CHECKING:
    from tests.postgres.conftest import Database


EVENTS = "id bigint, word string, at timestamp"


def reading(endpoint: Endpoint) -> Incremental:
    assert endpoint.schema is not None
    return Incremental({k: v for k, v in endpoint.options.items() if v is not None}, endpoint.schema, "in")


def rows(source: Incremental, start: Offset, end: Offset) -> list[dict[str, Any]]:
    return [row for part in source.stretches(start, end) for batch in source.read(part) for row in batch.to_pylist()]


def drained(source: Incremental, start: Offset, most: int | None = None) -> tuple[list[list[dict[str, Any]]], Offset]:
    """The batches until there is nothing more, and where that is."""
    made = []
    while (end := source.latest(start, most)) != start:
        made.append(rows(source, start, end))
        start = end
    return made, start


@pytest.fixture
def events(db: Database) -> None:
    db.execute("create table events (id bigserial primary key, word text, at timestamptz default now())")


@pytest.mark.usefixtures("events")
def test_the_schema_is_that_of_the_table(url: str, db: Database) -> None:
    db.execute(
        "create table kinds (a smallint, b int, c numeric(9,3), d numeric, e bool, f bytea, g uuid, h int[], i jsonb, j date)"
    )
    assert str(ps.postgres_schema(url, "events")) == EVENTS
    assert str(ps.postgres_schema(url, query="select id, at from events")) == "id bigint, at timestamp"
    kinds = "a smallint, b int, c decimal(9,3), d decimal(38,18), e boolean, f binary, g string, h array<int>, i string, j date"
    assert str(ps.postgres_schema(url, "kinds")) == kinds
    with pytest.raises(SchemaError, match="no field 'idd'; did you mean 'id'"):
        ps.postgres(url, "events", by="idd", schema=ps.postgres_schema(url, "events"))
    with pytest.raises(SchemaError, match="the schema of the table 'evens' cannot be read"):
        ps.postgres_schema(url, "evens")


def test_building_asks_no_server() -> None:
    with pytest.raises(SchemaError, match=r"postgres\(\) needs a schema: .*ps\.postgres_schema\(url, 'events'\)"):
        ps.postgres("postgresql://nobody@127.0.0.1:1/none", "events", by="id")
    made = ps.postgres("postgresql://nobody@127.0.0.1:1/none", "events", by="id", schema=EVENTS)
    assert made.schema is not None


@pytest.mark.usefixtures("events")
def test_a_batch_takes_no_more_rows_than_it_may(url: str, db: Database) -> None:
    db.execute("insert into events (word) select 'w' || g from generate_series(1, 250) g")
    source = reading(ps.postgres(url, "events", by="id", schema=EVENTS))
    batches, end = drained(source, source.first(), 100)
    assert [len(b) for b in batches] == [100, 100, 50]
    assert [r["id"] for b in batches for r in b] == list(range(1, 251))
    assert rows(source, source.first(), end) == [r for b in batches for r in b]


@pytest.mark.usefixtures("events")
def test_a_row_that_is_committed_later_than_a_greater_one_is_not_left_out(url: str, db: Database) -> None:
    source = reading(ps.postgres(url, "events", by="id", schema=EVENTS))
    start = source.first()
    with psycopg.connect(url) as slow:
        slow.execute("insert into events (word) values ('slow')")
        db.execute("insert into events (word) values ('fast')")
        assert source.latest(start, None) == start, "the slow one may still come"
        slow.commit()
    batches, _ = drained(source, start)
    assert [r["word"] for b in batches for r in b] == ["slow", "fast"]


@pytest.mark.usefixtures("events")
def test_others_that_write_all_the_time_do_not_hold_it_up(url: str, db: Database) -> None:
    """Only those that were under way when a value was seen are waited for, not those that came since."""
    source = reading(ps.postgres(url, "events", by="id", schema=EVENTS))
    start = source.first()
    first, second = psycopg.connect(url), psycopg.connect(url)
    first.execute("insert into events (word) values ('one')")
    db.execute("insert into events (word) values ('two')")
    assert source.latest(start, None) == start
    second.execute("insert into events (word) values ('three')")
    first.commit()
    assert [r["word"] for r in rows(source, start, source.latest(start, None))] == ["one", "two"]
    first.close()
    second.close()


@pytest.mark.usefixtures("events")
def test_a_time_waits_for_every_transaction_that_began_before_it(url: str, db: Database) -> None:
    """now() is when a transaction began, long before it writes, perhaps."""
    source = reading(ps.postgres(url, "events", by=("at", "id"), schema=EVENTS))
    start = source.first()
    with psycopg.connect(url) as slow:
        slow.execute("select now()")
        db.execute("insert into events (word) values ('fast')")
        assert source.latest(start, None) == start, "the slow one has written nothing yet, but may"
        slow.execute("insert into events (word) values ('slow')")
        slow.commit()
    batches, _ = drained(source, start)
    assert [r["word"] for b in batches for r in b] == ["slow", "fast"]


@pytest.mark.usefixtures("events")
def test_equal_values_are_told_apart_by_a_second_column(url: str, db: Database) -> None:
    db.execute("insert into events (word, at) select 'w' || g, '2026-01-01' from generate_series(1, 10) g")
    source = reading(ps.postgres(url, "events", by=("at", "id"), schema=EVENTS))
    batches, end = drained(source, source.first(), 4)
    assert [len(b) for b in batches] == [4, 4, 2]
    db.execute("insert into events (word, at) values ('later', '2026-01-01')")
    more, _ = drained(source, end)
    assert [r["word"] for b in more for r in b] == ["later"]


@pytest.mark.usefixtures("events")
def test_lag_holds_back_what_is_new(url: str, db: Database) -> None:
    db.execute(
        "insert into events (word, at) values ('old', now() - interval '1 hour'), ('new', now() - interval '1 minute')"
    )
    source = reading(ps.postgres(url, "events", by="at", lag="10m", schema=EVENTS))
    batches, _ = drained(source, source.first())
    assert [r["word"] for b in batches for r in b] == ["old"]
    with pytest.raises(FlowError, match="by= must be a timestamp"):
        reading(ps.postgres(url, "events", by="id", lag="10m", schema=EVENTS))


@pytest.mark.usefixtures("events")
def test_a_query_is_read_as_a_table_is(url: str, db: Database) -> None:
    db.execute("insert into events (word) select 'w' || g from generate_series(1, 20) g")
    endpoint = ps.postgres(
        url,
        query="select id, upper(word) as word from events where id % 2 = 0;",
        by="id",
        partitions=3,
        schema="id bigint, word string",
    )
    source = reading(endpoint)
    assert [r["word"] for r in rows(source, source.first(), source.everything())] == [f"W{i}" for i in range(2, 21, 2)]


@pytest.mark.usefixtures("events")
def test_stretches_of_several_tasks_neither_overlap_nor_leave_gaps(url: str, db: Database) -> None:
    db.execute("insert into events (id, word) select g * 7 - 60, 'w' from generate_series(1, 100) g")
    source = reading(ps.postgres(url, "events", by="id", partitions=4, schema=EVENTS))
    parts = source.stretches(source.first(), source.everything())
    assert len(parts) == 4
    found = [r["id"] for r in rows(source, source.first(), source.everything())]
    assert sorted(found) == [g * 7 - 60 for g in range(1, 101)]


def test_the_password_is_not_shown(url: str) -> None:
    endpoint = ps.postgres(url, "events", by="id", schema="id bigint")
    assert "geheim" not in repr(endpoint)
    assert "geheim" not in str(endpoint.shown())
    assert "geheim" not in repr(reading(endpoint).address)
    with pytest.raises(SchemaError) as failed:
        ps.postgres_schema(url.replace("geheim", "geheim-falsch"), "events")
    assert "geheim" not in str(failed.value)


def test_an_address_must_be_one() -> None:
    with pytest.raises(FlowError, match=r"postgresql://user:password@host"):
        ps.postgres("host=db password=geheim", "events", by="id", schema="id bigint")
    with pytest.raises(FlowError, match="either a table or query"):
        ps.postgres("postgresql://h/d", by="id", schema="id bigint")
