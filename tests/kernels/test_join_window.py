"""The kernel of the window join against brute force, over random batches."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.graph.times import FOREVER, NEVER
from penstock.graph.windows import TimeWindow
from tests.kernels.joining import Run, batches

windows = st.sampled_from([(10, 10, 0), (12, 4, 0), (7, 7, 3), (10, 3, 1)]).map(lambda w: TimeWindow(*w))
hows = st.sampled_from(["inner", "left", "right", "full"])


def oracle(given: list[Any], window: TimeWindow, how: str) -> Counter[Any]:
    """Each record stands in those of its windows that are open when it comes."""
    sides: tuple[dict[Any, list[Any]], dict[Any, list[Any]]] = ({}, {})
    stood, watermark = NEVER, 0
    for at, (left, right, step) in enumerate(given):
        for side, rows in enumerate((left, right)):
            for row in rows:
                for span in window.spans(window.pane_of(row[2])):
                    if span[1] > stood:
                        sides[side].setdefault(span, []).append(row)
        watermark = FOREVER if at == len(given) - 1 else watermark + step
        stood = watermark
    made: list[Any] = []
    for span in {*sides[0], *sides[1]}:
        ones, twos = (side.get(span, []) for side in sides)
        near = [
            (a, b)
            for a in range(len(ones))
            for b in range(len(twos))
            if ones[a][0] is not None and ones[a][0] == twos[b][0]
        ]
        made += [(*span, *ones[a], *twos[b][1:]) for a, b in near]
        if how in ("left", "full"):
            made += [(*span, *one, None, None) for a, one in enumerate(ones) if a not in {p for p, _ in near}]
        if how in ("right", "full"):
            made += [
                (*span, two[0], None, None, *two[1:]) for b, two in enumerate(twos) if b not in {p for _, p in near}
            ]
    return Counter(made)


@settings(max_examples=300, deadline=None)
@given(windows, hows, batches)
def test_any_batches_give_every_window_once_and_whole(window: TimeWindow, how: str, given: list[Any]) -> None:
    run = Run(lambda left, right: left.window_join("join", right, "k", window, how=how))
    run.play(given)
    assert Counter(run.out["out"]) == oracle(given, window, how)


@pytest.mark.parametrize(
    ("window", "first"), [(TimeWindow(10, 10), 100), (TimeWindow(20, 5), 85), (TimeWindow(10, 10, 3), 93)]
)
def test_rows_are_kept_as_long_as_a_window_of_theirs_is_open(window: TimeWindow, first: int) -> None:
    run = Run(lambda left, right: left.window_join("join", right, "k", window))
    rows = [(1, n, n) for n in range(60, 110)]
    run.batch(rows, rows, 100)
    assert run.kept("left")[0] == run.kept("right")[0] == first


def test_a_window_is_given_when_it_closes_and_asks_to_be_woken_for_that() -> None:
    run = Run(lambda left, right: left.window_join("join", right, "k", TimeWindow(10, 10)))
    assert run.batch([(1, 7, 101)], [(1, 8, 109)], 109) == []
    assert run.wake == 110
    assert run.batch([], [], 110) == [(100, 110, 1, 7, 101, 8, 109)]
    assert run.batch([], [], 120) == []
