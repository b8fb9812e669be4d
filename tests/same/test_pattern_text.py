"""Pattern text: the same matches on every runtime, however the input is cut."""

from __future__ import annotations

import datetime
import random

import pytest

import penstock as ps
from tests.same.conftest import Case

SCHEMA = "user string, kind string, n int, ts timestamp"
Row = tuple[str | None, str, int, datetime.datetime]


def at(seconds: float) -> datetime.datetime:
    return datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)


def events(name: str, lateness: str = "10s") -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source("events", ps.items([], SCHEMA), event_time="ts", lateness=lateness)


TYPES = {"Bad": "kind = 'bad'", "Good": "kind = 'good'", "Off": "kind = 'off'"}
LOGINS: list[Row] = [
    ("ada", "bad", 1, at(1)),
    ("bob", "bad", 2, at(3)),
    ("ada", "good", 9, at(9)),
    ("ada", "bad", 3, at(4)),
    (None, "bad", 4, at(8)),
    ("bob", "good", 1, at(14)),
    ("bob", "off", 5, at(15)),
    ("ada", "bad", 7, at(22)),
    ("bob", "good", 6, at(19)),
    (None, "good", 5, at(31)),
    ("ada", "off", 0, at(60)),
]
"""Out of order by up to five seconds."""


@pytest.mark.live
def test_one_event_after_another_within_a_time(same: Case) -> None:
    flow, stream = events("logins")
    pattern = ps.pattern_text("every a=Bad -> b=Good(n > a.n) where timer:within(20 sec)", types=TYPES)
    hits = stream.key_by("user").match("hits", pattern, select={"user": "user", "first": "a.n", "then": "b.n"})
    hits.sink("out", ps.console())
    same.check(flow, {"events": LOGINS}, {"out": [("ada", 1, 9), ("ada", 3, 9), ("bob", 2, 6)]})


@pytest.mark.live
def test_what_did_not_happen_is_found_when_time_has_passed(same: Case) -> None:
    flow, stream = events("absence")
    pattern = ps.pattern_text("every a=Bad -> (timer:interval(10 sec) and not Good)", types=TYPES)
    hits = stream.key_by("user").match("hits", pattern, select={"user": "user", "n": "a.n"})
    hits.sink("out", ps.console())
    hits.side("late").sink("late", ps.console())
    same.check(flow, {"events": LOGINS}, {"out": [("bob", 2), (None, 4), ("ada", 7)], "late": []})


def test_a_pattern_over_all_events_with_repetitions(same: Case) -> None:
    flow, stream = events("all")
    pattern = ps.pattern_text("every ([2] a=Bad -> (b=Good until c=Off))", types=TYPES)
    stream.match("hits", pattern, select={"a": "sum(a.n)", "b": "count(b)", "c": "c.n", "last": "b[-1].user"}).sink(
        "out", ps.console()
    )
    same.check(flow, {"events": LOGINS}, {"out": [(3, 2, 5, "bob")]})


def test_a_match_without_select(same: Case) -> None:
    flow, stream = events("whole")
    pattern = ps.pattern_text("every-distinct(a.n) a=Bad -> b=Off", types=TYPES)
    stream.key_by("user").match("hits", pattern).sink("out", ps.console())
    got = same.run(flow, {"events": LOGINS})["out"]
    found = sorted((r.user, r.match_start, r.match_end, r.a[0]["n"], r.b[0]["n"]) for r in got)
    ada = [("ada", at(1), at(60), 1, 0), ("ada", at(4), at(60), 3, 0), ("ada", at(22), at(60), 7, 0)]
    assert found == [*ada, ("bob", at(3), at(15), 2, 5)]


def test_events_of_the_same_time_are_taken_as_they_arrive_or_in_an_order(same: Case) -> None:
    flow, stream = events("ties")
    given: list[Row] = [
        ("x", "good", 2, at(1)),
        ("x", "bad", 3, at(1)),
        ("x", "good", 1, at(1)),
        ("x", "bad", 0, at(1)),
    ]
    text = "every a=Bad -> b=Good"
    chosen = {"a": "a.n", "b": "b.n"}
    keyed = stream.key_by("user")
    keyed.match("arrived", ps.pattern_text(text, types=TYPES), select=chosen).sink("one", ps.console())
    keyed.match("ordered", ps.pattern_text(text, types=TYPES, order="n"), select=chosen).sink("two", ps.console())
    same.check(flow, {"events": given}, {"one": [(3, 1)], "two": [(0, 1)]})


