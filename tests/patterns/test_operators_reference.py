"""The evaluator of operators against their definition, on small random patterns and histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from penstock.graph.expr import Expr, columns_of, parse
from penstock.graph.patterns import operators as o
from tests.patterns.machines import run, typed
from tests.patterns.operator_reference import Given, Match, Reference

KINDS, TAGS = "ABC", "abc"
SPANS = st.sampled_from([1, 2, 3, 5])
CONDITIONS = st.one_of(st.none(), st.none(), st.sampled_from([parse(f"n > {tag}.n") for tag in TAGS]))
FILTERS = st.builds(o.Filter, st.sampled_from(KINDS), st.sampled_from([*TAGS, ""]), CONDITIONS)
INTERVALS = st.builds(o.Interval, SPANS)
ATOMS = st.one_of(FILTERS, FILTERS, FILTERS, INTERVALS)


def _bounds() -> st.SearchStrategy[tuple[int, int | None]]:
    return st.one_of(
        st.just((0, None)),
        st.tuples(st.integers(0, 2), st.none()),
        st.tuples(st.integers(0, 1), st.integers(1, 3)),
        st.just((2, 2)),
    )


def _repeats(part: st.SearchStrategy[o.Operator]) -> st.SearchStrategy[o.Operator]:
    exact = st.builds(lambda p, n: o.Repeat(p, n, n), part, st.integers(1, 3))
    until = st.builds(lambda p, b, u: o.Repeat(p, b[0], b[1], u), part, _bounds(), part)
    return st.one_of(exact, until)


def _ands(part: st.SearchStrategy[o.Operator]) -> st.SearchStrategy[o.Operator]:
    plain = st.builds(lambda a, b: o.And((a, b)), part, part)
    absent = st.builds(lambda a, b: o.And((a, o.Not(b))), part, part)
    return st.one_of(plain, absent)


def _larger(part: st.SearchStrategy[o.Operator]) -> st.SearchStrategy[o.Operator]:
    keys = st.sampled_from([(parse(f"{tag}.n"),) for tag in TAGS])
    return st.one_of(
        st.builds(o.Every, part),
        st.builds(o.EveryDistinct, part, keys, st.one_of(st.none(), SPANS)),
        _repeats(part),
        _ands(part),
        st.builds(lambda a, b: o.Or((a, b)), part, part),
        st.builds(lambda a, b: o.FollowedBy((a, b)), part, part),
        st.builds(lambda a, b, c: o.FollowedBy((a, b, c)), part, part, part),
        st.builds(o.Within, part, SPANS, st.one_of(st.none(), st.integers(0, 2))),
        st.builds(o.While, part, st.sampled_from([parse(f"{tag}.n > 1") for tag in TAGS])),
    )


TREES = st.recursive(ATOMS, _larger, max_leaves=5)
HISTORIES = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(KINDS), st.integers(0, 3)), max_size=8)


def history(steps: Iterable[tuple[int, str, int]]) -> list[Given]:
    """Events, each so much later than the one before it."""
    made, time = [], 10
    for gap, kind, n in steps:
        time += gap
        made.append(Given(time, kind, n))
    return made


def counted(matches: list[tuple[int, Match]]) -> Counter[str]:
    """Matches, order aside."""
    return Counter(repr((time, sorted(match.items()))) for time, match in matches)


def nested_every(root: o.Operator) -> int:
    """How many operators start copies; their matches multiply."""
    return sum(isinstance(each, o.Every | o.EveryDistinct) for each in o.walk(root))


def asked_for(root: o.Operator) -> set[str]:
    """The tags that conditions and keys name."""
    found: list[Expr] = []
    for each in o.walk(root):
        found += [each.condition] if isinstance(each, o.Filter | o.While) and each.condition is not None else []
        found += each.keys if isinstance(each, o.EveryDistinct) else []
    return {name for expr in found for name in columns_of(expr)} - {"n"}


def check(root: o.Operator, steps: list[tuple[int, str, int]], saves: bool) -> None:
    """The evaluator and the definition have the same matches at the same times."""
    assume(nested_every(root) <= 3 and asked_for(root) <= set(o.tags_of(root)))
    events = history(steps)
    wanted = Reference(events).matches(root)
    assert counted(run(typed(root), events, saves=saves)) == counted(wanted), str(root)


@settings(max_examples=1_200, deadline=None, suppress_health_check=list(HealthCheck))
@given(TREES, HISTORIES, st.booleans())
def test_the_evaluator_does_what_the_definition_says(
    root: o.Operator, steps: list[tuple[int, str, int]], saves: bool
) -> None:
    check(root, steps, saves)


@pytest.mark.slow
@settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.recursive(ATOMS, _larger, max_leaves=7), HISTORIES, st.booleans())
def test_the_evaluator_does_what_the_definition_says_of_many(
    root: o.Operator, steps: list[tuple[int, str, int]], saves: bool
) -> None:
    check(root, steps, saves)
