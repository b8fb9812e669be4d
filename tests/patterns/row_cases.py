"""Random row patterns: conditions and measures as Penstock reads them, and as Python functions of the reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from penstock.graph.patterns import tree as p
from tests.patterns.row_reference import Reference, Seen

NAMES = "ABCD"
SUBSETS = {"U": ("A", "B"), "V": ("C", "B")}


def _less(one: Any, other: Any) -> bool:
    return one is not None and other is not None and one < other


def _sum(values: list[Any]) -> Any:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def _avg(values: list[Any]) -> Any:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _most(values: list[Any]) -> Any:
    return max((v for v in values if v is not None), default=None)


def _times(values: list[Any], by: int) -> list[Any]:
    return [None if v is None else v * by for v in values]


def _current(seen: Seen) -> int:
    return seen.start + len(seen.labels) - 1


PLAIN: list[tuple[str, Callable[[Seen], bool]]] = [
    ("n = 1", lambda s: s.at(_current(s)) == 1),
    ("n <> 1", lambda s: s.at(_current(s)) not in (1, None)),
    ("n < 3", lambda s: _less(s.at(_current(s)), 3)),
    ("n >= 2", lambda s: _less(1, s.at(_current(s)))),
    ("n is null", lambda s: s.at(_current(s)) is None),
    ("n > prev(n)", lambda s: _less(s.at(_current(s) - 1), s.at(_current(s)))),
    ("n < next(n)", lambda s: _less(s.at(_current(s)), s.at(_current(s) + 1))),
    (
        "n = prev(n + 1, 2)",
        lambda s: s.at(_current(s) - 2) is not None and s.at(_current(s)) == s.at(_current(s) - 2) + 1,
    ),
    ("next(n, 2) is null", lambda s: s.at(_current(s) + 2) is None),
    ("false", lambda s: False),
    ("classifier() = 'B'", lambda s: s.labels[-1] == "B"),
]
LOOKING: list[tuple[str, Callable[[Seen], bool]]] = [
    ("n > A.n", lambda s: _less(s.at(s.last("A")), s.at(_current(s)))),
    (
        "n >= first(n)",
        lambda s: (
            s.at(s.first()) is not None
            and not _less(s.at(_current(s)), s.at(s.first()))
            and s.at(_current(s)) is not None
        ),
    ),
    (
        "first(U.n) = last(n, 1)",
        lambda s: s.at(s.first("AB")) is not None and s.at(s.first("AB")) == s.at(s.last("", 1)),
    ),
    ("last(U.n) = 1", lambda s: s.at(s.last("AB")) == 1),
    ("sum(distinct n) < 4", lambda s: _less(_sum(list({v for v in s.values() if v is not None})), 4)),
    ("count(*) < 4", lambda s: len(s.labels) < 4),
    ("count(B.*) >= 1", lambda s: len(s.of("B")) >= 1),
    ("sum(A.n) < 5", lambda s: _less(_sum(s.values("A")), 5)),
    ("avg(U.n) <= 2", lambda s: _avg(s.values("AB")) is not None and _avg(s.values("AB")) <= 2),
    (
        "prev(last(C.n), 1) = n",
        lambda s: s.at(_current(s)) is not None and s.near(s.last("C"), -1) == s.at(_current(s)),
    ),
    ("classifier(U) = 'B'", lambda s: s.label(s.last("AB")) == "B"),
    ("prev(classifier()) = 'A'", lambda s: s.label(_current(s) - 1) == "A"),
    ("match_number() < 2", lambda s: s.number < 2),
    ("sum(n * match_number()) < 6", lambda s: _less(_sum(_times(s.values(), s.number)), 6)),
    ("max(n) = n", lambda s: s.at(_current(s)) is not None and _most(s.values()) == s.at(_current(s))),
    ("count(distinct B.n) < 2", lambda s: len({v for v in s.values("B") if v is not None}) < 2),
]
MEASURES: list[tuple[str, Callable[[Seen], Any]]] = [
    ("classifier()", lambda s: s.label(s.last())),
    ("match_number()", lambda s: s.number),
    ("n", lambda s: s.at(s.last())),
    ("A.n", lambda s: s.at(s.last("A"))),
    ("first(B.n)", lambda s: s.at(s.first("B"))),
    ("last(n, 1)", lambda s: s.at(s.last("", 1))),
    ("final last(n)", lambda s: s.at(s.last("", final=True))),
    ("running count(*)", lambda s: len(s.labels)),
    ("final count(U.*)", lambda s: len(s.of("AB", final=True))),
    ("prev(first(n))", lambda s: s.near(s.first(), -1)),
    ("next(last(U.n), 2)", lambda s: s.near(s.last("AB"), 2)),
    ("prev(first(A.n, 1), 2)", lambda s: s.near(s.first("A", 1), -2)),
    ("sum(n)", lambda s: _sum(s.values())),
    ("count(distinct n)", lambda s: len({v for v in s.values() if v is not None})),
    ("sum(A.n + match_number())", lambda s: _sum([None if v is None else v + s.number for v in s.values("A")])),
    ("count(distinct match_number())", lambda s: min(1, len(s.labels))),
    ("final sum(match_number())", lambda s: _sum([s.number] * len(s.of(NAMES, final=True)))),
    ("collect_list(classifier(V))", lambda s: [s.label(i) for i in s.of("CB")]),
    ("coalesce(avg(C.n), -1.0)", lambda s: -1.0 if _avg(s.values("C")) is None else _avg(s.values("C"))),
    (
        "last(B.n) - first(B.n) + n",
        lambda s: (
            None
            if None in (s.at(s.last("B")), s.at(s.first("B")), s.at(s.last()))
            else s.at(s.last("B")) - s.at(s.first("B")) + s.at(s.last())
        ),
    ),
]


def _sequence(parts: list[p.Part]) -> p.Part:
    return parts[0] if len(parts) == 1 else p.Sequence(tuple(parts), (p.Contiguity.STRICT,) * (len(parts) - 1))


@st.composite
def _repeats(draw: st.DrawFn, inner: st.SearchStrategy[p.Part]) -> p.Part:
    least, most = draw(st.sampled_from([(0, None), (1, None), (0, 1), (2, 2), (1, 2), (0, 2), (2, None), (0, 3)]))
    kind = draw(st.sampled_from([p.Preference.GREEDY, p.Preference.RELUCTANT]))
    return p.Repeat(draw(inner), least, most, p.Contiguity.STRICT, kind)


def _wider(inner: st.SearchStrategy[p.Part]) -> st.SearchStrategy[p.Part]:
    return st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(_sequence),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: p.Choice(tuple(parts))),
        _repeats(inner),
        _repeats(inner),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: p.Permutation(tuple(parts))),
        inner.map(p.Exclusion),
    )


LEAVES: st.SearchStrategy[p.Part] = st.one_of(
    *[st.sampled_from(NAMES).map(p.Stage)] * 6,
    st.just(p.Empty()),
    st.sampled_from(list(p.Edge)).map(p.Anchor),
)
TREES = st.recursive(LEAVES, _wider, max_leaves=6)


def with_all(root: p.Part) -> p.Part:
    """A pattern that names all variables, so that expressions may: what stands after the choice is never tried before it."""
    named = {s.name for s in p.stages_of(root)}
    missing = [
        p.Sequence((p.Stage(n), p.Anchor(p.Edge.START)), (p.Contiguity.STRICT,)) for n in NAMES if n not in named
    ]
    return p.Choice((root, *missing)) if missing else root


Rows = tuple[tuple[int | None, int], ...]
"""The value and the time of each row, in order."""
STEPS = st.lists(st.tuples(st.sampled_from([0, 1, 1, 2, 2, 3, 4, None]), st.integers(0, 3)), max_size=9)


def _timed(steps: list[tuple[int | None, int]]) -> Rows:
    return tuple((n, sum(gap for _, gap in steps[: at + 1])) for at, (n, _) in enumerate(steps))


@dataclass(frozen=True)
class RowCase:
    """A pattern and rows, both ways."""

    root: p.Part
    define: dict[str, int]
    measures: tuple[int, ...]
    rows: str
    after: tuple[str, str]
    within: int | None
    most_rows: int | None
    keys: tuple[Rows, ...]
    """The rows of each key."""

    @property
    def reference(self) -> Reference:
        conditions = {name: CONDITIONS[at][1] for name, at in self.define.items()}
        measures = [MEASURES[at][1] for at in self.measures]
        subsets = tuple((name, "".join(members)) for name, members in SUBSETS.items())
        return Reference(self.root, conditions, measures, self.rows, self.after, self.within, self.most_rows, subsets)


CONDITIONS = [*PLAIN, *LOOKING]


@st.composite
def cases(draw: st.DrawFn, conditions: list[tuple[str, Callable[[Seen], bool]]]) -> RowCase:
    """A pattern whose variables have some of these conditions, which are the first of all."""
    root = with_all(draw(TREES))
    define = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, len(conditions) - 1), max_size=4))
    excludes = any(isinstance(part, p.Exclusion) for part in p.walk(root))
    modes = ["one", "all", "all omit empty"] + ([] if excludes else ["all with unmatched"])
    after = draw(
        st.sampled_from(
            [("past last row", "")] * 3
            + [("to next row", "")] * 2
            + [("to first", "B"), ("to last", "U"), ("to last", "C")]
        )
    )
    measures = tuple(draw(st.lists(st.integers(0, len(MEASURES) - 1), max_size=4)))
    keys = tuple(map(_timed, draw(st.lists(STEPS, min_size=1, max_size=5))))
    within = draw(st.sampled_from([None, None, 2, 4]))
    most_rows = draw(st.sampled_from([None, None, None, 1, 3]))
    return RowCase(root, define, measures, draw(st.sampled_from(modes)), after, within, most_rows, keys)
