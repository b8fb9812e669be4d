"""State files: versions, damage, tasks that come and go. No JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import StateError
from penstock.kernels.state import MemoryState
from penstock.spark.states import StateStore, load_state, save_state

Groups = dict[int, dict[Any, Any]]
KEYS: Groups = {g: {("k", g): g * 10} for g in range(128)}


def write(store: StateStore, version: int, tasks: int, changes: Groups) -> None:
    """A batch in which each task changes the groups it owns."""
    for files in store.begin(version, {"step": tasks}, version - 1).values():
        for task in range(tasks):
            state = load_state(files, task)
            for group, keys in changes.items():
                if group % tasks == task:
                    for key, value in keys.items():
                        state.put(group, key, value)
            save_state(files, task, state)
    store.publish(version)


def whole(store: StateStore, version: int, tasks: int) -> Groups:
    """All that a version holds, as `tasks` tasks see it."""
    files = store.begin(version + 1, {"step": tasks}, version)["step"]
    states = [load_state(files, t) for t in range(tasks)]
    return {g: keys for s in states for g, keys in s.groups.items() if keys}


@pytest.mark.parametrize("before", [1, 2, 8, 128])
@pytest.mark.parametrize("after", [1, 4, 16, 128])
def test_tasks_may_change_between_versions(tmp_path: Path, before: int, after: int) -> None:
    store = StateStore(tmp_path, run="r")
    write(store, 0, before, KEYS)
    assert whole(store, 0, after) == KEYS
    write(store, 1, after, {3: {("k", 3): "new"}})
    expected = {**KEYS, 3: {("k", 3): "new"}}
    assert whole(store, 1, after) == expected
    assert whole(store, 1, before) == expected


def test_a_deleted_key_stays_deleted_when_tasks_change(tmp_path: Path) -> None:
    store = StateStore(tmp_path, run="r")
    write(store, 0, 2, KEYS)
    files = store.begin(1, {"step": 4}, 0)["step"]
    for task in range(4):
        state = load_state(files, task)
        if task == 1:
            state.delete(5, ("k", 5))
        save_state(files, task, state)
    store.publish(1)
    assert 5 not in whole(store, 1, 4)
    assert 5 not in whole(store, 1, 2)


def test_a_version_is_not_real_before_all_tasks_reported(tmp_path: Path) -> None:
    store = StateStore(tmp_path, run="r")
    files = store.begin(0, {"step": 2}, -1)["step"]
    save_state(files, 0, MemoryState({0: {"k": 1}}))
    with pytest.raises(StateError, match=r"tasks \[1\] of 2 did not report"):
        store.publish(0)
    assert store.versions() == []


def test_a_rerun_of_a_version_replaces_it(tmp_path: Path) -> None:
    write(StateStore(tmp_path, run="first"), 0, 2, {0: {"k": 1}})
    second = StateStore(tmp_path, run="second")
    write(second, 0, 2, {0: {"k": 2}})
    assert whole(second, 0, 2) == {0: {"k": 2}}


@pytest.mark.parametrize("damage", ["truncate", "flip", "remove", "empty"])
def test_a_damaged_file_is_named_before_anything_is_read_from_it(tmp_path: Path, damage: str) -> None:
    store = StateStore(tmp_path, run="r")
    write(store, 0, 1, KEYS)
    file = next(tmp_path.rglob("0.state"))
    data = file.read_bytes()
    if damage == "remove":
        file.unlink()
    else:
        changed = {"truncate": data[:-1], "empty": b"", "flip": data[:50] + bytes([data[50] ^ 1]) + data[51:]}
        file.write_bytes(changed[damage])
    with pytest.raises(StateError, match=r"0\.state"):
        whole(store, 0, 1)


def test_a_damaged_or_missing_manifest_is_named(tmp_path: Path) -> None:
    store = StateStore(tmp_path, run="r")
    write(store, 0, 1, KEYS)
    manifest = store.manifest(0)
    text = manifest.read_text()
    manifest.write_text(text.replace('"task": 0', '"task": 1'))
    with pytest.raises(StateError, match="damaged"):
        store.read(0)
    manifest.unlink()
    with pytest.raises(StateError, match="state version 0 is not there"):
        store.read(0)


def test_old_versions_go_and_the_files_still_needed_stay(tmp_path: Path) -> None:
    store = StateStore(tmp_path, keep=3, run="r")
    write(store, 0, 2, KEYS)
    for version in range(1, 10):
        write(store, version, 2, {1: {("k", 1): version}})
    assert store.versions() == [7, 8, 9]
    assert whole(store, 7, 2)[1] == {("k", 1): 7}
    assert whole(store, 9, 2) == {**KEYS, 1: {("k", 1): 9}}
    assert len(list((tmp_path / "files").iterdir())) == 4
