"""Many patterns over one stream, which change while the flow runs."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, SchemaError
from penstock.testing import BARRIER, Driver, run_local
from tests.same.conftest import Case

EVENTS = "k int, kind string, n int, at timestamp"
CHANGES = "rule string, op string, text string, runs string"
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
A_B = "PATTERN SEQ(a x, b y) WHERE skip_till_next_match(x, y) { x.n > 0 }"
A_C = "PATTERN SEQ(a x, c y) WHERE skip_till_next_match(x, y) { x.n > 0 }"
A_B_C = "PATTERN SEQ(a x, b y, c z) WHERE skip_till_next_match(x, y, z) { x.n > 0 }"


def at(second: int) -> datetime.datetime:
    return START + datetime.timedelta(seconds=second)


def words(row: Any) -> list[str]:
    """The events of a match, each with its stage."""
    return [f"{event['stage']}{event['n']}" for event in row.events]


def flow_of(patterns: dict[str, Any] | None = None, *, timed: bool = False) -> ps.Flow:
    flow = ps.Flow("many")
    changes = flow.source("changes", ps.items([], CHANGES))
    events = flow.source("events", ps.items([], EVENTS), event_time="at" if timed else None)
    hits = events.key_by("k").patterns("found", patterns, changes=changes, reader=ps.pattern_reader("kind"))
    fields = "k int, pattern string, version bigint, words array<string>"
    hits.map("short", lambda row: (row.k, row.pattern, row.version, words(row)), fields).sink("out", ps.console())
    if timed:
        over = hits.side("timed_out")
        fields = "k int, pattern string, at timestamp, words array<string>"
        over.map("over_short", lambda row: (row.k, row.pattern, row.timed_out_at, words(row)), fields).sink(
            "over", ps.console()
        )
    flow.dead_letters("dead", ps.console())
    return flow


PAID = ps.pattern("paid").begin("order", "kind = 'a'").followed_by("paid", "kind = 'b'").within("10s")


@pytest.mark.live
def test_patterns_of_the_flow_and_of_changes_find_their_matches(same: Case) -> None:
    flow = ps.Flow("many")
    changes = flow.source("changes", ps.items([], CHANGES))
    events = flow.source("events", ps.items([], EVENTS), event_time="at")
    hits = events.key_by("k").patterns("found", {"paid": PAID}, changes=changes, reader=ps.pattern_reader("kind"))
    hits.select("short", "k", "pattern", "version", n="size(events)").sink("out", ps.console())
    hits.side("timed_out").select("late_short", "k", "pattern", "timed_out_at").sink("over", ps.console())
    given: dict[str, list[Any]] = {
        "changes": [("abc", "add", A_B_C, None), ("gone", "add", A_B, None), ("gone", "remove", None, None)],
        "events": [
            (1, "a", 1, at(0)),
            (2, "a", 2, at(1)),
            (1, "b", 3, at(2)),
            (2, "c", 4, at(3)),
            (1, "c", 5, at(4)),
            (2, "b", 6, at(30)),
        ],
    }
    expected: dict[str, list[Any]] = {"out": [(1, "paid", 1, 2), (1, "abc", 1, 3)], "over": [(2, "paid", at(11))]}
    same.check(flow, given, expected, cuts={"changes": [3], "events": [2]})


@pytest.mark.live
def test_patterns_of_operators_change_too(same: Case) -> None:
    """Beside patterns of stages: one of the flow, and one of the changes with a guard and a timer."""
    flow = ps.Flow("operators")
    changes = flow.source("changes", ps.items([], CHANGES))
    events = flow.source("events", ps.items([], EVENTS), event_time="at")
    patterns: dict[str, Any] = {"paid": PAID, "pairs": ps.pattern_text("every x=a -> y=b(k = x.k)", types="kind")}
    hits = events.key_by("k").patterns("found", patterns, changes=changes, reader=ps.pattern_reader("kind"))
    hits.select("short", "k", "pattern", "match_end", n="size(events)", last="events[size(events) - 1].stage").sink(
        "out", ps.console()
    )
    quiet = "every x=a -> (timer:interval(5 sec) and not b)"
    given: dict[str, list[Any]] = {
        "changes": [("quiet", "add", quiet, None), ("gone", "add", "every x=c", None), ("gone", "remove", None, None)],
        "events": [
            (1, "a", 1, at(0)),
            (2, "a", 2, at(1)),
            (1, "b", 3, at(2)),
            (2, "c", 4, at(3)),
            (1, "a", 5, at(4)),
            (2, "b", 6, at(30)),
        ],
    }
    expected: dict[str, list[Any]] = {
        "out": [
            (1, "paid", at(2), 2, "paid"),
            (1, "pairs", at(2), 2, "y"),
            (2, "pairs", at(30), 2, "y"),
            (2, "quiet", at(6), 1, "x"),
            (1, "quiet", at(9), 1, "x"),
        ]
    }
    same.check(flow, given, expected, cuts={"changes": [3], "events": [2]})


class Session:
    """A flow that runs batch by batch; each answer has what is new."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.known = driver, 0

    def batch(self, *events: tuple[int, str, int], change: tuple[str | None, ...] = ()) -> list[str]:
        if change:
            self.driver.push("changes", change)
        self.driver.push("events", *((*event, START) for event in events))
        rows = self.driver.barrier()["out"]
        new, self.known = rows[self.known :], len(rows)
        return sorted(f"{row.pattern}{row.version} {' '.join(row.words)}" for row in new)


