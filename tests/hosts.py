"""What steps keep, taken from the local host into the state files that Spark's workers read, and back from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.graph.nodes import Bolt
from penstock.graph.state.key_groups import slot_hash
from penstock.graph.state.layout import Layout
from penstock.graph.state.table import key_hashes_of
from penstock.graph.times import FOREVER, NEVER, Times
from penstock.kernels.keyed.keyed import hashes_of
from penstock.local.run import LocalRun
from penstock.state.memory import MemoryState, MemoryTable
from penstock.state.memory_timers import MemoryTimers
from penstock.state.store import StateStore
from penstock.state.tables import FileTable, together
from penstock.state.values import TASKS, FileState
from penstock.storage.memory import MemoryStorage

Keys = list[tuple[Any, int]]
"""Keys with their hashes."""


def through_files(run: LocalRun, written: int = 2, read: int = 3) -> None:
    """Puts what a barrier has made safe into files, as so many tasks write them, and starts the run again with what others read of them.

    The files have the columns that the kernels describe: what a step keeps beside these, or in a form that they do not hold, is lost here.
    Timers stand beside values; a step that keeps rows works out from them when it has work.
    """
    kept, graph = run.committed, run.program.graph
    values = {store for node in graph.nodes for store, kind in node.stores.items() if kind == "values"}
    for step in kept.timers.keys() - values:
        del kept.timers[step]
    for step in kept.states.keys() | kept.timers.keys():
        by_task = isinstance(graph.by_name.get(step), Bolt)
        made = _values_through(run._state(step), run._timers(step), *((1, 1) if by_task else (written, read)))
        if step in kept.states:
            kept.states[step] = made[0].snapshot()
        if step in kept.timers:
            kept.timers[step] = made[1].snapshot()
    for name in kept.tables:
        kept.tables[name] = _rows_through(run._table(name), written, read).snapshot()
    run.crash()


def _values_through(state: MemoryState, timers: MemoryTimers, *tasks: int) -> tuple[MemoryState, MemoryTimers]:
    layout = state.layout or TASKS
    keys = list(dict.fromkeys([*state.kept, *timers.timers]))
    hashed = list(zip(keys, _hashes(keys, layout), strict=True))
    store = StateStore(MemoryStorage(), run="r")
    for mine in _states(store, 0, tasks[0], layout):
        for key in _prefetched(mine, hashed):
            _put(mine, key, state, timers)
        mine.save()
    store.publish(0)
    found, waiting = MemoryState(), MemoryTimers()
    for mine in _states(store, 1, tasks[1], layout):
        there = dict(mine.items())
        assert there.keys() <= {*keys}
        for key in _prefetched(mine, hashed):
            if key in state.kept:
                found.put(key, there[key])
            for (clock, tag), time in ({} if mine.waits is None else mine.waits.of(key)).items():
                waiting.set(key, clock, time, tag)
    return found, waiting


def _states(store: StateStore, version: int, tasks: int, layout: Layout) -> Iterator[FileState]:
    files = store.begin(version, {"step": tasks}, version - 1)["step"]
    for task in range(tasks):
        mine = FileState(files, task)
        mine.describe(layout)
        if layout.timers:
            mine.timers(Times(previous=NEVER, before=NEVER))
        yield mine


def _prefetched(state: FileState, hashed: Keys) -> list[Any]:
    """The keys of a task."""
    owned = state.ranges.mask(np.array([at for _, at in hashed], np.int64))
    mine = [pair for pair, is_mine in zip(hashed, owned, strict=True) if is_mine]
    state.prefetch([key for key, _ in mine], [at for _, at in mine])
    return [key for key, _ in mine]


def _put(files: FileState, key: Any, state: MemoryState, timers: MemoryTimers) -> None:
    if key in state.kept:
        files.put(key, state.kept[key])
    for (clock, tag), time in timers.of(key).items():
        assert files.waits is not None, f"{files.layout} says that there are no timers"
        files.waits.set(key, clock, time, tag)


def _hashes(keys: list[Any], layout: Layout) -> list[int]:
    if layout.keys and layout.keys[0].name == "task" and layout.keys[0].type == pa.int64():
        return [slot_hash(0) + at for at in range(len(keys))]
    named = [(key,) for key in keys] if layout.bare else keys
    return hashes_of(named, layout.keys) if layout.keys and named else [0] * len(named)


def _rows_through(table: MemoryTable, written: int, read: int) -> MemoryTable:
    store, rows = StateStore(MemoryStorage(), run="r"), table.rows
    for mine in _tables(store, 0, written):
        owned = None if rows is None else rows.filter(pa.array(mine.ranges.mask(key_hashes_of(rows))))
        for batch in [] if owned is None else owned.combine_chunks().to_batches():
            mine.add(batch)
        mine.forget(table.horizon)
        mine.save()
    store.publish(0)
    parts = [part for mine in _tables(store, 1, read) if (part := mine.span(NEVER, FOREVER)) is not None]
    return MemoryTable(together(parts), table.horizon)


def _tables(store: StateStore, version: int, tasks: int) -> Iterator[FileTable]:
    files = store.begin(version, {"step": tasks}, version - 1)["step"]
    return (FileTable(files, task) for task in range(tasks))
