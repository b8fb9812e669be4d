"""A move of time at which 1,000 timers fire, among 1,000 that are kept and among 1 M: in memory, and over state files."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, best, folder
from penstock.graph.graph import Graph
from penstock.graph.nodes import Port
from penstock.graph.state.timers import EVENT
from penstock.graph.times import NEVER, Times, to_moment
from penstock.kernels.base import Context
from penstock.kernels.build import kernel_of
from penstock.kernels.pipeline import Pipeline
from penstock.kernels.records.chunk import Chunk
from penstock.state.memory_timers import MemoryTimers
from penstock.state.store import StateStore
from penstock.state.values import FileState
from penstock.storage import LocalStorage

NAME = "timers"
ABOUT = (
    "1,000 timers that fire and are set again, among 1,000 and among 1 M that are kept; in memory and over state files"
)
DUE = 1_000
SECOND = 1_000_000
FAR = 1 << 50
"""When the other timers are due."""


class Again(ps.Process):
    """Sets a timer for each record, and sets it again whenever it fires."""

    n = ps.value(int, default=0)

    def on_event(self, row: Any) -> None:
        """Sets the first timer."""
        self.n += 1
        self.set_timer(row.at)

    def on_timer(self, timer: ps.Timer) -> Iterator[tuple[Any, int]]:
        """Sets the next one, a second later."""
        self.set_timer(timer.at + timedelta(seconds=1))
        yield self.key, self.n


def graph() -> Graph:
    """A process step with timers."""
    flow = ps.Flow("timers")
    rows = flow.source("rows", ps.items([], "k bigint, at timestamp"), event_time="at")
    rows.key_by("k").process("again", Again, schema="k bigint, n bigint").sink("out", ps.console())
    return flow.graph


def in_memory(kept: int) -> Callable[[], None]:
    """A run that moves time on by a step: 1,000 of the timers fire and are set again."""
    timers, clock = MemoryTimers(), itertools.count(1)
    for key in range(kept):
        timers.set(key, EVENT, 1 if key < DUE else FAR + key)

    def move() -> None:
        now = next(clock)
        fired = 0
        for due in timers.due(EVENT, now):
            timers.set(due.key, EVENT, now + 1)
            fired += 1
        assert (fired, timers.next(EVENT)) == (DUE, now + 1)

    return move


class OnFiles:
    """A process step over state files, batch after batch, as a Spark task runs it."""

    def __init__(self, directory: Path, kept: int) -> None:
        self.graph, self.store = graph(), StateStore(LocalStorage(directory), run="r")
        self.version, self.late = -1, NEVER
        times = [to_moment(SECOND if key < DUE else FAR + key) for key in range(kept)]
        self.batch([list(range(kept)), times], 0)

    def move(self) -> None:
        """A batch without records, to the next second."""
        self.batch([], (self.version + 1) * SECOND)

    def batch(self, columns: list[list[Any]], watermark: int) -> None:
        """One batch."""
        self.version += 1
        times = Times(self.late, watermark, 0, 0)
        state = FileState(self.store.begin(self.version, {"again": 1}, self.version - 1)["again"], 0)
        timers = state.timers(times)
        pipeline = Pipeline([kernel_of(self.graph.node("again"), self.graph)], [Port("again")])
        pipeline.open(Context(state=lambda step: state, timers=lambda step: timers))
        pipeline.begin(lambda step: times)
        port = self.graph.node("again").inputs[0]
        if columns:
            hashes = [key * 0x9E3779B97F4A7C15 & (1 << 62) - 1 for key in columns[0]]
            list(pipeline.take(port, Chunk(self.graph.output(port).schema, columns=columns, key_hashes=hashes)))
        made = sum(len(chunk) for _, chunk in pipeline.barrier())
        assert columns or made == DUE, made
        state.save({clock: pipeline.wake(clock) for clock in ("event", "processing")})
        self.store.publish(self.version)
        self.late = watermark


def run(quick: bool) -> Result:
    """Both sizes in turns; what counts is the best of each, since a move takes milliseconds."""
    many, rounds = (100_000, 5) if quick else (1_000_000, 15)
    with folder() as directory:
        few, all_ = OnFiles(directory / "few", DUE), OnFiles(directory / "all", many)
        runs = {
            "memory_few": in_memory(DUE),
            "memory_all": in_memory(many),
            "files_few": few.move,
            "files_all": all_.move,
        }
        seconds = best(alternate(runs, rounds, warm=3))
    figures = {f"{name}_seconds": value for name, value in seconds.items()}
    bars = tuple(
        Bar(f"{where}: 1 M kept over 1,000 kept", seconds[f"{where}_all"] / seconds[f"{where}_few"], at_most=2.0)
        for where in ("memory", "files")
    )
    return Result(NAME, figures, bars)
