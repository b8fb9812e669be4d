"""Kernels over changes under test: fed batch by batch, and the direct reading of a query over a whole multiset beside them."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock.graph.aggregates.calls import calls_of
from penstock.graph.nodes import Output, Port, Term
from penstock.graph.nodes.base import counted
from penstock.graph.nodes.changes import AggregateChanges, TableJoin, TopChanges
from penstock.graph.schema import Schema, schema_of
from penstock.graph.times import Times
from penstock.kernels.base import Context, Kernel
from penstock.kernels.changes.aggregate import AggregateChangesKernel
from penstock.kernels.changes.joins.join import TableJoinKernel
from penstock.kernels.changes.top import TopChangesKernel
from penstock.kernels.records.chunk import Chunk
from penstock.state.memory import MemoryState

Change = Counter[Any]
"""Rows with signed counts."""
Query = Callable[..., Counter[Any]]
"""The direct reading: whole multisets in, a multiset out."""


class Running:
    """A kernel with its state, fed with changes."""

    def __init__(self, kernel: Kernel, *schemas: Schema) -> None:
        self.kernel, self.schemas, self.state = kernel, schemas, MemoryState()
        kernel.open(Context(state=lambda name: self.state))

    def batch(self, *changes: Mapping[Any, int]) -> Change:
        """What a batch of changes, one for each input, gives; no row stands in it twice."""
        made: list[Any] = []
        for at, change in enumerate(changes):
            rows = [(*row, count) for row, count in change.items() if count]
            if rows:
                made += self.kernel.take(Chunk.of(counted(self.schemas[at]), rows), at)
        made += self.kernel.advance(Times())
        found: Change = Counter()
        for _, chunk in made:
            for *row, count in chunk.values():
                found[plain(row)] += count
        return Counter({row: n for row, n in found.items() if n})

    def replayed(self, *changes: Mapping[Any, int]) -> Change:
        """A batch that is run twice from the same state, as after a crash; both times give the same."""
        before = copy.deepcopy(self.state.kept)
        first = self.batch(*changes)
        after, self.state.kept = self.state.kept, before
        self.state.cache, self.state.get = before, before.get
        assert self.batch(*changes) == first
        assert repr(sorted(after.items(), key=repr)) == repr(sorted(self.state.kept.items(), key=repr))
        return first


def aggregated(schema: str, keys: Sequence[str], **aggregates: str) -> Running:
    given = schema_of(schema)
    node = AggregateChanges("step", (Port("in"),), tuple(keys), calls=calls_of(aggregates)).bound(
        (Output(counted(given)),)
    )
    return Running(AggregateChangesKernel(node, counted(given)), given)


def best(schema: str, keys: Sequence[str], n: int, *by: Term, ranked: bool = False) -> Running:
    given = schema_of(schema)
    node = TopChanges("step", (Port("in"),), tuple(keys), n=n, by=by, into="rank" if ranked else "")
    return Running(TopChangesKernel(node.bound((Output(counted(given)),)), counted(given)), given)


class TwoInputs:
    """As much of a graph as a join looks at."""

    def __init__(self, *schemas: Schema) -> None:
        self.schemas = {Port(str(at)): Output(counted(schema)) for at, schema in enumerate(schemas)}

    def output(self, port: Port) -> Output:
        return self.schemas[port]


def joined(left: str, right: str, on: str, how: str, single: tuple[bool, bool] = (False, False)) -> Running:
    one, other = schema_of(left), schema_of(right)
    node = TableJoin("step", (Port("0"), Port("1")), (on,), (on,), how, counted=True, single=single)
    node = node.bound((Output(counted(one)), Output(counted(other))))
    graph: Any = TwoInputs(one, other)
    return Running(TableJoinKernel(node, graph), one, other)


def plain(value: Any) -> Any:
    """A value that can be counted and compared: lists as tuples, not-a-number as text, floats to nine digits."""
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.9g}")
    return value


def table(rows: Iterable[Any]) -> Change:
    return Counter(map(plain, rows))


def added(total: Change, change: Change) -> Change:
    """A table after a change; no table holds less than none of a row."""
    made = Counter({row: total[row] + change[row] for row in {*total, *change}})
    assert min(made.values(), default=0) >= 0, f"negative: {made}"
    return Counter({row: n for row, n in made.items() if n})
