"""The tree of a pattern, and what a pattern refuses when it is made."""

from __future__ import annotations

import pytest

from penstock.errors import FlowError
from penstock.graph.expr import parse
from penstock.graph.patterns.compiling import automaton_of
from penstock.graph.patterns.pattern import AfterMatch, Pattern, Skip
from penstock.graph.patterns.tree import (
    Absence,
    Anchor,
    Choice,
    Contiguity,
    Edge,
    Part,
    Preference,
    Repeat,
    Sequence,
    Stage,
    can_be_empty,
    taken_stages,
)

A, B, C = (Stage(name, parse(f"kind = '{name}'")) for name in "abc")
RELAXED, STRICT, ANY = Contiguity.RELAXED, Contiguity.STRICT, Contiguity.ANY


def then(*parts: Part) -> Sequence:
    return Sequence(parts, (RELAXED,) * (len(parts) - 1))


def test_a_tree_reads_as_people_write_it() -> None:
    group = Sequence((A, Repeat(B, 2, 3)), (STRICT,))
    assert str(Sequence((group, C), (ANY,))) == "(a, b{2,3}) ->> c"
    assert str(Repeat(Choice((A, B)), 0, None)) == "(a | b)*"
    assert [str(Repeat(A, *bounds)) for bounds in ((0, 1), (1, None), (2, 2), (2, None))] == [
        "a?",
        "a+",
        "a{2}",
        "a{2,}",
    ]


def test_parts_that_are_built_alike_are_equal() -> None:
    assert Stage("a", parse("n > 1")) == Stage("a", parse("n>1"))
    assert Stage("a", parse("n > 1")) != Stage("a", parse("n > 2"))
    assert Repeat(A, 1, None, until=parse("n = 1")) == Repeat(A, 1, None, until=parse("n = 1"))
    assert len({then(A, B), then(A, B), then(B, A)}) == 2


def test_stages_that_must_not_happen_take_nothing() -> None:
    assert taken_stages(then(A, Absence(B), C)) == [A, C]
    assert can_be_empty(Repeat(A, 0, 1))
    assert not can_be_empty(then(Repeat(A, 0, 1), B))


REFUSED: list[tuple[Part, str]] = [
    (then(A, A), "appears twice"),
    (Stage("a:b"), "without ':'"),
    (then(A, Repeat(B, 0, 1), Absence(C), Stage("d")), "optional"),
    (then(A, Absence(B)), "within"),
    (then(Absence(A), B), "cannot begin with the absence"),
    (Repeat(Absence(A), 1, None), "cannot be repeated"),
    (Repeat(A, 2, 3, until=parse("kind = 'x'")), "until goes with a loop"),
    (Repeat(Repeat(A, 1, None), 2, 2), "one quantifier"),
    (Repeat(then(A, B), 1, None, preference=Preference.GREEDY), "is a group"),
    (Repeat(A, 1, None, ANY, Preference.GREEDY), "combinations"),
    (then(Repeat(A, 1, None, preference=Preference.GREEDY), Repeat(B, 0, 1)), "greedy"),
    (Repeat(A, 1, None, preference=Preference.RELUCTANT), "row patterns"),
    (Repeat(A, 3, 2), "bounds rise"),
    (then(A, Anchor(Edge.END)), "row patterns"),
    (Choice((A, Repeat(B, 0, 1))), "may take none"),
]


@pytest.mark.parametrize(("root", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_what_is_not_sound_is_refused_when_the_pattern_is_made(root: Part, why: str) -> None:
    with pytest.raises(FlowError, match=why):
        Pattern("p", root)


def test_times_and_strategies_are_checked() -> None:
    with pytest.raises(FlowError, match="more than the 1s"):
        Pattern("p", then(A, B), within=1_000_000, gaps=(("b", 2_000_000),))
    with pytest.raises(FlowError, match="there are: 'a', 'b'"):
        Pattern("p", then(A, B), after_match=AfterMatch(Skip.TO_FIRST, "x"))
    with pytest.raises(FlowError, match="above zero"):
        Pattern("p", A, within=0)
    assert Pattern("p", then(A, Absence(B)), gaps=(("b", 5),)).stages == ("a",)
    assert Pattern("p", then(A, B), within=600_000_000).settings() == {"pattern": "a -> b", "within": "10m"}


@pytest.mark.parametrize("bounds", [1_000_000, (2, 1_000_000), (1_000_000, None), (20_000, 20_001)])
def test_repetitions_that_would_be_too_many_states_are_refused_at_once(bounds: int | tuple[int, int | None]) -> None:
    least, most = bounds if isinstance(bounds, tuple) else (bounds, bounds)
    with pytest.raises(FlowError, match="stages, expected at most 20,000"):
        Pattern("p", Repeat(Stage("a"), least, most))


def test_the_largest_repetition_is_compiled() -> None:
    assert len(automaton_of(Pattern("p", Repeat(Stage("a"), 20_000, 20_000))).states) == 20_001
