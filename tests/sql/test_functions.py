"""Functions of the user's, rows made of rows, and windows."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.errors import SqlError
from penstock.testing import run_local
from tests.sql.corpus import at, tables


def rows(text: str, **given: tuple[str, Any]) -> list[tuple[object, ...]]:
    made = {name: ps.items(values, schema) for name, (schema, values) in given.items()}
    return sorted(map(tuple, run_local(ps.sql_flow(text, made))["result"]), key=repr)


def test_a_scalar_function_of_a_module() -> None:
    text = "CREATE FUNCTION loud AS 'tests.sql.own.shout' LANGUAGE PYTHON; SELECT loud(w) AS l FROM words"
    assert rows(text, words=("w string", ["a"])) == [("A!",)]


def test_an_arrow_function_of_a_module() -> None:
    text = "CREATE FUNCTION twice AS 'tests.sql.own.doubled' LANGUAGE PYTHON; SELECT twice(n) + 1 AS l FROM t WHERE twice(n) > 2"
    assert rows(text, t=("n bigint", [1, 2])) == [(5,)]


def test_a_table_function_after_lateral() -> None:
    text = """
        CREATE FUNCTION pieces AS 'tests.sql.own.pieces' LANGUAGE PYTHON;
        SELECT id, w, n FROM lines, LATERAL TABLE(pieces(line)) AS p(w, n) WHERE n > 1"""
    assert rows(text, lines=("id int, line string", [(1, "to be a"), (2, "")])) == [(1, "be", 2), (1, "to", 2)]


def test_a_left_join_with_a_table_function_keeps_rows_without_any() -> None:
    text = """
        CREATE FUNCTION pieces AS 'tests.sql.own.pieces' LANGUAGE PYTHON;
        SELECT id, w FROM lines LEFT JOIN LATERAL TABLE(pieces(line)) AS p(w, n) ON TRUE"""
    assert rows(text, lines=("id int, line string", [(1, "a"), (2, "")])) == [(1, "a"), (2, None)]


def test_unnest_makes_a_row_of_each_item() -> None:
    given = {"t": ("id int, xs array<int>, ps array<struct<a:int,b:string>>", [(1, [5, 6], [(1, "x")]), (2, [], [])])}
    assert rows("SELECT id, x FROM t CROSS JOIN UNNEST(xs) AS u(x)", **given) == [(1, 5), (1, 6)]
    assert rows("SELECT id, a, b FROM t, UNNEST(ps) AS u(a, b)", **given) == [(1, 1, "x")]
    assert rows("SELECT id, x, n FROM t CROSS JOIN UNNEST(xs) WITH ORDINALITY AS u(x, n)", **given) == [
        (1, 5, 1),
        (1, 6, 2),
    ]
    assert rows("SELECT id, x FROM t LEFT JOIN UNNEST(xs) AS u(x) ON TRUE", **given) == [(1, 5), (1, 6), (2, None)]


def test_nested_values_are_reached() -> None:
    given = {
        "t": ("r struct<a:int,b:struct<c:string>>, m map<string,int>, xs array<int>", [((1, ("x",)), {"k": 7}, [3, 4])])
    }
    assert rows("SELECT r.a, t.r.b.c, m['k'] AS k, xs[1] AS f, cardinality(xs) AS n FROM t", **given) == [
        (1, "x", 7, 3, 2)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT window_start, window_end, count(*) AS n FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND)) GROUP BY window_start, window_end",
            [(at(0), at(30), 5), (at(30), at(60), 1), (at(60), at(90), 1)],
        ),
        (
            "SELECT customer, count(*) AS n FROM TABLE(TUMBLE(DATA => TABLE orders, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' MINUTE)) GROUP BY customer, window_start, window_end HAVING count(*) > 1",
            [("ada", 2), ("bob", 2)],
        ),
        (
            "SELECT TUMBLE_START(ts, INTERVAL '1' MINUTE) AS s, sum(price) AS p FROM orders GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)",
            [(at(0), 17.5), (at(60), 2.0)],
        ),
        (
            "SELECT count(*) AS n, window_end FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE)) GROUP BY window_start, window_end",
            [(5, at(30)), (6, at(60)), (2, at(90)), (1, at(120))],
        ),
        (
            "SELECT count(*) AS n, window_end FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE)) GROUP BY window_start, window_end",
            [(5, at(30)), (6, at(60)), (1, at(90)), (1, at(120))],
        ),
        (
            "SELECT customer, count(*) AS n, window_start FROM TABLE(SESSION(TABLE orders PARTITION BY customer, DESCRIPTOR(ts), INTERVAL '20' SECOND)) WHERE customer = 'ada' GROUP BY customer, window_start, window_end",
            [("ada", 2, at(0))],
        ),
        (
            "SELECT max(n) AS m FROM (SELECT count(*) AS n, window_time AS rt FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, window_time) GROUP BY TUMBLE(rt, INTERVAL '1' MINUTE)",
            [(1,), (2,)],
        ),
        (
            "SELECT id, window_start FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) WHERE id > 5",
            [(6, at(0)), (7, at(60))],
        ),
        (
            "SELECT L.id, R.paid FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))) L JOIN (SELECT * FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(ts), INTERVAL '10' SECOND))) R ON L.id = R.order_id AND L.window_start = R.window_start AND L.window_end = R.window_end",
            [(1, 10), (2, 5)],
        ),
        (
            "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC) AS rn FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) WHERE rn <= 2",
            [(4,), (5,), (7,)],
        ),
    ],
)
def test_windows(text: str, expected: list[tuple[object, ...]]) -> None:
    flow = ps.sql_flow(text, tables())
    assert flow.graph.output(flow.graph.node("result").inputs[0]).changes is None, "windows are final"
    assert sorted(map(tuple, run_local(flow)["result"]), key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(price), INTERVAL '1' MINUTE))",
            "expected a time attribute, got 'price'",
        ),
        ("SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts)))", "TUMBLE needs SIZE"),
        ("SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), 10))", "expected SIZE as an interval"),
        (
            "SELECT id FROM orders /*+ OPTIONS('a' = 'b') */",
            "expected OPTIONS after a table that CREATE TABLE has made",
        ),
        ("SELECT id /*+ OPTIONS('a' = 'b') */ FROM orders", "expected the name of a table before OPTIONS"),
        ("SELECT id FROM orders /*+ OPTIONS(a = b) */", "expected OPTIONS('name' = 'value', ...)"),
        ("SELECT id FROM orders /*+ FAST */", "no hint is read at this place"),
        (
            "SELECT id, sum(id) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 3 PRECEDING) AS s FROM orders",
            "ends after it begins",
        ),
        (
            "SELECT id, sum(id) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) AS s FROM orders",
            "UNBOUNDED FOLLOWING",
        ),
        ("SELECT id, ntile(0) OVER (ORDER BY price) AS s FROM orders", "1 or more"),
        ("SELECT count_if(DISTINCT amount > 1) AS n FROM orders", "goes without distinct"),
        ("SELECT /*+ FASTER(orders) */ o.id FROM orders o JOIN people p ON o.customer = p.name", "no hint FASTER"),
        ("SELECT rand() AS n FROM orders", "does not answer the same twice"),
        ("SELECT id FROM orders ORDER BY price", "expected ORDER BY a time attribute first"),
        ("CREATE FUNCTION f AS 'no.such.thing' LANGUAGE PYTHON", "cannot import"),
        ("CREATE FUNCTION f AS 'own.f' LANGUAGE JAVA", "1:39: expected PYTHON, got 'JAVA'"),
        (
            "CREATE TABLE f (a INT, b AS c + 1) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json'); SELECT * FROM f",
            "no column 'c'",
        ),
        (
            "CREATE TABLE f (n BIGINT) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json'); INSERT INTO f SELECT count(*) FROM orders WHERE customer IN (SELECT name FROM people) GROUP BY customer HAVING count(*) > 1",
            "only adds rows",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(SqlError) as raised:
        ps.sql_flow(text, tables())
    assert reason in str(raised.value)
    assert raised.value.line


def test_groups_by_rows() -> None:
    text = "SELECT count(*) AS n FROM (SELECT ROW(customer, price * 0) AS r FROM orders) t GROUP BY r"
    assert sorted(run_local(ps.sql_flow(text, tables()))["result"]) == [(1,), (1,), (1,), (2,), (2,)]


def test_groups_by_arrays_are_refused() -> None:
    with pytest.raises(SqlError, match="a key is a plain value"):
        ps.sql_flow("SELECT count(*) AS n FROM (SELECT ARRAY[id] AS a FROM orders) t GROUP BY a", tables())
