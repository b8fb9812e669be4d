"""ALTER TABLE and ALTER VIEW: another definition, before any statement has read or written the table."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.errors import SqlError
from penstock.jobs.sql.session import Listed, Said, SqlSession
from penstock.testing import run_local

BASE = """CREATE TABLE t (id BIGINT, name STRING, ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'in', 'format' = 'json');
"""


def columns(*alters: str) -> list[tuple[object, ...]]:
    """The columns of the table after some ALTERs, as the shell describes it."""
    session = SqlSession()
    *_, last = session.run(f"{BASE}{';'.join(alters)}; DESCRIBE t")
    assert isinstance(last, Listed)
    return [tuple(row) for row in last.rows]


@pytest.mark.parametrize(
    ("alter", "names"),
    [
        ("ALTER TABLE t ADD size INT", ["id", "name", "ts", "size"]),
        ("ALTER TABLE t ADD (a INT COMMENT 'x' FIRST, b AS id * 2 AFTER id)", ["a", "id", "b", "name", "ts"]),
        (
            "ALTER TABLE IF EXISTS t ADD (up AS upper(name), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)",
            ["id", "name", "ts", "up"],
        ),
        ("ALTER TABLE t MODIFY name STRING FIRST", ["name", "id", "ts"]),
        ("ALTER TABLE t DROP name", ["id", "ts"]),
        ("ALTER TABLE t DROP (name, ts)", ["id"]),
        ("ALTER TABLE t RENAME name TO who", ["id", "who", "ts"]),
        ("ALTER TABLE IF EXISTS nothing RENAME TO other", ["id", "name", "ts"]),
    ],
)
def test_columns_change(alter: str, names: list[str]) -> None:
    assert [row[0] for row in columns(alter)] == names


def test_a_type_is_modified() -> None:
    assert columns("ALTER TABLE t MODIFY (id INT, ts DATE)") == [("id", "int"), ("name", "string"), ("ts", "date")]


def test_what_is_altered_is_read_and_written_so() -> None:
    text = (
        BASE
        + """
        ALTER TABLE t RENAME TO people;
        ALTER TABLE people SET ('path' = 'elsewhere', 'files_per_batch' = '3');
        ALTER TABLE people RESET ('files_per_batch');
        ALTER TABLE people ADD (twice AS id * 2);
        CREATE TABLE o (id BIGINT, n BIGINT) WITH ('connector' = 'print');
        ALTER TABLE o ADD (PRIMARY KEY (id) NOT ENFORCED);
        CREATE VIEW v AS SELECT id FROM people;
        ALTER VIEW v AS SELECT id, twice FROM people WHERE id > 1;
        ALTER VIEW v RENAME TO w;
        INSERT INTO o SELECT id, count(twice) FROM w GROUP BY id;
        INSERT INTO o SELECT id, sum(twice) FROM w WHERE id > 2 GROUP BY id;"""
    )
    flow = ps.sql_flow(text)
    (source,) = flow.graph.sources
    assert source.endpoint.options["path"] == "elsewhere"
    results = run_local(flow, {"people": [(1, "a", None), (2, "b", None), (3, "c", None)]})
    assert sorted(map(tuple, results.table("o").values())) == [(2, 1), (3, 6)]


def test_a_watermark_is_added_modified_and_dropped() -> None:
    text = (
        BASE
        + """
        ALTER TABLE t ADD WATERMARK FOR ts AS ts - INTERVAL '5' SECOND;
        ALTER TABLE t MODIFY WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE;
        SELECT window_start, count(*) AS n FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end"""
    )
    assert "60000000" in repr(ps.sql_flow(text).graph.nodes)
    with pytest.raises(SqlError, match="expected a time attribute"):
        ps.sql_flow(text.replace("SELECT window_start", "ALTER TABLE t DROP WATERMARK; SELECT window_start"))


@pytest.mark.parametrize(
    ("alter", "column", "reason"),
    [
        ("ALTER TABLE x ADD a INT", 1, "no table 'x'"),
        ("ALTER TABLE v ADD a INT", 1, "expected a table that CREATE TABLE has made"),
        ("ALTER VIEW t AS SELECT 1", 1, "use ALTER TABLE"),
        ("ALTER TABLE t ADD name INT", 19, "has a column 'name'; MODIFY it"),
        ("ALTER TABLE t MODIFY nme INT", 22, "has no column 'nme'; ADD it"),
        ("ALTER TABLE t ADD a INT AFTER nme", 25, "no column 'nme'; did you mean 'name'"),
        ("ALTER TABLE t DROP nme", 20, "no column 'nme'; did you mean 'name'"),
        ("ALTER TABLE t RENAME nme TO x", 22, "no column 'nme'"),
        ("ALTER TABLE t RENAME name TO id", 22, "has a column 'id' already"),
        ("ALTER TABLE t RENAME TO v", 1, "'v' is defined already"),
        ("ALTER TABLE t RESET ('connector')", 22, "a table needs its connector"),
        ("ALTER TABLE t RESET ('pth')", 22, "did you mean 'path'"),
        ("ALTER TABLE t SET ('connector' 'x')", 32, "expected ="),
        ("ALTER TABLE t DROP PRIMARY KEY", 1, "has no PRIMARY KEY"),
        ("ALTER TABLE t DROP WATERMARK", 1, "has no WATERMARK"),
        ("ALTER TABLE t MODIFY PRIMARY KEY (id) NOT ENFORCED", 1, "has no PRIMARY KEY; ADD it"),
        ("ALTER TABLE t ADD PARTITION (a = 1)", 19, "partitions are made by the rows"),
        ("ALTER TABLE t COMPACT", 15, "expected RENAME, ADD, MODIFY, DROP, SET, RESET, got 'COMPACT'"),
        ("ALTER DATABASE d SET ('a' = 'b')", 7, "expected TABLE or VIEW"),
        ("ALTER VIEW v ADD a INT", 14, "expected RENAME TO or AS"),
        ("ALTER TABLE k DROP id", 20, "used by the column 'twice', PRIMARY KEY"),
        ("ALTER TABLE k RENAME ts TO at", 22, "used by WATERMARK"),
        ("SELECT * FROM t; ALTER TABLE t ADD a INT", 18, "read or written by a statement before"),
        ("SELECT * FROM v; ALTER VIEW v AS SELECT 1", 18, "read or written by a statement before"),
        ("INSERT INTO k SELECT 1, TIMESTAMP '2026-01-01 00:00:00'; ALTER TABLE k SET ('path' = 'p')", 58, "read or written"),
    ],
)  # fmt: skip
def test_what_is_refused_says_why_and_where(alter: str, column: int, reason: str) -> None:
    keyed = "CREATE TABLE k (id BIGINT, twice AS id * 2, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'k', 'format' = 'json');\n"
    with pytest.raises(SqlError) as caught:
        ps.sql_flow(f"{BASE}CREATE VIEW v AS SELECT id FROM t;\n{keyed}{alter}")
    assert reason in caught.value.reason
    assert (caught.value.line, caught.value.column) == (4, column)


def test_the_shell_alters_what_another_line_has_defined() -> None:
    session = SqlSession()
    lines = [
        BASE,
        "ALTER TABLE t ADD (twice AS id * 2)",
        "ALTER TABLE t DROP name",
        "CREATE VIEW v AS SELECT id FROM t",
    ]
    said = [outcome.text for line in lines for outcome in session.run(line) if isinstance(outcome, Said)]
    assert said == ["table t is defined", "table t is altered", "table t is altered", "view v is defined"]
    *_, last = session.run("ALTER VIEW v AS SELECT id, twice FROM t; DESCRIBE v")
    assert isinstance(last, Listed)
    assert [row[0] for row in last.rows] == ["id", "twice"]
    with pytest.raises(SqlError) as caught:
        list(session.run("\n ALTER TABLE t DROP id"))
    assert (caught.value.line, caught.value.column) == (2, 21)


def outcomes(*lines: str) -> list[object]:
    session = SqlSession()
    return [outcome for line in lines for outcome in session.run(line)]


def test_what_made_a_table_is_shown_as_it_was_written() -> None:
    *_, last = outcomes(BASE, "ALTER TABLE t ADD size INT", "ALTER TABLE t DROP name; SHOW CREATE TABLE t")
    assert isinstance(last, Listed)
    assert last.rows == [(f"{BASE.strip()[:-1]};\nALTER TABLE t ADD size INT;\nALTER TABLE t DROP name",)]


def test_to_explain_carries_nothing_out() -> None:
    explained = "EXPLAIN CREATE TABLE o WITH ('connector' = 'print') AS SELECT id FROM t"
    *_, last = outcomes(BASE, explained, "SHOW TABLES")
    assert isinstance(last, Listed)
    assert last.rows == [("t", "table")]
    for statement in ("ALTER TABLE t ADD x INT", "DROP TABLE t"):
        with pytest.raises(SqlError, match="expected a query, INSERT or CREATE TABLE"):
            outcomes(BASE, f"EXPLAIN {statement}")


def test_a_table_as_a_query_has_the_columns_of_the_query() -> None:
    made = "CREATE TABLE o WITH ('connector' = 'print') AS SELECT id, name AS who FROM t;"
    assert outcomes(BASE + made + "DESCRIBE o")[-1] == Listed(("column", "type"), [("id", "bigint"), ("who", "string")])
    flow = ps.sql_flow(BASE + made + "INSERT INTO o SELECT id + 1, 'x' FROM t")
    assert sorted(run_local(flow, {"t": [(1, "a", None)]})["o"]) == [(1, "a"), (2, "x")]


def test_a_standing_query_is_refused_where_nothing_runs() -> None:
    with pytest.raises(SqlError, match="belongs to a flow that runs"):
        outcomes(BASE, "CREATE STANDING QUERY q AS SELECT id FROM t INTO t")
