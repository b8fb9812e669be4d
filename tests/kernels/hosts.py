"""Hosts for kernels in tests: one that hands all records over in one batch, and a hostile one.

The hostile one hands records over one by one and in random pieces, moves time at random moments between, more than once to the same time, and now and
then ends a batch and opens the kernels anew over what they have kept. What comes out must be the same.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from penstock.compiler.times import Timeline
from penstock.graph.graph import Graph
from penstock.graph.nodes import JoinStatic, Node, Port
from penstock.graph.state.timers import CLOCKS, EVENT
from penstock.graph.times import FOREVER, NEVER, Times, to_moment
from penstock.kernels.base import Context, Kernel
from penstock.kernels.build import kernel_of
from penstock.kernels.joins.static import JoinKernel
from penstock.kernels.pipeline import Pipeline
from penstock.kernels.records.chunk import Chunk
from penstock.local.program import compiled
from penstock.state.memory import MemoryState, MemoryTable
from penstock.state.memory_timers import MemoryTimers

Record = tuple[str, tuple[Any, ...], int]
"""A source, the values of a record, and its time in seconds."""
SECOND = 1_000_000


class Host:
    """Runs the compiled steps of a flow over states, tables and timers of its own."""

    def __init__(self, graph: Graph) -> None:
        self.program = compiled(graph)
        self.graph, self.timeline = self.program.graph, Timeline(self.program.graph)
        self.states: dict[str, MemoryState] = {}
        self.tables: dict[str, MemoryTable] = {}
        self.timers: dict[str, MemoryTimers] = {}
        self.late = self.watermark = NEVER
        self.before, self.now = NEVER, 0
        self.out: dict[str, list[Any]] = {}
        self.wakes: dict[str, int] = {}
        self.open()

    def open(self) -> None:
        """Opens new kernels over what is kept."""
        ports = [p for s in self.graph.sinks for p in s.inputs]
        self.pipeline = Pipeline([self.kernel(n) for n in self.program.steps], ports)
        self.pipeline.open(
            Context(
                state=lambda name: self.states.setdefault(name, MemoryState()),
                table=lambda name: self.tables.setdefault(name, MemoryTable()),
                timers=lambda name: self.timers.setdefault(name, MemoryTimers()),
                scratch=MemoryState,
            )
        )
        self.begin()

    def kernel(self, node: Node) -> Kernel:
        """The kernel of a step; a static table is read from the items of its endpoint."""
        if isinstance(node, JoinStatic):
            rows = node.table.options["rows"]
            return JoinKernel(node, self.graph.output(node.inputs[0]).schema, lambda: rows)
        return kernel_of(node, self.graph)

    def times(self, step: str) -> Times:
        """The times of a step."""
        late, mark = ({n.name: at for n in self.timeline.inputs} for at in (self.late, self.watermark))
        ended = self.watermark == FOREVER
        return self.timeline.times(late, mark, self.before, self.now, ended=ended)[step]

    def begin(self) -> None:
        """Records from now on are judged by where time stands."""
        self.late, self.before = self.watermark, self.now
        self.pipeline.begin(self.times)

    def take(self, records: Sequence[Record]) -> None:
        """Hands records over, those of each source that stand together in one chunk."""
        for source in dict.fromkeys(r[0] for r in records):
            port = Port(source)
            rows = [values for name, values, _ in records if name == source]
            self.collect(self.pipeline.take(port, Chunk.of(self.graph.output(port).schema, rows)))

    def advance(self, watermark: int, now: int) -> None:
        """Moves time."""
        self.watermark, self.now = max(self.watermark, watermark), max(self.now, now)
        self.collect(self.pipeline.advance(self.times))

    def barrier(self) -> None:
        """Ends a batch."""
        self.collect(self.pipeline.barrier())
        self.pipeline.close()

    def collect(self, made: Any) -> None:
        """Keeps what comes out, by the sink that gets it."""
        for port, chunk in made:
            for sink in (s for s in self.graph.sinks if port in s.inputs):
                self.out.setdefault(sink.name, []).extend(tuple(r) for r in chunk.plain_rows())

    def end(self, end: int, now: int) -> None:
        """Time moves to the end of the records, and to the end of time. Between the two the kernels are opened anew."""
        self.advance(end, now)
        self.wakes = {clock: self.pipeline.wake(clock) for clock in CLOCKS}
        assert self.wakes[EVENT] > end, "what was due has been done"
        self.barrier()
        self.open()
        self.advance(FOREVER, now)
        self.barrier()


def in_one_batch(graph: Graph, records: Sequence[Record], end: int, now: int) -> Host:
    """The flow over all records at once; then time moves to the end of the records, and to the end of time."""
    host = Host(graph)
    host.take(records)
    host.end(end, now)
    return host


def hostile(graph: Graph, records: Sequence[Record], end: int, now: int, seed: int, late: int = 0) -> Host:
    """The same in pieces, with time that moves between them and kernels that are opened anew.

    Time moves up to the earliest record that is still to come, so that none is late; with `late` it moves so many seconds further.
    """
    rolled, host, at = random.Random(seed), Host(graph), 0
    while at < len(records):
        size = rolled.choice((1, 1, 1, 2, 5, 30))
        host.take(records[at : at + size])
        at += size
        if rolled.random() < 0.4:
            ahead = (min((time for _, _, time in records[at:]), default=0) + late) * SECOND
            host.advance(min(ahead, end), rolled.randint(host.now, now))
            if rolled.random() < 0.3:
                host.advance(host.watermark, host.now)
            host.begin()
        if rolled.random() < 0.1:
            host.barrier()
            host.open()
    host.end(end, now)
    return host


def records_of(rolled: random.Random, sources: Sequence[str], many: int) -> list[Record]:
    """Records of several sources, up to ten seconds out of order."""
    made = []
    for number in range(many):
        time = number // 3 + rolled.randint(0, 10)
        source = rolled.choice(sources)
        made.append((source, (rolled.choice("abcd"), to_moment(time * SECOND), rolled.randint(0, 9)), time))
    return made