@pytest.fixture
def session(flow_driver: Any) -> Session:
    return Session(flow_driver(flow_of()))


def test_runs_are_dropped_when_their_pattern_changes(session: Session) -> None:
    assert session.batch((1, "a", 1), change=("p", None, A_B, None)) == []
    assert session.batch((1, "b", 2), change=("p", None, A_C, None)) == []
    assert session.batch((1, "a", 3), (1, "c", 4)) == ["p2 x3 y4"]
    assert session.batch((1, "c", 5)) == []


def test_what_runs_of_operators_is_dropped_or_kept(session: Session, flow_driver: Any) -> None:
    assert session.batch((1, "a", 1), change=("p", None, "every x=a -> y=b", None)) == []
    assert session.batch((1, "c", 2), change=("p", None, "every x=a -> y=c", "keep")) == ["p2 x1 y2"]
    assert session.batch((1, "a", 3)) == []
    assert session.batch((1, "c", 4), change=("p", None, "every x=a -> y=c", None)) == []
    assert session.batch((1, "a", 5), (1, "c", 6)) == ["p3 x5 y6"]


def test_operators_wait_while_they_are_disabled(session: Session) -> None:
    assert session.batch((1, "a", 1), change=("p", None, "every x=a -> y=b", None)) == []
    assert session.batch((1, "b", 2), change=("p", "disable", None, "keep")) == []
    assert session.batch((1, "b", 3), change=("p", "enable", None, None)) == ["p3 x1 y3"]
    assert session.batch((1, "a", 4), change=("p", "remove", None, None)) == []
    assert session.batch((1, "b", 5)) == []


def test_what_runs_of_operators_cannot_drain(session: Session) -> None:
    assert session.batch((1, "a", 1), change=("p", None, "every x=a -> y=b", None)) == []
    assert session.batch((1, "b", 2), change=("p", None, A_B, "drain")) == ["p1 x1 y2"]
    (dead,) = session.driver.results()["dead"]
    assert "cannot drain" in dead.cause


def test_runs_are_kept_and_go_on_with_the_new_pattern(session: Session) -> None:
    assert session.batch((1, "a", 1), change=("p", None, A_B, None)) == []
    assert session.batch((1, "b", 2), (1, "c", 3), change=("p", None, A_C, "keep")) == ["p2 x1 y3"]


def test_runs_drain_with_the_old_pattern_which_begins_no_more(session: Session) -> None:
    assert session.batch((1, "a", 1), change=("p", None, A_B, None)) == []
    assert session.batch((1, "a", 2), (1, "b", 3), change=("p", None, A_B_C, "drain")) == ["p1 x1 y3"]
    assert session.batch((1, "c", 4)) == ["p2 x2 y3 z4"]
    assert session.batch((1, "b", 5)) == []


def test_runs_of_a_removed_pattern_drain_or_end(session: Session) -> None:
    session.batch((1, "a", 1), (2, "a", 2), change=("p", None, A_B, None))
    assert session.batch((1, "b", 3), change=("p", "remove", None, "drain")) == ["p1 x1 y3"]
    assert session.batch((2, "a", 4), (2, "b", 5)) == ["p1 x2 y5"]
    assert session.batch((3, "a", 6), (3, "b", 7), change=("p", "add", A_B, None)) == ["p3 x6 y7"]
    session.batch((3, "a", 8))
    assert session.batch((3, "b", 9), change=("p", "remove", None, None)) == []


