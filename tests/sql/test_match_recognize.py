"""MATCH_RECOGNIZE: every clause through SQL answers as the same pattern does through ps.row_pattern."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.errors import SqlError
from penstock.testing import run_local

PRICES = [90, 80, 70, 80, 95, 50, 40, 60, 60, 30]
ROWS = [("acme", price, f"2026-01-01 10:00:{second:02}") for second, price in enumerate(PRICES)]
ROWS += [("zeta", price, f"2026-01-01 10:00:{second:02}") for second, price in enumerate([5, 4, 6, 9, 1])]
TABLE = "CREATE TABLE ticks (symbol STRING, price INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)"


def stream(flow: ps.Flow) -> ps.Stream:
    return flow.source("ticks", ps.items(ROWS, "symbol string, price int, ts string"), event_time="ts", lateness="5s")


def by_sql(query: str, sink: str = "result") -> list[Any]:
    ticks = stream(ps.Flow("matches"))
    return [tuple(r) for r in run_local(ps.sql_flow(query, {"ticks": ticks}))[sink]]


def by_python(pattern: str, keyed: bool = True, **clauses: Any) -> list[Any]:
    flow = ps.Flow("matches")
    ticks = stream(flow)
    found = (ticks.key_by("symbol") if keyed else ticks).match_rows("found", ps.row_pattern(pattern, **clauses))
    found.sink("out", ps.console())
    return [tuple(r) for r in run_local(flow)["out"]]


DIP = "PARTITION BY symbol ORDER BY ts MEASURES {measures} {rows} {after} PATTERN ({pattern}) {within} {subset} DEFINE {define}"


def query(
    pattern: str, define: str, measures: str, rows: str = "", after: str = "", within: str = "", subset: str = ""
) -> str:
    clause = DIP.format(
        pattern=pattern, define=define, measures=measures, rows=rows, after=after, within=within, subset=subset
    )
    return f"SELECT * FROM ticks MATCH_RECOGNIZE ({clause}) AS m"


DEFINE = "down AS price < PREV(price), up AS up.price > PREV(up.price)"
PYTHON = {"DOWN": "price < prev(price)", "UP": "UP.price > prev(UP.price)"}


def test_one_row_for_each_match() -> None:
    measures = (
        "strt.price AS high, LAST(down.price) AS low, FIRST(up.price) + 1 AS back, COUNT(*) AS n, COUNT(up.*) AS ups"
    )
    got = by_sql(query("strt down+ up+", DEFINE, measures, "ONE ROW PER MATCH", "AFTER MATCH SKIP PAST LAST ROW"))
    wanted = by_python(
        "STRT DOWN+ UP+",
        define=PYTHON,
        measures={
            "high": "STRT.price",
            "low": "last(DOWN.price)",
            "back": "first(UP.price) + 1",
            "n": "count(*)",
            "ups": "count(UP.*)",
        },
    )
    assert got == wanted == [("acme", 90, 70, 81, 5, 2), ("acme", 50, 40, 61, 3, 1), ("zeta", 5, 4, 7, 4, 2)]


@pytest.mark.parametrize(
    ("rows", "meant"),
    [
        ("ALL ROWS PER MATCH", "all"),
        ("ALL ROWS PER MATCH SHOW EMPTY MATCHES", "all"),
        ("ALL ROWS PER MATCH OMIT EMPTY MATCHES", "all omit empty"),
        ("ALL ROWS PER MATCH WITH UNMATCHED ROWS", "all with unmatched"),
    ],
)
def test_all_rows(rows: str, meant: str) -> None:
    """The columns are those of the partition and the order, the measures, then the rest."""
    measures = "CLASSIFIER() AS v, MATCH_NUMBER() AS m, RUNNING COUNT(*) AS so_far, FINAL LAST(price) AS top"
    got = by_sql(query("down* up", DEFINE, measures, rows))
    wanted = by_python(
        "DOWN* UP",
        define=PYTHON,
        measures={"v": "classifier()", "m": "match_number()", "so_far": "count(*)", "top": "final last(price)"},
        rows=meant,
    )
    assert got == [(symbol, ts, v, m, so_far, top, price) for symbol, price, ts, v, m, so_far, top in wanted]
    assert got


@pytest.mark.parametrize(
    ("after", "meant"),
    [
        ("AFTER MATCH SKIP PAST LAST ROW", "past last row"),
        ("AFTER MATCH SKIP TO NEXT ROW", "to next row"),
        ("AFTER MATCH SKIP TO FIRST up", ("to first", "UP")),
        ("AFTER MATCH SKIP TO LAST down", ("to last", "DOWN")),
        ("AFTER MATCH SKIP TO down", ("to last", "DOWN")),
    ],
)
def test_where_the_search_goes_on(after: str, meant: Any) -> None:
    got = by_sql(query("a down+ up", DEFINE, "a.price AS high, SUM(price) AS total", after=after))
    measures = {"high": "A.price", "total": "sum(price)"}
    assert got == by_python("A DOWN+ UP", define=PYTHON, measures=measures, after_match=meant)
    assert got


def test_the_whole_grammar_of_patterns_and_subsets() -> None:
    pattern = "permute(a, b) (c | {- d -})+? e{1,3} | ()"
    define = "a AS price > 60, b AS price < 85, c AS price > AVG(u.price), e AS price <= LAST(u.price, 1)"
    measures = (
        "COUNT(u.price) AS n, CLASSIFIER(u) AS v, COUNT(DISTINCT price) AS different, PREV(FIRST(a.price)) AS before"
    )
    got = by_sql(query(pattern, define, measures, subset="SUBSET u = (a, b)"))
    wanted = by_python(
        "permute(A, B) (C | {- D -})+? E{1,3} | ()",
        define={"A": "price > 60", "B": "price < 85", "C": "price > avg(U.price)", "E": "price <= last(U.price, 1)"},
        measures={
            "n": "count(U.price)",
            "v": "classifier(U)",
            "different": "count(distinct price)",
            "before": "prev(first(A.price))",
        },
        subsets={"U": ("A", "B")},
    )
    assert got == wanted
    assert any(row[1] for row in got)


def test_within_and_rows_for_partial_matches() -> None:
    """With WITH TIMEOUT ROWS a partial match whose time ran out is a row too, and a column says so."""
    define = "a AS price < 50, b AS price > 90"
    measures = "a.price AS low, LAST(b.price) AS high"
    plain = by_sql(query("a x*? b", define, measures, within="WITHIN INTERVAL '4' SECOND"))
    both = by_sql(
        query("a x*? b", define, measures, "ONE ROW PER MATCH WITH TIMEOUT ROWS", within="WITHIN INTERVAL '4' SECOND")
    )
    assert [row[:-1] for row in both if not row[-1]] == plain
    late = [row for row in both if row[-1]]
    assert {row[:3] for row in late} == {
        ("acme", 40, None),
        ("acme", 30, None),
        ("zeta", 5, None),
        ("zeta", 4, None),
        ("zeta", 6, None),
        ("zeta", 9, None),
        ("zeta", 1, None),
    }


def test_without_a_partition_and_over_a_subquery() -> None:
    text = """
        SELECT m.n, m.n * 2 AS twice FROM (SELECT price, ts FROM ticks WHERE symbol = 'acme')
        MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a b+) DEFINE b AS price < PREV(price)) AS m WHERE m.n > 2
    """
    assert by_sql(text) == [(3, 6), (3, 6)]


def test_the_time_of_a_match_is_its_event_time() -> None:
    """MATCH_ROWTIME() is the time of the last row: windows may follow."""
    text = """
        SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE matches, DESCRIPTOR(at), INTERVAL '5' SECOND))
        GROUP BY window_start, window_end
    """
    view = """CREATE VIEW matches AS SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts
        MEASURES MATCH_ROWTIME() AS at PATTERN (a b) WITHIN INTERVAL '3' SECOND DEFINE b AS price < PREV(price)) AS m;"""
    assert sorted(n for _, n in by_sql(view + text)) == [2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (query("a b+", "b AS prise > 1", "a.price AS p"), "no column 'prise'"),
        (query("a b+ (", "b AS price > 1", "a.price AS p"), "expected"),
        (query("a +b", "b AS price > 1", "a.price AS p")[:-6].replace("+b", "{b"), "expected"),
        (query("a b", "c AS price > 1", "a.price AS p"), "no variable 'C'"),
        (query("a b", "b AS price + 1", "a.price AS p"), "true or false"),
        (query("a b", "b AS price > 1", "a.price AS p", after="AFTER MATCH SKIP TO FIRST z"), "no variable 'Z'"),
        (query("a b", "b AS price > 1", "a.price"), "expected"),
        (
            query("a b", "b AS price > 1", "a.price AS p", "ONE ROW PER MATCH WITH TIMEOUT ROWS"),
            "WITH TIMEOUT ROWS expects",
        ),
        (query("a b", "b AS price > 1", "a.price AS p").replace("ORDER BY ts", "ORDER BY price"), "event time first"),
        (query("a b", "b AS price > 1", "a.price AS p").replace("ORDER BY ts", ""), "ORDER BY the event time"),
        (query("a b", "b AS MATCH_ROWTIME() > ts", "a.price AS p"), "time of a match"),
    ],
)
def test_errors_have_a_position(text: str, message: str) -> None:
    with pytest.raises(SqlError) as found:
        by_sql(text)
    assert message in str(found.value)
    assert str(found.value).startswith("sql:")
