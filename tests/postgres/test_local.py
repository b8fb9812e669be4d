"""PostgreSQL read and written without a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import penstock as ps
from penstock.connectors.postgres.changes import ROWS, Changes, read_change
from penstock.errors import RunError, StepError
from penstock.kernels.errors.payload import read_payload
from penstock.testing import run_local
from tests.postgres.test_changes import reading

if TYPE_CHECKING:
    from tests.postgres.conftest import Database


def test_a_local_run_reads_a_table_and_writes_one(url: str, db: Database) -> None:
    db.execute("create table clicks (id bigserial primary key, word text, at timestamptz default now())")
    db.execute("insert into clicks (word) select (array['a', 'b', 'c'])[1 + i % 3] from generate_series(1, 300) i")
    flow = ps.Flow("local")
    clicks = flow.source("clicks", ps.postgres(url, "clicks", by="id", schema="id bigint, word string"))
    clicks.key_by("word").count("n").sink("counts", ps.write_postgres(url, "counts", create=True))
    clicks.select("words", "id", "word").sink("copies", ps.write_postgres(url, "copies", create=True))
    for _ in range(2):
        run_local(flow, write=True)
    assert db.execute("select word, n from counts order by word").fetchall() == [("a", 100), ("b", 100), ("c", 100)]
    assert db.execute("select count(*), count(distinct id) from copies").fetchone() == (600, 300)


def test_a_row_that_the_server_refuses_leaves_nothing(url: str, db: Database) -> None:
    db.execute("create table small (n bigint check (n < 10))")
    flow = ps.Flow("refused")
    flow.source("rows", ps.items([(1,), (50,)], "n bigint")).sink("out", ps.write_postgres(url, "small"))
    with pytest.raises(RunError, match="small"):
        run_local(flow, write=True)
    assert db.execute("select count(*) from small").fetchone() == (0,)


def changes(url: str, db: Database, **options: Any) -> ps.Flow:
    flow = ps.Flow("changes")
    options = {"slot": f"slot_{db.info.dbname}_items", "schema": "id bigint, word string", **options}
    flow.source("in", ps.postgres_changes(url, "items", **options)).sink("out", ps.console())
    return flow


def left(db: Database) -> tuple[list[str], list[str]]:
    """The slots of the database, with where they stand, and its publications."""
    slots = "select slot_name || confirmed_flush_lsn from pg_replication_slots where database = current_database()"
    return tuple([r[0] for r in db.execute(each)] for each in (slots, "select pubname from pg_publication"))  # type: ignore[return-value]


def test_a_local_run_reads_the_changes_that_wait_and_moves_nothing(url: str, db: Database) -> None:
    """More of them than are read at a time; what comes later is read by the next run, after what still waits."""
    db.execute("create table items (id bigint primary key, word text)")
    reading(url, db)
    many = 2 * ROWS + 1
    db.execute("insert into items select i, 'w' || i from generate_series(1, %s) i", [many])
    before = left(db)
    for rows in (many, many + 1):
        found = run_local(changes(url, db))["out"]
        assert [(r.op, r.id, r.word) for r in found[:many]] == [("insert", i, f"w{i}") for i in range(1, many + 1)]
        assert [(r.op, r.id) for r in found[many:]] == [("delete", 7)] * (rows - many)
        db.execute("delete from items where id = 7")
        assert left(db) == before


def test_a_local_run_ends_where_the_log_ended_when_it_began(url: str, db: Database) -> None:
    db.execute("create table items (id bigint primary key, word text)")
    source = reading(url, db)
    db.execute("insert into items values (1, 'a')")
    assert source.find()
    db.execute("insert into items values (2, 'b')")
    (stretch,) = source.stretches(source.first(), source.everything())
    assert [r["id"] for batch in source.read(stretch) for r in batch.to_pylist()] == [1]


def test_without_a_slot_nothing_waits_and_none_is_made(url: str, db: Database) -> None:
    db.execute("create table items (id bigint primary key, word text)")
    db.execute("insert into items values (1, 'a')")
    assert run_local(changes(url, db))["out"] == []
    assert left(db) == ([], [])


def test_what_a_local_run_of_changes_needs_is_named(url: str, db: Database) -> None:
    with pytest.raises(RunError, match="source 'in': there is no table 'items'"):
        run_local(changes(url, db))
    db.execute("create table items (id bigint primary key, word text)")
    source = reading(url, db)
    with pytest.raises(RunError, match="no publication 'missing'"):
        run_local(changes(url, db, publication="missing"))
    db.execute(f"drop publication {source.publication}".encode())
    with pytest.raises(RunError, match="no publication 'penstock_slot_"):
        run_local(changes(url, db))


HOSTILE = ("infinity", "-infinity", "20000-01-01", "0044-03-15 BC")


def test_a_change_that_no_type_of_ours_holds_is_a_dead_letter_and_can_be_mended(url: str, db: Database) -> None:
    """Among others, which are read; an update too, whose row before is what cannot be read."""
    db.execute("create table items (id bigint primary key, at timestamptz, n numeric)")
    db.execute("alter table items replica identity full")
    schema = "id bigint, at timestamp, n decimal(10,2)"
    reading(url, db, schema=schema)
    for i, at in enumerate(HOSTILE):
        db.execute("insert into items values (%s, '2026-01-01', 1), (%s, %s::timestamptz, 1)", [i, 100 + i, at])
    db.execute("insert into items values (200, null, 'NaN')")
    db.execute("update items set at = '2026-01-02' where id = 100")
    endpoint = ps.postgres_changes(url, "items", slot=f"slot_{db.info.dbname}_items", schema=schema)
    flow = ps.Flow("hostile")
    flow.source("in", endpoint, on_error="dead_letter").sink("out", ps.console())
    flow.dead_letters("dead", ps.console())
    results = run_local(flow)
    assert [r.id for r in results["out"]] == [0, 1, 2, 3]
    dead = results["dead"]
    assert len(dead) == len(HOSTILE) + 2
    assert all("items, insert at " in r.position or "items, update at " in r.position for r in dead)
    assert sum(r.cause.startswith("field 'at' is no timestamp") for r in dead) == len(HOSTILE) + 1
    assert endpoint.schema is not None
    source = Changes(dict(endpoint.options), endpoint.schema, "in")
    raw = read_payload(dead[0].payload).raw
    assert raw is not None
    mended = source.batch([read_change(raw.replace(b"infinity", b"2026-03-04 00:00:00+00"))]).to_pylist()[0]
    assert (mended["op"], mended["id"], mended["at"].isoformat()) == ("insert", 100, "2026-03-04T00:00:00+00:00")


def test_without_a_policy_a_hostile_change_is_named(url: str, db: Database) -> None:
    db.execute("create table items (id bigint primary key, word text)")
    reading(url, db, schema="id bigint, word int")
    db.execute("insert into items values (1, 'x')")
    with pytest.raises(StepError, match="items, insert at "):
        run_local(changes(url, db, schema="id bigint, word int"))
