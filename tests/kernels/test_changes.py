"""Steps over tables that change: for any input and cut, what they emit adds up to the answer over all that is there."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import StepError
from penstock.graph.nodes import Term
from penstock.graph.nodes.base import COUNT
from penstock.graph.nodes.changes import JOINS
from penstock.kernels.changes.rows import consolidated
from penstock.testing import BARRIER, Driver, run_local
from tests.kernels.changing import Change, Query, Running, added, aggregated, best, joined, table

BIDS = "auction string, price bigint"
BATCHES: list[Change] = [
    Counter({("a", 10): 1, ("b", 5): 1}), Counter({("a", 30): 1}), Counter({("b", 30): 1}), Counter(), Counter({("a", 30): -1}),
]  # fmt: skip


def changes(text: str) -> Change:
    """Rows with a sign before each, such as `-(a,10) +(a,30)`."""
    made: Change = Counter()
    for word in text.split():
        values = word[2:-1].split(",")
        made[tuple(None if v == "null" else int(v) if v.isdigit() else v for v in values)] += (
            1 if word[0] == "+" else -1
        )
    return made


def highest() -> Running:
    return aggregated(BIDS, ["auction"], m="max(price)")


GOLDEN_MAX = ["+(a,10) +(b,5)", "-(a,10) +(a,30)", "-(b,5) +(b,30)", "", "-(a,30) +(a,10)"]


def test_golden_maximum_per_auction() -> None:
    step = highest()
    assert [step.replayed(batch) for batch in BATCHES] == [changes(text) for text in GOLDEN_MAX]


def test_golden_count_over_the_maxima() -> None:
    first = highest()
    second = aggregated("auction string, m bigint", ["m"], n="count(*)")
    made = [second.replayed(first.batch(batch)) for batch in BATCHES]
    wanted = ["+(10,1) +(5,1)", "-(10,1) +(30,1)", "-(5,1) -(30,1) +(30,2)", "", "-(30,2) +(30,1) +(10,1)"]
    assert made == [changes(text) for text in wanted]


def test_golden_top_one_over_the_maxima() -> None:
    first = highest()
    second = best("auction string, m bigint", [], 1, Term("m", True), Term("auction"))
    made = [second.replayed(first.batch(batch)) for batch in BATCHES]
    assert made == [changes(text) for text in ("+(a,10)", "-(a,10) +(a,30)", "", "", "-(a,30) +(b,30)")]


def test_golden_left_join_of_the_maxima_with_names() -> None:
    first = highest()
    second = joined("auction string, m bigint", "auction string, name string", "auction", "left")
    names: list[Change] = [Counter(), Counter(), Counter({("b", "Bo"): 1}), Counter(), Counter({("b", "Bo"): -1})]
    made = [second.replayed(first.batch(batch), name) for batch, name in zip(BATCHES, names, strict=True)]
    wanted = [
        "+(a,10,null) +(b,5,null)",
        "-(a,10,null) +(a,30,null)",
        "-(b,5,null) +(b,30,Bo)",
        "",
        "-(a,30,null) +(a,10,null) -(b,30,Bo) +(b,30,null)",
    ]
    assert made == [changes(text) for text in wanted]


def test_golden_answers_hold_for_every_cut() -> None:
    """Neighbouring batches may be one; what they emit adds up."""
    for cuts in range(1 << (len(BATCHES) - 1)):
        step, waiting, so_far, wanted = highest(), Counter[Any](), Counter[Any](), Counter[Any]()
        for at, batch in enumerate(BATCHES):
            waiting = added_up(waiting, batch)
            wanted = added_up(wanted, changes(GOLDEN_MAX[at]))
            if cuts >> at & 1 or at == len(BATCHES) - 1:
                so_far = added_up(so_far, step.batch(waiting))
                waiting = Counter()
                assert so_far == wanted


def added_up(one: Change, other: Change) -> Change:
    return Counter({row: n for row in {*one, *other} if (n := one[row] + other[row])})


# -- any input, any cut ---------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "c", None])
ROWS = st.tuples(KEYS, st.integers(-3, 3) | st.none(), st.sampled_from([0.5, -2.25, 1e16, math.inf, math.nan, None]))
SCHEMA = "k string, n int, x double"


@st.composite
def histories(draw: st.DrawFn, rows: Any) -> list[Change]:
    """Batches of changes: rows come, and rows that are there go; some batches are empty, some undo what they do."""
    there: Counter[Any] = Counter()
    made: list[Change] = []
    for _ in range(draw(st.integers(1, 6))):
        batch: Change = Counter()
        for _ in range(draw(st.integers(0, 6))):
            live = [row for row, n in there.items() if n > 0]
            gone: bool = draw(st.booleans())
            row = draw(st.sampled_from(live)) if live and gone else None
            sign = -1 if row is not None else 1
            row = draw(rows) if row is None else row
            there[row] += sign
            batch[row] += sign
        made.append(Counter({row: n for row, n in batch.items() if n}))
    return made


def holds(step: Running, history: list[Change], query: Query) -> None:
    """After every batch the changes so far are the answer over all that is there so far; a replay gives the same."""
    whole, result = Counter[Any](), Counter[Any]()
    for batch in history:
        whole = added(whole, batch)
        result = added(result, step.replayed(batch))
        assert result == query(whole)


def each(rows: Change) -> list[Any]:
    return [row for row, n in rows.items() for _ in range(n)]


def grouped(rows: Change) -> dict[Any, list[Any]]:
    made: dict[Any, list[Any]] = {}
    for row in each(rows):
        made.setdefault(row[0], []).append(row)
    return made


def rank(value: Any) -> Any:
    return (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)


def known(rows: list[Any], at: int) -> list[Any]:
    return sorted((row[at] for row in rows if row[at] is not None), key=rank)


def total(values: list[Any]) -> Any:
    finite = math.fsum(v for v in values if math.isfinite(v))
    odd = [v for v in values if not math.isfinite(v)]
    return sum(odd, finite) if values else None


def middle(values: list[int]) -> float | None:
    at = (len(values) - 1) / 2
    return (values[math.floor(at)] + values[math.ceil(at)]) / 2 if values else None


def by_x(rows: list[Any]) -> Any:
    pairs = [(rank(row[2]), (0, 0) if row[1] is None else (1, row[1])) for row in rows if row[2] is not None]
    best_one = max(pairs, default=None)
    return None if best_one is None or best_one[1][0] == 0 else best_one[1][1]


def spread(values: list[int]) -> float | None:
    mean = sum(values) / len(values) if values else 0.0
    return sum((v - mean) ** 2 for v in values) / len(values) if values else None


AGGREGATES: dict[str, Any] = {
    "count(*)": len,
    "count(n)": lambda rows: len(known(rows, 1)),
    "count_if(n > 0)": lambda rows: sum(v > 0 for v in known(rows, 1)),
    "sum(n)": lambda rows: sum(known(rows, 1)) if known(rows, 1) else None,
    "avg(n)": lambda rows: sum(known(rows, 1)) / len(known(rows, 1)) if known(rows, 1) else None,
    "sum(x)": lambda rows: total(known(rows, 2)),
    "min(n)": lambda rows: next(iter(known(rows, 1)), None),
    "max(n)": lambda rows: next(reversed(known(rows, 1)), None),
    "min(x)": lambda rows: next(iter(known(rows, 2)), None),
    "max(x)": lambda rows: next(reversed(known(rows, 2)), None),
    "bool_and(n > 0)": lambda rows: all(v > 0 for v in known(rows, 1)) if known(rows, 1) else None,
    "bool_or(n > 0)": lambda rows: any(v > 0 for v in known(rows, 1)) if known(rows, 1) else None,
    "count(distinct n)": lambda rows: len({*known(rows, 1)}),
    "collect_set(n)": lambda rows: sorted({*known(rows, 1)}),
    "collect_list(n)": lambda rows: known(rows, 1),
    "top(2, n)": lambda rows: known(rows, 1)[::-1][:2],
    "percentile(n, 0.5)": lambda rows: middle(known(rows, 1)),
    "max_by(n, x)": by_x,
    "var_pop(n)": lambda rows: spread(known(rows, 1)),
}


@given(history=histories(ROWS))
@settings(max_examples=40, deadline=None)
def test_aggregates_take_back_what_goes(history: list[Change]) -> None:
    step = aggregated(SCHEMA, ["k"], **{f"v{at}": text for at, text in enumerate(AGGREGATES)})

    def query(rows: Change) -> Change:
        return table((key, *(answer(mine) for answer in AGGREGATES.values())) for key, mine in grouped(rows).items())

    holds(step, history, query)


@given(history=histories(st.tuples(KEYS, st.integers(-3, 3) | st.none())))
@settings(max_examples=50, deadline=None)
def test_top_is_the_list_of_now(history: list[Change]) -> None:
    step = best("k string, n int", ["k"], 2, Term("n", True), ranked=True)

    def query(rows: Change) -> Change:
        made = []
        for mine in grouped(rows).values():
            order = sorted(mine, key=lambda r: (r[1] is None, -(r[1] or 0)))
            made += [(*row, at) for at, row in enumerate(order[:2], 1)]
        return table(made)

    holds(step, history, query)


def by_hand(left: Change, right: Change, how: str) -> Change:
    made: Change = Counter()
    matched: set[Any] = set()
    for row, n in left.items():
        mine = [(other, m) for other, m in right.items() if other[0] == row[0] and row[0] is not None]
        matched |= {other for other, _ in mine}
        if how in ("semi", "anti"):
            made[row] += n if bool(mine) == (how == "semi") else 0
            continue
        for other, m in mine:
            made[(*row, other[1])] += n * m
        if not mine and how in ("left", "full"):
            made[(*row, None)] += n
    if how in ("right", "full"):
        for other, m in right.items():
            if other not in matched:
                made[(other[0], None, other[1])] += m
    return Counter({row: n for row, n in made.items() if n})


SIDES = st.tuples(KEYS, st.integers(0, 2))


@pytest.mark.parametrize("how", JOINS)
@given(left=histories(SIDES), right=histories(SIDES))
@settings(max_examples=40, deadline=None)
def test_joins_of_tables_that_change(how: str, left: list[Change], right: list[Change]) -> None:
    step = joined("k string, n int", "k string, m int", "k", how)
    one, other, result = Counter[Any](), Counter[Any](), Counter[Any]()
    for at in range(max(len(left), len(right))):
        ours = left[at] if at < len(left) else Counter[Any]()
        theirs = right[at] if at < len(right) else Counter[Any]()
        one, other = added(one, ours), added(other, theirs)
        result = added(result, step.replayed(ours, theirs))
        assert result == by_hand(one, other, how)


@st.composite
def upserts(draw: st.DrawFn) -> list[Change]:
    """Batches of changes of a table with one row for each key."""
    there: dict[Any, Any] = {}
    made: list[Change] = []
    for _ in range(draw(st.integers(1, 6))):
        batch: Change = Counter()
        for key, value in draw(
            st.dictionaries(st.sampled_from("abc"), st.integers(0, 2) | st.none(), max_size=3)
        ).items():
            batch[(key, there.get(key))] -= key in there
            there.pop(key, None)
            if value is not None:
                there[key] = value
                batch[(key, value)] += 1
        made.append(Counter({row: n for row, n in batch.items() if n}))
    return made


@pytest.mark.parametrize("how", JOINS)
@pytest.mark.parametrize("single", [(True, False), (True, True), (False, True)])
@given(left=upserts(), right=upserts())
@settings(max_examples=25, deadline=None)
def test_joins_of_tables_with_one_row_for_a_key(
    how: str, single: tuple[bool, bool], left: list[Change], right: list[Change]
) -> None:
    step = joined("k string, n int", "k string, m int", "k", how, single)
    one, other, result = Counter[Any](), Counter[Any](), Counter[Any]()
    for at in range(max(len(left), len(right))):
        ours = left[at] if at < len(left) else Counter[Any]()
        theirs = right[at] if at < len(right) else Counter[Any]()
        one, other = added(one, ours), added(other, theirs)
        result = added(result, step.replayed(ours, theirs))
        assert result == by_hand(one, other, how)


@pytest.mark.parametrize("how", JOINS)
def test_a_join_that_is_empty_again_keeps_nothing(how: str) -> None:
    step = joined("k string, n int", "k string, m int", "k", how)
    step.batch({("a", 1): 2}, {("a", 5): 1})
    step.batch({("a", 1): -2}, {("a", 5): -1})
    assert not step.state.kept


def living(how: str) -> Driver:
    """A join whose rows live for an hour: names of ids."""
    flow = ps.Flow("living")
    left = flow.source("left", ps.items([], "op string, id int, n int")).as_table("table", "id")
    right = flow.source("right", ps.items([], "id int, name string"))
    left.join("joined", right, on="id", how=how, ttl="1h").sink("out", ps.console())
    return Driver(flow)


def test_the_rows_of_a_key_live_until_none_has_changed_for_so_long() -> None:
    driver = living("left")
    driver.push("left", ("insert", 1, 10), ("insert", 2, 20))
    driver.barrier()
    driver.clock.advance(3000)
    driver.push("right", (1, "one"))
    driver.barrier()
    driver.clock.advance(3000)
    driver.push("right", (1, "uno"), (2, "two"))
    got = driver.barrier()["out"]
    assert Counter(map(tuple, got)) == Counter({(1, 10, "one"): 1, (1, 10, "uno"): 1, (2, 20, None): 1})
    assert len(driver.run.states["joined"].kept) == 2
    driver.clock.advance(3601)
    driver.barrier()
    assert not driver.run.states["joined"].kept


@pytest.mark.parametrize("how", JOINS)
def test_a_row_that_goes_after_it_was_forgotten_is_no_change(how: str) -> None:
    driver = living(how)
    driver.push("left", ("insert", 1, 10))
    driver.push("right", (1, "one"))
    before = driver.barrier()["out"]
    driver.clock.advance(3601)
    driver.push("left", ("delete", 1, 10))
    assert driver.barrier()["out"] == before
    driver.push("right", (1, "uno"))
    driver.push("left", ("insert", 1, 11))
    driver.barrier()
    driver.push("left", ("delete", 1, 11))
    driver.barrier()


def test_a_row_of_a_table_far_in_the_future_stays_and_moves_no_time() -> None:
    flow = ps.Flow("future")
    rows = flow.source("rows", ps.items([], "op string, id int, ts timestamp")).as_table("table", "id")
    timed = rows.event_time("timed", "ts")
    timed.sink("out", ps.console())
    timed.sort("sorted").sink("sorted-out", ps.console())
    driver = Driver(flow)
    now = datetime.datetime.fromtimestamp(driver.clock(), datetime.UTC)
    near, far = now - datetime.timedelta(seconds=5), now + datetime.timedelta(days=900)
    driver.push("rows", ("insert", 1, near), ("insert", 2, far))
    assert len(driver.barrier()["out"]) == 2
    assert driver.results()["sorted-out"] == []
    driver.clock.advance(86_400 * 1000)
    driver.push("rows", ("delete", 2, far), ("insert", 3, now))
    driver.barrier()
    assert [row.id for row in driver.barrier(end=True)["sorted-out"]] == [1, 3]


def test_a_group_without_rows_is_forgotten() -> None:
    step = aggregated(BIDS, ["auction"], n="count(*)", top="max(price)")
    step.batch({("a", 1): 1})
    assert step.batch({("a", 1): -1}) == Counter({("a", 1, 1): -1})
    assert not step.state.kept


@pytest.mark.parametrize(
    "step",
    [
        aggregated(BIDS, ["auction"], m="max(price)"),
        aggregated(BIDS, ["auction"], n="count(*)"),
        best(BIDS, ["auction"], 1, Term("price")),
    ],
)
def test_a_row_that_was_never_there_cannot_go(step: Running) -> None:
    step.batch({("a", 1): 1})
    with pytest.raises(StepError, match=r"step 'step'.*less than none"):
        step.batch({("a", 2): -1, ("a", 1): -1})


def test_a_join_names_itself_when_a_row_goes_that_was_never_there() -> None:
    step = joined("k string, n int", "k string, m int", "k", "inner")
    with pytest.raises(StepError, match=r"step 'step'.*less than none"):
        step.batch({("a", 1): -1}, {})


def test_decimals_are_exact_and_floats_leave_no_trace() -> None:
    step = aggregated("k int, d decimal(10,2), x double", ["k"], d="sum(d)", x="sum(x)")
    row = (1, Decimal("0.10"), 0.1)
    step.batch({row: 3, (1, Decimal("0.20"), 1e16): 1})
    got = step.batch({(1, Decimal("0.20"), 1e16): -1})
    after = next(row for row, n in got.items() if n > 0)
    assert after[1] == Decimal("0.30")
    assert after[2] == pytest.approx(0.3, abs=1e-12)


def test_consolidation_of_nested_values_and_of_none() -> None:
    rows = pa.table({"v": pa.array([[1], [1], None, None]), COUNT: [1, 1, 1, -1]})
    assert consolidated(rows).to_pydict() == {"v": [[1]], COUNT: [2]}
    flat = pa.table({"v": pa.array([1, 1, None, None]), COUNT: [1, -1, 1, 1]})
    assert consolidated(flat).to_pydict() == {"v": [None], COUNT: [2]}


def test_a_row_that_an_aggregate_fails_on_goes_to_the_dead_letters_and_the_rest_counts() -> None:
    flow = ps.Flow("failing", on_error="dead_letter")
    rows = flow.source("rows", ps.items([], "k string, n int"))
    totals = rows.key_by("k").aggregate("totals", n="sum(n)")
    totals.key_by(same="1").aggregate("ratio", r="sum(10 div n)", m="max(n)", many="count(*)").sink("out", ps.console())
    flow.dead_letters("dead", ps.console())
    results = run_local(flow, {"rows": [("a", 2), ("b", 0), ("c", 5), BARRIER, ("c", 5)]})
    assert [tuple(row) for row in results["out"]] == [(1, 6, 10, 2)]
    assert {row.step for row in results["dead"]} == {"ratio"}
