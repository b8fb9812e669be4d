"""State files: versions, damage, tasks that come and go. No JVM."""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import StateError
from penstock.graph.state.key_groups import SLOTS, slot_hash
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.schema import StateField, StateSchema
from penstock.state.chain import StepFiles
from penstock.state.file import map_file
from penstock.state.store import StateStore
from penstock.state.values import FileState
from penstock.storage import LocalStorage
from tests.breadth import some_now
from tests.state.owners import owner

State = dict[Any, Any]
LAYOUT = Layout((Column("name", pa.string()), Column("number", pa.int64())), (Column("value"),), single=True)
ONE = Layout((Column("name", pa.string()),), (Column("value"),), single=True)
KEYS: State = {("k", g): g * 10 for g in range(128)}
"""A key in each of 128 groups."""


def aggregate(call: str) -> StateSchema:
    return StateSchema("step", "aggregate", "values", (StateField("k", "int"),), (StateField("n", "bigint", call),))


def hash_of(key: Any) -> int:
    return slot_hash(key[1] % 128 * (SLOTS // 128)) + 1000 + int(key[1])


def opened(files: StepFiles, task: int, layout: Layout = LAYOUT) -> FileState:
    state = FileState(files, task)
    state.describe(layout)
    return state


def write(store: StateStore, version: int, tasks: int, changes: State) -> None:
    """A batch in which each task changes the keys it owns; a value of None deletes."""
    files = store.begin(version, {"step": tasks}, version - 1)["step"]
    for task in range(tasks):
        state = opened(files, task)
        mine = {k: v for k, v in changes.items() if owner(hash_of(k), tasks) == task}
        state.prefetch(list(mine), [hash_of(k) for k in mine])
        for key, value in mine.items():
            state.put(key, value) if value is not None else state.delete(key)
        state.save()
    store.publish(version)


def whole(store: StateStore, version: int, tasks: int) -> State:
    """All that a version holds, as `tasks` tasks see it; looked up key by key and read as a whole, which must agree."""
    files = store.begin(version + 1, {"step": tasks}, version)["step"]
    found: State = {}
    for task in range(tasks):
        read = opened(files, task)
        everything = dict(read.items())
        asked = opened(files, task)
        keys = [k for k in KEYS if owner(hash_of(k), tasks) == task] + [k for k in everything if k not in KEYS]
        asked.prefetch(keys, [hash_of(k) for k in keys])
        assert {k: asked.get(k) for k in keys if asked.get(k) is not None} == everything
        found |= everything
    return found


TASKS = [(1, 7), (3, 1), (2, 4), (8, 16), (128, 127), (1, 128)]
ALL_TASKS = [*TASKS, *(pair for pair in product((1, 2, 3, 8, 128), (1, 4, 7, 16, 127, 128)) if pair not in TASKS)]


@pytest.mark.parametrize(("before", "after"), some_now(ALL_TASKS, len(TASKS)))
def test_tasks_may_change_between_versions(tmp_path: Path, before: int, after: int) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    write(store, 0, before, KEYS)
    assert whole(store, 0, after) == KEYS
    write(store, 1, after, {("k", 3): "new", ("k", 5): None})
    expected = {**KEYS, ("k", 3): "new"}
    del expected["k", 5]
    assert whole(store, 1, after) == expected
    assert whole(store, 1, before) == expected
    write(store, 2, before, {("k", 5): "back"})
    assert whole(store, 2, after) == {**expected, ("k", 5): "back"}


@pytest.mark.parametrize("many", some_now((25, 150), 1))
def test_any_history_reads_as_a_dict_would(many: int) -> None:
    """Random changes, deletions and numbers of tasks, against a plain dict; files are merged on the way."""
    settings(max_examples=many, deadline=None)(given(st.data())(check_history))()


def check_history(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, model = StateStore(LocalStorage(Path(folder)), keep=3, run="r"), State()
        for version in range(data.draw(st.integers(1, 12))):
            tasks = data.draw(st.sampled_from([1, 2, 3, 4, 7]))
            keys = st.tuples(st.just("k"), st.integers(0, 300))
            changes = data.draw(st.dictionaries(keys, st.none() | st.integers(), max_size=40))
            write(store, version, tasks, changes)
            model = {k: v for k, v in (model | changes).items() if v is not None}
            assert whole(store, version, data.draw(st.sampled_from([1, 2, 3, 5, 8]))) == model


def test_keys_that_share_a_hash_are_told_apart(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    for version, value in enumerate(("first", "second", "third")):
        files = store.begin(version, {"step": 1}, version - 1)["step"]
        state = opened(files, 0, ONE)
        keys = [("a",), ("b",), (f"only {version}",)]
        state.prefetch(keys, [77, 77, 77])
        for key in keys:
            state.put(key, f"{value} {key[0]}")
        state.save()
        store.publish(version)
    state = opened(store.begin(3, {"step": 1}, 2)["step"], 0, ONE)
    state.prefetch([("a",), ("b",), ("only 0",), ("only 9",)], [77] * 4)
    assert [state.get((k,)) for k in ("a", "b", "only 0", "only 9")] == ["third a", "third b", "first only 0", None]


def test_a_batch_writes_only_what_it_touches(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    many = {("k", n): "x" * 100 for n in range(5000)}
    write(store, 0, 1, many)
    write(store, 1, 1, {("k", 7): "y"})
    sizes = [f.size for f in store.read(1)["step"]]
    assert sizes[0] > 500_000
    assert sizes[1] < 3_000


def test_files_are_merged_before_they_are_many(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    write(store, 0, 1, {("k", n): 0 for n in range(1000)})
    for version in range(1, 60):
        write(store, version, 1, {("k", version): version})
    assert len(store.read(59)["step"]) <= 8
    assert whole(store, 59, 2)["k", 33] == 33


def test_a_version_is_not_real_before_all_tasks_reported(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    files = store.begin(0, {"step": 2}, -1)["step"]
    state = opened(files, 0)
    state.prefetch([("k", 0)], [hash_of(("k", 0))])
    state.put(("k", 0), 1)
    state.save()
    with pytest.raises(StateError, match=r"tasks \[1\] of 2 did not report"):
        store.publish(0)
    assert store.versions() == []


def test_a_rerun_of_a_version_replaces_it(tmp_path: Path) -> None:
    write(StateStore(LocalStorage(tmp_path), run="first"), 0, 2, {("k", 0): 1})
    second = StateStore(LocalStorage(tmp_path), run="second")
    write(second, 0, 2, {("k", 0): 2})
    assert whole(second, 0, 2) == {("k", 0): 2}


def damaged(data: bytes, how: str) -> bytes:
    middle = len(data) // 2
    return {
        "truncate": data[:-1],
        "empty": b"",
        "longer": data + b"x",
        "flip-head": bytes([data[0] ^ 1]) + data[1:],
        "flip-middle": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "flip-tail": data[:-30] + bytes([data[-30] ^ 1]) + data[-29:],
    }[how]


@pytest.mark.parametrize("how", ["truncate", "empty", "longer", "flip-head", "flip-middle", "flip-tail", "remove"])
def test_a_damaged_file_is_named_before_anything_is_read_from_it(tmp_path: Path, how: str) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    write(store, 0, 1, KEYS)
    file = next(tmp_path.rglob("0-*.state"))
    if how == "remove":
        file.unlink()
    else:
        file.write_bytes(damaged(file.read_bytes(), how))
    with pytest.raises(StateError, match=r"0-\w+\.state"):
        whole(store, 0, 1)


def test_every_bit_of_a_file_counts(tmp_path: Path) -> None:
    """Each bit flipped in turn is found, wherever it is."""
    store = StateStore(LocalStorage(tmp_path), run="r")
    write(store, 0, 1, {("k", 1): "v"})
    file = next(tmp_path.rglob("0-*.state"))
    data = file.read_bytes()
    note = store.read(0)["step"][0]
    for bit in range(0, 8 * len(data), 7):
        at, changed = bit // 8, bytearray(data)
        changed[at] ^= 1 << bit % 8
        file.write_bytes(changed)
        with pytest.raises(StateError):
            map_file(store.storage, note).whole()


def test_a_damaged_or_missing_manifest_is_named(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    write(store, 0, 1, KEYS)
    manifest = tmp_path / store.manifest(0)
    text = manifest.read_text()
    manifest.write_text(text.replace('"rows": 128', '"rows": 129'))
    with pytest.raises(StateError, match="damaged"):
        store.read(0)
    manifest.unlink()
    with pytest.raises(StateError, match="state version 0 is not there"):
        store.read(0)


def test_old_versions_go_and_the_files_still_needed_stay(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), keep=3, run="r")
    write(store, 0, 2, KEYS)
    for version in range(1, 10):
        write(store, version, 2, {("k", 1): version})
    assert store.versions() == [7, 8, 9]
    assert whole(store, 7, 2)["k", 1] == 7
    assert whole(store, 9, 2) == {**KEYS, ("k", 1): 9}
    named = {f.path for v in store.versions() for f in store.read(v)["step"]}
    there = {str(p.relative_to(tmp_path)) for p in (tmp_path / "files").rglob("*.state")}
    assert named <= there
    assert len(there - named) <= 1


def test_a_deleted_key_stays_deleted_when_tasks_go_up_and_down(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    write(store, 0, 1, KEYS)
    write(store, 1, 2, {k: v if k[1] else None for k, v in KEYS.items() if k[1] % 2 == 0})
    gone = {k: v for k, v in KEYS.items() if k[1]}
    assert whole(store, 1, 2) == gone
    assert whole(store, 1, 1) == gone
    write(store, 2, 1, {("k", 9): "new"})
    assert whole(store, 2, 4) == {**gone, ("k", 9): "new"}


def test_a_key_at_a_task_that_does_not_own_it_is_refused(tmp_path: Path) -> None:
    state = opened(StateStore(LocalStorage(tmp_path), run="r").begin(0, {"step": 2}, -1)["step"], 0)
    with pytest.raises(StateError, match="which it does not own"):
        state.prefetch([("k", 100)], [hash_of(("k", 100))])


def test_two_attempts_of_a_task_do_not_touch_each_others_files(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    files = store.begin(0, {"step": 1}, -1)["step"]
    for value in ("first", "second"):
        state = opened(files, 0)
        state.prefetch([("k", 0)], [0])
        state.put(("k", 0), value)
        state.save()
    store.publish(0)
    again = opened(store.begin(1, {"step": 1}, 0)["step"], 0)
    assert list(again.items()) == [(("k", 0), "second")]
    assert len(list(tmp_path.rglob("*.state"))) == 2


def test_a_step_that_keeps_something_else_is_refused(tmp_path: Path) -> None:
    write(StateStore(LocalStorage(tmp_path), run="r", schemas={"step": aggregate("count(*)")}), 0, 1, KEYS)
    changed = StateStore(LocalStorage(tmp_path), run="r", schemas={"step": aggregate("sum(x)")})
    with pytest.raises(StateError, match=r"step 'step' kept its state as .*count.*; now it wants .*sum"):
        changed.read(0)
