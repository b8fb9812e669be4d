"""Rows in time on disk: any history reads as one in memory would; files are dropped, merged, checked. No JVM."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import StateError
from penstock.graph.times import FOREVER, NEVER
from penstock.state.file import StateFile
from penstock.state.memory import MemoryTable
from penstock.state.store import StateStore
from penstock.state.tables import FileTable
from penstock.storage import LocalStorage
from tests.breadth import some_now
from tests.state.owners import owner

Row = tuple[int, int, int]
"""Key hash, time and a value."""


def rows_of(rows: list[Row], **more: Any) -> pa.RecordBatch:
    columns = {
        "__key_hash": pa.array([r[0] for r in rows], pa.int64()),
        "__time": pa.array([r[1] for r in rows], pa.int64()),
        "value": pa.array([r[2] for r in rows], pa.int64()),
    }
    return pa.record_batch(columns | {k: pa.array([v] * len(rows)) for k, v in more.items()})


def shown(table: pa.Table | None) -> list[Any]:
    return [] if table is None else sorted(zip(*(c.to_pylist() for c in table.columns), strict=True), key=repr)


def tables(store: StateStore, version: int, tasks: int) -> list[FileTable]:
    files = store.begin(version, {"step": tasks}, version - 1)["step"]
    return [FileTable(files, task) for task in range(tasks)]


def commit(store: StateStore, version: int, made: list[FileTable]) -> None:
    for table in made:
        table.save()
    store.publish(version)


def add(store: StateStore, version: int, tasks: int, rows: list[Row], before: int = NEVER, **more: Any) -> None:
    made = tables(store, version, tasks)
    for table in made:
        table.forget(before)
        table.add(rows_of([r for r in rows if owner(r[0], tasks) == table.task], **more))
    commit(store, version, made)


def whole(store: StateStore, version: int, tasks: int = 1) -> list[Any]:
    return sorted((r for t in tables(store, version + 1, tasks) for r in shown(t.span(NEVER, FOREVER))), key=repr)


def chain(store: StateStore, version: int) -> list[StateFile]:
    return store.read(version).get("step", [])


def spread(number: int) -> int:
    """The key hash of one of a hundred keys, which have all slots among them."""
    return -(1 << 63) + number * ((1 << 64) // 100)


HASHES = st.integers(-200, 200).map(lambda p: p * (37 << 48))
ROWS = st.lists(st.tuples(HASHES, st.integers(0, 100), st.integers(0, 9)), max_size=30)


@pytest.mark.parametrize("many", some_now((60, 300), 1))
def test_any_history_reads_as_one_in_memory_would(many: int) -> None:
    """Rows added, forgotten and replaced under changing numbers of tasks: spans and look-ups agree at every version."""
    settings(max_examples=many, deadline=None)(given(st.data())(check_history))()


def check_history(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, model, horizon = StateStore(LocalStorage(Path(folder)), keep=3, run="r"), MemoryTable(), 0
        for version in range(data.draw(st.integers(1, 10))):
            made = tables(store, version, data.draw(st.sampled_from([1, 2, 3, 7, 16])))
            for table in made:
                table.small, table.many = data.draw(st.sampled_from([(20_000, 7), (10, 2), (0, 3)]))
            horizon = _one_batch(data, model, made, horizon)
            commit(store, version, made)
            model.settle()
            _agree(data, model, tables(store, version + 1, data.draw(st.sampled_from([1, 2, 5, 8]))))


def _one_batch(data: st.DataObject, model: MemoryTable, made: list[FileTable], horizon: int) -> int:
    def split(rows: list[Row], table: FileTable) -> pa.RecordBatch:
        return rows_of([r for r in rows if owner(r[0], len(made)) == table.task])

    for _ in range(data.draw(st.integers(0, 3))):
        what = data.draw(st.sampled_from(["add", "add", "forget", "replace"]))
        horizon = max(horizon, data.draw(st.integers(0, 110))) if what == "forget" else horizon
        late = 5 if what == "forget" else 0
        rows = [(p, max(t, horizon - late), v) for p, t, v in data.draw(ROWS)]
        if what == "replace":
            model.replace(pa.Table.from_batches([rows_of(rows)]))
        else:
            model.forget(horizon)
            model.add(rows_of(rows))
        for table in made:
            if what == "replace":
                table.replace(pa.Table.from_batches([split(rows, table)]))
            else:
                table.forget(horizon)
                table.add(split(rows, table))
    return horizon


def _agree(data: st.DataObject, model: MemoryTable, made: list[FileTable]) -> None:
    begin, end = sorted((data.draw(st.integers(-5, 120)), data.draw(st.integers(-5, 120))))
    assert _all(t.span(NEVER, FOREVER) for t in made) == shown(model.span(NEVER, FOREVER))
    assert _all(t.span(begin, end) for t in made) == shown(model.span(begin, end))
    hashes = np.array([*data.draw(st.lists(HASHES, max_size=40)), 7, 7], np.int64)
    asked = [(t, hashes[np.array([owner(p, len(made)) == t.task for p in hashes.tolist()])]) for t in made]
    assert _all(t.at(p, begin, end) for t, p in asked) == shown(model.at(hashes, begin, end))


def _all(parts: Any) -> list[Any]:
    return sorted((r for part in parts for r in shown(part)), key=repr)


def test_what_is_added_can_be_read_at_once(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    table = tables(store, 0, 1)[0]
    table.add(rows_of([(1, 10, 0)]))
    assert shown(table.span(NEVER, FOREVER)) == shown(table.at(np.array([1]))) == [(1, 10, 0)]
    assert table.at(np.array([2])) is None
    assert table.first(5) == 10
    commit(store, 0, [table])
    assert whole(store, 0) == [(1, 10, 0)]


def test_a_file_behind_the_horizon_is_dropped_and_not_read(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    add(store, 0, 1, [(p, 10, 0) for p in range(100)])
    add(store, 1, 1, [(1, 50, 0)])
    old, new = chain(store, 1)
    (tmp_path / old.path).write_bytes(b"torn")
    add(store, 2, 1, [], before=20)
    assert [f.path for f in chain(store, 2)] == [new.path]
    assert whole(store, 2) == [(1, 50, 0)]


def test_rows_forgotten_inside_a_file_stay_forgotten_although_nothing_is_added(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    add(store, 0, 2, [(spread(p * 37 % 100), p, 0) for p in range(100)])
    for version, before in enumerate((20, 30, 40), 1):
        add(store, version, 2, [], before=before)
    add(store, 4, 2, [])
    assert sorted(r[1] for r in whole(store, 4, tasks=4)) == list(range(40, 100))
    assert len(chain(store, 4)) == 4
    """The two files, and one above each that says how far rows are forgotten; no more however often it moves."""


def test_tasks_that_forgot_differently_keep_to_their_own_groups(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    add(store, 0, 1, [(spread(p), 10, 0) for p in range(100)])
    made = tables(store, 1, 3)
    made[1].forget(11)
    commit(store, 1, made)
    left = [(spread(p), 10, 0) for p in range(100) if owner(spread(p), 3) != 1]
    assert 60 < len(left) < 72
    assert whole(store, 1, tasks=1) == sorted(left, key=repr)
    add(store, 2, 1, [(0, 12, 1)])
    assert whole(store, 2, tasks=7) == sorted([*left, (0, 12, 1)], key=repr)


def test_a_file_of_one_task_shows_two_tasks_their_own_rows_alone(tmp_path: Path) -> None:
    """The other task has put its half into a file of its own, so that the old one counts for exactly the keys of this task; few rows are read by time."""
    store = StateStore(LocalStorage(tmp_path), run="r")
    rows = [(spread(number), number, 1) for number in range(100)]
    add(store, 0, 1, rows)
    made = tables(store, 1, 2)
    made[1].replace(made[1].span(NEVER, FOREVER))
    commit(store, 1, made)
    halves = [shown(table.span(40, 60)) for table in tables(store, 2, 2)]
    assert [sorted(half) for half in halves] == [[row for row in rows[40:60] if owner(row[0], 2) == n] for n in (0, 1)]
    assert all(halves)


def test_nothing_is_written_when_nothing_changes(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    add(store, 0, 2, [(p, p, 0) for p in range(10)])
    add(store, 1, 2, [])
    assert chain(store, 1) == chain(store, 0)
    assert not list(tmp_path.glob("files/1-*/step/*.rows"))


def test_files_are_merged_before_they_are_many(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    add(store, 0, 1, [(p, 1000, 0) for p in range(1000)])
    for version in range(1, 60):
        add(store, version, 1, [(version, 1000 + version, 1)])
    assert len(chain(store, 59)) <= 8
    assert len(whole(store, 59, tasks=2)) == 1059


def test_large_files_are_left_alone_until_they_are_many(tmp_path: Path) -> None:
    """So that each can be dropped whole when it is forgotten."""
    store = StateStore(LocalStorage(tmp_path), run="r")
    for version in range(7):
        add(store, version, 1, [(p, version, 0) for p in range(10_001)])
    assert [f.rows for f in chain(store, 6)] == [10_001] * 7
    add(store, 7, 1, [(p, 7, 0) for p in range(10_001)], before=4)
    assert [f.low for f in chain(store, 7)] == [4, 5, 6, 7]
    assert len(whole(store, 7)) == 4 * 10_001


def test_a_batch_writes_only_what_it_adds(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    add(store, 0, 1, [(p, p, 0) for p in range(20_000)])
    add(store, 1, 1, [(1, 1, 1)])
    assert [f.rows for f in chain(store, 1)] == [20_000, 1]


def test_rows_may_gain_fields(tmp_path: Path) -> None:
    """A field that rows of an earlier version lack is null in them, in reads and in merged files."""
    store = StateStore(LocalStorage(tmp_path), run="r")
    add(store, 0, 1, [(1, 1, 0), (2, 2, 0)])
    add(store, 1, 1, [(3, 3, 0)], name="x")
    add(store, 2, 1, [(p, 4, 0) for p in range(4, 9)], name="y")
    assert len(chain(store, 2)) == 1
    assert shown(tables(store, 3, 1)[0].at(np.array([1, 3, 4]))) == [(1, 1, 0, None), (3, 3, 0, "x"), (4, 4, 0, "y")]


def test_rows_whose_types_do_not_fit_are_refused(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    add(store, 0, 1, [(1, 1, 0)], name="x")
    with pytest.raises(StateError, match="do not fit those of now"):
        add(store, 1, 1, [(1, 1, 0)], name=1.5)


def test_a_row_of_a_group_that_the_task_does_not_own_is_refused(tmp_path: Path) -> None:
    table = tables(StateStore(LocalStorage(tmp_path), run="r"), 0, 4)[1]
    with pytest.raises(StateError, match="task 1 of 4 got a row of group 32"):
        table.add(rows_of([(1, 0, 0), (-1 << 62, 0, 0)]))


def test_the_note_says_when_the_step_wants_to_run_again(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    first, second = tables(store, 0, 2)
    notes = [first.save({"event": 60, "processing": FOREVER}), second.save()]
    store.publish(0)
    assert [n["event"] for n in notes] == [60, None]
    assert notes[1] == {"file": None, "older": [], "event": None, "clock": None}


def _damaged(store: StateStore, change: Any) -> pytest.ExceptionInfo[StateError]:
    """What reading says after one file has been changed."""
    add(store, 0, 1, [(p, p, p) for p in range(50_000)])
    path = Path(store.where) / chain(store, 0)[0].path
    change(path)
    with pytest.raises(StateError, match=path.name) as found:
        whole(store, 0)
    return found


@pytest.mark.parametrize("part", [0.0, 0.001, 0.3, 0.5, 0.7, 0.97, 0.9999])
def test_a_flipped_bit_is_found_wherever_it_is(tmp_path: Path, part: float) -> None:
    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[int(part * len(data))] ^= 4
        path.write_bytes(bytes(data))

    assert "damaged" in str(_damaged(StateStore(LocalStorage(tmp_path), run="r"), flip).value)


def test_a_short_file_is_found(tmp_path: Path) -> None:
    found = _damaged(StateStore(LocalStorage(tmp_path), run="r"), lambda path: path.write_bytes(path.read_bytes()[:-9]))
    assert "bytes were written" in str(found.value)


def test_a_missing_file_is_found(tmp_path: Path) -> None:
    assert "cannot be read" in str(_damaged(StateStore(LocalStorage(tmp_path), run="r"), Path.unlink).value)
