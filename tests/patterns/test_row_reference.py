"""Row patterns against the definition: random small patterns, each over the rows of up to five keys, in one batch and in pieces."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import FlowError
from penstock.frontends.patterns.row_text import read_rows
from penstock.graph.expr import as_expr
from penstock.graph.order import Term
from penstock.graph.patterns import tree as p
from penstock.graph.patterns.pattern import AfterMatch, Skip
from penstock.graph.patterns.row_pattern import MatchClause, RowPattern, RowsPerMatch, shown_pattern
from penstock.graph.times import to_moment
from penstock.kernels.base import RecordFailed
from penstock.kernels.patterns.rows import automaton, search
from tests.breadth import some_now
from tests.kernels.hosts import SECOND, Record, hostile, in_one_batch
from tests.patterns.row_cases import CONDITIONS, MEASURES, PLAIN, SUBSETS, TREES, RowCase, cases, with_all

SKIPS = {
    "past last row": Skip.PAST_LAST,
    "to next row": Skip.TO_NEXT,
    "to first": Skip.TO_FIRST,
    "to last": Skip.TO_LAST,
}
CALM = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def flow_of(case: RowCase) -> ps.Flow:
    pattern = RowPattern(
        case.root,
        tuple(SUBSETS.items()),
        RowsPerMatch(case.rows),
        AfterMatch(SKIPS[case.after[0]], case.after[1]),
        None if case.within is None else case.within * SECOND,
        (Term("id"),),
        case.most_rows,
    )
    define = tuple((name, as_expr(CONDITIONS[at][0])) for name, at in case.define.items())
    measures = tuple((f"m{i}", as_expr(MEASURES[at][0])) for i, at in enumerate(case.measures))
    flow = ps.Flow("rows")
    source = flow.source("rows", ps.items([], "k int, id int, n int, ts timestamp"), event_time="ts")
    found = source.key_by("k").match_rows("found", MatchClause(pattern, define, measures))
    found.sink("out", ps.console())
    if case.within is not None:
        found.side("timed_out").sink("late", ps.console())
    return flow


def expected(case: RowCase) -> dict[str, list[tuple[Any, ...]]] | None:
    """What the definition says, by key; None where the search fails."""
    found: dict[str, list[tuple[Any, ...]]] = {"out": [], "late": []}
    for key, rows in enumerate(case.keys):
        try:
            made, late = case.reference.run([{"n": n, "t": time} for n, time in rows])
        except LookupError:
            return None
        for at, *measures in made:
            fields = () if at is None else (at, rows[at][0], moment(rows[at][1]))
            found["out"].append((key, *fields, *measures))
        found["late"] += [(key, *measures) for measures in late]
    return found


def flow_if_it_can_go_on(case: RowCase) -> ps.Flow | None:
    """The flow; None where after_match never has a later row to skip to."""
    try:
        return flow_of(case)
    except FlowError as error:
        if "search would never end" in str(error):
            return None
        raise


def takes_rows(case: RowCase) -> bool:
    """Whether there is a match that is not empty."""
    found = expected(replace(case, rows="all omit empty", after=("past last row", "")))
    return found is None or bool(found["out"])


def moment(seconds: int) -> datetime.datetime:
    return to_moment(seconds * SECOND)


def records(case: RowCase) -> list[Record]:
    each = [
        ("rows", (key, at, n, moment(t)), t) for key, rows in enumerate(case.keys) for at, (n, t) in enumerate(rows)
    ]
    return sorted(each, key=lambda record: record[2])


def check(case: RowCase, seed: int) -> None:
    wanted = expected(case)
    flow = flow_if_it_can_go_on(case)
    if flow is None:
        assert wanted is None or not takes_rows(case)
        return
    given_records = records(case)
    end = (max((t for _, _, t in given_records), default=0) + 1) * SECOND
    if wanted is None:
        with pytest.raises(RecordFailed, match="after_match skips"):
            in_one_batch(flow.graph, given_records, end, 0)
        return
    assert in_order(in_one_batch(flow.graph, given_records, end, 0).out) == wanted
    assert in_order(hostile(flow.graph, given_records, end, 0, seed).out) == wanted


def in_order(out: dict[str, list[Any]]) -> dict[str, list[tuple[Any, ...]]]:
    """What was emitted, by key; that of one key in the order in which it was."""
    return {sink: sorted((tuple(row) for row in out.get(sink, [])), key=lambda row: row[0]) for sink in ("out", "late")}


@given(cases(PLAIN), st.integers(0, 1_000_000))
@settings(CALM, max_examples=200)
def test_matches_are_those_of_the_definition(case: RowCase, seed: int) -> None:
    """In every other case the table of states starts over all the time, and rows that cannot begin a match are always found out first."""
    with (
        patch.object(automaton, "MOST_STATES", (10_000, 0)[seed % 2]),
        patch.object(search, "ROUNDS", (8, 0)[seed % 2]),
    ):
        check(case, seed)


@given(cases(CONDITIONS), st.integers(0, 1_000_000))
@settings(CALM, max_examples=200)
def test_matches_with_conditions_that_look_back_are_those_of_the_definition(case: RowCase, seed: int) -> None:
    check(case, seed)


@pytest.mark.parametrize("seed", some_now(range(60), 20))
def test_a_partial_match_waits_for_the_rows_that_its_measures_look_at(seed: int) -> None:
    """However the input is cut: a row is not known to have none after it before the input ends."""
    at = next(at for at, (text, _) in enumerate(MEASURES) if text == "next(last(U.n), 2)")
    rows = ((0, 0), (0, 0), (0, 0), (0, 0), (0, 1))
    check(RowCase(with_all(read_rows("A A")), {}, (at,), "one", ("past last row", ""), 2, 1, (rows,)), seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_matches_are_those_of_the_definition(part: int) -> None:
    @given(cases(CONDITIONS if part % 2 else PLAIN), st.integers(part * 1_000_000, part * 1_000_000 + 999_999))
    @settings(CALM, max_examples=2_000, derandomize=False)
    def many(case: RowCase, seed: int) -> None:
        check(case, seed)

    many()


@given(TREES)
@settings(CALM, max_examples=500)
def test_a_pattern_reads_back_as_it_is_shown(root: p.Part) -> None:
    assert shown_pattern(read_rows(shown_pattern(root))) == shown_pattern(root)


@given(st.text(alphabet="AB()|*+?{}-^$, 12\n`%", max_size=30))
@settings(CALM, max_examples=1_000)
def test_any_text_is_a_pattern_or_an_error_that_says_where(text: str) -> None:
    said = ""
    try:
        read_rows(text)
    except FlowError as error:
        said = str(error)
    assert not said or said.startswith("the row pattern, line ")
