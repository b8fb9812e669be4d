"""Spouts at work: how they end, their tasks, limits, errors and named streams."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.errors import Impossible, StepError
from penstock.frontends.topology.topology import Topology
from penstock.graph.logic.topology.components import END, Spout
from penstock.testing import run_local


class Numbers(Spout):
    outputs = "n bigint"

    def __init__(self, count: int) -> None:
        self.count = count
        self.at = 0

    def next_tuple(self) -> Any:
        if self.at >= self.count:
            return END
        self.at += 1
        self.emit((self.at,))
        return None


def numbers(spout: Any, **options: Any) -> list[Any]:
    top = Topology("numbers")
    top.spout("numbers", spout, **options)
    top.sink("out", ps.console(), from_="numbers")
    return [r.n for r in run_local(top)["out"]]


def test_a_spout_runs_until_it_is_done() -> None:
    assert numbers(Numbers(3)) == [1, 2, 3]


def test_the_tasks_of_a_spout_take_turns() -> None:
    assert numbers(Numbers(2), parallelism=2) == [1, 1, 2, 2]


class Returns(Spout):
    outputs = "n bigint"

    def next_tuple(self) -> Any:
        return [1, 2, 3, END]


class Yields(Spout):
    outputs = "n bigint"

    def next_tuple(self) -> Any:
        yield 1
        yield 2
        return END


class Raises(Spout):
    outputs = "n bigint"

    def next_tuple(self) -> Any:
        self.emit(1)
        raise END


class Done(Spout):
    outputs = "n bigint"

    def next_tuple(self) -> Any:
        self.emit(1)
        self.done()


@pytest.mark.parametrize(("spout", "expected"), [(Returns, [1, 2, 3]), (Yields, [1, 2]), (Raises, [1]), (Done, [1])])
def test_a_spout_may_end_in_any_way(spout: type, expected: list[int]) -> None:
    assert numbers(spout) == expected


class Forever(Spout):
    outputs = "n bigint"
    endless = True

    def next_tuple(self) -> None:
        self.emit(7)


class Silent(Spout):
    outputs = "n bigint"

    def next_tuple(self) -> None:
        return None


def test_a_limit_ends_an_endless_spout() -> None:
    assert numbers(Forever, limit=4) == [7, 7, 7, 7]


def test_an_endless_spout_cannot_run_bounded() -> None:
    with pytest.raises(Impossible, match="limit"):
        numbers(Forever)


def test_a_spout_that_falls_silent_must_say_that_it_is_done() -> None:
    with pytest.raises(Impossible, match=r"emitted nothing .*return ps.END"):
        numbers(Silent)


class Broken(Spout):
    outputs = "n bigint"

    def next_tuple(self) -> None:
        raise ValueError("no luck")


def test_an_error_in_a_spout_is_the_users_own() -> None:
    with pytest.raises(StepError, match="ValueError: no luck") as caught:
        numbers(Broken)
    assert "call 1 of next_tuple" in caught.value.failure.record


class TwoStreams(Spout):
    outputs = {"default": "word string", "numbers": "n bigint, square bigint"}

    def next_tuple(self) -> Any:
        self.emit(("a",))
        self.emit((3, 9), stream="numbers")
        self.emit({"n": 4, "square": 16}, stream="numbers")
        return END


def two_streams() -> Topology:
    top = Topology("two")
    top.spout("both", TwoStreams)
    top.sink("words", ps.console(), from_="both")
    top.sink("numbers", ps.console(), from_="both", stream="numbers")
    return top


def test_a_spout_may_have_named_streams() -> None:
    results = run_local(two_streams())
    assert dict(results) == {"words": [("a",)], "numbers": [(3, 9), (4, 16)]}


def test_a_list_may_stand_in_for_a_spout() -> None:
    results = run_local(two_streams(), {"both": ["x", ps.to("numbers", (1, 1))]})
    assert dict(results) == {"words": [("x",)], "numbers": [(1, 1)]}
