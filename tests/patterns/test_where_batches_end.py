"""Where batches end changes nothing: neither which matches come of runs with one first event, nor which runs time out."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from penstock.errors import FlowError
from tests.patterns.cases import Case, every_part, flow_of, found
from tests.patterns.flink.generate import KINDS, Draw, part
from tests.patterns.test_by_definition import is_refused
from tests.patterns.test_flink_answers import is_refused_here

INPUTS = 12
"""Each pattern runs over so many inputs, which are the keys of one stream."""
Inputs = list[list[list[Any]]]


@st.composite
def drawn(draw: st.DrawFn) -> tuple[Case, Inputs, int]:
    """A pattern that time ends and that drops runs after a match, its inputs, and a seed for the batches."""
    chosen = draw(st.randoms(use_true_random=False))
    made = Draw(chosen)
    case = {"within": 9, **made.case(chosen.choice([*KINDS]))}
    parts = [*case["parts"], *([part("z", "not_followed_by", chosen.choice("abcd"))] if chosen.random() < 0.6 else [])]
    stages = [each["name"] for each in every_part(parts) if "name" in each and each["link"][:4] != "not_"]
    skip = chosen.choice((["past_last"], ["past_last"], ["to_next"], ["to_first", stages[-1]], ["to_last", stages[0]]))
    case |= {"parts": parts, "skip": skip, "within": case["within"] or 9}
    assume(not is_refused_here(case) and not any(map(is_refused, every_part(parts))))
    assume(is_built(case))
    return case, [made.events(12) for _ in range(INPUTS)], chosen.randint(0, 1 << 30)


def is_built(case: Case) -> bool:
    """Whether the pattern is one: an absence behind what may be left out is refused, say."""
    try:
        flow_of(case)
    except FlowError:
        return False
    return True


def check(case: Case, inputs: Inputs, seed: int) -> None:
    """Compares the answers of one batch, of a batch for each event, and of random batches."""
    rolled = random.Random(seed)
    ways: list[Callable[[], bool]] = [lambda: True, lambda: rolled.random() < 0.3]
    once = found(case, inputs)
    for ends in ways:
        assert found(case, inputs, ends) == once, f"{case} over {inputs}"


SETTINGS = settings(
    deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate], database=None, derandomize=True
)


@given(drawn())
@settings(SETTINGS, max_examples=60)
def test_random_batches_change_no_answer(made: tuple[Case, Inputs, int]) -> None:
    check(*made)


@pytest.mark.slow
@given(drawn())
@settings(SETTINGS, max_examples=1_500)
def test_random_batches_change_no_answer_of_many(made: tuple[Case, Inputs, int]) -> None:
    check(*made)


A, ANY_B = part("a", "begin"), part("b", "followed_by_any")
LOOP = part("b", "followed_by_any", times=[1, None])
NO_C = part("c", "not_followed_by", within=1)
DEADLINES = {
    "which of two absences is sure first": ([A, ANY_B, NO_C], [["a", 0, 1], ["b", 0, 2], ["b", 0, 4]], ["a=0 b=1"], []),
    "a run that a match has dropped does not time out": (
        [A, LOOP, NO_C], [["a", 0, 1], ["b", 0, 2], ["b", 0, 2]], ["a=0 b=1,2"], [],
    ),
    "among equals the run that branched first": (
        [A, ANY_B, part("c", "not_followed_by")], [["a", 0, 1], ["b", 0, 2], ["b", 0, 3], ["b", 0, 3]], ["a=0 b=1"], ["a=0@6"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("name", DEADLINES)
def test_runs_end_in_the_order_of_their_deadlines(name: str, ends: bool) -> None:
    parts, events, matches, timed_out = DEADLINES[name]
    clock = [["d", 0, at] for at in range(1, 12)]
    answers = found({"parts": parts, "within": 5, "skip": ["past_last"]}, [events, clock], lambda: ends)
    assert answers[0] == (matches, timed_out)
