"""The index over many conditions finds what a linear scan finds."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.graph.expr import Expr, parse
from penstock.graph.schema import schema_of
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.records.arrow import to_batch
from penstock.kernels.rules.bounds import MOST_CHOICES, alternatives_of, bounds_of
from penstock.kernels.rules.columns import Expressions
from penstock.kernels.rules.index import ConditionIndex

SCHEMA = schema_of("kind string, n int, big bigint, price double, day date, at timestamp, ok boolean")
TEXTS = ["", "a", "b", "ab", "é", "z", "\U0001f600"]
NUMBERS = [-3, -1, 0, 1, 2, 7, 2**31 - 1]
PRICES = [-1.5, -0.0, 0.0, 0.5, 2.0, float("inf"), float("nan")]
DAYS = [datetime.date(2026, 1, day) for day in (1, 2, 3)]
TIMES = [datetime.datetime(2026, 1, 1, hour, tzinfo=datetime.UTC) for hour in (0, 1, 2)]
ORDERS = ("=", "<", "<=", ">", ">=", "<>")


def maybe(values: list[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from([None, *values])


ROWS = st.lists(
    st.tuples(
        maybe(TEXTS), maybe(NUMBERS), maybe([*NUMBERS, 2**40]), maybe(PRICES), maybe(DAYS), maybe(TIMES), maybe([True, False])
    ),
    min_size=1,
    max_size=10,
)  # fmt: skip


def constants(field: str) -> st.SearchStrategy[str]:
    if field == "kind":
        return st.sampled_from([f"'{text}'" for text in TEXTS])
    if field == "price":
        return st.sampled_from(["-1.5", "0", "0.5D", "2", "2.25"])
    if field == "day":
        return st.sampled_from([f"date '{day}'" for day in DAYS])
    if field == "at":
        return st.sampled_from([f"timestamp '{time:%Y-%m-%d %H:%M:%S}'" for time in TIMES])
    return (
        st.sampled_from(["true", "false"]) if field == "ok" else st.sampled_from([*map(str, NUMBERS), "1099511627776"])
    )


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    field = draw(st.sampled_from(SCHEMA.names))
    shape = draw(st.integers(0, 9))
    if shape == 0:
        return f"{field} in ({', '.join(draw(st.lists(constants(field), min_size=1, max_size=3)))})"
    if shape == 3:
        return (
            f"({' or '.join(f'{field} = {one}' for one in draw(st.lists(constants(field), min_size=2, max_size=3)))})"
        )
    if shape == 1:
        return f"{field} is {draw(st.sampled_from(['not null', 'null', 'null']))}"
    if shape == 4:
        return draw(
            st.sampled_from(
                [
                    "kind like '%'",
                    "kind like 'a%'",
                    "startswith(kind, 'ab')",
                    "kind like '_%'",
                    "kind like 'é%'",
                    r"kind like 'a\\%'",
                ]
            )
        )
    if shape == 2:
        return "n % 2 = 0"
    one, order = draw(constants(field)), draw(st.sampled_from(ORDERS))
    return f"{field} {order} {one}" if draw(st.booleans()) else f"{one} {order} {field}"


@st.composite
def conditions(draw: st.DrawFn) -> str:
    parts = draw(st.lists(comparisons(), min_size=1, max_size=4))
    joined = " and ".join(parts)
    shape = draw(st.integers(0, 5))
    if shape == 0:
        return f"({joined}) or kind = 'a'"
    return f"({' or '.join(parts)}) and {draw(comparisons())}" if shape == 1 else joined


def linear(conditions: list[Expr | None], rows: list[Any]) -> list[tuple[int, int]]:
    tests = [None if c is None else compile_expr(c, SCHEMA) for c in conditions]
    return [(at, n) for at, row in enumerate(rows) for n, test in enumerate(tests) if test is None or test(row) is True]


def indexed(conditions: list[Expr | None], rows: list[Any]) -> list[tuple[int, int]]:
    index = ConditionIndex.of(conditions, SCHEMA, Expressions(SCHEMA).holds)
    found, numbers = index.pairs(to_batch([list(column) for column in zip(*rows, strict=True)], SCHEMA))
    return list(zip(found.tolist(), numbers.tolist(), strict=True))


@settings(max_examples=400, deadline=None)
@given(st.lists(conditions(), min_size=1, max_size=10), ROWS)
def test_the_index_finds_what_a_linear_scan_finds(texts: list[str], rows: list[Any]) -> None:
    """Four hundred sets of up to ten conditions, each over up to ten records: more than ten thousand cases."""
    parsed: list[Expr | None] = [*map(parse, texts), None]
    assert indexed(parsed, rows) == linear(parsed, rows)


def test_a_thousand_conditions_of_ranges_and_equality() -> None:
    rolled = np.random.default_rng(7)
    rows = [(f"k{rolled.integers(50)}", int(rolled.integers(1000)), None, 1.0, None, None, None) for _ in range(500)]
    texts = [f"n >= {low} and n < {low + 40}" for low in rolled.integers(0, 1000, 500)]
    texts += [
        f"kind = 'k{key}' and n > {low}"
        for key, low in zip(rolled.integers(0, 60, 500), rolled.integers(0, 1000, 500), strict=True)
    ]
    parsed: list[Expr | None] = [*map(parse, texts)]
    assert indexed(parsed, rows) == linear(parsed, rows)


def test_more_choices_than_the_index_takes_are_computed() -> None:
    many = f"n in ({', '.join(map(str, range(MOST_CHOICES + 1)))})"
    assert len(bounds_of(parse(many), SCHEMA).residual) == 1
    rows = [("a", 300, None, 1.0, None, None, None), ("a", 255, None, 1.0, None, None, None)]
    parsed: list[Expr | None] = [parse(many), parse("n in (1, 255) and kind in ('a', 'b')")]
    assert indexed(parsed, rows) == linear(parsed, rows) == [(1, 0), (1, 1)]


def test_what_is_found_is_what_is_looked_at() -> None:
    """A record is tested only against the conditions that can match: none is computed here, and one of 2,000 is found."""
    computed: list[int] = []

    def test(expr: Expr, batch: pa.RecordBatch, rows: Any) -> Any:
        computed.append(len(rows))
        return Expressions(SCHEMA).holds(expr, batch, rows)

    conditions = [parse(f"kind = 'k{n}' and n % 2 = 0") for n in range(2_000)]
    index = ConditionIndex.of(conditions, SCHEMA, test)
    rows = [(f"k{n}", n, None, None, None, None, None) for n in range(100)]
    found = index.pairs(to_batch([list(column) for column in zip(*rows, strict=True)], SCHEMA))
    assert sum(computed) == 100
    assert found[1].tolist() == list(range(0, 100, 2))


@pytest.mark.parametrize("text", ["n = null", "kind = 'a' and kind = 'b'", "n > 3 and n < 2"])
def test_what_never_holds_finds_nothing(text: str) -> None:
    assert indexed([parse(text)], [("a", 3, None, None, None, None, None)]) == []


def test_one_choice_or_another_is_a_list_of_choices() -> None:
    either = bounds_of(parse("kind = 'a' or 'b' = kind or kind in ('a', 'c')"), SCHEMA)
    assert (len(either.bounds), either.bounds[0].value, either.residual) == (1, ("a", "b", "c"), ())
    assert len(bounds_of(parse("kind = 'a' or n = 1"), SCHEMA).residual) == 1
    assert len(bounds_of(parse("n = 3 or n > 7"), SCHEMA).residual) == 1


@pytest.mark.parametrize(
    ("text", "many"),
    [
        ("kind = 'a' or n = 1", 2),
        ("n = 3 or n > 7", 2),
        ("n % 2 = 0 and (kind is null or price > 2)", 2),
        ("kind = 'a' and (n = 1 or price > 2)", 1),
        ("kind = 'a' or n % 2 = 0", 1),
        ("kind like 'a%' or startswith(kind, 'b') or n is null", 3),
    ],
)
def test_alternatives_are_found_each_by_its_own_field(text: str, many: int) -> None:
    assert len(alternatives_of(parse(text), SCHEMA)) == many


KINDS = {
    "equality": "kind = 'k{n}'",
    "ranges": "n >= {n} and n < {n} + 1",
    "in": "kind in ('k{n}', 'x{n}')",
    "and": "kind = 'k{n}' and n = {n} and price is not null",
    "or": "kind = 'k{n}' or n = {n} + 100000",
    "prefix": "kind like 'k{n}.%'",
    "null": "day is null and kind = 'k{n}'",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_is_tested_against_the_conditions_that_can_match(kind: str) -> None:
    """Of 5,000 conditions a record is looked at with the few that the index finds, and nothing is computed for the others."""
    many, computed, looked = 5_000, [0], [0]
    over = Expressions(SCHEMA)

    def test(expr: Expr, batch: pa.RecordBatch, rows: Any) -> Any:
        computed[0] += len(rows)
        return over.holds(expr, batch, rows)

    index = ConditionIndex.of([parse(KINDS[kind].replace("{n}", str(n))) for n in range(many)], SCHEMA, test)
    for tree in index.trees.values():
        _counting(tree, looked)
    names = [f"k{n}{'.x' if kind == 'prefix' else ''}" for n in range(0, many, 50)]
    rows = [(name, n, None, 1.0, None, None, None) for name, n in zip(names, range(0, many, 50), strict=True)]
    found = index.pairs(to_batch([list(column) for column in zip(*rows, strict=True)], SCHEMA))
    assert found[1].tolist() == list(range(0, many, 50))
    assert looked[0] <= 2 * len(rows)
    assert computed[0] <= len(rows)


def _counting(tree: Any, looked: list[int]) -> None:
    """Counts the conditions that a tree finds."""
    pairs = tree.pairs

    def counted(*given: Any) -> Any:
        found = pairs(*given)
        looked[0] += len(found[0])
        return found

    tree.pairs = counted