def test_sase_text(same: Case) -> None:
    flow, stream = events("sase")
    text = """
        PATTERN SEQ(Bad a, !(Off b), Good+ c[])
        WHERE skip_till_next_match(a, b, c) { [user] and b.n < a.n + 9 and c[i].n > a.n and c[i].n < c[i-1].n } WITHIN 30 sec
        RETURN a.user, a.n, count(c[]) as many, least = c[c.LEN].n
    """
    given: list[Row] = [*LOGINS[:-1], ("ada", "good", 8, at(12)), ("ada", "good", 9, at(13)), ("ada", "off", 0, at(60))]
    stream.match("hits", ps.sase_text(text, types=TYPES)).sink("out", ps.console())
    wanted = [("ada", 1, 1, 9), ("ada", 1, 2, 8), ("ada", 3, 1, 9), ("ada", 3, 2, 8), (None, 4, 1, 5)]
    same.check(flow, {"events": given}, {"out": [row for row in wanted if row[0] is not None]})


def test_sase_passes_over_no_event_that_fits(same: Case) -> None:
    flow, stream = events("next")
    text = "PATTERN SEQ(A a, B+ b[], B c) WHERE skip_till_next_match(a, b, c) { [user] and c.n > 2 } RETURN a.n as a, count(b[]) as b, c.n as c"
    stream.key_by("user").match("hits", ps.sase_text(text, types="kind")).sink("out", ps.console())
    given = [
        ("x", "A", 1, at(0)),
        ("x", "C", 9, at(1)),
        ("x", "B", 2, at(2)),
        ("y", "B", 8, at(3)),
        ("x", "B", 3, at(4)),
        ("x", "B", 4, at(5)),
    ]
    same.check(flow, {"events": given}, {"out": [(1, 1, 3), (1, 2, 4)]})


def test_the_json_of_dynamic_cep(same: Case) -> None:
    flow, stream = events("vendor")
    once = {"consumingStrategy": "SKIP_TILL_NEXT", "properties": ["SINGLE"], "times": None, "untilCondition": None}
    fails = {
        "name": "fails",
        "type": "ATOMIC",
        "quantifier": {**once, "properties": ["LOOPING"], "times": {"from": 2, "to": 2}},
    }
    fails["condition"] = {"type": "AVIATOR", "expression": "kind == 'bad' && user != nil"}
    last = {
        "name": "last",
        "type": "ATOMIC",
        "quantifier": once,
        "condition": {"type": "AVIATOR", "expression": "kind == 'good' || kind == 'off'"},
    }
    graph = {
        "name": "pattern", "type": "COMPOSITE", "quantifier": once, "condition": None, "nodes": [last, fails], "version": 1,
        "edges": [{"source": "fails", "target": "last", "type": "SKIP_TILL_NEXT"}],
        "window": {"type": "FIRST_AND_LAST", "time": {"unit": "SECONDS", "size": 50}},
        "afterMatchStrategy": {"type": "SKIP_PAST_LAST_EVENT", "patternName": None},
    }  # fmt: skip
    pattern = ps.pattern_json(graph)
    stream.key_by("user").match("hits", pattern, select={"user": "user", "n": "sum(fails.n)", "then": "last.n"}).sink(
        "out", ps.console()
    )
    same.check(flow, {"events": LOGINS}, {"out": [("ada", 4, 9)]})


def test_many_keys_with_much_in_each(same: Case) -> None:
    """More than a state file holds in one piece, and runs that live through many batches."""
    rolled = random.Random(7)
    given = [
        (f"{rolled.randint(0, 300)}" * 100, rolled.choice(["bad", "good", "off"]), i, at(i / 10)) for i in range(4_000)
    ]
    flow, stream = events("many")
    pattern = ps.pattern_text("every ([3] a=Bad -> b=Good(n > first(a).n)) where timer:within(10 min)", types=TYPES)
    stream.key_by("user").match("hits", pattern, select={"a": "sum(a.n)", "b": "b.n"}).sink("out", ps.console())
    same.check(flow, {"events": given}, {"out": _expected(given)})


def _expected(given: list[tuple[str, str, int, datetime.datetime]]) -> list[tuple[int, int]]:
    """Three bad ones, then the first good one, again and again, by hand."""
    made, held = [], dict[str, list[int]]()
    for user, kind, n, _ in given:
        mine = held.setdefault(user, [])
        if kind == "bad" and len(mine) < 3:
            mine.append(n)
        elif kind == "good" and len(mine) == 3:
            made.append((sum(mine), n))
            held[user] = []
    return made
