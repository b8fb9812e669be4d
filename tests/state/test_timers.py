"""Timers in state files against timers in memory: restarts, other numbers of tasks, merges, and what a look at them reads."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock.state
from penstock.cli.flows.checkpoint import BEGUN
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.timers import CLOCKS, EVENT, PROCESSING
from penstock.graph.times import FOREVER, NEVER, Times, to_moment
from penstock.state.memory_timers import MemoryTimers
from penstock.state.store import StateStore
from penstock.state.values import FileState
from penstock.storage import LocalStorage
from tests.state.owners import owner

LAYOUT = Layout((Column("k", pa.int64()),), (Column("n", pa.int64()),), single=True, bare=True, timers=True)


def hash_of(key: int) -> int:
    return key * 0x9E3779B97F4A7C15 & (1 << 62) - 1


class Step:
    """A step that keeps timers, batch after batch, with any number of tasks."""

    def __init__(self, folder: Path) -> None:
        self.store, self.version = StateStore(LocalStorage(folder), run="r"), -1
        self.late, self.before = NEVER, NEVER
        self.open(1, 0, 0)

    def open(self, tasks: int, watermark: int, now: int) -> None:
        self.version += 1
        files = self.store.begin(self.version, {"step": tasks}, self.version - 1)["step"]
        self.times = Times(self.late, watermark, self.before, now)
        self.tasks = [FileState(files, task) for task in range(tasks)]
        for state in self.tasks:
            state.describe(LAYOUT)
            state.timers(self.times)

    def of(self, key: int) -> Any:
        state = self.tasks[owner(hash_of(key), len(self.tasks))]
        state.prefetch([key], [hash_of(key)])
        return state

    def close(self) -> dict[str, int]:
        """Saves; gives when the step next has work."""
        wakes = {clock: min(s.waits.next(clock) for s in self.tasks if s.waits) for clock in CLOCKS}
        for state in self.tasks:
            assert state.waits is not None
            state.save({clock: state.waits.next(clock) for clock in CLOCKS})
        self.store.publish(self.version)
        self.late, self.before = self.times.watermark, self.times.now
        return wakes


@pytest.mark.parametrize("seed", range(6))
def test_files_and_memory_agree_over_restarts_and_other_numbers_of_tasks(tmp_path: Path, seed: int) -> None:
    rolled, step, memory = random.Random(seed), Step(tmp_path), MemoryTimers()
    watermark = now = 0
    for _ in range(25):
        for _ in range(rolled.choice((0, 5, 200))):
            key, clock, tag = rolled.randint(0, 300), rolled.choice(CLOCKS), rolled.choice(("", "", "t", "ü"))
            timers = step.of(key).waits
            if rolled.random() < 0.8:
                at = rolled.randint(0, 1000)
                timers.set(key, clock, at, tag)
                memory.set(key, clock, at, tag)
            else:
                timers.delete(key, clock, tag)
                memory.delete(key, clock, tag)
        for clock, until in ((EVENT, step.times.watermark), (PROCESSING, step.times.now)):
            found = [(d.time, hash_of(d.key), d.tag) for s in step.tasks if s.waits for d in s.waits.due(clock, until)]
            assert sorted(found) == sorted((d.time, hash_of(d.key), d.tag) for d in memory.due(clock, until))
            if len(step.tasks) == 1:
                assert found == sorted(found), "by time, then by key hash, then by tag"
        assert step.close() == {clock: memory.next(clock) for clock in CLOCKS}
        watermark, now = watermark + rolled.randint(0, 60), now + rolled.randint(0, 60)
        step.open(rolled.choice((1, 2, 4)), watermark, now)


def test_all_timers_are_due_at_the_end_of_the_input(tmp_path: Path) -> None:
    step = Step(tmp_path)
    for key, at in ((1, 50), (2, FOREVER)):
        step.of(key).waits.set(key, EVENT, at)
    assert step.close()[EVENT] == 50
    step.open(1, FOREVER, 0)
    assert step.tasks[0].waits is not None
    assert [d.key for d in step.tasks[0].waits.due(EVENT, FOREVER)] == [1, 2]


def test_a_timer_of_the_end_of_the_input_has_no_moment_that_is_shown(tmp_path: Path) -> None:
    step = Step(tmp_path / "state")
    for key, at in ((1, 50), (2, FOREVER)):
        step.of(key).put(key, key)
        step.of(key).waits.set(key, EVENT, at)
    step.close()
    (tmp_path / BEGUN).write_text("{}")
    found = {row["k"]: row["@event"] for row in penstock.state.read(tmp_path, "step").to_pylist()}
    assert found == {1: to_moment(50), 2: None}


def test_a_key_that_has_timers_alone_is_kept_and_goes_when_they_have_fired(tmp_path: Path) -> None:
    step = Step(tmp_path)
    step.of(1).waits.set(1, EVENT, 10, "x")
    step.close()
    step.open(1, 20, 0)
    [state] = step.tasks
    assert state.waits is not None
    assert [(d.key, d.tag) for d in state.waits.due(EVENT, 20)] == [(1, "x")]
    state.delete(1)
    step.close()
    step.open(1, 30, 0)
    assert list(step.tasks[0].items()) == []


def test_what_is_due_is_found_without_reading_what_is_kept(tmp_path: Path) -> None:
    many = 200_000
    step = Step(tmp_path)
    [state] = step.tasks
    state.prefetch(list(range(many)), [hash_of(k) for k in range(many)])
    assert state.waits is not None
    for key in range(many):
        state.put(key, key)
        state.waits.set(key, EVENT, key)
    step.close()
    step.late = 99_000
    step.open(1, 99_003, 0)
    [state] = step.tasks
    assert state.waits is not None
    due = [d.key for d in state.waits.due(EVENT, 99_003)]
    assert due == [99_001, 99_002, 99_003]
    [(index, _)] = state.indexes("value:@event")
    assert index.file.checked.mean() < 0.3, "most of the file was not touched"
    assert [state.get(key) for key in due] == due
    assert state.waits.next(EVENT) == 99_004


@pytest.mark.parametrize("merged", [False, True], ids=["one file", "several files"])
def test_a_step_that_has_read_all_it_keeps_knows_the_timers_of_its_keys(tmp_path: Path, merged: bool) -> None:
    """A key that is changed after that is written with its timers, and one that has no value but timers is not lost."""
    step = Step(tmp_path)
    for key in range(6):
        step.of(key).put(key, key)
        step.of(key).waits.set(key, EVENT, 100 + key, "t")
    step.close()
    step.open(2, 0, 0)
    if merged:
        step.of(2).waits.set(2, EVENT, 50, "t")
        step.of(9).put(9, 9)
        step.close()
        step.open(2, 0, 0)
    timers = {key: 100 + key for key in range(6)} | ({2: 50} if merged else {})
    for state in step.tasks:
        dict(state.items())
    for key, at in timers.items():
        state = step.of(key)
        assert state.waits.of(key) == {(EVENT, "t"): at}
        state.put(key, -key)
    step.close()
    step.open(3, 0, 0)
    assert {key: step.of(key).waits.of(key) for key in timers} == {k: {(EVENT, "t"): at} for k, at in timers.items()}
    assert [step.of(key).get(key) for key in timers] == [-key for key in timers]
