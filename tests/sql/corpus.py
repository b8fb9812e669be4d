"""Queries over fixed tables, whose answers DuckDB knows too."""

from __future__ import annotations

import datetime
import decimal
import math

import duckdb

import penstock as ps
from penstock.testing import BARRIER, Results, run_local

DAY = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)


def at(seconds: float) -> datetime.datetime:
    return DAY + datetime.timedelta(seconds=seconds)


ORDERS: list[tuple[object, ...]] = [
    (1, "ada", 10, 2.5, at(0)),
    (2, "bob", 20, 1.5, at(3)),
    (3, "ada", 30, 0.5, at(12)),
    (4, "eve", None, 4.0, at(14)),
    (5, None, 10, 8.0, at(21)),
    (6, "bob", 25, 1.0, at(33)),
    (7, "zoe", 10, 2.0, at(65)),
]
PEOPLE: list[tuple[object, ...]] = [
    ("ada", "London", 36),
    ("bob", "Rome", 20),
    ("eve", "Rome", None),
    ("kim", "Oslo", 50),
]
PAYMENTS: list[tuple[object, ...]] = [(1, 10, at(2)), (2, 5, at(9)), (3, 30, at(100)), (9, 1, at(30)), (2, 15, at(12))]
TABLES: dict[str, tuple[str, list[tuple[object, ...]]]] = {
    "orders": ("id int, customer string, amount int, price double, ts timestamp", ORDERS),
    "people": ("name string, city string, age int", PEOPLE),
    "payments": ("order_id int, paid int, ts timestamp", PAYMENTS),
}


def tables() -> dict[str, ps.Stream]:
    """The tables as streams of a new flow; those with a time have it as their event time."""
    flow = ps.Flow("corpus")
    made = {}
    for name, (schema, rows) in TABLES.items():
        timed = {"event_time": "ts", "lateness": "2m"} if "ts timestamp" in schema else {}
        made[name] = flow.source(name, ps.items(rows, schema), **timed)  # type: ignore[arg-type]
    return made


def answer(text: str, cuts: int = 0) -> list[tuple[object, ...]]:
    """What a query gives without Spark; with cuts, its input falls into so many batches."""
    flow = ps.sql_flow(text, tables())
    if not cuts:
        return in_order(standing(run_local(flow)))
    given = {
        name: _cut(rows, cuts) for name, (_, rows) in TABLES.items() if any(s.name == name for s in flow.graph.sources)
    }
    return in_order(standing(run_local(flow, given)))


def standing(results: Results) -> list[tuple[object, ...]]:
    """The rows that stand at the end: of a table by key the last of each key."""
    keys = results.graph.output(results.graph.node("result").inputs[0]).updates
    return list(results["result"]) if keys is None else list(results.table("result").values())


def _cut(rows: list[tuple[object, ...]], cuts: int) -> list[object]:
    made: list[object] = []
    for number, row in enumerate(rows):
        if number and number % max(len(rows) // cuts, 1) == 0:
            made.append(BARRIER)
        made.append(row)
    return made


def by_duckdb(text: str) -> list[tuple[object, ...]]:
    """What DuckDB gives for the same rows."""
    base = duckdb.connect()
    base.execute("set timezone = 'UTC'")
    for name, (schema, rows) in TABLES.items():
        base.execute(f"create table {name} ({schema.replace('timestamp', 'timestamptz').replace('string', 'varchar')})")
        marks = ", ".join("?" * len(rows[0]))
        base.executemany(f"insert into {name} values ({marks})", rows)
    return in_order(base.execute(text).fetchall())


def in_order(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted((tuple(map(_plain, row)) for row in rows), key=repr)


def _plain(value: object) -> object:
    if isinstance(value, decimal.Decimal | float):
        return round(float(value), 9) if math.isfinite(value) else repr(value)
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC)
    if isinstance(value, tuple | list):
        return tuple(map(_plain, value))
    return value
