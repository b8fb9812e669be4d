"""Many keys at once: columns put into a state and read from it, beside keys one by one, against a dict. No JVM."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import StateError
from penstock.graph.state.keyed import KeyedState
from penstock.graph.state.layout import Column, Layout
from penstock.state import values
from penstock.state.chain import StepFiles
from penstock.state.memory import MemoryState
from penstock.state.store import StateStore
from penstock.state.values import FileState
from penstock.storage import LocalStorage

LAYOUT = Layout((Column("k", pa.string()),), (Column("n", pa.int64()), Column("text", pa.string())))
Model = dict[tuple[str], tuple[int | None, str | None]]


def files(folder: Path) -> StepFiles:
    return StateStore(LocalStorage(folder), run="r").begin(0, {"step": 1}, -1)["step"]


def hash_of(number: int) -> int:
    """Every tenth key shares its hash with the next."""
    return (number if number % 10 else number + 1) << 7


def keys_of(numbers: list[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([f"key {n}" for n in numbers])], ["k"])


def hashes_of(numbers: list[int]) -> Any:
    return np.array([hash_of(n) for n in numbers], np.int64)


def read(state: KeyedState, numbers: list[int]) -> tuple[pa.RecordBatch, Any]:
    found = state.read_columns(keys_of(numbers), hashes_of(numbers))
    assert found is not None
    return found


class Both:
    """A state and the dict that it must equal."""

    def __init__(self, state: KeyedState, seed: int) -> None:
        self.state, self.model, self.rolled = state, Model(), random.Random(seed)
        state.describe(LAYOUT)

    def picked(self) -> list[int]:
        return self.rolled.sample(range(400), self.rolled.randint(1, 80))

    def value(self) -> tuple[int | None, str | None]:
        return self.rolled.choice([None, self.rolled.randrange(1000)]), self.rolled.choice([None, "é" * 5, "x"])

    def put_columns(self) -> None:
        numbers = self.picked()
        made, gone = [self.value() for _ in numbers], [self.rolled.random() < 0.2 for _ in numbers]
        columns = [pa.array(part, c.type) for part, c in zip(zip(*made, strict=True), LAYOUT.values, strict=True)]
        batch = pa.RecordBatch.from_arrays(columns, ["n", "text"])
        self.state.put_columns(keys_of(numbers), hashes_of(numbers), batch, np.array(gone))
        for number, value, is_gone in zip(numbers, made, gone, strict=True):
            self.set(number, None if is_gone else value)

    def set(self, number: int, value: tuple[int | None, str | None] | None) -> None:
        self.model.pop((f"key {number}",), None)
        if value is not None:
            self.model[(f"key {number}",)] = value

    def put_rows(self) -> None:
        numbers = self.picked()
        self.state.prefetch([(f"key {n}",) for n in numbers], [hash_of(n) for n in numbers])
        for number in numbers:
            assert self.state.get((f"key {number}",)) == self.model.get((f"key {number}",))
            value = self.value() if self.rolled.random() < 0.8 else None
            if value is None:
                self.state.delete((f"key {number}",))
            else:
                self.state.put((f"key {number}",), value)
            self.set(number, value)

    def check(self) -> None:
        numbers = self.picked()
        batch, there = read(self.state, numbers)
        found = list(zip(*(c.to_pylist() for c in batch.columns), strict=True))
        wanted = [self.model.get((f"key {n}",)) for n in numbers]
        assert there.tolist() == [value is not None for value in wanted]
        assert found == [value or (None, None) for value in wanted]

    def barrier(self) -> None:
        snapshot = self.state.snapshot()
        assert dict(self.state.items()) == self.model
        self.state.restore(snapshot)

    def turn(self) -> None:
        self.rolled.choice([self.put_columns, self.put_columns, self.put_rows, self.check, self.check, self.barrier])()


@pytest.mark.parametrize("kind", ["memory", "files"])
@pytest.mark.parametrize("seed", range(8))
def test_columns_and_rows_say_the_same(kind: str, seed: int, tmp_path: Path) -> None:
    both = Both(MemoryState() if kind == "memory" else FileState(files(tmp_path), 0), seed)
    for _ in range(60):
        both.turn()
    both.barrier()
    both.check()


def test_more_batches_than_are_looked_through_one_by_one(tmp_path: Path) -> None:
    state = FileState(files(tmp_path), 0)
    both = Both(state, 1)
    for _ in range(3 * values.YOUNGEST):
        both.put_columns()
        assert len(state.young) <= values.YOUNGEST
        both.check()
    both.barrier()


def test_columns_larger_than_a_region_of_a_file(tmp_path: Path) -> None:
    state, numbers = FileState(files(tmp_path), 0), list(range(60_000))
    state.describe(LAYOUT)
    for turn in range(3):
        made = pa.RecordBatch.from_arrays(
            [pa.array([n + turn for n in numbers]), pa.array(["x" * 20] * 60_000)], ["n", "text"]
        )
        state.put_columns(keys_of(numbers), hashes_of(numbers), made, np.zeros(60_000, bool))
        state.restore(state.snapshot())
        few = [7, 59_999, 30_000]
        batch, there = read(state, [*few, 70_000])
        assert batch.column("n").to_pylist() == [*(n + turn for n in few), None]
        assert there.tolist() == [True, True, True, False]


@pytest.mark.parametrize("kind", ["memory", "files"])
@pytest.mark.parametrize("settled", [False, True])
def test_a_value_that_does_not_fit_its_column_is_not_read_as_null(kind: str, settled: bool, tmp_path: Path) -> None:
    """It was put by key and lies pickled beside its column: only by key can it be read."""
    state: Any = MemoryState() if kind == "memory" else FileState(files(tmp_path), 0)
    state.describe(LAYOUT)
    state.prefetch([("key 1",), ("key 2",)], [hash_of(1), hash_of(2)])
    state.put(("key 1",), (2**70, "x"))
    state.put(("key 2",), (7, "y"))
    if settled:
        state.restore(state.snapshot())
    assert state.read_columns(keys_of([1, 2]), hashes_of([1, 2])) is None
    assert read(state, [2])[0].to_pylist() == [{"n": 7, "text": "y"}]
    state.prefetch([("key 1",)], [hash_of(1)])
    assert state.get(("key 1",)) == (2**70, "x")


class Moved:
    """A class of a user's, which is not where it was."""


