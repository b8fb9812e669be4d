"""The kernel of the as-of join against brute force, over random batches."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.graph.times import FOREVER, Times
from tests.kernels.joining import US, Run, batches

directions = st.sampled_from(["backward", "forward", "nearest"])
tolerances = st.integers(0, 15)


def asof_run(direction: str, tolerance: int | None, how: str = "left") -> Run:
    span = None if tolerance is None else tolerance * US
    return Run(lambda left, right: left.asof_join("join", right, "k", direction=direction, tolerance=span, how=how))


def oracle(left: list[Any], right: list[Any], direction: str, tolerance: int | None, how: str) -> Counter[Any]:
    """Brute force. Of several at one moment the kernel takes the last by their values, written out."""
    made = []
    for key, n, time in left:
        mine = [
            r
            for r in right
            if key is not None and r[0] == key and abs(r[2] - time) <= (1 << 60 if tolerance is None else tolerance)
        ]
        before = max((r for r in mine if r[2] <= time), key=lambda r: (r[2], str(r[1])), default=None)
        behind = max((r for r in mine if r[2] >= time), key=lambda r: (-r[2], str(r[1])), default=None)
        best = before if direction == "backward" else behind
        if direction == "nearest":
            best = min((r for r in (before, behind) if r), key=lambda r: abs(r[2] - time), default=None)
        if best or how == "left":
            made.append((key, n, time, *(best[1:] if best else (None, None))))
    return Counter(made)


def same_numbers(given: list[Any]) -> list[Any]:
    """Numbers of two digits, so that their order is that of their texts."""
    return [tuple([(k, 10 + n % 90, t) for k, n, t in side] for side in batch[:2]) + batch[2:] for batch in given]


@settings(max_examples=200, deadline=None)
@given(directions, tolerances, st.sampled_from(["left", "inner"]), batches)
def test_any_batches_give_the_answers_of_one(direction: str, tolerance: int, how: str, given: list[Any]) -> None:
    run = asof_run(direction, tolerance, how)
    left, right = run.play(same_numbers(given))
    assert Counter(run.out["out"]) == oracle(left, right, direction, tolerance, how)


@settings(max_examples=200, deadline=None)
@given(batches)
def test_backward_without_a_tolerance(given: list[Any]) -> None:
    run = asof_run("backward", None)
    left, right = run.play(same_numbers(given))
    assert Counter(run.out["out"]) == oracle(left, right, "backward", None, "left")


@settings(max_examples=100, deadline=None)
@given(directions, tolerances, batches)
def test_keys_that_share_a_hash_are_told_apart(direction: str, tolerance: int, given: list[Any]) -> None:
    run = asof_run(direction, tolerance)
    run.same_hash = True
    left, right = run.play(same_numbers(given))
    assert Counter(run.out["out"]) == oracle(left, right, direction, tolerance, "left")


@settings(max_examples=100, deadline=None)
@given(directions, tolerances, batches)
def test_nothing_comes_out_further_behind_than_the_step_says(direction: str, tolerance: int, given: list[Any]) -> None:
    run, watermark = asof_run(direction, tolerance), 0
    for number, (left, right, step) in enumerate(given):
        watermark = FOREVER if number == len(given) - 1 else watermark + step
        late = Times(run.stood).held(run.node.hold).previous
        assert all(row[2] >= late for row in run.batch(left, right, watermark))


def test_an_answer_waits_until_it_is_final() -> None:
    run = asof_run("backward", None)
    assert run.batch([(1, 7, 100)], [(1, 8, 90)], 100) == []
    assert run.wake == 101
    assert run.batch([], [(1, 9, 100)], 101) == [(1, 7, 100, 9, 100)]


@pytest.mark.parametrize(
    ("direction", "left", "right"), [("backward", 100, 90), ("forward", 90, 90), ("nearest", 90, 80)]
)
def test_rows_are_kept_exactly_as_long_as_they_may_be_needed(direction: str, left: int, right: int) -> None:
    run = asof_run(direction, 10)
    rows = [(1, n, n) for n in range(70, 101)]
    run.batch(rows, rows, 100)
    assert run.kept("left")[0] == left
    assert run.kept("right")[0] == right


def test_without_a_tolerance_one_row_of_each_key_is_kept() -> None:
    run = asof_run("backward", None)
    run.batch([], [(key, n, n) for key in (1, 2) for n in range(10, 50)], 60)
    assert run.kept("right") == []
    assert {key: value[1] for key, value in run.states["join@last"].kept.items()} == {(1,): 49, (2,): 49}
