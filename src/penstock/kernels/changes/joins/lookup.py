"""The kernel of a look-up in a table that changes: the right as it is now, and what rows that may go have found."""

from __future__ import annotations

from typing import Any

from penstock.graph.graph import Graph
from penstock.graph.nodes.relational.lookup import LookupJoin
from penstock.graph.state.layout import Column, Layout
from penstock.graph.times import Times
from penstock.kernels.base import Context, Out
from penstock.kernels.changes.base import negative
from penstock.kernels.changes.joins.join import Rows, TableJoinKernel
from penstock.kernels.changes.rows import Bag, NegativeCount, Row, frozen
from penstock.kernels.keyed.keyed import Key, hashes_of
from penstock.kernels.quiet import quiet

Found = dict[Any, list[Rows]]
"""What each row of the left has found, once for each time that it is there."""


class LookupKernel(TableJoinKernel):
    """Of a key it keeps the rows of the right, and of a table on the left what its rows found."""

    node: LookupJoin

    def __init__(self, node: LookupJoin, graph: Graph) -> None:
        super().__init__(node, graph)
        self.left_alone, self.right_alone = node.how == "left", False

    def open(self, context: Context) -> None:
        """Finds what is kept."""
        self.state = context.state(self.node.name)
        self.state.describe(Layout(self.key_columns, (Column("kept"),), single=True, timers=self.node.ttl is not None))
        if self.node.ttl is not None:
            self.timers = context.timers(self.node.name)
            self.timers.hash_with(lambda keys: hashes_of(keys, self.key_columns))

    def advance(self, times: Times) -> Out:
        """The right changes first; then rows of the left look up, and rows that go take back what they found."""
        self.move(times)
        self._forget()
        made: Rows = []
        with quiet():
            for key in dict.fromkeys((*self.left.new, *self.right.new)):
                made += self._answers(key)
        self.left.new, self.right.new = {}, {}
        return self._emit(made)

    def _answers(self, key: Key) -> Rows:
        right, found = self.state.get(key) or ([], {})
        rows, answers = self._right(key, right), dict(found)
        made, new = Bag(self.identity), Bag(self.left.identity)
        new.update(self.left.new.get(key, ()))
        for row, count in new:
            made.update(self._answered(key, row, count, rows, answers))
        if rows or answers:
            self._keep(key, (rows, answers))
        elif self.state.get(key) is not None:
            self._drop(key)
        return sorted(made, key=lambda signed: signed[1])

    def _right(self, key: Key, kept: Rows) -> Rows:
        """The rows of the right after this batch."""
        after = Bag(self.right.identity)
        after.update(kept)
        after.update(self.right.new.get(key, ()))
        try:
            after.check("the rows of the right")
        except NegativeCount as error:
            raise negative(self, key, error) from error
        return list(after)

    def _answered(self, key: Key, row: Row, count: int, rows: Rows, answers: Found) -> Rows:
        """What a row finds, or takes back."""
        if count > 0:
            found = self._found(row, rows)
            if self.is_signed:
                answers[frozen(row)] = [*answers.get(frozen(row), []), *([found] * count)]
            return [(pair, n * count) for pair, n in found]
        known = answers.pop(frozen(row), [])
        if len(known) < -count:
            said = f"{row!r} was taken back {-count} times and was there {len(known)} times"
            raise negative(self, key, NegativeCount(said))
        if known[:count]:
            answers[frozen(row)] = known[:count]
        return [(pair, -n) for found in known[count:] for pair, n in found]

    def _found(self, row: Row, rows: Rows) -> Rows:
        met = [(other, n) for other, n in rows if self.holds is None or self.holds(row, other)]
        if not met:
            return [(self.pair(row, None), 1)] if self.left_alone else []
        return [(self.pair(row, other), n) for other, n in met]
