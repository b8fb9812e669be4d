"""process with timers, with state that is forgotten, and its functional forms."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, SchemaError, StepError
from penstock.testing import BARRIER, CRASH, Driver, run_local
from tests.same.conftest import Case

BEGIN = datetime.datetime(2024, 5, 1, 12, 0, tzinfo=datetime.UTC)
SCHEMA = "k string, n int, at timestamp"


def at(seconds: float) -> datetime.datetime:
    return BEGIN + timedelta(seconds=seconds)


def timed(name: str) -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source("events", ps.items([], SCHEMA), event_time="at", lateness="2s")


EVENTS = [("a", 1, at(0)), ("b", 2, at(1)), ("a", 3, at(4)), ("a", 5, at(11)), ("b", 7, at(12)), ("a", 9, at(31))]


class PerTenSeconds(ps.Process):
    """Sums by spans of ten seconds, each given when its time is over."""

    sums = ps.map_of(str, int)

    def on_event(self, row: Any) -> None:
        end = row.at.replace(second=row.at.second // 10 * 10) + timedelta(seconds=10)
        name = end.isoformat()
        self.sums[name] = self.sums.get(name, 0) + row.n
        self.set_timer(end, name)

    def on_timer(self, timer: Any) -> Iterator[Any]:
        yield self.key, timer.at, self.sums.pop(timer.name), timer.at == self.event_time


def test_event_timers_fire_when_time_has_passed_them(same: Case) -> None:
    flow, events = timed("spans")
    events.key_by("k").process("spans", PerTenSeconds, "k string, until timestamp, n bigint, same boolean").sink(
        "out", ps.console()
    )
    expected = [
        ("a", at(10), 4, True), ("b", at(10), 2, True), ("a", at(20), 5, True), ("b", at(20), 7, True), ("a", at(40), 9, True),
    ]  # fmt: skip
    same.check(flow, {"events": EVENTS}, {"out": expected})


class Chain(ps.Process):
    """A timer that sets another, one that is cancelled, one that is moved."""

    seen = ps.value(int, default=0)
    order = ps.list_of(str)

    def on_event(self, row: Any) -> None:
        self.seen += 1
        if self.seen == 1:
            self.set_timer(row.at + timedelta(seconds=1), "first")
            self.set_timer(row.at, "never")
            self.set_timer(row.at + timedelta(seconds=90), "moved")
            self.set_timer(row.at + timedelta(seconds=60), "moved")
            self.cancel_timer("never")
            self.cancel_timer("unknown")

    def on_timer(self, timer: Any) -> Iterator[Any]:
        self.order.append(timer.name)
        if timer.name == "first":
            self.set_timer(timer.at + timedelta(seconds=70), "last")
            self.set_timer(timer.at - timedelta(seconds=70), "past")
        if timer.name == "last":
            yield self.key, " ".join(self.order), timer.at


@pytest.mark.live
def test_timers_set_timers_and_fire_in_order(same: Case) -> None:
    flow, events = timed("chain")
    events.key_by("k").process("chain", Chain, "k string, order string, at timestamp").sink("out", ps.console())
    expected = [("a", "first past moved last", at(71)), ("b", "first past moved last", at(72))]
    same.check(flow, {"events": EVENTS}, {"out": expected})


class Once(ps.Process):
    """Fires by the clock, at once."""

    sets = ps.value(int, default=0)
    fired = ps.value(int, default=0)

    def on_event(self, row: Any) -> None:
        if not self.sets:
            self.set_timer(timedelta(0), "now", clock="processing")
        self.sets += 1

    def on_timer(self, timer: Any) -> Iterator[Any]:
        self.fired += 1
        yield self.key, self.fired, timer.clock, timer.at == self.now, self.event_time is None


@pytest.mark.live
def test_a_timer_of_the_clock_that_is_due_fires_at_the_barrier(same: Case) -> None:
    flow = ps.Flow("once")
    events = flow.source("events", ps.items([], "k string, n int"))
    made = events.key_by("k").process("once", Once, "k string, n bigint, clock string, due boolean, none boolean")
    made.sink("out", ps.console())
    given = [(k, n) for k, n, _ in EVENTS]
    same.check(flow, {"events": given}, {"out": [(k, 1, "processing", True, True) for k in "ab"]})


class Kinds(ps.Process):
    """Every kind of value, and values that do not fit their kind."""

    whole = ps.value(int, default=1)
    real = ps.value(float, default=0.0)
    text = ps.value(str)
    flag = ps.value(bool, default=True)
    raw = ps.value(bytes)
    exact = ps.value(Decimal, default=Decimal("0.10"))
    when = ps.value(datetime.datetime)
    day = ps.value(datetime.date)
    thing = ps.value(object, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.whole *= 10**9
        self.real = row.n / 2 if row.n % 3 else row.n
        self.text = (self.text or "") + chr(0xD800 if row.n == 5 else 0x4E2D)
        self.flag = not self.flag
        self.raw = (self.raw or b"") + bytes([row.n])
        self.exact += Decimal("1.10")
        self.when = row.at if row.n % 2 else row.at.replace(tzinfo=None)
        self.day = row.at.date() if row.n != 3 else None
        self.thing = (self.thing, row.n) if isinstance(self.thing, int) else self.thing
        shown = (self.whole, self.real, ascii(self.text), self.flag, self.raw, self.exact, self.day, self.thing)
        yield self.key, repr(shown), self.when.replace(tzinfo=datetime.UTC)


@pytest.mark.live
def test_every_kind_of_value_comes_back_as_it_was(same: Case) -> None:
    flow, events = timed("kinds")
    events.key_by("k").process("kinds", Kinds, "k string, shown string, at timestamp").sink("out", ps.console())
    expected = run_local(flow, {"events": EVENTS})["out"]
    assert "1000000000000000000000000000" in expected[3].shown
    same.check(flow, {"events": EVENTS}, {"out": expected})


class Unset(ps.Process):
    """None is a value of its own where the default is another; what is deleted is at its default again."""

    n = ps.value(int, default=7)
    words = ps.list_of(str)

    def on_event(self, row: Any) -> Iterator[Any]:
        before = self.n
        if row.n == 1:
            self.n = None
        elif row.n == 2:
            del self.n
            del self.words
        else:
            self.words.append(str(row.n))
        yield row.n, before, self.n, " ".join(self.words)


def test_none_and_absent_are_told_apart(same: Case) -> None:
    flow = ps.Flow("unset")
    events = flow.source("events", ps.items([], "k string, n int"))
    made = events.key_by("k").process("unset", Unset, "nth int, before bigint, after bigint, words string")
    made.sink("out", ps.console())
    given = [("a", 3), ("a", 1), ("a", 4), ("a", 2), ("a", 5)]
    expected = [(3, 7, 7, "3"), (1, 7, None, "3"), (4, None, None, "3 4"), (2, None, 7, ""), (5, 7, 7, "5")]
    same.check(flow, {"events": given}, {"out": expected})


@pytest.mark.live
def test_fold_gives_a_running_value(same: Case) -> None:
    flow = ps.Flow("fold")
    events = flow.source("events", ps.items([], "k string, n int"))
    events.key_by("k").fold("line", "", lambda line, row: f"{line}{row.n}", "line string").sink("out", ps.console())
    given = [(k, n) for k, n, _ in EVENTS]
    same.check(flow, {"events": given}, {"out": [("a", "1359"), ("b", "27")]})


def test_fold_of_several_fields_gives_rows(same: Case) -> None:
    flow = ps.Flow("fold-row")
    events = flow.source("events", ps.items([], "k string, n int"))

    def spread(so_far: Any, row: Any) -> Any:
        low, high, seen = so_far
        return {"low": min(low, row.n), "high": max(high, row.n), "seen": [*seen, row.n]}

    folded = events.key_by("k").fold("ends", (99, 0, []), spread, "low int, high int, seen array<int>")
    folded.sink("out", ps.console())
    assert folded.updates == ("k",)
    given = [(k, n) for k, n, _ in EVENTS]
    same.check(flow, {"events": given}, {"out": [("a", 1, 9, [1, 3, 5, 9]), ("b", 2, 7, [2, 7])]})


@pytest.mark.live
def test_update_state_keeps_any_object(same: Case) -> None:
    flow = ps.Flow("update")
    events = flow.source("events", ps.items([], "k string, n int"))

    def pairs(row: Any, state: Any) -> Any:
        if state is None:
            return {"first": row.n}, []
        return None, [(row.k, state["first"], row.n)]

    events.key_by("k").update_state("pairs", pairs, "k string, a int, b int").sink("out", ps.console())
    given = [(k, n) for k, n, _ in EVENTS]
    same.check(flow, {"events": given}, {"out": [("a", 1, 3), ("b", 2, 7), ("a", 5, 9)]})


class Brief(ps.Process):
    """Counts that are forgotten an hour after the last."""

    n = ps.value(int, default=0, ttl="1h")
    kept = ps.value(int, default=0)
    last = ps.list_of(int, ttl="10m")

    def on_event(self, row: Any) -> Iterator[Any]:
        self.n += 1
        self.kept += 1
        yield self.key, self.n, self.kept, len(self.last)
        self.last.append(row.n)


def brief() -> ps.Flow:
    flow = ps.Flow("brief")
    events = flow.source("events", ps.items([], "k string, n int"))
    events.key_by("k").process("brief", Brief, "k string, n bigint, kept bigint, last bigint").sink("out", ps.console())
    return flow


def test_what_has_outlived_its_time_is_absent() -> None:
    driver = Driver(brief())
    for wait in (0, 300, 700, 3700):
        driver.clock.advance(wait)
        driver.barrier()
        driver.push("events", ("a", 1))
        driver.barrier()
    assert driver.results()["out"] == [("a", 1, 1, 0), ("a", 2, 2, 1), ("a", 3, 3, 0), ("a", 1, 4, 0)]


class AllBrief(ps.Process):
    """Everything goes after a minute."""

    ttl = "1m"
    n = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.n += 1
        yield self.n


def test_a_class_may_say_how_long_all_is_kept() -> None:
    flow = ps.Flow("all-brief")
    events = flow.source("events", ps.items([], "k string"))
    events.key_by("k").process("brief", AllBrief, "n bigint").sink("out", ps.console())
    driver = Driver(flow)
    driver.push("events", "a", "b")
    driver.barrier()
    assert len(driver.run.states["brief"].kept) == 2
    driver.clock.advance(61)
    driver.barrier()
    assert driver.run.states["brief"].kept == {}
    driver.push("events", "a")
    assert [r.n for r in driver.barrier()["out"]] == [1, 1, 1]


class Alarm(ps.Process):
    """Rings five seconds after the last record, by the clock."""

    n = ps.value(int, default=0)

    def on_event(self, row: Any) -> None:
        self.n += 1
        self.set_timer(self.now + timedelta(seconds=5), clock="processing")

    def on_timer(self, timer: Any) -> Iterator[Any]:
        yield self.key, self.n
        self.clear()


def test_timers_of_the_clock_wait_for_it_and_survive_a_crash() -> None:
    flow = ps.Flow("alarm")
    events = flow.source("events", ps.items([], "k string"))
    events.key_by("k").process("alarm", Alarm, "k string, n bigint").sink("out", ps.console())
    driver = Driver(flow)
    driver.push("events", "a", "b", "a")
    driver.barrier()
    driver.clock.advance(4)
    driver.barrier()
    driver.push("events", "a")
    assert driver.barrier()["out"] == []
    driver.crash()
    driver.clock.advance(1.5)
    assert driver.barrier()["out"] == [("b", 1)]
    driver.clock.advance(4)
    assert driver.barrier()["out"] == [("b", 1), ("a", 3)]
    assert driver.run.states["alarm"].kept == {}


class Endless(ps.Process):
    def on_event(self, row: Any) -> None:
        self.set_timer(row.at)

    def on_timer(self, timer: Any) -> Any:
        self.set_timer(timer.at + timedelta(seconds=1))


class Ending(Endless):
    def on_timer(self, timer: Any) -> Iterator[Any]:
        yield self.key, self.ended
        if not self.ended:
            self.set_timer(timer.at + timedelta(seconds=1))


def test_a_timer_that_sets_itself_for_ever_is_refused_and_may_ask_whether_it_is_over() -> None:
    flow, events = timed("endless")
    events.key_by("k").process("endless", Endless, "k string").sink("out", ps.console())
    with pytest.raises(StepError, match=r"ask self.ended before you set it again"):
        run_local(flow, {"events": EVENTS[:1]})
    flow, events = timed("ending")
    events.key_by("k").process("ending", Ending, "k string, over boolean").sink("out", ps.console())
    assert run_local(flow, {"events": EVENTS[:1]})["out"] == [("a", True)]


class Silent(ps.Process):
    def on_event(self, row: Any) -> None:
        self.set_timer(timedelta(0), clock="processing")


def test_a_timer_without_on_timer_is_refused() -> None:
    flow = ps.Flow("silent")
    flow.source("events", ps.items([], "k string")).key_by("k").process("s", Silent, "k string").sink("o", ps.console())
    with pytest.raises(StepError, match=r"Silent sets a timer but has no on_timer"):
        run_local(flow, {"events": ["a"]})


class Waits(ps.Process):
    """Sets a timer by the clock that it is reported."""

    def __init__(self, clock: str) -> None:
        super().__init__()
        self.clock = clock

    def on_event(self, row: Any) -> None:
        self.set_timer(row.moment, clock=self.clock)

    def on_timer(self, timer: Any) -> Iterator[Any]:
        yield self.key, timer.clock


def waiting(name: str, clock: str, **timing: Any) -> ps.Flow:
    """A step behind a map, which forgets the field of the event time but not that there is one."""
    flow = ps.Flow(name)
    events = flow.source("events", ps.items([], SCHEMA), **timing)
    events = events.map("renamed", lambda r: (r.k, r.at), "k string, moment timestamp")
    events.key_by("k").process("waits", Waits(clock), "k string, clock string").sink("out", ps.console())
    return flow


def test_a_timer_by_event_time_needs_a_stream_that_has_one(same: Case) -> None:
    with pytest.raises(StepError, match=r"(?s)step 'waits'.*Give the source event_time="):
        same.run(waiting("timeless", "event"), {"events": EVENTS[:1]})
    same.check(waiting("clock", "processing"), {"events": EVENTS[:1]}, {"out": [("a", "processing")]})
    same.check(waiting("timed", "event", event_time="at"), {"events": EVENTS[:1]}, {"out": [("a", "event")]})


def test_a_crash_between_barriers_changes_nothing() -> None:
    flow, events = timed("crash")
    events.key_by("k").process("spans", PerTenSeconds, "k string, until timestamp, n bigint, same boolean").sink(
        "out", ps.console()
    )
    plain = run_local(flow, {"events": EVENTS})["out"]
    crashed = run_local(flow, {"events": [*EVENTS[:2], BARRIER, *EVENTS[2:4], CRASH, *EVENTS[4:]]})["out"]
    assert sorted(crashed, key=repr) == sorted(plain, key=repr)


def test_a_value_may_not_be_named_like_a_key() -> None:
    events = ps.Flow("clash").source("events", ps.items([], "k string"))
    with pytest.raises(SchemaError, match="'k' is a key already"):
        events.key_by("k").fold("f", 0, lambda a, b: 0, "k int")


def test_a_ttl_is_a_span_of_time() -> None:
    with pytest.raises(FlowError, match="such as 500ms, 20s, 5m, 1h or 1d, got 'soon'"):
        ps.value(int, ttl="soon")
