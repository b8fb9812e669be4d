"""Matches are those of the definition: small random patterns over small random inputs, against a matcher that tries every choice of events."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from tests.patterns.cases import Case, answered, every_part, found
from tests.patterns.flink.generate import KINDS, Draw
from tests.patterns.reference import Reference, is_defined, is_lost_by_flink

INPUTS = 20
"""Each pattern runs over so many inputs, which are the keys of one stream."""
MOST = 400
"""An input with more matches is left out: it would tell no more."""


@st.composite
def drawn(draw: st.DrawFn) -> tuple[Case, list[list[list[object]]]]:
    """A pattern and its inputs."""
    made = Draw(draw(st.randoms(use_true_random=False)))
    case = made.case(draw(st.sampled_from([*KINDS])))
    assume(is_defined(case["parts"]) and not any(map(is_refused, every_part(case["parts"]))))
    assume("within" in case or case["parts"][-1]["link"] != "not_followed_by")
    return {**case, "skip": ["no_skip"]}, [made.events(9) for _ in range(INPUTS)]


def is_refused(part: Case) -> bool:
    """Whether a loop is to take as many as it can, and every choice of them; or it is said twice that it may be left out."""
    is_twice = part.get("optional") and part.get("times", [1])[0] == 0
    return bool(is_twice) or (bool(part.get("greedy")) and part.get("inner") == "any")


def repeats_a_group(case: Case) -> bool:
    """Whether a match may be found more than once, as Flink does: a run that waits in a group that is repeated goes on in two ways which are alike."""
    return any("group" in part and part.get("times", [1, 1])[-1] != 1 for part in every_part(case["parts"]))


def check(case: Case, inputs: list[list[list[object]]]) -> None:
    """Compares the matches of each input."""
    expected = [Reference({**case, "events": events}).matches() for events in inputs]
    small = [(events, matches) for events, matches in zip(inputs, expected, strict=True) if len(matches) <= MOST]
    answers = found(case, [events for events, _ in small])
    for (events, matches), (got, _) in zip(small, answers, strict=True):
        alike = sorted(set(got)) == sorted(set(matches)) if repeats_a_group(case) else got == matches
        assert alike, f"{case['parts']} within {case.get('within')} over {events}"


SETTINGS = settings(
    deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate], database=None, derandomize=True
)


@given(drawn())
@settings(SETTINGS, max_examples=100)
def test_matches_are_those_of_the_definition(made: tuple[Case, list[list[list[object]]]]) -> None:
    check(*made)


@pytest.mark.slow
@given(drawn())
@settings(SETTINGS, max_examples=1_500)
def test_matches_of_thirty_thousand_inputs_are_those_of_the_definition(
    made: tuple[Case, list[list[list[object]]]],
) -> None:
    check(*made)


def test_a_repeated_group_finds_a_match_as_often_as_flink_does() -> None:
    group = {"group": [{"name": "s1", "link": "begin", "where": "abc"}], "link": "begin", "times": [1, None]}
    loop = {"name": "s2", "link": "followed_by_any", "where": "b", "times": [2, None]}
    events = [["a", 1, 1], ["d", 5, 2], ["d", 0, 3], ["b", 0, 4], ["b", 5, 5], ["b", 3, 8], ["a", 3, 8]]
    case = {"parts": [group, loop], "skip": ["no_skip"], "within": 5}
    assert found(case, [events])[0][0] == ["s1=0 s2=3,4", "s1=0 s2=3,4", "s1=0 s2=3,4", "s1=3 s2=4,5"]


def test_the_definition_answers_as_flink_does_where_it_leaves_no_doubt() -> None:
    clear = [
        case
        for case in answered()
        if "matches" in case
        and case["skip"] == ["no_skip"]
        and is_defined(case["parts"])
        and not is_lost_by_flink(case["parts"])
    ]
    assert len(clear) > 1_000
    for case in clear:
        assert Reference(case).matches() == sorted(case["matches"]), case