def test_a_disabled_pattern_sees_no_events_and_keeps_its_runs_where_that_is_said(session: Session) -> None:
    session.batch((1, "a", 1), change=("p", None, A_B, None))
    assert session.batch((1, "b", 2), change=("p", "disable", None, "keep")) == []
    assert session.batch((1, "b", 3), change=("p", "enable", None, None)) == ["p3 x1 y3"]
    session.batch((1, "a", 4))
    session.batch((1, "b", 5), change=("p", "disable", None, None))
    assert session.batch((1, "b", 6), change=("p", "enable", None, None)) == []


def test_a_disabled_pattern_may_drain(session: Session) -> None:
    session.batch((1, "a", 1), change=("p", None, A_B, None))
    assert session.batch((1, "a", 2), (1, "b", 3), change=("p", "disable", None, "drain")) == ["p1 x1 y3"]
    assert session.batch((1, "a", 4), (1, "b", 5), change=("p", "enable", None, None)) == ["p3 x4 y5"]


def test_a_pattern_of_the_flow_is_changed_and_a_crash_replays_the_change(flow_driver: Any) -> None:
    session = Session(flow_driver(flow_of({"p": A_B})))
    assert session.batch((1, "a", 1)) == []
    session.driver.push("changes", ("p", None, A_C, "keep"))
    session.driver.push("events", (1, "b", 2, START), (1, "c", 3, START))
    session.driver.crash()
    assert [(r.version, r.words) for r in session.driver.barrier()["out"]] == [(2, ["x1", "y3"])]


def test_time_passes_for_the_runs_of_a_paused_pattern(flow_driver: Any) -> None:
    driver: Driver = flow_driver(flow_of({"p": PAID}, timed=True))
    driver.push("events", (1, "a", 1, at(0)), (2, "d", 0, at(1)))
    driver.barrier()
    driver.push("changes", ("p", "disable", None, "keep"))
    driver.push("events", (1, "b", 2, at(5)), (2, "d", 3, at(60)))
    results = driver.barrier()
    driver.push("events", (2, "d", 4, at(61)))
    results = driver.barrier()
    assert (results["out"], [tuple(row) for row in results["over"]]) == ([], [(1, "p", at(10), ["order1"])])


BAD = {
    "no pattern": ("p", None, "if n > 3 do stop", None),
    "no text": ("p", None, None, None),
    "unknown field": ("p", None, "PATTERN SEQ(a x, b y) WHERE { x.amout > 3 }", None),
    "unreadable": ("p", None, "PATTERN SEQ(a x", None),
    "unreadable JSON": ("p", None, "{", None),
    "no such op": ("written", "replace", None, None),
    "not there": ("p", "disable", None, None),
    "no name": (None, None, A_B, None),
    "an empty name": ("", None, A_B, None),
    "no such word for runs": ("p", None, A_B, "forget"),
    "other stages": ("written", None, A_B_C, "keep"),
    "nothing to keep": ("written", "remove", None, "keep"),
}


@pytest.mark.parametrize("change", BAD.values(), ids=list(BAD))
def test_a_change_that_does_not_fit_is_a_dead_letter_and_patterns_stay(change: Any, flow_driver: Any) -> None:
    driver: Driver = flow_driver(flow_of({"written": A_B}))
    driver.push("changes", change)
    driver.push("events", (1, "a", 1, START), (1, "b", 2, START))
    results = driver.barrier()
    assert [row.words for row in results["out"]] == [["x1", "y2"]]
    assert [row.step for row in results["dead"]] == ["found@rules"]


def test_so_many_versions_drain_and_no_more(session: Session) -> None:
    session.batch(change=("p", None, A_B, None))
    for _ in range(8):
        session.batch(change=("p", None, A_B, "drain"))
    assert session.driver.barrier()["dead"] == []
    session.batch(change=("p", None, A_B, "drain"))
    (letter,) = session.driver.barrier()["dead"]
    assert "8 older versions drain already" in letter.cause


def vendor_rule(action: int) -> str:
    once = {"consumingStrategy": "SKIP_TILL_NEXT", "properties": ["SINGLE"], "times": None, "untilCondition": None}
    start, end = (
        {
            "name": name,
            "type": "ATOMIC",
            "quantifier": once,
            "condition": {"type": "AVIATOR", "expression": f"action == {code}"},
        }
        for name, code in (("start", 0), ("end", action))
    )
    graph = {"name": "fails", "type": "COMPOSITE", "quantifier": once, "condition": None, "nodes": [start, end]}
    edges = [{"source": "start", "target": "end", "type": "SKIP_TILL_NEXT"}]
    after = {"type": "NO_SKIP", "patternName": None}
    return json.dumps({**graph, "edges": edges, "window": None, "afterMatchStrategy": after})


