"""Processing elements: an object for each key, on every runtime; and what they do by time, with a clock that a test moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError
from penstock.testing import Driver
from tests.same.conftest import Case


class Counter(ps.PE):
    """Counts the events of its key, and says so at every second one."""

    output_every: int | None = 2

    def __init__(self, first: int = 0) -> None:
        self.first = first

    def on_create(self) -> None:
        self.n = self.first
        self.seen: list[str] = []

    def on_event(self, row: Any) -> None:
        self.n += 1
        self.seen.append(row.word)

    def output(self) -> Iterator[Any]:
        yield self.key, self.n, "".join(self.seen)


def counting(element: Any) -> ps.Flow:
    flow = ps.Flow("elements")
    words = flow.source("words", ps.items([], "word string"))
    words.key_by("word").process("counter", element, "word string, n bigint, seen string").sink("out", ps.console())
    return flow


@pytest.mark.live
def test_each_key_has_an_element_of_its_own_which_is_kept(same: Case) -> None:
    words = list("abaacab")
    expected = [("a", 12, "aa"), ("a", 14, "aaaa"), ("b", 12, "bb")]
    same.check(counting(Counter(10)), {"words": words}, {"out": expected})


class Timed(Counter):
    output_every = None
    output_interval = "10s"
    ttl = "60s"

    def on_remove(self) -> Iterator[Any]:
        yield self.key, -self.n, "gone"


def test_output_by_time_and_the_end_of_a_key() -> None:
    driver = Driver(counting(Timed))
    driver.push("words", "a", "a")
    assert driver.barrier()["out"] == []
    driver.clock.advance(10)
    assert driver.barrier()["out"] == [("a", 2, "aa")]
    driver.clock.advance(30)
    driver.push("words", "a")
    assert driver.barrier()["out"] == [("a", 2, "aa")]
    driver.crash()
    driver.clock.advance(10)
    assert driver.barrier()["out"][1:] == [("a", 3, "aaa")]
    driver.clock.advance(60)
    assert driver.barrier()["out"][2:] == [("a", -3, "gone")]
    driver.push("words", "a")
    driver.barrier()
    driver.clock.advance(10)
    assert driver.barrier()["out"][3:] == [("a", 1, "a")]


class Silent(ps.PE):
    """Does not say what to do."""


class Zero(Counter):
    output_every = 0


class Never(Counter):
    ttl = "0s"


class Needy(Counter):
    def __init__(self, what: str) -> None:
        super().__init__()


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (Silent, "Silent must define on_event"),
        (Zero, "expected output_every as a number of events from 1 on, got 0"),
        (Never, "expected a time above 0"),
        (Needy, "give an instance"),
    ],
)
def test_elements_that_cannot_work_are_refused(element: Any, text: str) -> None:
    with pytest.raises(FlowError, match=text):
        counting(element)
