"""Row patterns: match_rows."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

import penstock as ps
from tests.same.conftest import Case

SCHEMA = "k string, n int, ts timestamp"
FALLS = {"B": "n < prev(n)", "C": "n > prev(n)"}


def at(seconds: float) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)


def source(name: str, lateness: str = "20s") -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source("rows", ps.items([], SCHEMA), event_time="ts", lateness=lateness)


def rows(key: str | None, values: str, every: int = 1) -> list[tuple[Any, ...]]:
    return [(key, int(n), at(every * place)) for place, n in enumerate(values.split())]


def mixed(*parts: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows of several keys, out of order by a few seconds."""
    every = sorted((row for part in parts for row in part), key=lambda row: row[2])
    return [row for place in range(0, len(every), 3) for row in reversed(every[place : place + 3])]


TWO_KEYS = mixed(rows("a", "90 80 70 80 90 50 40 60"), rows("b", "5 4 3 2 3 9 9"), rows(None, "3 2 1"))


@pytest.mark.live
def test_one_row_for_each_match(same: Case) -> None:
    flow, stream = source("one")
    pattern = ps.row_pattern(
        "A B+ C+",
        define=FALLS,
        measures={
            "m": "match_number()",
            "high": "A.n",
            "low": "last(B.n)",
            "end": "last(C.ts)",
            "many": "count(B.*)",
            "mean": "avg(n)",
            "which": "collect_list(classifier())",
        },
    )
    stream.key_by("k").match_rows("dips", pattern).sink("out", ps.console())
    wanted = [
        ("a", 1, 90, 70, at(4), 2, 82.0, ["A", "B", "B", "C", "C"]),
        ("a", 2, 50, 40, at(7), 1, 50.0, ["A", "B", "C"]),
        ("b", 1, 5, 2, at(5), 3, 26 / 6, ["A", "B", "B", "B", "C", "C"]),
    ]
    same.check(flow, {"rows": TWO_KEYS}, {"out": wanted})


@pytest.mark.live
def test_all_rows_with_those_that_match_nothing(same: Case) -> None:
    flow, stream = source("all")
    pattern = ps.row_pattern(
        "A B{2,}",
        define={"B": "n < prev(n)"},
        measures={"m": "match_number()", "v": "classifier()", "so_far": "running sum(n)", "last": "final last(n)"},
        rows="all with unmatched",
        after_match="to next row",
    )
    stream.key_by("k").match_rows("falls", pattern).sink("out", ps.console())
    given = mixed(rows("a", "9 9 8 7 6 9"), rows("b", "1 2"))
    wanted = [
        ("a", 9, at(0), None, None, None, None),
        ("a", 9, at(1), 1, "A", 9, 6),
        ("a", 8, at(2), 1, "B", 17, 6),
        ("a", 7, at(3), 1, "B", 24, 6),
        ("a", 6, at(4), 1, "B", 30, 6),
        ("a", 8, at(2), 2, "A", 8, 6),
        ("a", 7, at(3), 2, "B", 15, 6),
        ("a", 6, at(4), 2, "B", 21, 6),
        ("a", 9, at(5), None, None, None, None),
        ("b", 1, at(0), None, None, None, None),
        ("b", 2, at(1), None, None, None, None),
    ]
    same.check(flow, {"rows": given}, {"out": wanted})


@pytest.mark.live
def test_within_a_time_and_what_ran_out_of_it(same: Case) -> None:
    """The last row is less than the time after the first; a partial match is emitted when its time is up."""
    flow, stream = source("within", "5s")
    pattern = ps.row_pattern(
        "A B* C",
        define={"A": "n = 1", "B": "n = 2", "C": "n = 3"},
        measures={"first": "first(ts)", "many": "count(*)", "end": "last(ts)"},
        within="10s",
    )
    found = stream.key_by("k").match_rows("found", pattern)
    found.sink("out", ps.console())
    found.side("timed_out").sink("late", ps.console())
    given = [
        ("a", 1, at(0)), ("a", 2, at(4)), ("b", 1, at(4)), ("a", 3, at(9)), ("b", 2, at(5)), ("b", 3, at(14)),
        ("a", 1, at(20)), ("a", 2, at(29)), ("c", 1, at(30)), ("c", 3, at(31)), ("a", 3, at(30)), ("b", 1, at(60)),
    ]  # fmt: skip
    wanted = [("a", at(0), 3, at(9)), ("c", at(30), 2, at(31))]
    late = [("b", at(4), 2, at(5)), ("a", at(20), 2, at(29)), ("b", at(60), 1, at(60))]
    same.check(flow, {"rows": given}, {"out": wanted, "late": late})


def test_conditions_that_look_at_what_was_matched(same: Case) -> None:
    flow, stream = source("looking")
    pattern = ps.row_pattern(
        "LOW UP* HIGH",
        define={
            "UP": "n >= last(n, 1) and n < 3 * first(LOW.n) and avg(n) < 20",
            "HIGH": "n >= 3 * LOW.n and n > prev(last(U.n), 1) and count(*) <= 4",
        },
        measures={
            "low": "LOW.n",
            "high": "HIGH.n",
            "before": "prev(first(n))",
            "after": "next(last(n), 2)",
            "u": "classifier(U)",
        },
        subsets={"U": ("UP", "LOW")},
    )
    stream.key_by("k").match_rows("jumps", pattern).sink("out", ps.console())
    given = mixed(rows("a", "7 2 3 5 8 1 1 1 1 9 4"), rows("b", "3 4 10 1"))
    wanted = [("a", 2, 8, 7, 1, "UP"), ("a", 1, 9, 1, None, "UP"), ("b", 3, 10, None, None, "UP")]
    same.check(flow, {"rows": given}, {"out": wanted})


