"""What is kept of a key between two batches, as typed columns: its events once, what runs have taken as links to them, and the runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column
from penstock.graph.state.table import TIME
from penstock.kernels.patterns.queue import LAST, Last, Link, Run
from penstock.kernels.records.arrow import arrow_type

NUMBER = pa.int32()
LINK = pa.struct([pa.field("stage", NUMBER), pa.field("event", NUMBER), pa.field("before", NUMBER)])
RUN = pa.struct([pa.field("state", NUMBER), pa.field("first", NUMBER), pa.field("taken", NUMBER)])
StoredRuns = tuple[list[dict[str, Any]], list[dict[str, int]], list[dict[str, int]], list[dict[str, int]]]
"""Events, links, runs, and matches that wait for earlier runs."""


def columns_of(event: Schema, fields: tuple[str, ...]) -> tuple[Column, ...]:
    """The columns of what is kept for a key."""
    kinds = [pa.field(TIME, pa.int64()), *(pa.field(name, arrow_type(event.field(name).type)) for name in fields)]
    return (
        Column("events", pa.list_(pa.struct(kinds))),
        Column("links", pa.list_(LINK)),
        Column("runs", pa.list_(RUN)),
        Column("matches", pa.list_(RUN)),
    )


class RunPacker:
    """Numbers the events and links that the runs of one key hold."""

    def __init__(self) -> None:
        self.events: dict[int, int] = {}
        self.links: dict[int, int] = {}
        self.found: list[Link] = []

    def packed(self, runs: Iterable[Run], done: Iterable[Run]) -> tuple[list[int], list[dict[str, int]], Any, Any]:
        """The events that are needed, in order, the links, the runs and the waiting matches."""
        runs, done = list(runs), list(done)
        for _, _, taken in (*runs, *done):
            self._collect(taken)
        numbers = {at: number for number, at in enumerate(sorted(self.events))}
        links = [
            {"stage": stage, "event": numbers[at], "before": -1 if before is None else self.links[id(before)]}
            for stage, at, before in self.found
        ]
        return list(numbers), links, [self._run(r, numbers) for r in runs], [self._run(r, numbers) for r in done]

    def _collect(self, taken: Last) -> None:
        """The links of a run, the first one first."""
        chain = []
        while taken is not None and id(taken) not in self.links:
            chain.append(taken)
            taken = taken[2]
        for link in reversed(chain):
            self.links[id(link)] = len(self.found)
            self.found.append(link)
            self.events[link[1]] = 0

    def _run(self, run: Run, numbers: dict[int, int]) -> dict[str, int]:
        state, first, taken = run
        return {
            "state": state,
            "first": -1 if taken is None else numbers[first],
            "taken": -1 if taken is None else self.links[id(taken)],
        }


def unpacked(kept: StoredRuns, begin: int) -> tuple[list[Run], list[Run]]:
    """The runs and waiting matches of a key whose events have the numbers from `begin` on."""
    _, links, runs, done = kept
    made: list[Link] = []
    for link in links:
        before = made[link["before"]] if link["before"] >= 0 else None
        made.append((link["stage"], begin + link["event"], before))

    def run(kept: dict[str, int]) -> Run:
        if kept["taken"] < 0:
            return (kept["state"], LAST, None)
        return (kept["state"], begin + kept["first"], made[kept["taken"]])

    return list(map(run, runs)), list(map(run, done))
