"""Aggregates in Python: in groups, totals, windows and frames, over records and over tables that change."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.compiler.compile import compile_graph
from penstock.errors import ExpressionError, SqlError
from penstock.testing import run_local
from tests.sql.corpus import answer, by_duckdb, in_order, tables
from tests.sql.own import Longest, Weighted

NAMES = """
    CREATE FUNCTION weighted AS 'tests.sql.own.Weighted' LANGUAGE PYTHON;
    CREATE FUNCTION longest AS 'tests.sql.own.Longest' LANGUAGE PYTHON;
    CREATE FUNCTION total AS 'tests.sql.own.ArrowTotal' LANGUAGE PYTHON;
"""
WEIGHTED = "sum(price * coalesce(amount, 0)) {0} / nullif(sum(coalesce(amount, 0)) {0}, 0)"


@pytest.mark.parametrize(
    ("query", "same"),
    [
        (
            "SELECT customer, weighted(price, amount) AS w FROM orders GROUP BY customer",
            f"SELECT customer, {WEIGHTED.format('')} AS w FROM orders GROUP BY customer",
        ),
        ("SELECT weighted(price, amount) + 1 AS w FROM orders", f"SELECT {WEIGHTED.format('')} + 1 AS w FROM orders"),
        (
            "SELECT weighted(price, amount) FILTER (WHERE id > 2) AS w, count(*) AS n FROM orders",
            f"SELECT {WEIGHTED.format('FILTER (WHERE id > 2)')} AS w, count(*) AS n FROM orders",
        ),
        (
            "SELECT amount, longest(customer) AS l, max(id) AS m FROM orders GROUP BY amount",
            "SELECT amount, max(customer) AS l, max(id) AS m FROM orders GROUP BY amount",
        ),
        (
            "SELECT customer, total(amount) AS t FROM orders GROUP BY customer",
            "SELECT customer, coalesce(sum(amount), 0) AS t FROM orders GROUP BY customer",
        ),
        (
            "SELECT total(DISTINCT amount) AS t FROM orders",
            "SELECT sum(DISTINCT amount) AS t FROM orders",
        ),
        (
            "SELECT weighted(s, n) AS w FROM (SELECT customer, sum(price) AS s, cast(count(*) AS int) AS n FROM orders GROUP BY customer) t",
            "SELECT sum(s * n) / sum(n) AS w FROM (SELECT customer, sum(price) AS s, count(*) AS n FROM orders GROUP BY customer) t",
        ),
        (
            "SELECT longest(t) AS l FROM (SELECT customer, cast(sum(price) AS string) AS t FROM orders WHERE customer <> 'bob' GROUP BY customer) t",
            "SELECT '4.0' AS l",
        ),
        (
            "SELECT id, weighted(price, amount) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS w FROM orders",
            f"SELECT id, {WEIGHTED.format('OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)')} AS w FROM orders",
        ),
        (
            "SELECT id, total(amount) OVER (PARTITION BY customer ORDER BY ts) AS w FROM orders",
            "SELECT id, coalesce(sum(amount) OVER (PARTITION BY customer ORDER BY ts), 0) AS w FROM orders",
        ),
        (
            "SELECT customer, longest(customer) AS l FROM orders GROUP BY customer HAVING longest(customer) > 'b'",
            "SELECT customer, max(customer) AS l FROM orders GROUP BY customer HAVING max(customer) > 'b'",
        ),
    ],
)
def test_an_aggregate_answers_as_the_same_in_sql(query: str, same: str) -> None:
    wanted = by_duckdb(same)
    assert answer(NAMES + query) == wanted
    assert answer(NAMES + query, cuts=3) == wanted


def test_in_windows() -> None:
    text = f"""{NAMES} SELECT weighted(price, amount) AS w, total(amount) AS t FROM
        TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end"""
    same = f"SELECT {WEIGHTED.format('')} AS w, sum(amount) AS t FROM orders GROUP BY date_trunc('minute', ts)"
    assert in_order(list(run_local(ps.sql_flow(text, tables()))["result"])) == by_duckdb(same)


def test_the_streams_api_calls_the_same_aggregate() -> None:
    weighted = ps.aggregate_function(Weighted)
    flow = ps.Flow("own", functions=[weighted])
    rows = flow.source("rows", ps.items([("a", 2.0, 1), ("a", 4.0, 3)], "k string, price double, n int"))
    rows.key_by("k").aggregate("means", mean="weighted(price, n)", twice=weighted("price * 2", "n")).sink(
        "out", ps.console()
    )
    assert run_local(flow)["out"] == [("a", 3.5, 7.0)]


def test_an_aggregate_that_retracts_keeps_no_rows() -> None:
    for name, keeps in (("weighted(s, n)", False), ("longest(cast(s AS string))", True)):
        text = f"{NAMES} SELECT {name} AS w FROM (SELECT customer, sum(price) AS s, cast(count(*) AS int) AS n FROM orders GROUP BY customer) t"
        flow = ps.sql_flow(text, tables())
        kept = [
            n.keeps for s in compile_graph(flow.graph).stages for n in s.nodes if type(n).__name__ == "AggregateChanges"
        ]
        assert [("all values" in each) for each in kept] == [keeps]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CREATE FUNCTION f AS 'tests.sql.own.NoMerge' LANGUAGE PYTHON", "must define merge"),
        (NAMES + "SELECT weighted(price) AS w FROM orders", "takes 2 arguments, got 1"),
        (NAMES + "SELECT weighted(customer, amount) AS w FROM orders", "takes double, got customer, which is string"),
        (NAMES + "SELECT id FROM orders WHERE weighted(price, amount) > 1", "is an aggregate"),
        (NAMES + "SELECT id, weighted(price, amount) AS w FROM orders", "must be in GROUP BY"),
    ],
)
def test_refusals_say_why(text: str, reason: str) -> None:
    with pytest.raises(SqlError) as raised:
        ps.sql_flow(text, tables())
    assert reason in str(raised.value)


def test_a_class_without_types_is_refused() -> None:
    class Untyped(Longest):
        def accumulate(self, so_far, text):  # type: ignore[no-untyped-def]
            return text

    with pytest.raises(ExpressionError, match="must say the type of 'text'"):
        ps.aggregate_function(Untyped)
    with pytest.raises(ExpressionError, match="takes a class"):
        ps.aggregate_function(len)  # type: ignore[call-overload]
