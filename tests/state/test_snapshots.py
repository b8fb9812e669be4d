"""Snapshots: what a store holds at a barrier can be put back, whatever happened since; in memory and on disk alike. No JVM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.graph.state.keyed import KeyedState
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.table import TimeTable
from penstock.graph.times import FOREVER, NEVER
from penstock.state.chain import StepFiles
from penstock.state.memory import MemoryState, MemoryTable
from penstock.state.store import StateStore
from penstock.state.tables import FileTable
from penstock.state.values import FileState
from penstock.storage import LocalStorage

LAYOUT = Layout((Column("n", pa.int64()),), (Column("text", pa.string()),), single=True)
States = Callable[[], KeyedState]
Tables = Callable[[], TimeTable]


def files(folder: Path) -> StepFiles:
    return StateStore(LocalStorage(folder), run="r").begin(0, {"step": 1}, -1)["step"]


@pytest.fixture(params=["memory", "files"])
def states(request: pytest.FixtureRequest, tmp_path: Path) -> States:
    """Makes states of one kind; those on disk share a folder."""
    return MemoryState if request.param == "memory" else lambda: FileState(files(tmp_path), 0)


@pytest.fixture(params=["memory", "files"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return MemoryTable if request.param == "memory" else lambda: FileTable(files(tmp_path), 0)


def change(state: KeyedState, texts: dict[int, str | None]) -> None:
    state.prefetch([(n,) for n in texts], [n << 7 for n in texts])
    for n, text in texts.items():
        state.put((n,), text) if text is not None else state.delete((n,))


def opened(states: States) -> KeyedState:
    made = states()
    made.describe(LAYOUT)
    return made


def test_a_state_goes_back_to_its_snapshots(states: States) -> None:
    state, model, snapshots = opened(states), dict[tuple[int], str](), []
    for turn in range(6):
        texts: dict[int, str | None] = {n: f"{n} at {turn}" for n in range(turn * 40, turn * 40 + 60)}
        texts |= dict.fromkeys(range(turn * 40, turn * 40 + 5))
        change(state, texts)
        model = {k: v for k, v in (model | {(n,): t for n, t in texts.items()}).items() if v is not None}
        snapshots.append((state.snapshot(), dict(model)))
        assert dict(state.items()) == model, "it goes on after a snapshot"
    change(state, {1: "lost", 2: None})
    for snapshot, expected in reversed(snapshots):
        state.restore(snapshot)
        assert dict(state.items()) == expected
        other = opened(states)
        other.restore(snapshot)
        change(other, {200: "x"})
        assert dict(other.items()) == expected | {(200,): "x"}


def rows(numbers: range) -> pa.RecordBatch:
    hashes = pa.array([n << 7 for n in numbers], pa.int64())
    return pa.record_batch({"__key_hash": hashes, "__time": pa.array(list(numbers), pa.int64()), "n": list(numbers)})


def shown(table: TimeTable) -> list[int]:
    found = table.span(NEVER, FOREVER)
    return [] if found is None else sorted(found.column("n").to_pylist())


def test_a_table_goes_back_to_its_snapshots(tables: Tables) -> None:
    table, snapshots = tables(), []
    for turn in range(6):
        table.add(rows(range(turn * 10, turn * 10 + 10)))
        table.forget(turn * 5)
        snapshots.append((table.snapshot(), list(range(turn * 5, turn * 10 + 10))))
        assert shown(table) == snapshots[-1][1]
    table.add(rows(range(900, 910)))
    table.forget(100)
    for snapshot, expected in reversed(snapshots):
        table.restore(snapshot)
        assert shown(table) == expected
        other = tables()
        other.restore(snapshot)
        assert shown(other) == expected


def test_a_table_that_was_replaced_goes_back(tables: Tables) -> None:
    table = tables()
    table.add(rows(range(10)))
    before = table.snapshot()
    table.replace(pa.Table.from_batches([rows(range(3))]))
    after = table.snapshot()
    assert shown(table) == [0, 1, 2]
    table.restore(before)
    assert shown(table) == list(range(10))
    table.restore(after)
    assert shown(table) == [0, 1, 2]
