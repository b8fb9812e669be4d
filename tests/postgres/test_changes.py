"""Changes by logical decoding: every one, once, in the order of commits, and again after a crash."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import penstock.graph.endpoints.servers as ps
from penstock.connectors.postgres.changes import Changes
from penstock.connectors.ranges import Offset, Stretch
from penstock.errors import FlowError, RunError, SchemaError

if TYPE_CHECKING:
    from tests.postgres.conftest import Database


def reading(url: str, db: Database, table: str = "items", **options: Any) -> Changes:
    options = {"schema": ps.postgres_schema(url, table), **options}
    endpoint = ps.postgres_changes(url, table, slot=f"slot_{db.info.dbname}_{table}", **options)
    assert endpoint.schema is not None
    made = Changes({k: v for k, v in endpoint.options.items() if v is not None}, endpoint.schema, "in")
    made.prepare()
    return made


def rows(source: Changes, start: Offset, end: Offset) -> list[dict[str, Any]]:
    return [row for batch in source.read(Stretch(start, end)) for row in batch.to_pylist()]


@pytest.fixture
def source(url: str, db: Database) -> Changes:
    db.execute("create table items (id bigint primary key, word text, tags text[])")
    return reading(url, db)


def test_inserts_updates_and_deletes_come_in_order(source: Changes, db: Database) -> None:
    start = source.first()
    assert source.latest(start, 100) == start
    db.execute("""insert into items values (1, 'a', '{x,"y z",NULL}'), (2, 'b', null)""")
    db.execute("update items set word = 'A' where id = 1")
    db.execute("delete from items where id = 2")
    found = rows(source, start, source.latest(start, 100))
    assert [(r["op"], r["id"], r["word"]) for r in found] == [
        ("insert", 1, "a"),
        ("insert", 2, "b"),
        ("update", 1, "A"),
        ("delete", 2, None),
    ]
    assert found[0]["tags"] == ["x", "y z", None]
    assert [r["old"] and r["old"]["id"] for r in found] == [None, None, None, 2]
    assert found[0]["lsn"] == found[1]["lsn"] < found[2]["lsn"]
    assert found[0]["committed_at"].year >= 2026


def test_the_row_before_is_told_where_the_server_tells(source: Changes, db: Database) -> None:
    db.execute("alter table items replica identity full")
    db.execute("insert into items values (1, 'a', null)")
    start = source.target()
    db.execute("update items set id = 5, word = 'b'")
    db.execute("delete from items")
    update, delete = rows(source, start, source.latest(start, None))
    assert (update["id"], update["old"]) == (5, {"id": 1, "word": "a", "tags": None})
    assert (delete["id"], delete["word"]) == (5, "b")


def test_a_transaction_that_is_rolled_back_or_open_is_not_there(source: Changes, url: str, db: Database) -> None:
    start = source.first()
    with psycopg.connect(url) as other:
        other.execute("insert into items values (1)")
        other.rollback()
        other.execute("insert into items values (2)")
        db.execute("insert into items values (3)")
        end = source.latest(start, 100)
        assert [r["id"] for r in rows(source, start, end)] == [3]
        other.commit()
    assert [r["id"] for r in rows(source, end, source.latest(end, 100))] == [2]


def test_batches_of_any_size_hold_every_change_once_in_commit_order(source: Changes, url: str, db: Database) -> None:
    """Transactions that overlap in every way, read in small batches with the slot moved now and then, equal the commits."""
    rolled = random.Random(7)
    others = [psycopg.connect(url) for _ in range(4)]
    written: dict[int, list[int]] = {i: [] for i in range(4)}
    committed: list[int] = []
    found: list[int] = []
    at, number = source.first(), 0
    for _ in range(160):
        which = rolled.randrange(4)
        if written[which] and rolled.random() < 0.4:
            others[which].commit()
            committed += written[which]
            written[which] = []
        else:
            number += 1
            others[which].execute("insert into items values (%s)", [number])
            written[which].append(number)
        if rolled.random() < 0.25:
            end = source.latest(at, rolled.choice([1, 3, 10]))
            part = [r["id"] for r in rows(source, at, end)] if end != at else []
            assert part == [r["id"] for r in rows(source, at, end)] or end == at, "a replay gives the same"
            found += part
            at = end
            if rolled.random() < 0.5:
                source.committed(at)
    for other in others:
        other.close()
    while (end := source.latest(at, 5)) != at:
        found += [r["id"] for r in rows(source, at, end)]
        at = end
    assert found == committed


def test_the_slot_moves_only_when_a_batch_is_safe(source: Changes, db: Database) -> None:
    start = source.first()
    db.execute("insert into items values (1)")
    end = source.latest(start, 100)
    assert [r["id"] for r in rows(source, start, end)] == [1]
    assert source.first() == start
    assert [r["id"] for r in rows(source, start, end)] == [1]
    source.committed(end)
    assert source.first() == end
    with pytest.raises(RunError, match="what lies between is gone"):
        rows(source, start, end)


def test_a_long_silence_moves_the_slot_too(source: Changes, db: Database) -> None:
    """The server must be able to clear its log although nothing happens to this table."""
    start = source.first()
    db.execute("create table others (text text)")
    db.execute("insert into others select repeat('x', 1000) from generate_series(1, 20000)")
    end = source.latest(start, 100)
    assert int(end["lsn"]) > int(start["lsn"]) + (16 << 20)
    assert rows(source, start, end) == []


def test_a_large_value_that_did_not_change_is_never_made_up(source: Changes, db: Database) -> None:
    db.execute("alter table items alter word set storage external")
    db.execute("insert into items values (1, repeat('long', 5000))")
    start = source.target()
    db.execute("update items set tags = '{a}'")
    with pytest.raises(RunError, match="replica identity full"):
        rows(source, start, source.latest(start, None))
    db.execute("alter table items replica identity full")
    start = source.target()
    db.execute("update items set tags = '{b}'")
    (found,) = rows(source, start, source.latest(start, None))
    assert found["word"] == "long" * 5000


def test_a_truncate_stops_the_flow(source: Changes, db: Database) -> None:
    start = source.first()
    db.execute("insert into items values (1)")
    db.execute("truncate items")
    with pytest.raises(RunError, match="was truncated"):
        rows(source, start, source.latest(start, None))


def test_other_tables_are_not_seen(source: Changes, url: str, db: Database) -> None:
    db.execute("create table more (id bigint primary key)")
    db.execute(f"alter publication {source.publication} add table more".encode())
    start = source.first()
    db.execute("insert into more values (1)")
    db.execute("insert into items values (2)")
    assert [r["id"] for r in rows(source, start, source.latest(start, None))] == [2]


def test_a_slot_of_another_kind_is_refused(url: str, db: Database) -> None:
    db.execute("create table items (id bigint primary key)")
    db.execute("select pg_create_logical_replication_slot(%s, 'test_decoding')", [f"slot_{db.info.dbname}_items"])
    with pytest.raises(RunError, match="is another's"):
        reading(url, db)


def test_what_cannot_be_is_said_when_the_flow_is_built(url: str, db: Database) -> None:
    with pytest.raises(FlowError, match="lower-case letters"):
        ps.postgres_changes(url, "items", slot="My Slot", schema="id bigint")
    with pytest.raises(SchemaError, match="the table has a column 'op'"):
        ps.postgres_changes(url, "items", slot="s", schema="id bigint, op string")
    db.execute("create table items (id bigint primary key)")
    reading(url, db)
    with pytest.raises(SchemaError):
        ps.postgres_changes(url, "nothing", slot="s", schema=ps.postgres_schema(url, "nothing"))
    with pytest.raises(SchemaError, match="needs a schema"):
        ps.postgres_changes(url, "items", slot="s")
