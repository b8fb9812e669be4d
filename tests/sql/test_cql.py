"""CQL: windows in brackets, and the operators that make a stream of a relation."""

from __future__ import annotations

import datetime
import random
from collections import Counter
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


def test_distinct_rows_are_those_of_each_instant() -> None:
    wanted = sorted(each for rows in instants(20, 10) for each in {(k,) for k, _, _ in rows})
    assert len(wanted) > len(set(wanted))
    assert answer("SELECT DISTINCT k FROM S [RANGE 20 SECONDS SLIDE 10 SECONDS]") == wanted
    counts = [{(sum(k == one for one, _, _ in rows),) for k, _, _ in rows} for rows in instants(20, 10)]
    query = "SELECT DISTINCT COUNT(*) AS many FROM S [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY k"
    assert answer(query) == sorted(each for made in counts for each in made)
    rows = sorted(each for made in instants(20, 10) for each in {(k, n) for k, n, _ in made})
    assert [row[:2] for row in answer("SELECT DISTINCT * FROM S [RANGE 20 SECONDS SLIDE 10 SECONDS]")] == rows


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


def net(query: str, seed: int) -> list[Counter[tuple[Any, ...]]]:
    """What a relation holds after each batch."""
    roll = random.Random(seed)
    flow = ps.Flow("cql")
    s = flow.source("s", ps.items([], "k string, n int, ts timestamp"), event_time="ts")
    ps.sql_query(query, {"S": s}).changelog("log").sink("out", ps.console())
    driver, made = Driver(flow), []
    rows = sorted(SEEN, key=lambda r: r[2])
    while rows:
        many = roll.randint(1, 3)
        driver.push("s", *((k, n, at(t)) for k, n, t in rows[:many]))
        rows = rows[many:]
        found = driver.barrier()["out"]
        made.append(signed(found))
    made.append(signed(driver.barrier(end=True)["out"]))
    driver.close()
    return made


def signed(log: list[Any]) -> Counter[tuple[Any, ...]]:
    """The table that a changelog adds up to; none of its rows is there less than never."""
    made: Counter[tuple[Any, ...]] = Counter()
    for op, *row in log:
        made[tuple(row)] += 1 if op in ("insert", "update_after") else -1
        assert op in ("insert", "update_after") or made[tuple(row)] >= 0
    return +made


@pytest.mark.parametrize("seed", range(6))
def test_a_range_without_slide_holds_the_rows_of_the_last_span(seed: int) -> None:
    tables = net("SELECT k, n FROM S [RANGE 10 SECONDS]", seed)
    states = [Counter((k, n) for k, n, t in SEEN if now - 10 <= t < now) for now in range(60)]
    assert all(table in states for table in tables)
    assert tables[-1] == Counter()
    totals = net("SELECT k, COUNT(*) AS many FROM S [RANGE 10 SECONDS] GROUP BY k", seed)
    wanted = [Counter(Counter(k for k, _, t in SEEN if now - 10 <= t < now).items()) for now in range(60)]
    assert all(table in wanted for table in totals)


def differences(span: int, slide: int, query: Any) -> tuple[list[Any], list[Any]]:
    """What comes and what goes from instant to instant."""
    comes: list[Any] = []
    goes: list[Any] = []
    before: Counter[Any] = Counter()
    for rows in instants(span, slide):
        now = Counter(query(rows))
        comes += (now - before).elements()
        goes += (before - now).elements()
        before = now
    return sorted(comes), sorted(goes)


@pytest.mark.parametrize(("span", "slide"), [(20, 10), (15, 10), (10, 10), (30, 5)])
def test_what_comes_and_goes_from_instant_to_instant_of_a_window_that_slides(span: int, slide: int) -> None:
    window = f"S [RANGE {span} SECONDS SLIDE {slide} SECONDS]"
    plain = differences(span, slide, lambda rows: [(k,) for k, _, _ in rows])
    counts = differences(span, slide, lambda rows: list(Counter(k for k, _, _ in rows).items()))
    for at_, name in enumerate(("ISTREAM", "DSTREAM")):
        assert answer(f"SELECT * FROM {name}(SELECT k FROM {window})") == plain[at_]
        assert answer(f"SELECT * FROM {name}(SELECT k, COUNT(*) AS n FROM {window} GROUP BY k)") == counts[at_]


def test_rstream_of_a_relation_that_changes_is_all_of_it_each_time() -> None:
    driver = Driver(streamed("SELECT * FROM RSTREAM(SELECT k, n FROM S [ROWS 2])"))
    seen: list[Any] = []
    for row in ROWS[:3]:
        driver.push("s", row)
        found = [tuple(r) for r in driver.barrier()["out"]]
        seen.append(sorted(found[sum(map(len, seen)) :]))
    driver.close()
    assert seen == [[("a", 1)], [("a", 1), ("b", 2)], [("a", 3), ("b", 2)]]


