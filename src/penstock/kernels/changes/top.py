"""The kernel of top-n over a table that changes."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.graph.nodes.changes import TopChanges
from penstock.graph.state.layout import Layout
from penstock.graph.times import Times
from penstock.kernels.base import Out
from penstock.kernels.changes.bags import bag_columns, bag_of, checkpoint_content_of
from penstock.kernels.changes.base import GatheredChangesKernel, Signed, negative
from penstock.kernels.changes.rows import Bag, NegativeCount
from penstock.kernels.keyed.keyed import Key
from penstock.kernels.ordering.order import in_order


class KeptRowsKernel(GatheredChangesKernel):
    """The base of steps that keep all rows of a key: what they answer before a batch is set against what they answer after it."""

    def layout(self) -> Layout:
        """The rows of a key."""
        return Layout(self.key_columns, tuple(bag_columns("row.", self.visible)))

    def advance(self, times: Times) -> Out:
        """What changed in the answers."""
        self.move(times)
        made = [change for key, new in self.new.items() if len(new) for change in self._changes(key, new)]
        self.new = {}
        yield from self.emit(made)

    def _changes(self, key: Key, new: Bag) -> Iterable[Signed]:
        before = bag_of(self.state.get(key), self.identity)
        after = before.copy()
        after.update(new)
        self.check(key, after)
        self._keep(key, after)
        change = Bag(self.identity)
        change.update(self.answer(after))
        change.update(self.answer(before), -1)
        return sorted(change, key=_taken_back_first)

    def check(self, key: Key, rows: Bag) -> None:
        """Refuses rows of a key of which there is less than none."""
        try:
            rows.check("the rows of a key")
        except NegativeCount as error:
            raise negative(self, key, error) from error

    def _keep(self, key: Key, after: Bag) -> None:
        if len(after):
            self.state.put(key, checkpoint_content_of(after, self.width))
        else:
            self.state.delete(key)

    def answer(self, rows: Bag) -> Iterable[Signed]:
        """What the step answers for the rows of a key."""
        raise NotImplementedError


def _taken_back_first(change: Signed) -> bool:
    return change[1] > 0


class TopChangesKernel(KeptRowsKernel):
    """The first rows of each key; rows that are equal in the order go by all their values."""

    node: TopChanges

    def answer(self, rows: Bag) -> Iterable[Signed]:
        """The first rows, each with its rank where that is asked for."""
        every = [row for row, count in rows for _ in range(min(count, self.node.n))]
        best = in_order(every, self.node.by, self.visible.names)[: self.node.n]
        return [((*row, at) if self.node.into else row, 1) for at, row in enumerate(best, 1)]
