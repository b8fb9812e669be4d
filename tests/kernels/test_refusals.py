"""What the kit refuses as Spark would: a forgotten return, attributes that are not declared, values of another type."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import cached_property
from typing import Any

import pytest

import penstock as ps
from penstock.errors import StepError
from penstock.testing import run_local


def maps(function: Any, on_error: Any = None) -> list[Any]:
    flow = ps.Flow("f", on_error=on_error)
    flow.source("s", ps.items([], "word string")).map("up", function, schema="word string").sink("out", ps.console())
    return [r.word for r in run_local(flow, {"s": ["a", "b"]})["out"]]


def test_a_forgotten_return_is_an_error_that_says_so() -> None:
    def shout(row: Any):  # type: ignore[no-untyped-def]
        row.word.upper()

    with pytest.raises(StepError, match=r"step 'up'.*(?s:.*)returned None.*return is missing"):
        maps(shout)


def test_a_function_that_means_null_says_so() -> None:
    def found(row: Any) -> str | None:
        return None if row.word == "a" else row.word

    assert maps(found) == [None, "b"]
    assert maps(lambda row: {"word": None}) == [None, None]


def test_a_forgotten_return_is_a_bad_record_like_any_other() -> None:
    assert maps(lambda row: None if row.word == "a" else row.word, on_error="skip") == ["b"]


def processes(logic: Any) -> list[Any]:
    flow = ps.Flow("f")
    rows = flow.source("s", ps.items([], "k string, at timestamp"), event_time="at")
    rows.key_by("k").process("step", logic, schema="n bigint").sink("out", ps.console())
    import datetime

    at = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    return [r.n for r in run_local(flow, {"s": [("a", at), ("a", at)]})["out"]]


class Undeclared(ps.Process):
    def on_event(self, row: Any) -> Iterator[Any]:
        self.total = 1
        yield 1


class UndeclaredInTimer(ps.Process):
    def on_event(self, row: Any) -> None:
        self.set_timer(row.at + timedelta(seconds=1))

    def on_timer(self, timer: ps.Timer) -> Iterator[Any]:
        self.fired = True
        yield 1


class Opened(ps.Process):
    """What is set in on_open, and what a cached property keeps, is the instance's own."""

    n = ps.value(int, default=0)

    def on_open(self) -> None:
        self.step = 2

    @cached_property
    def more(self) -> int:
        return 10

    def on_event(self, row: Any) -> Iterator[Any]:
        self.n += self.step + self.more
        yield self.n


class WrongType(ps.Process):
    n = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.n = "many"
        yield 1


class WrongTypeOfTwo(ps.Process):
    n = ps.value(int, default=0)
    m = ps.value(float, default=0.0)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.m = 1
        self.n = 1.5
        yield 1


class WrongList(ps.Process):
    seen = ps.list_of(int)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.seen = {1}
        yield 1


@pytest.mark.parametrize(
    ("logic", "said"),
    [
        (Undeclared, r"Undeclared sets self\.total, which it does not declare"),
        (UndeclaredInTimer, r"UndeclaredInTimer sets self\.fired"),
        (WrongType, r"WrongType\.n is declared as int, got 'many' \(str\)"),
        (WrongTypeOfTwo, r"WrongTypeOfTwo\.n is declared as int, got 1\.5 \(float\)"),
        (WrongList, r"WrongList\.seen is declared as list, got \{1\} \(set\)"),
    ],
)
def test_what_a_process_may_not_keep_is_refused_with_its_step_and_name(logic: Any, said: str) -> None:
    with pytest.raises(StepError, match=f"step 'step'(?s:.*){said}"):
        processes(logic)


def test_what_an_instance_sets_when_it_is_opened_is_its_own() -> None:
    assert processes(Opened) == [12, 24]
