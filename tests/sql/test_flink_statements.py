"""Statements as Flink's documentation writes them: those that run, and those that are refused with a reason and a place."""

from __future__ import annotations

import datetime
import random

import pytest

import penstock as ps
from penstock.errors import SqlError
from penstock.jobs.sql.session import Listed, SqlSession
from penstock.testing import BARRIER, Driver, run_local

SINKS = "CREATE TABLE a (n INT) WITH ('connector' = 'print'); CREATE TABLE b (n INT) WITH ('connector' = 'print');"
NUMBERS = ps.items([1, 2, 2], "n int")
AT = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    "text",
    [
        "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT n FROM t; INSERT INTO b SELECT n + 1 FROM t; END;",
        "BEGIN STATEMENT SET; INSERT INTO a SELECT n FROM t; INSERT INTO b SELECT n + 1 FROM t; END;",
        "EXECUTE INSERT INTO a SELECT n FROM t; USE CATALOG default_catalog; USE default_database; INSERT INTO b SELECT n + 1 FROM t",
        "SET parallelism.default = 4; RESET parallelism.default; RESET; INSERT INTO a SELECT n FROM t; INSERT INTO b SELECT n + 1 FROM t",
        "EXPLAIN STATEMENT SET BEGIN INSERT INTO a SELECT 7; INSERT INTO b SELECT 8; END; "
        "INSERT INTO a SELECT n FROM t; INSERT INTO b SELECT n + 1 FROM t",
    ],
)
def test_statement_sets_and_what_changes_nothing(text: str) -> None:
    found = run_local(ps.sql_flow(SINKS + text, {"t": NUMBERS}))
    assert (found["a"], found["b"]) == ([(1,), (2,), (2,)], [(2,), (3,), (3,)])


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("INSERT OVERWRITE a SELECT n FROM t", 8, "expected INTO: a sink adds to what is there"),
        ("INSERT INTO a PARTITION (n = 1) SELECT n FROM t", 15, "the values of a partition are columns"),
        ("USE other", 5, "no database 'other'"),
        ("CREATE CATALOG c", 8, "there is one catalog"),
        ("DELETE FROM a", 1, "DELETE is no statement here"),
        ("ADD JAR 'x'", 1, "functions are written in Python"),
        ("SHOW JARS", 6, "expected TABLES, VIEWS"),
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01 00:00:00'", 15, "goes with a join"),
        ("SELECT n FROM t WHERE n IN (SELECT n, n FROM t) OR n = 1", 23, "expected one column in the subquery, got 2"),
        ("SELECT n FROM t WHERE n = ANY (ARRAY[n])", 38, "expected a comparison with ANY (SELECT ...)"),
        ("SELECT n FROM t WHERE (n, n) > ANY (SELECT n, n FROM t)", 24, "expected = or <> between rows of values"),
        (
            "SELECT n FROM t o WHERE n > ANY (SELECT n FROM t i WHERE i.n = o.n LIMIT 1)",
            25,
            "without LIMIT, since it reads",
        ),
        ("SELECT x FROM t, UNNEST(ARRAY[(SELECT max(n) FROM t)]) AS u (x)", 39, "a query below has it as a column"),
        ("SELECT /*+ FAST(t) */ n FROM t", 12, "no hint FAST"),
        ("SELECT /*+ STATE_TTL('u' = '1d') */ n FROM t", 23, "no table 'u' in this query"),
    ],
)
def test_what_is_refused_says_why_and_where(text: str, column: int, reason: str) -> None:
    with pytest.raises(SqlError) as caught:
        ps.sql_flow(f"SELECT 1;\n{text}", {"t": NUMBERS, "a": ps.console()})
    assert reason in caught.value.reason
    assert (caught.value.line, caught.value.column) == (2, column)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SHOW TABLES LIKE 'n%'", [("numbers", "table")]),
        ("SHOW TABLES FROM default_database LIKE '_'", [("v", "view")]),
        ("SHOW COLUMNS IN numbers LIKE 'n'", [("n", "int")]),
        ("DESCRIBE EXTENDED numbers", [("n", "int")]),
        ("SHOW CURRENT CATALOG", [("default_catalog",)]),
        ("SHOW DATABASES", [("default_database",)]),
        ("SHOW CREATE VIEW v", [("CREATE VIEW v AS SELECT n FROM numbers",)]),
        ("SET 'parallelism.default' = '4'; RESET; SET", []),
    ],
)
def test_what_a_session_lists(text: str, rows: list[tuple[str, ...]]) -> None:
    session = SqlSession({"numbers": NUMBERS})
    *_, last = session.run(f"CREATE VIEW v AS SELECT n FROM numbers; {text}")
    assert isinstance(last, Listed)
    assert last.rows == rows


def test_grouping_sets_over_windows_are_final_with_the_window() -> None:
    flow = ps.Flow("windows")
    rows = [(k, v, AT + datetime.timedelta(seconds=s)) for k, v, s in [("a", 1, 1), ("b", 2, 4), ("a", 4, 12)]]
    bids = flow.source("bids", ps.items(rows, "k string, v int, ts timestamp"), event_time="ts")
    windows = "TABLE(TUMBLE((SELECT * FROM bids WHERE v > 0), DESCRIPTOR(ts), INTERVAL '10' SECOND))"
    made = ps.sql_query(
        f"SELECT window_start, k, SUM(v) AS s FROM {windows} GROUP BY window_start, window_end, GROUPING SETS ((k), ())",
        {"bids": bids},
    )
    assert made.changes is None
    made.sink("out", ps.console())
    late = AT + datetime.timedelta(seconds=10)
    wanted = [(AT, "a", 1), (AT, "b", 2), (AT, None, 3), (late, "a", 4), (late, None, 4)]
    assert sorted(map(tuple, run_local(flow)["out"]), key=str) == sorted(wanted, key=str)


