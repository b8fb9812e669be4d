"""The Nexmark queries as published: planned and run as they are, with the answers of DuckDB over the same events."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

import penstock as ps
from benchmarks.nexmark.events import events
from benchmarks.nexmark.queries import BEFORE, QUERIES, tables
from penstock.testing import BARRIER, Results, run_local
from tests.sql.corpus import in_order
from tests.sql.nexmark.by_duckdb import for_duckdb

_KAFKA = (
    "'connector' = 'kafka', 'topic' = 'nexmark', 'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json'"
)
TABLES = tables(_KAFKA, "'connector' = 'filesystem', 'path' = 'side_input', 'format' = 'csv'")
EVENTS = list(events(2_500))
SIDE = [(key, str(key)) for key in range(1_000, 1_200)]


@ps.function
def count_char(text: str, sign: str) -> int:
    return text.count(sign)


def flow_of(name: str) -> ps.Flow:
    text = f"{TABLES}{BEFORE.get(name, '')}{QUERIES[name]};"
    return ps.sql_flow(
        text, {"side_input": ps.items(SIDE, "key bigint, `value` string")}, name=name, functions=[count_char]
    )


def standing(results: Results) -> list[tuple[Any, ...]]:
    keys = results.graph.output(results.graph.node("result").inputs[0]).updates
    return list(results["result"]) if keys is None else list(results.table("result").values())


def cut(rows: list[Any], every: int) -> list[Any]:
    return [each for n, row in enumerate(rows) for each in ((BARRIER, row) if n and n % every == 0 else (row,))]


@pytest.fixture(scope="module")
def base() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("set timezone = 'UTC'")
    for at, name in enumerate(("person", "auction", "bid")):
        rows = [row for event in EVENTS if isinstance(row := event[at + 1], dict)]
        kinds = {"dateTime": "timestamptz", "expires": "timestamptz"}
        columns = ", ".join(
            f'"{n}" {kinds.get(n) or ("bigint" if isinstance(v, int) else "varchar")}' for n, v in rows[0].items()
        )
        made.execute(f"create table {name} ({columns})")
        made.executemany(
            f"insert into {name} values ({', '.join('?' * len(rows[0]))})", [list(r.values()) for r in rows]
        )
    made.execute("create table side_input (key bigint, value varchar)")
    made.executemany("insert into side_input values (?, ?)", SIDE)
    return made


@pytest.mark.parametrize("name", [name for name in QUERIES if name != "q12"])
def test_a_query_has_the_answer_of_duckdb(name: str, base: duckdb.DuckDBPyConnection) -> None:
    flow = flow_of(name)
    wanted = in_order(base.execute(for_duckdb(name)).fetchall())
    assert wanted, "the events must make an answer"
    assert in_order(standing(run_local(flow, {"nexmark": EVENTS}))) == wanted
    assert in_order(standing(run_local(flow, {"nexmark": cut(EVENTS, 211)}))) == wanted


def test_a_window_of_processing_time_counts_every_bid(base: duckdb.DuckDBPyConnection) -> None:
    found = run_local(flow_of("q12"), {"nexmark": EVENTS})["result"]
    (many,) = base.execute("select count(*) from bid").fetchall()
    assert sum(row.bid_count for row in found) == many[0]