def test_anchors_permutations_exclusions_and_reluctance(same: Case) -> None:
    flow, stream = source("anchors")
    measures = {"v": "classifier()", "m": "match_number()"}
    define = {"A": "n < 3", "B": "n > 1", "C": "n = 1"}
    texts = ["^ permute(A, B)", "(B | C) A*? $", "A {- B+ -} C?", "(A | ())"]
    for place, text in enumerate(texts):
        pattern = ps.row_pattern(
            text, define={k: v for k, v in define.items() if k in text}, measures=measures, rows="all"
        )
        stream.key_by("k").match_rows(f"p{place}", pattern).select(f"s{place}", "n", "ts", "v", "m").sink(
            f"o{place}", ps.console()
        )
    wanted: dict[str, list[tuple[Any, ...]]] = {
        "o0": [(2, at(0), "A", 1), (4, at(1), "B", 1)],
        "o1": [(4, at(1), "B", 1), (1, at(2), "A", 1), (2, at(3), "A", 1), (1, at(4), "A", 1)],
        "o2": [(2, at(0), "A", 1), (1, at(2), "C", 1)],
        "o3": [(2, at(0), "A", 1), (4, at(1), None, 2), (1, at(2), "A", 3), (2, at(3), "A", 4), (1, at(4), "A", 5)],
    }
    same.check(flow, {"rows": rows("a", "2 4 1 2 1")}, wanted)


def test_all_rows_of_a_stream_without_a_key_and_late_rows(same: Case) -> None:
    flow, stream = source("unkeyed", "2s")
    pattern = ps.row_pattern("A B", define={"B": "n = A.n + 1"}, measures={"a": "A.k", "b": "B.k", "at": "B.ts"})
    found = stream.match_rows("steps", pattern)
    found.sink("out", ps.console())
    found.side("late").sink("late", ps.console())
    given = [
        ("x", 1, at(0)),
        ("y", 2, at(2)),
        ("x", 5, at(1)),
        ("z", 6, at(4)),
        ("x", 7, at(20)),
        ("y", 8, at(21)),
        ("w", 1, at(3)),
    ]
    results = same.run(flow, {"rows": given}, cuts={"rows": [5, 6]})
    late = [] if same.runtime in ("oracle", "bounded") else [("w", 1, at(3))]
    assert [tuple(r) for r in results["late"]] == late
    assert sorted(tuple(r) for r in results["out"]) == [("z", "x", at(20))]


def test_rows_of_one_time_are_ordered_and_fields_of_all_kinds_wait(same: Case) -> None:
    flow = ps.Flow("kinds")
    schema = (
        "k int, n int, tags array<string>, more map<string, int>, deep struct<a: decimal(4,1), b: date>, ts timestamp"
    )
    stream = flow.source("rows", ps.items([], schema), event_time="ts")
    pattern = ps.row_pattern(
        "A+ B",
        define={"A": "n > 0", "B": "n = 0"},
        measures={"tags": "first(A.tags)", "more": "last(A.more)", "deep": "B.deep", "ns": "collect_list(n)"},
        order_by="n desc",
    )
    stream.key_by("k").match_rows("found", pattern).sink("out", ps.console())
    deep = {"a": Decimal("1.5"), "b": datetime.date(2024, 1, 2)}
    given = [(1, n, [f"t{n}"], {"n": n}, deep, at(second)) for n, second in [(1, 0), (3, 0), (2, 0), (4, 5), (0, 9)]]
    results = same.run(flow, {"rows": given})["out"]
    assert [(r.k, r.tags, dict(r.more), r.ns) for r in results] == [(1, ["t3"], {"n": 4}, [3, 2, 1, 4, 0])]


def test_a_window_over_matches_that_have_a_time(same: Case) -> None:
    """With within the last row's time is the event time of a match, and none is late behind the step."""
    flow, stream = source("windows")
    pattern = ps.row_pattern("A B", define={"A": "n = 1", "B": "n = 2"}, measures={"done": "last(ts)"}, within="30s")
    matches = stream.key_by("k").match_rows("pairs", pattern)
    matches.key_by("k").window(ps.tumbling("1m")).aggregate("each", n="count(*)").sink("out", ps.console())
    given = [("a", 1 + place % 2, at(10 * place)) for place in range(14)]
    wanted = [("a", at(0), at(60), 3), ("a", at(60), at(120), 3), ("a", at(120), at(180), 1)]
    same.check(flow, {"rows": given}, {"out": wanted})


@ps.function
def is_even(n: int) -> bool:
    return n % 2 == 0


def test_python_functions_stand_in_conditions_and_measures(same: Case) -> None:
    flow = ps.Flow("functions", functions=[is_even])
    stream = flow.source("rows", ps.items([], SCHEMA), event_time="ts", lateness="9s")
    pattern = ps.row_pattern(
        "E+ O", define={"E": "is_even(n)", "O": "not is_even(n) and is_even(count(E.*))"}, measures={"even": "is_even(O.n + 1)", "n": "count(*)"}
    )  # fmt: skip
    stream.key_by("k").match_rows("found", pattern).sink("out", ps.console())
    same.check(flow, {"rows": rows("a", "2 4 1 2 3 8 6 6 4 7")}, {"out": [("a", True, 3), ("a", True, 5)]})
