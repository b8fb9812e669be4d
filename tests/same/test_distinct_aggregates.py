"""Aggregates over different values alone, and Python aggregates over arguments: totals, windows, and tables that change."""

from __future__ import annotations

import math
import statistics
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as ps
from tests.same.conftest import Case
from tests.same.test_window import at

SCHEMA = "k string, ts timestamp, n int, p double, d decimal(10,2)"
ROWS = [
    ("a", at(1), 3, 2.5, Decimal("1.50")),
    ("a", at(2), 3, 2.5, Decimal("1.50")),
    ("a", at(3), 5, math.nan, Decimal("2.25")),
    ("a", at(40), 4, 0.5, None),
    ("b", at(4), None, None, None),
    ("b", at(5), 7, 1.0, Decimal("-1.00")),
    ("b", at(6), 7, 4.0, Decimal("3.00")),
]
CALLS: dict[str, Any] = {
    "s": "sum(distinct n)",
    "m": "avg(distinct n)",
    "e": "sum(distinct d)",
    "c": "count(distinct p)",
    "v": "stddev_pop(distinct n)",
    "w": "var_samp(distinct n)",
    "q": "median(distinct n)",
    "f": "sum(distinct n) filter (where n < 7) + 1",
    "l": "collect_list(distinct n)",
    "x": "max(distinct n)",
}


def wanted(key: str, rows: list[Any]) -> tuple[Any, ...]:
    numbers = sorted({r[2] for r in rows if r[2] is not None})
    small = [n for n in numbers if n < 7]
    many = len({repr(r[3]) for r in rows if r[3] is not None})
    exact = {r[4] for r in rows if r[4] is not None}
    spread = (statistics.pstdev(numbers), float(statistics.variance(numbers)) if len(numbers) > 1 else None)
    return (
        key, sum(numbers), sum(numbers) / len(numbers), sum(exact) if exact else None, many, *spread, float(statistics.median(numbers)),
        sum(small) + 1 if small else None, numbers, max(numbers),
    )  # fmt: skip


@pytest.mark.live
def test_totals_and_windows(same: Case) -> None:
    flow = ps.Flow("different")
    rows = flow.source("rows", ps.items([], SCHEMA), event_time="ts", lateness="1m")
    rows.key_by("k").aggregate("totals", **CALLS).sink("out", ps.console())
    rows.key_by("k").window(ps.tumbling("30s")).aggregate("windows", **CALLS).select("w", "k", *CALLS).sink(
        "windowed", ps.console()
    )
    a, b = ([r for r in ROWS if r[0] == k] for k in "ab")
    expected = {
        "out": [wanted("a", a), wanted("b", b)],
        "windowed": [wanted("a", a[:3]), wanted("a", a[3:]), wanted("b", b)],
    }
    same.check(flow, {"rows": ROWS}, expected)


def test_a_table_that_changes(same: Case) -> None:
    flow = ps.Flow("different-table")
    rows = flow.source("rows", ps.items([], SCHEMA))
    counts = rows.key_by("n").aggregate("counts", c="count(*)")
    counts.aggregate("all", s="sum(distinct c)", m="avg(distinct c)", n="count(*)").sink("out", ps.console())
    same.check(flow, {"rows": ROWS}, {"out": [(3, 1.5, 5)]})


class Weighted:
    def init(self) -> tuple[float, int]:
        return 0.0, 0

    def accumulate(self, so_far: tuple[float, int], price: float | None, n: int | None) -> tuple[float, int]:
        return so_far[0] + (price or 0) * (n or 0), so_far[1] + (n or 0)

    def retract(self, so_far: tuple[float, int], price: float | None, n: int | None) -> tuple[float, int]:
        return so_far[0] - (price or 0) * (n or 0), so_far[1] - (n or 0)

    def merge(self, one: tuple[float, int], other: tuple[float, int]) -> tuple[float, int]:
        return one[0] + other[0], one[1] + other[1]

    def result(self, so_far: tuple[float, int]) -> float | None:
        return so_far[0] / so_far[1] if so_far[1] else None


class ArrowTotal:
    def accumulate(self, so_far: int | None, numbers: int) -> int:
        return (so_far or 0) + (pc.sum(numbers).as_py() or 0) if isinstance(numbers, pa.Array) else -1

    def merge(self, one: int, other: int) -> int:
        return one + other

    def result(self, so_far: int) -> int:
        return so_far


@pytest.mark.live
def test_python_aggregates_over_arguments(same: Case) -> None:
    weighted = ps.aggregate_function(Weighted)
    total = ps.aggregate_function(vectorized=True, name="arrow_total")(ArrowTotal)
    flow = ps.Flow("own-arguments", functions=[weighted, total])
    rows = flow.source("rows", ps.items([], "k string, ts timestamp, n int, p double"), event_time="ts", lateness="1m")
    keyed = rows.key_by("k")
    calls: dict[str, Any] = {
        "w": "weighted(p, n)",
        "t": "arrow_total(n + 1) filter (where n > 3)",
        "d": "arrow_total(distinct n)",
    }
    keyed.aggregate("totals", **calls).sink("out", ps.console())
    keyed.aggregate("alone", t="arrow_total(n)").sink("one", ps.console())
    keyed.window(ps.tumbling("30s")).aggregate("windows", **calls).select("w", "k", *calls).sink(
        "windowed", ps.console()
    )
    counts = keyed.aggregate("counts", c="count(*)")
    counts.aggregate("all", w="weighted(c, cast(c as int))").sink("table", ps.console())
    given = [("a", at(1), 3, 2.0), ("a", at(2), 3, 4.0), ("a", at(40), 5, 1.0), ("b", at(3), None, 9.0)]
    expected: dict[str, list[Any]] = {
        "out": [("a", 23 / 11, 6, 8), ("b", None, None, 0)],
        "one": [("a", 11), ("b", 0)],
        "windowed": [("a", 3.0, None, 3), ("a", 1.0, 6, 5), ("b", None, None, 0)],
        "table": [(2.5,)],
    }
    same.check(flow, {"rows": given}, expected)
