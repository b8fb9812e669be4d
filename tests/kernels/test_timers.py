"""Timers in memory: what is due, in which order, and at what cost."""

from __future__ import annotations

import random

import pytest

from penstock.graph.state.timers import CLOCKS, EVENT, PROCESSING, DueTimer, Slot
from penstock.graph.times import FOREVER
from penstock.state.memory_timers import MemoryTimers


def due(timers: MemoryTimers, clock: str, until: int) -> list[tuple[int, object, str]]:
    return [(t.time, t.key, t.tag) for t in timers.due(clock, until)]


def test_a_timer_is_taken_once_in_the_order_of_time() -> None:
    timers = MemoryTimers()
    for at, key in enumerate("cab"):
        timers.set(key, EVENT, 30 - at)
    assert due(timers, EVENT, 29) == [(28, "b", ""), (29, "a", "")]
    assert due(timers, EVENT, 29) == []
    assert timers.next(EVENT) == 30


def test_a_timer_that_is_set_again_moves() -> None:
    timers = MemoryTimers()
    timers.set("a", EVENT, 10)
    timers.set("a", EVENT, 20)
    timers.set("a", EVENT, 5, "other")
    timers.set("a", PROCESSING, 1)
    assert due(timers, EVENT, 15) == [(5, "a", "other")]
    assert timers.of("a") == {Slot(EVENT): 20, Slot(PROCESSING): 1}
    timers.clear("a")
    assert timers.of("a") == {}
    assert [timers.next(clock) for clock in CLOCKS] == [FOREVER, FOREVER]


def test_timers_of_one_moment_come_by_key_hash_and_then_by_tag_in_whatever_order_they_were_set() -> None:
    slots = [(key, tag) for key in ("x", "y", "z", 7) for tag in ("", "b", "a")]
    orders = set()
    for seed in range(5):
        timers = MemoryTimers()
        for key, tag in random.Random(seed).sample(slots, len(slots)):
            timers.set(key, EVENT, 3, tag)
        orders.add(tuple(due(timers, EVENT, 3)))
    [order] = orders
    assert [tag for _, key, tag in order if key == "x"] == ["", "a", "b"]


def test_a_timer_set_on_the_way_is_due_too_and_one_taken_back_is_not() -> None:
    timers = MemoryTimers()
    timers.set("a", EVENT, 1)
    timers.set("b", EVENT, 5)
    seen = []
    for timer in timers.due(EVENT, 10):
        seen.append(timer)
        timers.delete("b", EVENT)
        if timer.time < 8:
            timers.set("a", EVENT, timer.time + 3)
    assert seen == [DueTimer(1, "a"), DueTimer(4, "a"), DueTimer(7, "a"), DueTimer(10, "a")]


def test_timers_that_are_moved_again_and_again_do_not_fill_the_memory() -> None:
    timers = MemoryTimers()
    for at in range(100_000):
        timers.set(at % 10, EVENT, at)
    assert len(timers.heaps[EVENT]) < 2_000
    assert timers.next(EVENT) == 99_990


def test_what_is_restored_goes_on_where_it_was() -> None:
    timers = MemoryTimers()
    for at in range(100):
        timers.set(at, CLOCKS[at % 2], at, str(at % 3))
    list(timers.due(EVENT, 20))
    again = MemoryTimers()
    again.restore(timers.snapshot())
    assert due(again, EVENT, 99) == due(timers, EVENT, 99)
    assert due(again, PROCESSING, 99) == due(timers, PROCESSING, 99)


@pytest.mark.parametrize("seed", range(20))
def test_timers_do_what_a_plain_dict_would(seed: int) -> None:
    rolled, timers = random.Random(seed), MemoryTimers()
    model: dict[tuple[int, str, str], int] = {}
    now = 0
    for _ in range(500):
        key, clock, tag = rolled.randint(0, 20), rolled.choice(CLOCKS), rolled.choice(("", "t"))
        match rolled.randint(0, 9):
            case 0 | 1 | 2 | 3 | 4 | 5:
                model[key, clock, tag] = now + rolled.randint(-3, 40)
                timers.set(key, clock, model[key, clock, tag], tag)
            case 6 | 7:
                model.pop((key, clock, tag), None)
                timers.delete(key, clock, tag)
            case 8:
                model = {slot: time for slot, time in model.items() if slot[0] != key}
                timers.clear(key)
            case _:
                now += rolled.randint(0, 10)
                expected = sorted((t, k, g) for (k, c, g), t in model.items() if c == clock and t <= now)
                model = {s: t for s, t in model.items() if s[1] != clock or t > now}
                assert sorted(due(timers, clock, now)) == expected
        assert timers.next(clock) == min((t for s, t in model.items() if s[1] == clock), default=FOREVER)