def test_a_rule_table_of_vendors_is_read_as_it_is_and_an_older_version_changes_nothing() -> None:
    flow = ps.Flow("vendor")
    table = flow.source("rules", ps.items([], "id string, version int, pattern string, function string"))
    actions = flow.source("actions", ps.items([], "user string, action int"))
    hits = actions.key_by("user").patterns("found", changes=table, reader=ps.pattern_reader())
    hits.select("short", "user", "pattern", "version", "function").sink("out", ps.console())
    driver = Driver(flow)
    driver.push("rules", ("1", 5, vendor_rule(1), "demo.Alert"))
    driver.push("actions", ("ada", 0), ("ada", 1))
    assert driver.barrier()["out"] == [("ada", "1", 5, "demo.Alert")]
    driver.push("rules", ("1", 4, vendor_rule(2), "demo.Older"))
    driver.push("actions", ("bob", 0), ("bob", 2))
    assert len(driver.barrier()["out"]) == 1
    driver.push("rules", ("1", 7, vendor_rule(2), "demo.Newer"))
    driver.push("actions", ("cat", 0), ("cat", 2))
    assert driver.barrier()["out"][1:] == [("cat", "1", 7, "demo.Newer")]


def test_without_a_key_all_events_belong_together() -> None:
    flow = ps.Flow("all")
    events = flow.source("events", ps.items([], "kind string, n int"))
    hits = events.patterns(
        "found", {"ab": A_B, "loop": ps.pattern("l").begin("x", "n > 1", times=2)}, reader=ps.pattern_reader("kind")
    )
    hits.select("short", "pattern", n="size(events)").sink("out", ps.console())
    assert sorted(run_local(flow, {"events": [("a", 1), BARRIER, ("b", 2), ("b", 3)]})["out"]) == [
        ("ab", 2),
        ("loop", 2),
    ]


def test_what_does_not_fit_is_refused_when_the_flow_is_built() -> None:
    flow = ps.Flow("bad")
    events = flow.source("events", ps.items([], EVENTS)).key_by("k")
    with pytest.raises(FlowError, match="patterns needs a pattern"):
        events.patterns("none")
    with pytest.raises(FlowError, match=r"pattern 'p': .*no column 'amount'"):
        events.patterns("field", {"p": ps.pattern("p").begin("a", "amount > 1")})
    with pytest.raises(FlowError, match=r"expected ps.pattern"):
        events.patterns("kind", {"p": ps.row_pattern("A", define={})})  # type: ignore[dict-item]
    with pytest.raises(FlowError, match="say reader="):
        events.patterns("text", {"p": A_B})
    other = flow.source("other", ps.items([], "a int"))
    with pytest.raises(FlowError, match="say reader="):
        events.patterns("unread", changes=other)
    with pytest.raises(SchemaError, match="rule and text"):
        events.patterns("changes", changes=other, reader=ps.pattern_reader())
    other = flow.source("stages", ps.items([], "k int, stage string"))
    with pytest.raises(FlowError, match="field 'stage'"):
        other.key_by("k").patterns("stage", {"p": ps.pattern("p").begin("a", "k > 1")})


def test_the_matches_are_those_of_a_step_for_each_pattern() -> None:
    """However the input is cut: each pattern finds what `match` finds with it alone."""
    patterns = {
        "paid": PAID,
        "loop": ps.pattern("l").begin("x", "kind = 'a'", one_or_more=True).followed_by("y", "kind = 'c'").within("7s"),
        "skip": ps.pattern("s").begin("x", "kind = 'a'").followed_by("y", "kind = 'b'").after_match("past_last"),
        "absence": ps.pattern("n").begin("x", "kind = 'a'").not_followed_by("y", "kind = 'b'").within("4s"),
    }
    kinds = "aabcabbacdabcaacbdbca"
    given: list[Any] = []
    for n, kind in enumerate(kinds):
        given += [(n % 2, kind, n, at(n)), *([BARRIER] if n % 3 == 0 else [])]
    together = run_local(flow_of(patterns, timed=True), {"events": given})
    for name, pattern in patterns.items():
        flow = ps.Flow("one")
        events = flow.source("events", ps.items([], EVENTS), event_time="at")
        hits = events.key_by("k").match("m", pattern, select={"k": "k", "ns": "collect_list(n)"})
        hits.sink("out", ps.console())
        alone = run_local(flow, {"events": [each for each in given if each is not BARRIER]})["out"]
        mine = [(row.k, [int("".join(c for c in w if c.isdigit())) for w in row.words]) for row in together["out"] if row.pattern == name]  # fmt: skip
        assert sorted(mine) == sorted((row.k, row.ns) for row in alone)
        assert mine, name
