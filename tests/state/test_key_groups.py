"""Key groups: every slot has one owner whatever the number of tasks, and state follows when that changes. No JVM."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import OptionError
from penstock.graph.run import RunSpec
from penstock.graph.state.key_groups import HASH_BITS, SLOTS, owned_slots, slot_hash
from penstock.graph.state.layout import Column, Layout
from penstock.kernels.hashing.columns import MURMUR3, hash_columns
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.state.chain import StepFiles
from penstock.state.file import open_file
from penstock.state.file_list import FileList
from penstock.state.ranges import ALL, Horizons, KeyRanges, ranges_of
from penstock.state.store import StateStore
from penstock.state.values import FileState
from penstock.storage import LocalStorage, MemoryStorage
from tests.state.owners import owner, slot_of

LAYOUT = Layout((Column("n", pa.int64()),), (Column("value", pa.int64()),), single=True, bare=True)
RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=6).map(KeyRanges.of)
Model = dict[int, int]


def slots(ranges: KeyRanges) -> set[int]:
    return {slot for begin, end in ranges.spans for slot in range(begin, end)}


@pytest.mark.parametrize("groups", [128, 256, 32_768])
@pytest.mark.parametrize("tasks", [1, 2, 3, 7, 100, 127, 128, 129, 1000, 4096, 32_767, 32_768])
def test_ranges_cover_all_slots_once_and_differ_by_one_group_at_most(tasks: int, groups: int) -> None:
    if tasks > groups:
        return
    spans = sorted(owned_slots(task, tasks, groups) for task in range(tasks))
    assert spans[0][0] == 0
    assert spans[-1][1] == SLOTS
    assert all(one[1] == other[0] for one, other in pairwise(spans))
    sizes = {end - begin for begin, end in spans}
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) <= SLOTS // groups


@pytest.mark.parametrize("tasks", [1, 2, 8, 128, 4096])
def test_with_a_power_of_two_of_tasks_sparks_own_partitioning_is_the_owner(tasks: int) -> None:
    keys = pa.array(range(500))
    partitions = hash_columns([keys], MURMUR3) % tasks
    assert [owner(h, tasks, 32_768) for h in key_hashes([keys], 500).tolist()] == partitions.tolist()


@given(RANGES, RANGES, st.lists(st.integers(0, 40), max_size=20))
def test_ranges_are_sets_of_slots(one: KeyRanges, other: KeyRanges, some: list[int]) -> None:
    assert slots(one & other) == slots(one) & slots(other)
    assert slots(one - other) == slots(one) - slots(other)
    assert one.meets(other) == bool(slots(one) & slots(other))
    assert one.covers(other) == (slots(other) <= slots(one))
    hashes = np.sort(np.array([slot_hash(s) + 5 for s in some], np.int64))
    inside = [slot_of(h) in slots(one) for h in hashes.tolist()]
    assert one.mask(hashes).tolist() == inside
    assert [row for first, last in one.rows(hashes) for row in range(first, last)] == np.flatnonzero(inside).tolist()


@given(st.lists(st.tuples(RANGES, st.integers(0, 9)), max_size=5), RANGES)
def test_a_horizon_is_that_of_the_newest_file_for_the_slot(known: list[tuple[KeyRanges, int]], mine: KeyRanges) -> None:
    if not mine:
        return
    horizons = Horizons(mine, known)
    expected = {s: max((t for ranges, t in known if s in slots(ranges)), default=-(1 << 63)) for s in slots(mine)}
    hashes = np.array([slot_hash(s) + 1 for s in expected], np.int64)
    found = horizons.of(hashes)
    assert (found[found >= 0]).tolist() == [t for t in expected.values() if t >= 0]
    assert horizons.highest == max(found)
    assert horizons.lowest == min(found)


def write(store: StateStore, version: int, tasks: int, changes: Model) -> None:
    files = store.begin(version, {"step": tasks}, version - 1)["step"]
    keys = np.array(list(changes))
    hashes = key_hashes([pa.array(keys)], len(keys))
    for task in range(tasks):
        state = opened(files, task)
        mine = state.ranges.mask(hashes)
        state.prefetch(keys[mine].tolist(), hashes[mine].tolist())
        for key in keys[mine].tolist():
            state.put(key, changes[key])
        state.save()
    store.publish(version)


def opened(files: StepFiles, task: int) -> FileState:
    made = FileState(files, task)
    made.describe(LAYOUT)
    return made


def read(store: StateStore, version: int, tasks: int) -> list[tuple[int, int]]:
    files = store.begin(version + 1, {"step": tasks}, version)["step"]
    return sorted(item for task in range(tasks) for item in opened(files, task).items())


@pytest.mark.parametrize(
    ("groups", "course"), [(128, (3, 7, 4, 1, 128)), (256, (129, 5, 200)), (32_768, (300, 129, 2))]
)
def test_another_number_of_tasks_loses_and_doubles_no_key(groups: int, course: tuple[int, ...]) -> None:
    """Also with more tasks than the default number of groups, and files of which some tasks have taken over parts."""
    store, model = StateStore(MemoryStorage(), run="r", groups=groups), Model()
    for version, tasks in enumerate(course):
        changes = {n: n * 10 + version for n in range(version * 150, version * 150 + 400)}
        write(store, version, tasks, changes)
        model |= changes
        for other in (1, 3, tasks):
            assert read(store, version, other) == sorted(model.items())


def test_state_means_the_same_with_another_number_of_groups() -> None:
    """As a savepoint does that is started with another number."""
    storage, model = MemoryStorage(), {n: n for n in range(2000)}
    write(StateStore(storage, run="r", groups=128), 0, 7, model)
    more = StateStore(storage, run="r", groups=32_768)
    assert read(more, 0, 300) == sorted(model.items())
    write(more, 1, 129, {5: 50})
    fewer = StateStore(storage, run="r", groups=4)
    assert read(fewer, 1, 3) == sorted((model | {5: 50}).items())


def test_a_task_reads_its_part_of_a_file_alone(tmp_path: Path) -> None:
    """After a change of parallelism a file serves several tasks: what is damaged outside its range does not concern a task."""
    store = StateStore(LocalStorage(tmp_path), run="r")
    write(store, 0, 1, {n: n for n in range(200_000)})
    files = store.begin(1, {"step": 7}, 0)["step"]
    state = opened(files, 3)
    part = state.whole(files.read[0])
    checked = open_file(files.storage, files.read[0]).checked
    assert part.num_rows == pytest.approx(200_000 / 7, rel=0.1)
    hashes = part.column("key_hash").to_numpy()
    assert state.ranges.mask(hashes).all()
    assert checked.sum() < 0.7 * len(checked), "the hashes as a whole, and a seventh of the rest"


def test_a_slot_is_the_first_15_bits() -> None:
    assert [slot_of(slot_hash(s)) for s in (0, 1, 20_000, SLOTS - 1)] == [0, 1, 20_000, SLOTS - 1]
    assert slot_hash(SLOTS - 1) + (1 << HASH_BITS) - 1 == (1 << 63) - 1
    assert ranges_of(0, 1, 128) == ALL


@pytest.mark.parametrize("groups", [0, 3, 100, 65_536, "many"])
def test_a_number_of_key_groups_that_is_none_is_refused(groups: object) -> None:
    with pytest.raises(OptionError, match="a power of two of at most 32,768"):
        RunSpec.of(key_groups=groups)


def test_a_task_is_told_of_its_files_alone() -> None:
    """Files travel packed; a task makes those that it needs, and any other that is asked for."""
    store = StateStore(MemoryStorage(), run="r", groups=256)
    write(store, 0, 129, {n: n for n in range(2000)})
    files = store.begin(1, {"step": 7}, 0)["step"].read
    sent: FileList = pickle.loads(pickle.dumps(files))
    mine = ranges_of(3, 7, 256)
    assert sent.meeting(mine) == [f for f in files if f.ranges.meets(mine)] == files.meeting(mine)
    assert 15 < len(sent.meeting(mine)) < 30
    assert list(sent) == list(files)
    assert sent[-1] == files[-1]
    assert sent[2:4] == files[2:4]
    assert len(FileList()) == len(FileList().meeting(mine)) == 0
