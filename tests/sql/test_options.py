"""Hints, SET, LIKE, and several statements that write one table."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.errors import SqlError
from penstock.testing import Driver, run_local
from tests.sql.corpus import tables

KAFKA = "'connector' = 'kafka', 'topic' = 't', 'format' = 'json', 'properties.bootstrap.servers' = 'x:9092'"
SOURCE = f"CREATE TABLE s (id BIGINT, w STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ({KAFKA});"
PRINT = "CREATE TABLE o (id BIGINT) WITH ('connector' = 'print');"


def reason(text: str) -> str:
    with pytest.raises(SqlError) as raised:
        ps.sql_flow(text, tables())
    return str(raised.value)


# -- OPTIONS ----------------------------------------------------------------------------------------------------------


def test_options_after_a_table_replace_those_of_the_table() -> None:
    flow = ps.sql_flow(
        f"{SOURCE} SELECT id FROM s /*+ OPTIONS('topic' = 'other', 'scan.startup.mode' = 'latest-offset') */ AS x"
    )
    (source,) = flow.graph.sources
    assert source.endpoint.options["topics"] == ["other"]


def test_a_table_with_other_options_is_another_source() -> None:
    text = f"{SOURCE} SELECT id FROM s UNION ALL SELECT id FROM s /*+ OPTIONS('topic' = 'other') */ UNION ALL SELECT id FROM s"
    assert len(ps.sql_flow(text).graph.sources) == 2


def test_options_of_insert_into() -> None:
    flow = ps.sql_flow(
        "CREATE TABLE o (id INT) WITH ('connector' = 'print'); INSERT INTO o /*+ OPTIONS('rows' = '3') */ SELECT id FROM orders",
        tables(),
    )
    (sink,) = flow.graph.sinks
    assert sink.endpoint.options["rows"] == 3


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        ("OPTIONS('tpic' = 'x')", "tpic"),
        ("OPTIONS('connector' = 'print')", "another connector"),
        ("OPTIONS('a' = 'b'", "no hint is read at this place"),
        ("OPTIONS()", "expected OPTIONS('name' = 'value', ...)"),
        ("OPTIONS('a' = 'b',)", "expected OPTIONS('name' = 'value', ...)"),
    ],
)
def test_wrong_options_point_to_themselves(hint: str, said: str) -> None:
    text = f"{SOURCE}\nSELECT id FROM s /*+ {hint} */"
    with pytest.raises(SqlError) as raised:
        ps.sql_flow(text)
    assert said in str(raised.value)
    assert raised.value.line == 2
    assert raised.value.column >= 18


# -- hints after SELECT -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        ("STATE_TTL('x' = '1d')", "no table 'x' in this query"),
        ("STATE_TTL('o' = 'long')", "long"),
        ("STATE_TTL(1)", "expected STATE_TTL('name' = 'value')"),
        ("LOOKUP('table' = 'p', 'retry-predicate' = 'lookup_miss')", "does not wait to look again"),
        ("LOOKUP('table' = 'p', 'asink' = 'true')", "no option 'asink' of LOOKUP; did you mean 'async'"),
        ("LOOKUP('async' = 'true')", "expected LOOKUP('table' = 'name', ...)"),
    ],
)
def test_hints_that_say_nothing_that_is_known_are_refused(hint: str, said: str) -> None:
    assert said in reason(f"SELECT /*+ {hint} */ o.id FROM orders o JOIN people p ON o.customer = p.name")


def test_a_hint_of_a_query_without_joins_is_checked_too() -> None:
    assert "no hint FASTER" in reason("SELECT /*+ FASTER(orders) */ id FROM orders")
    assert "no table 'x'" in reason("SELECT /*+ STATE_TTL('x' = '1d') */ count(*) AS n FROM orders GROUP BY id")


def test_a_state_ttl_hint_is_that_of_a_group() -> None:
    flow = ps.sql_flow(
        "SELECT /*+ STATE_TTL('orders' = '1d') */ customer, count(*) AS n FROM orders GROUP BY customer", tables()
    )
    (group,) = (n for n in flow.graph.nodes if n.kind == "aggregate")
    assert group.settings()["ttl"] == "1d"
    assert "starts over (ttl)" in group.approximate


def test_a_state_ttl_hint_is_that_of_the_join() -> None:
    text = "SELECT /*+ STATE_TTL('o' = '1d', 'p' = '2 h'), LOOKUP('table' = 'p', 'async' = 'true') */ o.id FROM orders o JOIN people p ON o.customer = p.name"
    (join,) = (n for n in ps.sql_flow(text, tables()).graph.nodes if n.kind == "table_join")
    assert join.settings()["ttl"] == "1d"


# -- time to live -----------------------------------------------------------------------------------------------------


def ttl_flow(query: str) -> Driver:
    flow = ps.Flow("ttl")
    rows = flow.source("rows", ps.items([], "k string, n int"))
    return Driver(ps.sql_flow(f"SET 'table.exec.state.ttl' = '1 h'; {query}", {"rows": rows}))


@pytest.mark.parametrize(
    ("query", "kind", "first", "later"),
    [
        ("SELECT k, count(*) AS c FROM rows GROUP BY k", "aggregate", [("a", 1)], [("a", 1)]),
        ("SELECT DISTINCT k FROM rows", "distinct", [("a",)], [("a",)]),
        (
            "SELECT k, n FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY n DESC) AS r FROM rows) t WHERE r = 1",
            "top",
            [("a", 5)],
            [("a", 3)],
        ),
    ],
)
def test_what_is_kept_of_an_idle_key_goes(query: str, kind: str, first: list[object], later: list[object]) -> None:
    driver = ttl_flow(query)
    (node,) = (n for n in driver.graph.nodes if n.kind == kind)
    assert "1h" in node.keeps
    assert "ttl" in node.approximate
    driver.push("rows", ("a", 5))
    assert [tuple(r) for r in driver.barrier()["result"]] == first
    driver.clock.advance(1800)
    driver.push("rows", ("b", 1))
    driver.barrier()
    driver.clock.advance(2400)
    driver.push("rows", ("a", 3))
    assert [tuple(r) for r in driver.barrier()["result"]][-1:] == later
    driver.crash()
    many = len(driver.results()["result"])
    driver.push("rows", ("b", 0))
    assert ("b", 1) not in [tuple(r) for r in driver.barrier()["result"]][many:], "b is known, also after the crash"
    driver.close()


def test_groups_of_a_table_that_changes_stay_while_they_have_rows() -> None:
    driver = ttl_flow("SELECT c, count(*) AS n FROM (SELECT k, count(*) AS c FROM rows GROUP BY k) t GROUP BY c")
    inner, outer = (n for n in driver.graph.nodes if n.kind == "aggregate")
    assert ("ttl" in inner.approximate, outer.approximate) == (True, "")


# -- SET --------------------------------------------------------------------------------------------------------------


def test_set_takes_names_that_mean_something(caplog: pytest.LogCaptureFixture) -> None:
    ps.sql_flow(
        "SET 'interval' = '5s'; SET 'parallelism.default' = '2'; SET 'pipeline.name' = 'x'; SELECT id FROM orders",
        tables(),
    )
    assert not caplog.records
    ps.sql_flow("SET 'table.exec.mini-batch.enabled' = 'true'; SELECT id FROM orders", tables())
    assert "changes nothing" in caplog.text


def test_set_refuses_other_names_with_the_nearest() -> None:
    assert "did you mean 'table.exec.state.ttl'" in reason("SET 'table.exec.stat.ttl' = '1h'; SELECT id FROM orders")


def test_set_says_when_a_quiet_partition_holds_time_back_no_more() -> None:
    flow = ps.sql_flow(f"SET 'table.exec.source.idle-timeout' = '10 s'; {SOURCE} SELECT id FROM s")
    (timed,) = (n for n in flow.graph.nodes if n.kind == "event_time")
    assert timed.settings()["idle"] == "10s"


def test_a_watermark_for_each_partition() -> None:
    text = f"""CREATE TABLE s (id BIGINT, p INT METADATA FROM 'partition', ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
        WITH ({KAFKA}, 'watermark.partition' = 'p'); SELECT id FROM s"""
    (timed,) = (n for n in ps.sql_flow(text).graph.nodes if n.kind == "event_time")
    assert timed.partition == "p"  # type: ignore[attr-defined]
    assert "no column 'q'" in reason(text.replace("= 'p')", "= 'q')"))


# -- several INSERTs --------------------------------------------------------------------------------------------------


def test_statements_that_write_one_table_share_a_sink() -> None:
    text = f"""{PRINT} INSERT INTO o SELECT id FROM orders WHERE id < 3; INSERT INTO o SELECT order_id FROM payments;
        INSERT INTO o SELECT age FROM people WHERE age > 40"""
    flow = ps.sql_flow(text, tables())
    assert [s.name for s in flow.graph.sinks] == ["o"]
    assert sorted(run_local(flow)["o"]) == [(1,), (1,), (2,), (2,), (2,), (3,), (9,), (50,)]


def test_tables_that_change_have_a_sink_each_where_it_only_adds_rows() -> None:
    text = """CREATE TABLE o (k STRING, n BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
        INSERT INTO o SELECT customer, count(*) FROM orders GROUP BY customer; INSERT INTO o SELECT city, count(*) FROM people GROUP BY city"""
    assert [s.name for s in ps.sql_flow(text, tables()).graph.sinks] == ["o", "o-2"]


# -- LIKE -------------------------------------------------------------------------------------------------------------

BASE = f"""CREATE TABLE base (id BIGINT, twice AS id * 2, p INT METADATA FROM 'partition', ts TIMESTAMP(3),
    WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (id) NOT ENFORCED) WITH ({KAFKA});"""


@pytest.mark.parametrize(
    ("like", "columns"),
    [
        ("LIKE base", ["id", "twice", "p", "ts", "more"]),
        ("LIKE base (EXCLUDING GENERATED)", ["id", "p", "ts", "more"]),
        ("LIKE base (EXCLUDING METADATA EXCLUDING WATERMARKS)", ["id", "twice", "ts", "more"]),
        ("LIKE base (EXCLUDING ALL INCLUDING GENERATED OVERWRITING OPTIONS)", ["id", "twice", "ts", "more"]),
    ],
)
def test_a_table_like_another_takes_the_parts_that_are_said(like: str, columns: list[str]) -> None:
    flow = ps.sql_flow(f"{BASE} CREATE TABLE t (more STRING) WITH ('topic' = 'other') {like}; SELECT * FROM t")
    assert list(flow.graph.output(flow.graph.node("result").inputs[0]).schema.names) == columns
    (source,) = flow.graph.sources
    assert source.endpoint.options["topics"] == ["other"]
    timed = [n for n in flow.graph.nodes if n.kind == "event_time"]
    assert bool(timed) == ("WATERMARKS" not in like and "EXCLUDING ALL" not in like)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("(id BIGINT) LIKE base", "expected a new column, got 'id'"),
        ("(PRIMARY KEY (ts) NOT ENFORCED) LIKE base", "expected one PRIMARY KEY"),
        ("(WATERMARK FOR ts AS ts) LIKE base (INCLUDING WATERMARKS)", "expected one WATERMARK"),
        ("WITH ('topic' = 'x') LIKE base (INCLUDING OPTIONS)", "say OVERWRITING OPTIONS"),
        ("LIKE base (OVERWRITING CONSTRAINTS)", "OVERWRITING goes with"),
        ("LIKE base (INCLUDING ODD)", "ODD"),
        ("LIKE base (WITH ALL)", "expected INCLUDING, EXCLUDING or OVERWRITING"),
    ],
)
def test_what_like_cannot_put_together_is_refused(table: str, said: str) -> None:
    assert said in reason(f"{BASE} CREATE TABLE t {table}; SELECT * FROM t")


def test_own_watermark_replaces_that_of_the_other() -> None:
    flow = ps.sql_flow(
        f"{BASE} CREATE TABLE t (WATERMARK FOR ts AS ts - INTERVAL '9' SECOND) LIKE base (OVERWRITING WATERMARKS); SELECT id FROM t"
    )
    (timed,) = (n for n in flow.graph.nodes if n.kind == "event_time")
    assert timed.settings()["lateness"] == "9s"