@pytest.mark.parametrize("joined", ["JOIN S [{}] AS b ON a.k = b.k", ", S [{}] AS b WHERE a.k = b.k"])
def test_windows_that_slide_are_joined_at_each_instant(joined: str) -> None:
    window = "RANGE 20 SECONDS SLIDE 10 SECONDS"
    wanted = sorted((k, n, m) for rows in instants(20, 10) for k, n, _ in rows for other, m, _ in rows if k == other)
    assert answer(f"SELECT a.k, a.n, b.n AS m FROM S [{window}] AS a {joined.format(window)}") == wanted
    counts = sorted(
        Counter(
            (k, t) for t, rows in enumerate(instants(20, 10)) for k, _, _ in rows for o, _, _ in rows if k == o
        ).items()
    )
    found = answer(f"SELECT a.k, COUNT(*) AS c FROM S [{window}] AS a {joined.format(window)} GROUP BY a.k")
    assert found == sorted((k, c) for (k, _), c in counts)


def test_ranges_without_slide_are_joined_as_tables() -> None:
    tables = net(
        "SELECT a.k, a.n, b.n AS m FROM S [RANGE 10 SECONDS] AS a JOIN S [RANGE 20 SECONDS] AS b ON a.k = b.k", 3
    )

    def state(now: int) -> Counter[Any]:
        ours = [(k, n) for k, n, t in SEEN if now - 10 <= t < now]
        theirs = [(k, n) for k, n, t in SEEN if now - 20 <= t < now]
        return Counter((k, n, m) for k, n in ours for o, m in theirs if k == o)

    assert all(table in [state(now) for now in range(60)] for table in tables)
    assert any(tables)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT a.k FROM S [RANGE 10 SECONDS SLIDE 5 SECONDS] a JOIN S [RANGE 10 SECONDS] b ON a.k = b.k",
            "same RANGE and SLIDE",
        ),
        ("SELECT k FROM S [RANGE 10 SECONDS SLIDE 20 SECONDS]", "expected a slide"),
        ("SELECT k FROM S [ROWS 0]", "number of rows above zero"),
        ("SELECT k FROM S [ROWS]", "number of rows"),
        ("SELECT k FROM S [PARTITION BY x ROWS 2]", "no column 'x'"),
        ("SELECT k FROM S [PARTITION BY * ROWS 2]", "expected columns"),
        ("SELECT k FROM S [SOMETIMES]", "expected NOW, RANGE, ROWS"),
        ("SELECT * FROM DSTREAM(SELECT k FROM S [NOW])", "no row goes"),
    ],
)
def test_errors_have_a_position(query: str, message: str) -> None:
    with pytest.raises(SqlError, match=r"^sql:1:") as found:
        streamed(query)
    assert message in str(found.value)


SPARSE = [("a", 1, 5), ("b", 2, 10), ("a", 3, 62), ("a", 0, 64), ("b", 4, 131)]


def totals(span: int, slide: int, having: Any = lambda total: True) -> dict[int, tuple[Any, ...]]:
    """The total of (instant - span, instant] at every multiple of the slide, where it is one that is wanted."""
    made = {}
    for t in range(-20, 200, slide):
        values = [n for _, n, s in SPARSE if t - span < s <= t]
        total = (len(values), sum(values) if values else None)
        if having(total):
            made[t] = total
    return made


def sparse(query: str) -> list[Any]:
    rows = [(k, n, at(s)) for k, n, s in SPARSE]
    return sorted((tuple(r) for r in run_local(streamed(query), {"s": rows})["out"]), key=repr)


@pytest.mark.parametrize(("span", "slide"), [(10, 10), (15, 5), (20, 10)])
@pytest.mark.parametrize(("clause", "having"), [("", lambda t: True), ("HAVING COUNT(*) < 2", lambda t: t[0] < 2)])
def test_a_total_is_there_at_instants_without_rows(span: int, slide: int, clause: str, having: Any) -> None:
    query = f"SELECT COUNT(*) AS many, SUM(n) AS total FROM S [RANGE {span} SECONDS SLIDE {slide} SECONDS] {clause}"
    every = totals(span, slide)
    filled = [t for t, total in every.items() if total[0]]
    wanted = [x for t, x in totals(span, slide, having).items() if filled[0] <= t <= filled[-1]]
    assert sparse(query) == sorted(wanted, key=repr)
    assert sparse(f"SELECT * FROM RSTREAM({query})") == sorted(wanted, key=repr)


@pytest.mark.parametrize(("span", "slide"), [(10, 10), (15, 5), (20, 10)])
@pytest.mark.parametrize(("clause", "having"), [("", lambda t: True), ("HAVING COUNT(*) < 2", lambda t: t[0] < 2)])
def test_what_comes_and_goes_of_a_total_knows_instants_without_rows(
    span: int, slide: int, clause: str, having: Any
) -> None:
    query = f"SELECT COUNT(*) AS many, SUM(n) AS total FROM S [RANGE {span} SECONDS SLIDE {slide} SECONDS] {clause}"
    held = totals(span, slide, having)
    comes: list[Any] = []
    goes: list[Any] = []
    for t in range(-20 + slide, 200, slide):
        before, now = (Counter([held[x]] if x in held else []) for x in (t - slide, t))
        comes += (now - before).elements()
        goes += (before - now).elements()
    assert sparse(f"SELECT * FROM ISTREAM({query})") == sorted(comes, key=repr)
    assert sparse(f"SELECT * FROM DSTREAM({query})") == sorted(goes, key=repr)