def test_an_object_whose_class_was_moved_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout((Column("k", pa.string()),), (Column("value"),), single=True)
    kept = FileState(files(tmp_path), 0)
    kept.describe(layout)
    kept.prefetch([("key 1",)], [hash_of(1)])
    kept.put(("key 1",), Moved())
    snapshot = kept.snapshot()
    monkeypatch.delattr(f"{__name__}.Moved")
    again = FileState(files(tmp_path), 0)
    again.describe(layout)
    again.restore(snapshot)
    with pytest.raises(StateError, match=r"Moved.* its class was moved or changed since\. Put the class back"):
        again.prefetch([("key 1",)], [hash_of(1)])


def test_a_store_without_a_key_has_one_entry(tmp_path: Path) -> None:
    state = FileState(files(tmp_path), 0)
    state.describe(Layout((), (Column("n", pa.int64()),), single=True))
    for n in (1, 2):
        state.prefetch([()], [0])
        state.put((), n)
        state.restore(state.snapshot())
        assert list(state.items()) == [((), n)]


@pytest.mark.parametrize("asked", [["a", "b"], ["b", "a"], ["c", "b", "a"], ["b"], ["a", "x", "b"]])
def test_keys_that_share_a_hash_are_read_each_with_its_own_value(tmp_path: Path, asked: list[str]) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    kept = {(name,): (at, name) for at, name in enumerate("abcdefgh")}
    for version, keys in enumerate((list(kept), [(name,) for name in asked])):
        state = FileState(store.begin(version, {"step": 1}, version - 1)["step"], 0)
        state.describe(LAYOUT)
        state.prefetch(keys, [7] * len(keys))
        if version:
            assert {key: state.get(key) for key in keys} == {key: kept.get(key) for key in keys}
            return
        for key, value in kept.items():
            state.put(key, value)
        state.save()
        store.publish(version)
