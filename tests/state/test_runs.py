"""Tables in memory: what is read costs what is found, and rows are found whatever was added, forgotten and merged."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.graph.times import FOREVER, NEVER
from penstock.state.memory import MemoryTable

Row = tuple[int, int, int]
"""A key hash, a time, and a number that tells rows apart."""


def batch(rows: list[Row]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    made = dict(zip(("__key_hash", "__time", "n"), columns, strict=True))
    return pa.record_batch({name: pa.array(values, pa.int64()) for name, values in made.items()})


def rows_of(table: pa.Table | None) -> list[Row]:
    return [] if table is None else sorted(tuple(r.values()) for r in table.to_pylist())


moves = st.lists(
    st.one_of(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50)), max_size=12).map(lambda rows: ("add", rows)),
        st.integers(0, 60).map(lambda at: ("forget", at)),
        st.just(("settle", None)),
        st.just(("snapshot", None)),
    ),
    max_size=25,
)


@settings(deadline=None)
@given(moves, st.integers(-5, 55), st.integers(-5, 60), st.lists(st.integers(0, 12)))
def test_a_table_holds_what_a_list_does(moves: list[Any], begin: int, end: int, sought: list[int]) -> None:
    table, model, horizon = MemoryTable(), list[Row](), NEVER
    for what, value in moves:
        if what == "add":
            rows = [(key_hash, at, len(model) + i) for i, (key_hash, at) in enumerate(value)]
            model += rows
            table.add(batch(rows))
        elif what == "forget":
            horizon = max(horizon, value)
            table.forget(value)
        elif what == "settle":
            table.settle()
        else:
            kept, table = table.snapshot(), MemoryTable()
            table.restore(kept)
        left = [r for r in model if r[1] >= horizon]
        some = [r for r in left if begin <= r[1] < end]
        assert rows_of(table.span(begin, end)) == sorted(some)
        assert rows_of(table.at(np.array(sought, np.int64), begin, end)) == sorted(r for r in some if r[0] in sought)
        assert table.first(begin) == min((r[1] for r in left if r[1] >= begin), default=FOREVER)


def test_rows_of_one_time_stay_in_the_order_in_which_they_were_added() -> None:
    table = MemoryTable()
    for number in range(40):
        table.add(batch([(0, 7 - number % 2, number)]))
        table.span(0, 1)
    found = table.span(6, 8)
    assert found is not None
    for at in (6, 7):
        mine = [r["n"] for r in found.to_pylist() if r["__time"] == at]
        assert mine == sorted(mine)


def test_there_are_few_runs_and_what_is_forgotten_leaves_memory() -> None:
    table = MemoryTable()
    for number in range(1000):
        table.add(batch([(number, number, 0)] * 10))
        table.span(0, 1)
        assert len(table.kept.runs) <= 12
    full = len(table.snapshot())
    table.forget(990)
    assert len(table.snapshot()) < full // 10
    assert len(pickle.loads(table.snapshot())[0]) == 100


def _seconds(act: Callable[[], object]) -> float:
    best = FOREVER * 1.0
    for _ in range(7):
        begin = time.perf_counter()
        act()
        best = min(best, time.perf_counter() - begin)
    return best


def test_reading_does_not_cost_more_where_more_is_kept() -> None:
    """200 times as many rows, the same answers: a scan would cost 200 times as much."""

    def reads(kept: int) -> Callable[[], object]:
        table, numbers = MemoryTable(), np.arange(kept)
        table.add(pa.record_batch({"__key_hash": numbers * 128, "__time": numbers, "n": numbers}))
        sought = np.arange(100) * 128
        table.at(sought)
        return lambda: (table.span(100, 200), table.at(sought, 0, 1000), table.first(50))

    assert _seconds(reads(1_000_000)) < 20 * _seconds(reads(5_000))
