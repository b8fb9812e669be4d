"""Runs of patterns: however the input is cut and whichever way is taken, the matches are the same."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from typing import Any

import pytest

import penstock as ps
from penstock.errors import ExpressionError, FlowError
from penstock.frontends.streams.patterns import PatternBuilder
from penstock.kernels.patterns import kernel
from penstock.testing import BARRIER, Driver, run_local
from tests.patterns.matching import START, found, kind

A, B, C, D = (kind(name) for name in "abcd")
CHAIN = ps.pattern("p").begin("a", A).followed_by("b", B).followed_by("c", C).within("20s")
PATTERNS: dict[str, PatternBuilder] = {
    "chain": CHAIN,
    "endless chain": ps.pattern("p").begin("a", A).followed_by("b", "kind in ('a', 'b')"),
    "loop": ps.pattern("p").begin("a", A).followed_by("b", B, one_or_more=True).followed_by("c", C).within("9s"),
    "absence": ps.pattern("p").begin("a", A).not_followed_by("b", B).within("7s"),
    "skip": ps.pattern("p").begin("a", A, one_or_more=True).followed_by("c", C).within("12s").after_match("past_last"),
    "gap": ps.pattern("p")
    .begin("a", A)
    .followed_by("b", B)
    .within("9s", per="stage")
    .followed_by_any("c", C)
    .within("15s"),
    "iterative": ps.pattern("p").begin("a", A).followed_by_any("b", "kind = 'b' and n > a.n and n < 40").within("15s"),
    "group": ps.pattern("p")
    .begin(ps.pattern("g").begin("a", A).followed_by("b", B), times=2)
    .followed_by("c", C)
    .within("30s"),
    "absence between": ps.pattern("p").begin("a", A).not_followed_by("b", B).followed_by("c", C).within("9s"),
}


def given(seed: int, many: int = 60) -> list[tuple[Any, ...]]:
    """Events of three keys, out of order by up to two seconds."""
    rolled = random.Random(seed)
    rows = []
    for n in range(many):
        at = START + datetime.timedelta(seconds=n + rolled.choice((0, 0, 1, 2)))
        rows.append((rolled.randint(1, 3), rolled.choice("abcd"), n, at))
    return rows


def flow_of(pattern: PatternBuilder) -> ps.Flow:
    flow = ps.Flow("p")
    events = flow.source(
        "events", ps.items([], "k int, kind string, n int, at timestamp"), event_time="at", lateness="3s"
    )
    hits = events.key_by("k").match("m", pattern, select={"k": "k", "ns": "collect_list(n)", "first": "first(n)"})
    hits.sink("out", ps.console())
    hits.side("timed_out").sink("over", ps.console()) if "within" in repr(pattern) else None
    return flow


def answers(pattern: PatternBuilder, rows: list[Any], *, oracle: bool = False) -> list[Counter[str]]:
    results = run_local(flow_of(pattern), {"events": rows}, oracle=oracle)
    return [
        Counter(map(repr, results[sink]))
        for sink in ("out", "over")
        if sink in {s.name for s in flow_of(pattern).graph.sinks}
    ]


def cut(rows: list[Any], seed: int) -> list[Any]:
    rolled = random.Random(seed)
    made: list[Any] = []
    for row in rows:
        made.append(row)
        if rolled.random() < 0.2:
            made.append(BARRIER)
    return made


@pytest.mark.parametrize("name", PATTERNS)
def test_batches_do_not_change_the_answer(name: str) -> None:
    matches = 0
    for seed in range(4):
        rows = given(seed)
        expected = answers(PATTERNS[name], rows, oracle=True)
        assert answers(PATTERNS[name], rows) == expected
        assert answers(PATTERNS[name], cut(rows, seed)) == expected, seed
        matches += expected[0].total()
    assert matches, "a pattern that never matches tells nothing"


@pytest.mark.parametrize("name", ["chain", "endless chain"])
def test_the_quick_way_has_the_answers_of_the_other(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = [answers(PATTERNS[name], cut(given(seed), seed)) for seed in range(10)]
    monkeypatch.setattr(kernel, "is_chain", lambda node, plain: False)
    assert [answers(PATTERNS[name], cut(given(seed), seed)) for seed in range(10)] == quick


def test_many_keys_and_many_runs_of_one_key() -> None:
    """More keys than are read at a time, more runs and events than a small state has."""
    flow = flow_of(ps.pattern("p").begin("a", A).followed_by("b", B, times=300).followed_by("c", C).within("1h"))
    at = [START + datetime.timedelta(seconds=second) for second in range(400)]
    one = [(1, "a", 0, at[0]), *((1, "b", n, at[n]) for n in range(1, 301)), (1, "c", 301, at[301])]
    others = [(k, "a", 0, at[0]) for k in range(2, 3_000)]
    results = run_local(flow, {"events": [*one[:150], *others, BARRIER, *one[150:]]})
    (row,) = results["out"]
    assert row.ns == list(range(302))
    assert len(results["over"]) == 2_998


def test_a_start_is_out_when_the_time_is_over() -> None:
    pattern = ps.pattern("p").begin("a", A).followed_by("b", B).within("10s")
    assert found(pattern, [("a", 1), ("b", 10)]) == ["a b"]
    assert found(pattern, [("a", 1), ("b", 11)]) == []
    assert found(pattern, [("a", 1), ("b", 11)], side="timed_out") == ["a"]


def test_the_shortest_of_several_times_counts() -> None:
    pattern = ps.pattern("p").begin("a", A).followed_by("b", B).within("10s").within("3s").within("20s")
    assert found(pattern, [("a", 1), ("b", 5)]) == []


def test_a_stage_to_skip_to_must_be_there_if_that_is_asked_for() -> None:
    pattern = ps.pattern("p").begin("a", A).followed_by("b", B, optional=True).followed_by("c", C)
    assert found(pattern.after_match("first", "b"), "a c") == ["a c"]
    with pytest.raises(Exception, match="no event of that stage"):
        found(pattern.after_match("first", "b", must_exist=True), "a c")


REFUSED: list[tuple[str, Any]] = [
    ("two quantifiers", lambda p: p.begin("a", A, times=2, one_or_more=True)),
    ("has no meaning", lambda p: p.begin("a", A).not_next("b", B, times=2)),
    ("goes with a loop", lambda p: p.begin("a", A, times=2, until=B)),
    ("goes with a repeated stage", lambda p: p.begin("a", A, greedy=True)),
    ("goes with a repeated stage", lambda p: p.begin("a", A, consecutive=True)),
    ("do not go together", lambda p: p.begin("a", A, times=2, consecutive=True, combinations=True)),
    ("has a begin already", lambda p: p.begin("a", A).begin("b", B)),
    ("must start with .begin", lambda p: p.next("a", A)),
    ("no strategy 'past'", lambda p: p.begin("a", A).after_match("past")),
    ("needs a stage", lambda p: p.begin("a", A).after_match("first")),
    ("takes no stage", lambda p: p.begin("a", A).after_match("next", "a")),
    ("is a number, ", lambda p: p.begin("a", A, times="x")),
    ("rises from 0", lambda p: p.begin("a", A, times=(3, 2))),
    ("no condition of its own", lambda p: p.begin(ps.pattern("g").begin("a", A), B)),
    ("belong to the whole pattern", lambda p: p.begin(ps.pattern("g").begin("a", A).within("1s"))),
    ("per 'pattern' or per 'stage'", lambda p: p.begin("a", A).within("1s", per="key")),
    ("is repeated", lambda p: p.begin("a", A, one_or_more=True).within("1s", per="stage")),
    (
        "cannot follow",
        lambda p: p.begin("a", A, one_or_more=True, greedy=True).next("b", B, times=(1, 2), optional=True),
    ),
    ("two patterns or more", lambda p: p.begin(ps.one_of(ps.pattern("g").begin("a", A)))),
    ("no setting 'time'", lambda p: p.begin("a", A, time=3)),
    ("got 3", lambda p: p.begin("a", 3)),
]


@pytest.mark.parametrize(("why", "made"), REFUSED, ids=[why for why, _ in REFUSED])
def test_what_has_no_meaning_is_refused_where_it_is_written(why: str, made: Any) -> None:
    with pytest.raises(FlowError) as raised:
        made(ps.pattern("p"))
    assert why in str(raised.value)


@pytest.mark.parametrize(
    ("pattern", "select", "why"),
    [
        (ps.pattern("p").begin("a", "size > 3"), None, "condition of stage 'a'"),
        (ps.pattern("p").begin("a", "n + 1"), None, "true or false"),
        (
            ps.pattern("p").begin("a", A),
            {"x": "b.n"},
            "the output field 'x': no stage or field 'b'; there are: 'a', 'k'",
        ),
        (ps.pattern("p").begin("a", A), {"x": "a"}, "is a stage"),
        (ps.pattern("p").begin("a", A), {"x": "match_number()"}, "row patterns"),
        (ps.pattern("p").begin("a", A), {}, "at least one field"),
        (ps.pattern("p").begin("k", A), None, "name the stage otherwise"),
        (ps.pattern("p").begin("a", A).not_followed_by("b", B), None, "within"),
        (ps.pattern("p").begin("a", lambda row, taken, more: True), None, "2 arguments"),
        (ps.pattern("p"), None, "has no stage"),
        ("a b", None, "match takes a pattern"),
        (ps.row_pattern("A", define={"A": "n > 1"}, measures={"n": "A.n"}), None, "its step is match_rows"),
    ],
)
def test_what_does_not_fit_the_stream_names_the_step_and_the_line(pattern: Any, select: Any, why: str) -> None:
    events = ps.Flow("p").source("events", ps.items([], "k int, kind string, n int"))
    with pytest.raises(FlowError) as raised:
        events.key_by("k").match("m", pattern, select=select)
    assert why in str(raised.value)
    assert "step 'm' (" in str(raised.value)
    assert "test_runs.py" in str(raised.value)


def test_a_condition_that_fails_names_the_step_and_the_event() -> None:
    with pytest.raises(Exception, match="step 'm'"):
        found(ps.pattern("p").begin("a", lambda row: 1 / 0), "a b")
    assert issubclass(ExpressionError, FlowError)


def test_without_event_time_absences_go_by_processing_time() -> None:
    flow = ps.Flow("clock")
    events = flow.source("events", ps.items([], "k int, kind string"))
    unpaid = ps.pattern("unpaid").begin("a", A).not_followed_by("b", B).within("10s")
    events.key_by("k").match("m", unpaid, select={"k": "k"}).sink("out", ps.console())
    driver = Driver(flow)
    driver.push("events", (1, "a"), (2, "a"))
    assert driver.barrier()["out"] == []
    driver.clock.advance(5)
    driver.push("events", (1, "b"))
    assert driver.barrier()["out"] == []
    driver.clock.advance(5)
    assert driver.barrier()["out"] == [(2,)]


def test_matches_have_a_time_of_their_own() -> None:
    """What an absence or a skip holds back is not late in the window after it."""
    flow = ps.Flow("after")
    events = flow.source(
        "events", ps.items([], "k int, kind string, n int, at timestamp"), event_time="at", lateness="3s"
    )
    for name in ("absence", "skip", "chain"):
        select = None if name == "chain" else {"k": "k", "ended": "at"}
        hits = events.key_by("k").match(f"m-{name}", PATTERNS[name], select=select)
        hits.key_by("k").window(ps.tumbling("5s")).count(f"n-{name}", into="n").sink(f"out-{name}", ps.console())
    rows = given(7, 80)
    once, cuts = (run_local(flow, {"events": each}) for each in (rows, cut(rows, 7)))
    for name in ("absence", "skip", "chain"):
        assert Counter(once[f"out-{name}"]) == Counter(cuts[f"out-{name}"])
        assert once[f"out-{name}"], name


@ps.function
def twice(n: int) -> int:
    return n * 2


@pytest.mark.parametrize("oracle", [True, False])
def test_functions_of_the_flow_may_stand_in_conditions_and_outputs(oracle: bool) -> None:
    flow = ps.Flow("functions", functions=[twice])
    numbers = flow.source("numbers", ps.items([], "n bigint"))
    rise = ps.pattern("rise").begin("low", "twice(n) > 2").followed_by("high", "n >= twice(low.n)")
    numbers.match("m", rise, select={"low": "low.n", "high": "twice(high.n)"}).sink("out", ps.console())
    assert run_local(flow, {"numbers": [1, 2, 3, 4]}, oracle=oracle)["out"] == [(2, 8)]


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("event_time", ["at", None])
def test_the_end_of_the_input_emits_what_waits(many: bool, event_time: str | None) -> None:
    """Matches that an earlier run held back, absences, and runs out of time; also of keys that the last batch has nothing of."""
    flow = ps.Flow("ends")
    schema = "k int, kind string, n int, at timestamp"
    events = flow.source("events", ps.items([], schema), event_time=event_time).key_by("k")
    patterns = {
        "held": ps.pattern("held").begin("b", B, one_or_more=True).next("c", C).after_match("first", "b"),
        "absent": ps.pattern("absent").begin("b", B).not_followed_by("c", C).within("1h"),
        "over": ps.pattern("over").begin("b", B).followed_by("d", D).within("1h"),
    }
    if many:
        hits = events.patterns("m", patterns)
        ports = {"out": hits, "timed_out": hits.side("timed_out")}
    else:
        matches = {name: events.match(f"m-{name}", each) for name, each in patterns.items()}
        ports = {**matches, "timed_out": matches["over"].side("timed_out")}
    for name, stream in ports.items():
        stream.sink(name, ps.console())
    rows = [(1, "b", 1), (1, "b", 2), (1, "c", 3), (2, "b", 4), (2, "x", 5)]
    dated = [(*row, START + datetime.timedelta(seconds=row[2])) for row in rows]
    made = run_local(flow, {"events": [each for row in dated for each in (row, BARRIER)]})
    counts = Counter(row.pattern for row in made["out"]) if many else {name: len(made[name]) for name in patterns}
    assert counts == {"held": 2, "absent": 1} | ({} if many else {"over": 0})
    assert len(made["timed_out"]) == 3