def test_several_columns_are_counted_as_one() -> None:
    pairs = ps.items([("a", 1), ("a", 1), ("a", 2), ("a", None)], "k string, v int")
    flow = ps.sql_flow("SELECT COUNT(DISTINCT k, v) AS n FROM pairs", {"pairs": pairs})
    assert run_local(flow)["result"] == [(2,)]


def test_groups_as_json() -> None:
    rows = ps.items([("a", 2), ("b", 10), ("a", None)], "k string, v int")
    text = "SELECT JSON_OBJECTAGG(KEY k VALUE v) AS o, JSON_ARRAYAGG(v) AS l FROM rows_ WHERE v IS NOT NULL OR k = 'b'"
    assert run_local(ps.sql_flow(text, {"rows_": rows}))["result"] == [('{"a":2,"b":10}', "[2,10]")]


def test_processing_time_is_that_of_the_batch() -> None:
    text = """
        SELECT n, CURRENT_TIMESTAMP AS at, UNIX_TIMESTAMP() AS s, CURRENT_DATE AS d
        FROM t WHERE LOCALTIMESTAMP >= TIMESTAMP '2020-05-01 00:00:00'
    """
    driver = Driver(ps.sql_flow(text, {"t": ps.items([], "n int")}))
    driver.push("t", 1, 2)
    driver.barrier()
    driver.clock.advance(60)
    driver.push("t", 3)
    driver.crash()
    found = [(row.n, row.at, row.s, row.d) for row in driver.barrier(end=True)["result"]]
    driver.close()
    first = found[0][1]
    later, seconds = first + datetime.timedelta(minutes=1), int(first.timestamp())
    same = [(n, first, seconds, first.date()) for n in (1, 2)]
    assert found == [*same, (3, later, seconds + 60, later.date())]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT n, NOW() AS at FROM (SELECT n, COUNT(*) FROM t GROUP BY n)", "would have to be kept"),
        ("SELECT n, COUNT(*), NOW() AS at FROM t GROUP BY n", "the processing time must be in GROUP BY"),
        ("SELECT UUID() AS u FROM t", "does not answer the same twice"),
    ],
)
def test_times_that_could_not_be_taken_back_are_refused(text: str, reason: str) -> None:
    with pytest.raises(SqlError) as caught:
        ps.sql_flow(text, {"t": NUMBERS})
    assert reason in caught.value.reason


VERSIONED = """
CREATE VIEW versioned_rates AS
SELECT currency, conversion_rate * 2 AS twice, update_time
  FROM (
      SELECT *,
      ROW_NUMBER() OVER (PARTITION BY currency
         ORDER BY update_time DESC) AS rownum
      FROM currency_rates)
WHERE rownum = 1;
SELECT o.id, r.twice FROM orders AS o
LEFT JOIN versioned_rates FOR SYSTEM_TIME AS OF o.order_time AS r ON o.currency = r.currency;
"""


def priced(text: str) -> ps.Flow:
    flow = ps.Flow("priced")
    orders = flow.source(
        "orders",
        ps.items([], "id int, currency string, order_time timestamp"),
        event_time="order_time",
        lateness="1m",
    )
    rates = flow.source(
        "currency_rates",
        ps.items([], "currency string, conversion_rate int, update_time timestamp"),
        event_time="update_time",
        lateness="1m",
    )
    return ps.sql_flow(text, {"orders": orders, "currency_rates": rates})


@pytest.mark.parametrize("seed", range(4))
def test_a_versioned_view_has_the_version_of_the_time(seed: int) -> None:
    chance = random.Random(seed)
    noon = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
    times = [noon + datetime.timedelta(seconds=s) for s in chance.sample(range(50), 16)]
    orders = [(n, chance.choice("ab"), at) for n, at in enumerate(times[:8])]
    rates = [(chance.choice("ab"), n, at) for n, at in enumerate(times[8:])]
    wanted = []
    for number, currency, at in orders:
        valid = [(then, rate) for key, rate, then in rates if key == currency and then <= at]
        wanted.append((number, max(valid)[1] * 2 if valid else None))
    given = {
        name: [each for row in rows for each in ([row, BARRIER] if chance.random() < 0.4 else [row])]
        for name, rows in (("orders", orders), ("currency_rates", rates))
    }
    made = priced(VERSIONED)
    assert sorted(map(tuple, run_local(made, given)["result"])) == wanted
    assert not [node.name for node in made.graph.nodes if node.name.startswith("versioned_rates")]


@pytest.mark.parametrize(
    ("old", "new"),
    [("o.currency = r.currency", "o.id = r.twice"), ("rownum = 1", "rownum = 1 AND conversion_rate > 2")],
)
def test_versions_that_a_view_does_not_have_are_refused(old: str, new: str) -> None:
    with pytest.raises(SqlError, match="a record for each version"):
        priced(VERSIONED.replace(old, new))
    both = priced(VERSIONED + "SELECT * FROM versioned_rates")
    assert any(node.name == "versioned_rates.top" for node in both.graph.nodes)
