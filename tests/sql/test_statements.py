"""Statements: what they define, and what flows they make."""

from __future__ import annotations

import datetime

import pytest

import penstock as ps
from penstock.errors import SqlError
from penstock.testing import run_local

WORDS = ps.items(["a", "b", "a"], "word string")
AT = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)


def rows(text: str, sink: str = "result", **given: object) -> list[tuple[object, ...]]:
    flow = ps.sql_flow(text, {"words": WORDS})
    return sorted(map(tuple, run_local(flow, given or None)[sink]), key=str)  # type: ignore[arg-type]


def test_a_query_on_its_own_is_the_result() -> None:
    assert rows("SELECT word, count(*) AS n FROM words GROUP BY word") == [("a", 2), ("b", 1)]


def test_a_view_is_planned_once_and_read_twice() -> None:
    text = "CREATE VIEW v AS SELECT word, count(*) n FROM words GROUP BY word; SELECT * FROM v WHERE n > 1; SELECT n FROM v"
    flow = ps.sql_flow(text, {"words": WORDS})
    assert [n.kind for n in flow.graph.nodes].count("aggregate") == 1
    assert run_local(flow)["result"] == [("a", 2)]
    assert sorted(run_local(flow)["result-2"]) == [(1,), (2,)]


def test_a_table_has_computed_columns_and_a_sink_takes_them_by_position() -> None:
    text = """
        CREATE TABLE s (id BIGINT, ts TIMESTAMP(3), price DOUBLE, twice AS price * 2,
                        WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
        WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json', 'properties.bootstrap.servers' = 'x:9092');
        CREATE TABLE o (id BIGINT, d DOUBLE) WITH ('connector' = 'print');
        INSERT INTO o SELECT id, twice FROM s;
    """
    assert rows(text, "o", s=[(1, AT, 1.5)]) == [(1, 3.0)]


def test_statements_of_a_set_read_a_source_once() -> None:
    text = """
        CREATE TABLE a (w STRING) WITH ('connector' = 'print');
        CREATE TABLE b (n BIGINT) WITH ('connector' = 'print');
        BEGIN STATEMENT SET; INSERT INTO a SELECT word FROM words; INSERT INTO b SELECT count(*) FROM words; END;
    """
    flow = ps.sql_flow(text, {"words": WORDS})
    assert [n.kind for n in flow.graph.nodes].count("source") == 1
    assert run_local(flow)["b"] == [(3,)]


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("SELECT wrod FROM words", 1, 8, "no column 'wrod'; did you mean 'word'"),
        ("SELECT word\nFROM wrods", 2, 6, "no table 'wrods'; did you mean 'words'"),
        ("SELECT FROM words", 1, 13, "expected columns between SELECT and FROM, got none"),
        ("SELECT x.word FROM words", 1, 8, "no table 'x' in this query"),
        ("SELECT word, count(*) FROM words", 1, 8, "must be in GROUP BY"),
        ("SELEC 1", 1, 1, "expected a statement that begins with"),
        ("SELECT 'abc", 1, 8, "got the end"),
        ("SELECT foo(word) FROM words", 1, 8, "no function FOO"),
        ("SELECT " + "(" * 800 + "1" + ")" * 800 + " FROM words", 1, 1, "nested less deeply"),
        ("BEGIN STATEMENT SET; SELECT word FROM words", 1, 1, "expected END"),
    ],
)
def test_errors_point_to_their_place(text: str, line: int, column: int, reason: str) -> None:
    with pytest.raises(SqlError) as raised:
        ps.sql_flow(text, {"words": WORDS})
    assert (raised.value.line, raised.value.column) == (line, column)
    assert reason in str(raised.value)


def test_names_are_told_apart_without_regard_to_case() -> None:
    assert rows("SELECT WORD, \"word\" w, `Word` x FROM Words WHERE Word = 'b'") == [("b", "b", "b")]


def test_a_stream_is_a_table_and_a_query_a_stream() -> None:
    flow = ps.Flow("mixed")
    words = flow.source("words", WORDS)
    upper = ps.sql_query("SELECT upper(word) AS word FROM words", {"words": words}, name="upper")
    upper.key_by("word").count("n").sink("out", ps.console())
    assert run_local(flow).table("out")["A"].n == 2


def test_metadata_of_a_record_is_a_column() -> None:
    text = """
        CREATE TABLE s (id BIGINT, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, `offset` BIGINT METADATA, WATERMARK FOR at AS at)
        WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json', 'properties.bootstrap.servers' = 'x:9092');
        SELECT id, at, `offset` FROM s"""
    assert rows(text, s=[(1, AT, 7)]) == [(1, AT, 7)]
    with pytest.raises(SqlError, match="no metadata columns"):
        rows(
            "CREATE TABLE s (id BIGINT, a INT METADATA) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json'); SELECT * FROM s"
        )


def test_fifty_queries_are_planned_at_once_and_share_their_source() -> None:
    text = "CREATE TABLE s (id BIGINT, k STRING, v DOUBLE) WITH ('connector' = 'rate');" + "".join(
        f"CREATE TABLE o{n} (k STRING, n BIGINT) WITH ('connector' = 'print'); INSERT INTO o{n} SELECT k, count(*) FROM s WHERE id % {n + 2} = 0 GROUP BY k;"
        for n in range(50)
    )
    flow = ps.sql_flow(text)
    assert [n.kind for n in flow.graph.nodes].count("source") == 1
    assert len(flow.graph.sinks) == 50


def test_a_table_like_another_has_its_columns_and_options() -> None:
    text = """
        CREATE TABLE s (id BIGINT, at TIMESTAMP(3)) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');
        CREATE TABLE u (twice AS id * 2, WATERMARK FOR at AS at) WITH ('topic' = 'u') LIKE s;
        SELECT id, twice FROM u"""
    assert rows(text, u=[(1, AT)]) == [(1, 2)]
