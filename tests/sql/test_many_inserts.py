"""Several INSERTs into one table: records are one stream, and of tables by a key the row of the last INSERT stands."""

from __future__ import annotations

import random
from typing import Any

import pytest

import penstock as ps
from penstock.errors import SqlError
from penstock.testing import BARRIER, run_local

KEYED = "CREATE TABLE totals (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'totals', 'properties.bootstrap.servers' = 'h:1', 'format' = 'json');"
PLAIN = "CREATE TABLE totals (k STRING, n BIGINT) WITH ('connector' = 'print');"
A: list[object] = [("x", 1), ("y", 2), ("x", 3)]
B: list[object] = [("x", 10), ("z", 20)]


def tables() -> dict[str, Any]:
    return {name: ps.items([], "k string, v bigint") for name in "abc"}


def rows_of(text: str, given: dict[str, list[object]]) -> dict[object, tuple[object, ...]]:
    """The rows that stand in `totals` at the end, by key."""
    flow = ps.sql_flow(text, tables())
    assert [sink.name for sink in flow.graph.sinks] == ["totals"]
    known = {source.name for source in flow.graph.sources}
    results = run_local(flow, {n: rows for n, rows in given.items() if n in known})
    return {row[0]: tuple(row) for row in results.table("totals").values()}


COUNTS = "INSERT INTO totals SELECT k, count(*) FROM a GROUP BY k;"
SUMS = "INSERT INTO totals SELECT k, sum(v) FROM b GROUP BY k HAVING sum(v) > 5;"


def test_of_a_key_that_two_inserts_write_the_row_of_the_last_one_stands() -> None:
    given = {"a": list(A), "b": list(B)}
    assert rows_of(KEYED + COUNTS + SUMS, given) == {"x": ("x", 10), "y": ("y", 1), "z": ("z", 20)}
    assert rows_of(KEYED + SUMS + COUNTS, given) == {"x": ("x", 2), "y": ("y", 1), "z": ("z", 20)}


def test_a_row_that_goes_leaves_that_of_the_other_insert() -> None:
    given: dict[str, list[object]] = {"a": list(A), "b": [*B, BARRIER, ("x", -9), ("z", -20)]}
    assert rows_of(KEYED + COUNTS + SUMS, given) == {"x": ("x", 2), "y": ("y", 1)}


def test_records_beside_a_table_are_the_last_of_each_key() -> None:
    text = KEYED + "INSERT INTO totals SELECT k, v FROM a; INSERT INTO totals SELECT k, v FROM c;" + SUMS
    given: dict[str, list[object]] = {"a": list(A), "b": list(B), "c": [("y", 7)]}
    found = rows_of(text, given)
    assert found["x"] == ("x", 10)
    assert found["z"] == ("z", 20)
    assert found["y"] in (("y", 2), ("y", 7))
    given["b"] = [*B, BARRIER, ("x", -9)]
    assert rows_of(text, given)["x"] == ("x", 3)


def test_three_tables_and_keys_of_several_columns() -> None:
    keyed = KEYED.replace("n BIGINT, PRIMARY KEY (k)", "of STRING, n BIGINT, PRIMARY KEY (k, of)")
    inserts = [
        f"INSERT INTO totals SELECT k, '{of}', count(*) FROM {name} GROUP BY k;" for name, of in ("an", "bn", "cm")
    ]
    found = rows_of_pairs(keyed + "".join(inserts), {"a": list(A), "b": list(B), "c": [("x", 0), ("x", 0)]})
    assert found == [("x", "m", 2), ("x", "n", 1), ("y", "n", 1), ("z", "n", 1)]


def rows_of_pairs(text: str, given: dict[str, list[object]]) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in run_local(ps.sql_flow(text, tables()), given).table("totals").values())


def test_any_cut_into_batches_ends_with_the_same_rows() -> None:
    chance = random.Random(16)
    text = KEYED + COUNTS + SUMS + "INSERT INTO totals SELECT k, max(v) FROM c GROUP BY k HAVING count(*) < 3;"
    for _ in range(30):
        plain: dict[str, list[object]] = {
            n: [(chance.choice("xyz"), chance.randint(-5, 9)) for _ in range(chance.randint(0, 8))] for n in "abc"
        }
        cut = {
            n: [part for row in rows for part in ((row, BARRIER) if chance.random() < 0.4 else (row,))]
            for n, rows in plain.items()
        }
        assert rows_of(text, cut) == rows_of(text, plain)


def test_tables_without_a_key_are_one_multiset() -> None:
    flow = ps.sql_flow(PLAIN + COUNTS + SUMS, tables())
    assert [sink.name for sink in flow.graph.sinks] == ["totals"]
    found = run_local(flow, {"a": list(A), "b": [*B, ("y", 1), BARRIER, ("z", -20)]})["totals"]
    assert sorted(map(tuple, found)) == [("x", 2), ("x", 10), ("y", 1)]


def test_the_same_table_written_twice_is_there_twice() -> None:
    view = "CREATE VIEW v AS SELECT k, v AS n FROM a;"
    flow = ps.sql_flow(
        PLAIN + view + "INSERT INTO totals SELECT * FROM v; INSERT INTO totals SELECT * FROM v;", tables()
    )
    assert sorted(map(tuple, run_local(flow, {"a": [("x", 1)]})["totals"])) == [("x", 1), ("x", 1)]


def test_a_table_whose_rows_share_the_key_of_the_sink_is_refused_where_it_stands() -> None:
    text = (
        KEYED
        + COUNTS
        + "\nINSERT INTO totals SELECT k, v FROM (SELECT k, v, count(*) AS n FROM b GROUP BY k, v) WHERE n > 1"
    )
    with pytest.raises(SqlError, match="several rows may have the same k") as caught:
        ps.sql_flow(text, tables())
    assert caught.value.line == 2
