"""Patterns: matches of runs, timed-out runs and late events, on every runtime."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

import penstock as ps
from penstock.frontends.streams.patterns import PatternBuilder
from tests.same.conftest import Case

SCHEMA = "card string, kind string, amount double, n int, at timestamp"


def at(seconds: float) -> datetime.datetime:
    return datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)


def payments(name: str, lateness: str = "10s") -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source("payments", ps.items([], SCHEMA), event_time="at", lateness=lateness)


def event(card: str | None, kind: str, seconds: float, amount: float = 0.0, n: int = 0) -> tuple[Any, ...]:
    return (card, kind, amount, n, at(seconds))


ORDERS = [
    event("x", "order", 1, 20.0, 1),
    event("y", "order", 2, 30.0, 2),
    event("x", "noise", 3),
    event("x", "paid", 9, 20.0, 3),
    event("x", "sent", 5, 1.0, 4),
    event(None, "order", 12, 5.0, 5),
    event("y", "order", 21, 31.0, 6),
    event(None, "sent", 22, 0.0, 7),
    event("x", "paid", 31, 19.0, 8),
    event("y", "sent", 32, 3.0, 9),
    event("y", "paid", 35, 4.0, 10),
    event("z", "order", 90, 4.0, 11),
    event("z", "sent", 99, 4.0, 12),
    event("z", "paid", 100, 4.0, 13),
]
"""Out of order by up to nine seconds."""


def chain() -> PatternBuilder:
    made = ps.pattern("delivered").begin("order", "kind = 'order'").followed_by("sent", "kind = 'sent'")
    return made.followed_by("paid", "kind = 'paid'")


@pytest.mark.live
def test_a_sequence_within_a_time_and_what_ran_out_of_it(same: Case) -> None:
    flow, stream = payments("sequence")
    hits = stream.key_by("card").match(
        "delivered",
        chain().within("20s"),
        select={"card": "card", "first": "order.n", "last": "paid.n", "total": "order.amount + paid.amount"},
    )
    hits.sink("out", ps.console())
    hits.side("timed_out").sink("open", ps.console())
    out = [("x", 1, 3, 40.0), ("y", 6, 10, 35.0), ("z", 11, 13, 8.0)]
    left = [("y", 2, None, None, at(22)), (None, 5, None, None, at(32))]
    same.check(flow, {"payments": ORDERS}, {"out": out, "open": left})


def test_what_is_emitted_without_select(same: Case) -> None:
    flow, stream = payments("default")
    pattern = ps.pattern("p").begin("order", "kind = 'order'").followed_by("paid", "kind = 'paid'").within("20s")
    stream.key_by("card").match("m", pattern).select(
        "short", "card", "match_start", "match_end", n="paid[0].n", many="size(order)"
    ).sink("out", ps.console())
    out = [("x", at(1), at(9), 3, 1), ("y", at(21), at(35), 10, 1), ("z", at(90), at(100), 13, 1)]
    same.check(flow, {"payments": ORDERS}, {"out": out})


@pytest.mark.live
def test_an_absence_is_a_match_when_time_is_up(same: Case) -> None:
    flow, stream = payments("absence")
    pattern = (
        ps.pattern("unpaid").begin("order", "kind = 'order'").not_followed_by("paid", "kind = 'paid'").within("20s")
    )
    stream.key_by("card").match("unpaid", pattern, select={"n": "order.n"}).sink("out", ps.console())
    same.check(flow, {"payments": ORDERS}, {"out": [(2,), (5,)]})


def test_an_absence_after_a_loop_needs_no_other_event(same: Case) -> None:
    flow, stream = payments("retries")
    failed = ps.pattern("retries").begin("tried", "kind = 'tried'", one_or_more=True, greedy=True)
    stopped = (
        failed.not_followed_by("done", "kind = 'done'").not_followed_by("given_up", "kind = 'given up'").within("20s")
    )
    hits = stream.key_by("card").match(
        "retries", stopped, select={"card": "card", "times": "count(tried)", "first": "first(tried).n"}
    )
    hits.sink("out", ps.console())
    given = [
        event("x", "tried", 1, n=1),
        event("x", "tried", 4, n=2),
        event("y", "tried", 5, n=3),
        event("y", "done", 9),
        event("z", "tried", 6, n=4),
        event("z", "given up", 20),
        event("w", "tried", 30, n=5),
    ]
    same.check(flow, {"payments": given}, {"out": [("x", 2, 1), ("x", 1, 2), ("w", 1, 5)]})


def test_the_end_of_the_input_emits_matches_that_wait_for_an_earlier_run(same: Case) -> None:
    flow, stream = payments("waiting")
    pattern = ps.pattern("b c").begin("b", "kind = 'b'", one_or_more=True).next("c", "kind = 'c'")
    hits = stream.key_by("card").match("m", pattern.after_match("first", "b"), select={"taken": "collect_list(n)"})
    hits.sink("out", ps.console())
    events = [event("a", kind, n, n=n) for n, kind in enumerate("bbc")]
    same.check(flow, {"payments": events}, {"out": [([0, 1, 2],), ([1, 2],)]})


@pytest.mark.live
def test_conditions_see_what_was_taken(same: Case) -> None:
    flow, stream = payments("iterative")
    pattern = (
        ps.pattern("rising")
        .begin("low", "kind = 'tick'", one_or_more=True)
        .followed_by("high", "kind = 'tick' and amount > 2 * avg(low.amount) and count(low) > 1 and n > prev(n)")
        .within("30s")
        .after_match("past_last")
    )
    hits = stream.key_by("card").match(
        "rising",
        pattern,
        select={"lows": "collect_list(low.n)", "high": "high.n", "mean": "avg(low.amount)", "from": "first(low).at"},
    )
    hits.sink("out", ps.console())
    ticks = [
        ("a", 1, 1.0),
        ("a", 2, 1.0),
        ("b", 3, 2.0),
        ("a", 9, 5.0),
        ("b", 11, 1.0),
        ("b", 12, 9.0),
        ("a", 20, 1.0),
        ("a", 90, 9.0),
    ]
    given = [event(card, "tick", second, amount, n) for n, (card, second, amount) in enumerate(ticks)]
    out = [([0, 1], 3, 1.0, at(1)), ([2, 4], 5, 1.5, at(3))]
    same.check(flow, {"payments": given}, {"out": out})


def rises(row: Any, taken: dict[str, list[Any]]) -> bool:
    return bool(row.kind == "tick" and all(row.amount > before.amount for before in taken["up"]))


def test_python_conditions(same: Case) -> None:
    flow, stream = payments("python")
    pattern = (
        ps.pattern("up")
        .begin("up", rises, times=(3, None), consecutive=True, greedy=True)
        .next("down", lambda row: row.kind == "end")
    )
    stream.key_by("card").match("up", pattern, select={"ns": "collect_list(up.n)", "end": "down.n"}).sink(
        "out", ps.console()
    )
    amounts = [5.0, 1.0, 2.0, 3.0, 4.0]
    given = [event("a", "tick", n, amount, n) for n, amount in enumerate(amounts)] + [event("a", "end", 6, 0.0, 5)]
    same.check(flow, {"payments": given}, {"out": [([1, 2, 3, 4], 5), ([2, 3, 4], 5)]})


@pytest.mark.live
def test_without_a_key_and_without_event_time_events_count_as_they_arrive(same: Case) -> None:
    flow = ps.Flow("arrival")
    numbers = flow.source("numbers", ps.items([], "n int"))
    drop = ps.pattern("drop").begin("high", "n > 3").next("low", "n < high.n")
    numbers.match("drops", drop, select={"high": "high.n", "low": "low.n"}).sink("out", ps.console())
    same.check(flow, {"numbers": [(n,) for n in (1, 5, 2, 9, 9, 4, 1)]}, {"out": [(5, 2), (9, 4), (4, 1)]})


def test_groups_alternatives_and_order(same: Case) -> None:
    flow, stream = payments("groups")
    pair = ps.pattern("pair").begin("a", "kind = 'a'").next("b", "kind = 'b'")
    end = ps.one_of(
        ps.pattern("c").begin("c", "kind = 'c'"), ps.pattern("d").begin("d", "kind = 'd'").next("e", "kind = 'e'")
    )
    pattern = ps.pattern("p").begin(pair, times=2).followed_by(end).order_by("n desc")
    stream.key_by("card").match("m", pattern, select={"all": "collect_list(n)", "c": "c.n", "e": "e.n"}).sink(
        "out", ps.console()
    )
    kinds = [("a", 1, 9), ("b", 1, 8), ("a", 2, 2), ("b", 3, 3), ("x", 4, 4), ("d", 5, 5), ("e", 5, 4), ("c", 6, 6)]
    given = [event("k", kind, second, 0.0, n) for kind, second, n in kinds]
    same.check(flow, {"payments": given}, {"out": [([9, 8, 2, 3, 5, 4], None, 4)]})


@pytest.mark.live
def test_late_events_are_aside(same: Case) -> None:
    flow, stream = payments("late", lateness="5s")
    hits = stream.key_by("card").match("m", chain(), select={"n": "paid.n"})
    hits.sink("out", ps.console())
    hits.side("late").select("numbers", "n").sink("late", ps.console())
    first, second = event("x", "order", 1, n=1), event("x", "sent", 30, n=2)
    given = [first, second, event("x", "paid", 31, n=4), event("x", "noise", 3, n=3)]
    late = [] if same.runtime in ("oracle", "bounded") else [(3,)]
    same.check(flow, {"payments": given}, {"out": [(4,)], "late": late}, cuts={"payments": [2, 3]})


def test_a_key_has_no_more_runs_than_its_limit(same: Case) -> None:
    flow, stream = payments("limit")
    pattern = ps.pattern("p").begin("a", "kind = 'a'").followed_by("b", "kind = 'b'").limit(2, "aside")
    hits = stream.key_by("card").match("m", pattern, select={"card": "card", "a": "a.n", "b": "b.n"})
    hits.sink("out", ps.console())
    hits.side("dropped").sink("dropped", ps.console())
    kinds = [("x", "a"), ("x", "a"), ("y", "a"), ("x", "a"), ("x", "a"), ("x", "b"), ("y", "b")]
    given = [event(card, kind, n, 0.0, n) for n, (card, kind) in enumerate(kinds)]
    out, dropped = [("x", 3, 5), ("x", 4, 5), ("y", 2, 6)], [("x", 0, None), ("x", 1, None)]
    same.check(flow, {"payments": given}, {"out": out, "dropped": dropped})
