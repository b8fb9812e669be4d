"""Between the two forms of a change: rows that replace those of their key, and signed rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.graph.nodes import Keyed
from penstock.graph.nodes.changes import DELETE, UPSERT, Retract
from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.timers import EVENT
from penstock.graph.times import FOREVER, Times, to_micros
from penstock.kernels.base import Context, Out
from penstock.kernels.changes.base import ChangesKernel, Signed, negative, signed_rows
from penstock.kernels.changes.rows import Bag, NegativeCount, Row
from penstock.kernels.keyed.keyed import Key
from penstock.kernels.ordering.ranking import same
from penstock.kernels.records.arrow import arrow_type
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.stateless import shaped


class RetractKernel(ChangesKernel):
    """Keeps the row of each key, and takes it back when another replaces it. A count below zero says that the key is gone."""

    node: Retract

    def __init__(self, node: Retract, schema: Schema) -> None:
        super().__init__(node, schema)
        self.last: dict[Key, Row | None] = {}
        self.time_of = _time_of(node, self.visible)

    def layout(self) -> Layout:
        """The fields of the row; a timer says when it is forgotten."""
        fields = tuple(Column(f.name, arrow_type(f.type)) for f in self.visible.fields)
        return Layout(self.key_columns, fields, timers=self.node.timed_by is not None)

    def open(self, context: Context) -> None:
        """Finds the rows, and the timers that forget them."""
        super().open(context)
        if self.node.timed_by is not None:
            self.timers = self.timers_of(context)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Notes the last row of each key."""
        for key, (row, count) in zip(self.keys(chunk), signed_rows(chunk), strict=True):
            self.last[key] = row if count > 0 else None
        return ()

    def advance(self, times: Times) -> Out:
        """The rows that were removed and those that were added."""
        self.move(times)
        made: list[Signed] = []
        for key, row in self.last.items():
            before = self.state.get(key)
            if same(before, row):
                continue
            made += [(before, -1)] if before is not None else []
            if row is None:
                self.state.delete(key)
            else:
                self._keep(key, row)
                made.append((row, 1))
        self.last = {}
        self._forget()
        yield from self.emit(made)

    def _keep(self, key: Key, row: Row) -> None:
        self.state.put(key, row)
        time = self.time_of(row)
        if self.timers is not None and time is not None:
            self.timers.set(key, EVENT, time)

    def _forget(self) -> None:
        """Rows that event time has passed do not change any more."""
        if self.timers is not None and self.times.watermark < FOREVER:
            for due in self.timers.due(EVENT, self.times.watermark):
                self.state.delete(due.key)


def _time_of(node: Retract, schema: Schema) -> Callable[[Row], int | None]:
    """When a row is forgotten; None is never."""
    if node.timed_by is None:
        return lambda row: None
    at, shift = schema.names.index(node.timed_by.column), node.timed_by.shift
    return lambda row: None if row[at] is None else to_micros(row[at]) + shift + 1


class GatherKernel(ChangesKernel):
    """The base of steps that look at the change of a batch as a whole, key by key, and keep nothing."""

    def __init__(self, node: Keyed, schema: Schema) -> None:
        super().__init__(node, schema)
        self.new: dict[Key, Bag] = {}

    def open(self, context: Context) -> None:
        """There is no state."""

    def key_list(self, chunk: Chunk) -> list[Key]:
        """The key of each row."""
        columns = chunk.columns()
        return list(zip(*(columns[at] for at in self.key_indexes), strict=True)) or [()] * len(chunk)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Gathers the changes of each key."""
        for key, (row, count) in zip(self.key_list(chunk), signed_rows(chunk), strict=True):
            bag = self.new.get(key)
            if bag is None:
                bag = self.new[key] = Bag(self.identity)
            bag.add(row, count)
        return ()

    def gathered(self) -> dict[Key, Bag]:
        """The changes of the batch, which are forgotten."""
        made, self.new = self.new, {}
        return {key: bag for key, bag in made.items() if len(bag)}

    def pairs(self) -> Iterator[tuple[Row | None, Row | None]]:
        """The row of each changed key before and after the batch; None where there was none, or is none."""
        return (self._pair(key, bag) for key, bag in self.gathered().items())

    def _pair(self, key: Key, bag: Bag) -> tuple[Row | None, Row | None]:
        gone, come = [row for row, n in bag if n < 0], [row for row, n in bag if n > 0]
        if len(gone) > 1 or len(come) > 1:
            rows = f"{len(come)} rows come and {len(gone)} go"
            raise negative(self, key, NegativeCount(f"a key has one row, but {rows} with this one"))
        return (gone[0] if gone else None, come[0] if come else None)


class UpsertsKernel(GatherKernel):
    """One row for each key that changed, with what happened to it."""

    def advance(self, times: Times) -> Out:
        """The rows that stand, and those that are gone."""
        self.move(times)
        made = [(*after, UPSERT) if after is not None else (*(before or ()), DELETE) for before, after in self.pairs()]
        if made:
            yield "out", shaped(self, "out", made)


class ConsolidateKernel(GatherKernel):
    """Equal rows added up."""

    def advance(self, times: Times) -> Out:
        """Each row once, with its count."""
        self.move(times)
        yield from self.emit([signed for bag in self.gathered().values() for signed in bag])
