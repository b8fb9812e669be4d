"""A kernel of a join in a host that keeps its state between batches, with times in microseconds."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

import penstock as ps
from penstock.graph.nodes import Port
from penstock.graph.times import FOREVER, NEVER, Times
from penstock.kernels.base import Context
from penstock.kernels.build import kernel_of
from penstock.kernels.records.chunk import Chunk
from penstock.state.memory import MemoryState, MemoryTable
from penstock.state.memory_timers import MemoryTimers

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
US = datetime.timedelta(microseconds=1)
SIDES = ("left", "right")

records = st.lists(st.tuples(st.sampled_from([1, 2, 3, None]), st.integers(0, 99), st.integers(0, 40)), max_size=8)
batches = st.lists(st.tuples(records, records, st.integers(0, 15)), min_size=1, max_size=5)
"""Batches: records of each side (key, number, time), and how far the watermark moves."""


def moment(time: int) -> datetime.datetime:
    return EPOCH + time * US


def plain(value: Any) -> Any:
    return (value - EPOCH) // US if isinstance(value, datetime.datetime) else value


class Run:
    """Runs the step that `make` puts behind two streams, batch by batch, each in a kernel of its own, as after a restart."""

    same_hash = False
    """Whether all keys share a hash, as keys whose hashes collide do."""

    def __init__(self, make: Callable[[Any, Any], Any]) -> None:
        flow = ps.Flow("join")
        left = flow.source("left", ps.items([], "k bigint, n bigint, ts timestamp"), event_time="ts")
        right = flow.source("right", ps.items([], "k bigint, m bigint, tb timestamp"), event_time="tb")
        make(left, right).sink("out", ps.console())
        self.graph = flow.graph
        self.node: Any = self.graph.node("join")
        self.tables = {f"join@{side}": MemoryTable() for side in SIDES}
        self.states = {"join@last": MemoryState()}
        self.stood = NEVER
        self.wake = NEVER
        self.out: dict[str, list[Any]] = {"out": [], "late": [], "late_right": []}

    def schema(self, side: int) -> Any:
        return self.graph.output(Port(f"{SIDES[side]}@time")).schema

    def open(self) -> Any:
        kernel = kernel_of(self.node, self.graph)
        kernel.open(
            Context(table=self.tables.__getitem__, state=self.states.__getitem__, timers=lambda _: MemoryTimers())
        )
        return kernel

    def batch(self, left: list[Any], right: list[Any], watermark: int) -> list[Any]:
        """One batch; gives what came out of it."""
        kernel, before = self.open(), len(self.out["out"])
        kernel.begin(Times(self.stood, watermark))
        for side, rows in enumerate((left, right)):
            shaped = [(k, n, moment(time)) for k, n, time in rows]
            for part in (shaped[::2], shaped[1::2]):
                chunk = Chunk.of(self.schema(side), part)
                chunk.key_hashes = [0] * len(part) if self.same_hash else None
                list(kernel.take(chunk, side))
        for name, chunk in kernel.advance(kernel.times):
            self.out[name] += [tuple(map(plain, row)) for row in chunk.values()]
        self.wake = kernel.wake("event")
        for table in self.tables.values():
            table.settle()
        self.stood = watermark
        return self.out["out"][before:]

    def kept(self, side: str) -> list[int]:
        """The times of the rows that are kept."""
        rows = self.tables[f"join@{side}"].rows
        return [] if rows is None else sorted(rows.column("__time").to_pylist())

    def play(self, given: list[Any]) -> tuple[list[Any], list[Any]]:
        """Batches whose watermark moves on by so much, the last one to the end; gives the records that were not late."""
        punctual: tuple[list[Any], list[Any]] = ([], [])
        watermark = 0
        for at, (left, right, step) in enumerate(given):
            watermark = FOREVER if at == len(given) - 1 else watermark + step
            for side, rows in enumerate((left, right)):
                punctual[side].extend(r for r in rows if r[2] >= self.stood)
            self.batch(left, right, watermark)
        return punctual
