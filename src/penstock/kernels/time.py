"""The kernel of event time: reads the time of each record and notes how far time has come."""

from __future__ import annotations

import datetime
from typing import Any

from penstock.graph.nodes import BAD, EventTime
from penstock.graph.schema import Schema
from penstock.graph.times import to_micros
from penstock.kernels.base import Kernel, Out
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.records.chunk import Chunk


class EventTimeKernel(Kernel):
    """For hosts without a JVM. `highs` has the latest time of each partition; the host takes it at the barrier."""

    node: EventTime

    def __init__(self, node: EventTime, schema: Schema) -> None:
        super().__init__(node)
        self.time = compile_expr(node.time, schema)
        names = node.output().schema.names
        self.column, self.fresh = names.index(node.column), node.column not in schema
        self.partition = schema.names.index(node.partition) if node.partition else None
        self.highs: dict[str, int] = {}

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The records with their time; bad ones apart."""
        good, bad = [], []
        for values in chunk.values():
            moment = self.time(values)
            lead = moment is not None and to_micros(moment) > self.times.now + self.node.max_lead
            if moment is None or (lead and not self.node.of_table):
                bad.append(values)
                continue
            if not lead:
                self._note(values, to_micros(moment))
            good.append(self._with(values, moment))
        self.counters.bad += len(bad)
        yield "out", Chunk.of(self.node.output().schema, good)
        yield BAD, Chunk.of(self.node.output(BAD).schema, bad)

    def _note(self, values: tuple[Any, ...], time: int) -> None:
        partition = "" if self.partition is None else str(values[self.partition])
        self.highs[partition] = max(time, self.highs.get(partition, time))

    def _with(self, values: tuple[Any, ...], moment: datetime.datetime | None) -> tuple[Any, ...]:
        if self.fresh:
            return (*values, moment)
        return (*values[: self.column], moment, *values[self.column + 1 :])
