"""The kernel of the interval join against brute force, over random batches; and what it keeps."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.graph.times import FOREVER, NEVER, Times
from penstock.kernels.joins.match import runs
from penstock.kernels.records.chunk import Chunk
from tests.kernels.joining import US, Run, batches, moment


def interval_run(how: str, low: int, high: int) -> Run:
    return Run(lambda left, right: left.join("join", right, "k", within=(low * US, high * US), how=how))


def oracle(left: list[Any], right: list[Any], how: str, low: int, high: int) -> Counter[Any]:
    def near(one: Any, two: Any) -> bool:
        return one[0] is not None and one[0] == two[0] and low <= two[2] - one[2] <= high

    made = [(*one, two[1], two[2]) for one in left for two in right if near(one, two)]
    if how in ("left", "full"):
        made += [(*one, None, None) for one in left if not any(near(one, two) for two in right)]
    if how in ("right", "full"):
        made += [(two[0], None, None, *two[1:]) for two in right if not any(near(one, two) for one in left)]
    return Counter(made)


hows = st.sampled_from(["inner", "left", "right", "full"])
interval = st.tuples(st.integers(-12, 12), st.integers(-12, 12)).map(lambda pair: (min(pair), max(pair)))


def played(how: str, low: int, high: int, given: list[Any]) -> tuple[Run, list[Any], list[Any]]:
    """A run over batches, and the records that were not late."""
    run = interval_run(how, low, high)
    return run, *run.play(given)


@settings(max_examples=300, deadline=None)
@given(hows, interval, batches)
def test_any_batches_give_the_join_of_what_was_not_late(how: str, within: tuple[int, int], given: list[Any]) -> None:
    low, high = within
    run, left, right = played(how, low, high, given)
    assert Counter(run.out["out"]) == oracle(left, right, how, low, high)
    whole = [(b[0], b[1]) for b in given]
    assert len(run.out["late"]) == sum(len(one) for one, _ in whole) - len(left)
    assert len(run.out["late_right"]) == sum(len(two) for _, two in whole) - len(right)


@settings(max_examples=100, deadline=None)
@given(hows, interval, batches)
def test_keys_that_share_a_hash_are_told_apart(how: str, within: tuple[int, int], given: list[Any]) -> None:
    run = interval_run(how, *within)
    run.same_hash = True
    left, right = run.play(given)
    assert Counter(run.out["out"]) == oracle(left, right, how, *within)


@settings(max_examples=100, deadline=None)
@given(hows, interval, batches)
def test_nothing_comes_out_further_behind_than_the_step_says(
    how: str, within: tuple[int, int], given: list[Any]
) -> None:
    """A step behind the join, with times held back by what the join declares, never finds its records late."""
    run, watermark = interval_run(how, *within), 0
    timed = run.node.output().event_time
    if timed is None:
        return
    at = run.node.output().schema.names.index(timed.column)
    for number, (left, right, step) in enumerate(given):
        watermark = FOREVER if number == len(given) - 1 else watermark + step
        late = Times(run.stood).held(run.node.hold).previous
        assert all(row[at] >= late for row in run.batch(left, right, watermark))


@pytest.mark.parametrize(
    ("how", "left", "right"),
    [("inner", 90, 95), ("left", 90, 85), ("right", 85, 95), ("full", 85, 85)],
)
def test_rows_are_kept_exactly_as_long_as_they_may_be_needed(how: str, left: int, right: int) -> None:
    """The interval is 5 before to 10 behind, the watermark 100: see the kernel for the sums."""
    run = interval_run(how, -5, 10)
    rows = [(1, n, n) for n in range(80, 101)]
    run.batch(rows, rows, 100)
    assert run.kept("left")[0] == left
    assert run.kept("right")[0] == right


def test_a_row_waits_until_no_match_can_come_and_not_longer() -> None:
    run = interval_run("left", -5, 10)
    run.batch([(1, 7, 100)], [], 110)
    assert run.out["out"] == []
    assert run.wake == 111
    run.batch([], [], 111)
    assert run.out["out"] == [(1, 7, 100, None, None)]
    run.batch([], [], 200)
    assert len(run.out["out"]) == 1


def test_a_match_at_the_last_moment_counts() -> None:
    run = interval_run("full", -5, 10)
    run.batch([(1, 7, 100)], [], 110)
    run.batch([], [(1, 8, 110)], 111)
    run.batch([], [], FOREVER)
    assert run.out["out"] == [(1, 7, 100, 8, 110)]


def test_rows_judged_late_still_know_their_matches_of_long_ago() -> None:
    """The right row came and was out of reach for new lefts long before the left row is judged."""
    run = interval_run("left", -5, 10)
    run.batch([(1, 7, 100)], [(1, 8, 95)], 101)
    run.batch([], [], 108)
    run.batch([], [], 130)
    assert run.out["out"] == [(1, 7, 100, 8, 95)]


def test_a_second_barrier_in_a_batch_sees_what_the_first_saw() -> None:
    run = interval_run("left", -5, 10)
    kernel = run.open()
    kernel.begin(Times(NEVER, 50))
    kernel.take(Chunk.of(run.schema(0), [(1, 1, moment(60))]), 0)
    assert list(kernel.advance(kernel.times)) == []
    kernel.take(Chunk.of(run.schema(1), [(1, 2, moment(61))]), 1)
    assert [len(chunk) for _, chunk in kernel.advance(kernel.times)] == [1]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-50, 50)), max_size=30),
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-50, 50)), max_size=30),
    interval,
    st.integers(1, 5),
    st.sampled_from([1, 1 << 50]),
)
def test_runs_are_the_pairs_of_equal_key_hash_within_the_interval(
    left: list[Any], right: list[Any], within: tuple[int, int], piece: int, scale: int
) -> None:
    """Also with times so far apart that key hash and time do not fit one number, and in pieces of any size."""
    low, high = (each * scale for each in within)
    sides = [
        (np.array([p for p, _ in rows], np.int64), np.array([t * scale for _, t in rows], np.int64))
        for rows in (left, right)
    ]
    found = runs(sides[0], sides[1], low, high)
    pairs = [(int(a), int(b)) for one, two in found.pieces(piece) for a, b in zip(one, two, strict=True)]
    wanted = [
        (a, b)
        for a, (key_hash, time) in enumerate(left)
        for b, (other, moment_) in enumerate(right)
        if key_hash == other and low <= moment_ * scale - time * scale <= high
    ]
    assert sorted(pairs) == sorted(wanted)
