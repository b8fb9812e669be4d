"""CQL: windows in brackets, and the operators that make a stream of a relation."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

import penstock as ps
from penstock.errors import SqlError
from penstock.testing import Driver, run_local


def at(seconds: float) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)


SEEN = [("a", 1, 5), ("b", 2, 10), ("a", 3, 12), ("a", 9, 20), ("b", 4, 30), ("a", 5, 21)]
ROWS = [(k, n, at(s)) for k, n, s in SEEN]


def streamed(query: str) -> ps.Flow:
    flow = ps.Flow("cql")
    s = flow.source("s", ps.items([], "k string, n int, ts timestamp"), event_time="ts", lateness="10s")
    ps.sql_query(query, {"S": s}).sink("out", ps.console())
    return flow


def answer(query: str) -> list[Any]:
    return sorted(tuple(r) for r in run_local(streamed(query), {"s": ROWS})["out"])


def instants(span: int, slide: int) -> list[list[Any]]:
    """The rows of (instant - span, instant] at every multiple of the slide."""
    return [[r for r in SEEN if t - span < r[2] <= t] for t in range(0, 100, slide)]


@pytest.mark.parametrize(("span", "slide"), [(20, 10), (15, 10), (10, 10)])
def test_a_range_that_slides_holds_its_end_and_not_its_begin(span: int, slide: int) -> None:
    query = (
        f"SELECT k, COUNT(*) AS many, SUM(n) AS total FROM S [RANGE {span} SECONDS SLIDE {slide} SECONDS] GROUP BY k"
    )
    wanted = []
    for rows in instants(span, slide):
        for k in sorted({r[0] for r in rows}):
            mine = [n for key, n, _ in rows if key == k]
            wanted.append((k, len(mine), sum(mine)))
    assert answer(query) == sorted(wanted)
    assert answer(f"SELECT * FROM RSTREAM({query})") == sorted(wanted)


def test_rows_of_a_range_without_aggregates() -> None:
    query = "SELECT k, n FROM S [RANGE INTERVAL '20' SECOND SLIDE 10 SECONDS] AS w WHERE w.n > 1"
    assert answer(query) == sorted((k, n) for rows in instants(20, 10) for k, n, _ in rows if n > 1)


def test_now_and_unbounded_are_the_stream() -> None:
    assert answer("SELECT k, n FROM S [NOW]") == sorted((k, n) for k, n, _ in SEEN)
    assert answer("SELECT k, SUM(n) AS t FROM S [RANGE UNBOUNDED] GROUP BY k")[-1] == ("b", 6)


def last(query: str) -> list[Any]:
    """What a relation holds at the end."""
    results = run_local(streamed(query), {"s": ROWS})
    return sorted(tuple(r) for r in results["out"])


def test_the_last_rows() -> None:
    assert last("SELECT k, n FROM S [ROWS 2] AS w") == [("a", 5), ("b", 4)]
    assert last("SELECT k, SUM(n) AS t FROM S [PARTITION BY k ROWS 2] GROUP BY k") == [("a", 14), ("b", 6)]


def test_what_comes_and_what_goes() -> None:
    """ISTREAM is the positive part of the change, DSTREAM the negative one."""
    for name, wanted in (("ISTREAM", [("a", 1), ("a", 3), ("b", 2)]), ("DSTREAM", [("a", 1), ("b", 2)])):
        driver = Driver(streamed(f"SELECT * FROM {name}(SELECT k, n FROM S [ROWS 1])"))
        for row in ROWS[:3]:
            driver.push("s", row)
            rows = driver.barrier()["out"]
        driver.close()
        assert sorted(map(tuple, rows)) == wanted


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT k FROM S [RANGE 10 SECONDS]", "say at which ones"),
        ("SELECT k FROM S [RANGE 10 SECONDS SLIDE 20 SECONDS]", "expected a slide"),
        ("SELECT k FROM S [ROWS 0]", "number of rows above zero"),
        ("SELECT k FROM S [ROWS]", "number of rows"),
        ("SELECT k FROM S [PARTITION BY x ROWS 2]", "no column 'x'"),
        ("SELECT k FROM S [PARTITION BY * ROWS 2]", "expected columns"),
        ("SELECT k FROM S [SOMETIMES]", "expected NOW, RANGE, ROWS"),
        ("SELECT * FROM DSTREAM(SELECT k FROM S [NOW])", "no row goes"),
        ("SELECT * FROM RSTREAM(SELECT k FROM S [ROWS 3])", "expected a window with SLIDE"),
        ("SELECT * FROM ISTREAM(SELECT k FROM S [RANGE 10 SECONDS SLIDE 5 SECONDS])", "is not supported"),
    ],
)
def test_errors_have_a_position(query: str, message: str) -> None:
    with pytest.raises(SqlError, match=r"^sql:1:") as found:
        streamed(query)
    assert message in str(found.value)
