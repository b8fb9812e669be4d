"""Many conditions over one stream: which of them hold for which record.

Conditions are boxes: an interval of positions for each field that they compare with constants. One field of each box, the one that leaves the
fewest records, finds it (`stabbing`); the others are checked for what was found, and what no bound says is computed for what is left. A condition
that is one thing or another has boxes for each of its alternatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.graph.expr import Expr
from penstock.graph.schema import Schema
from penstock.kernels.rules.axis import Axis, Numbers, axes_of
from penstock.kernels.rules.bounds import Bounds, alternatives_of, conjunction
from penstock.kernels.rules.stabbing import Pairs, SegmentTree

Test = Callable[[Expr, pa.RecordBatch, Numbers], npt.NDArray[np.bool_]]
"""Computes a condition for some records of a batch."""
Key = tuple[int, str]
Box = dict[Key, tuple[int, int]]


class ConditionIndex:
    """Conditions by number.

    Args:
        conditions: the alternatives of each: their bounds, and what no bound says.
        test: computes what no bound says.
    """

    def __init__(self, conditions: Sequence[Sequence[Bounds]], test: Test) -> None:
        self.test, self.many = test, len(conditions)
        parted = [each for alternatives in conditions for each in alternatives]
        self.numbers = np.array([n for n, some in enumerate(conditions) for _ in some], np.int64)
        """The condition that each alternative is of."""
        self.has_alternatives = any(len(alternatives) > 1 for alternatives in conditions)
        self.axes = axes_of(bound for each in parted for bound in each.bounds)
        self.residuals = _Residuals([each.residual for each in parted])
        boxes: list[tuple[int, Box]] = []
        self.scanned: list[int] = []
        for number, each in enumerate(parted):
            made = [] if each.is_never else [*self._boxes(each)]
            if each.bounds:
                boxes += [(number, box) for box in made]
            else:
                self.scanned.append(number)
        self._arrange(boxes)

    @classmethod
    def of(cls, conditions: Sequence[Expr | None], schema: Schema, test: Test) -> ConditionIndex:
        """The index of conditions over the fields of a schema; None always holds."""
        return cls([alternatives_of(condition, schema) for condition in conditions], test)

    def _boxes(self, given: Bounds) -> list[Box]:
        """The boxes of a condition: one, or one for each choice."""
        choices = [[(b, value) for value in b.value] for b in given.bounds]
        made: list[Box] = []
        for picked in product(*choices):
            box: Box = {}
            for bound, value in picked:
                key = (bound.column, bound.kind)
                low, high = self.axes[key].interval(bound.op, value)
                first, last = box.get(key, (0, self.axes[key].null))
                box[key] = (max(first, low), min(last, high))
            if all(low <= high for low, high in box.values()):
                made.append(box)
        return made

    def _arrange(self, boxes: list[tuple[int, Box]]) -> None:
        """Puts each box into the tree of the field that finds it, and what it says of the others into arrays."""
        self.owners = np.array([number for number, _ in boxes], np.int64)
        self.low = {key: np.zeros(len(boxes), np.int64) for key in self.axes}
        self.high = {key: np.full(len(boxes), axis.null, np.int64) for key, axis in self.axes.items()}
        found_by: dict[Key, list[tuple[int, int, int]]] = {}
        checked: set[Key] = set()
        for at, (_, box) in enumerate(boxes):
            best = min(box, key=lambda key: self._cost(key, box[key]))
            found_by.setdefault(best, []).append((*box[best], at))
            for key, (low, high) in box.items():
                if key != best:
                    self.low[key][at], self.high[key][at] = low, high
                    checked.add(key)
        self.trees = {key: SegmentTree(self.axes[key].null, given) for key, given in found_by.items()}
        self.checked = sorted(checked)

    def _cost(self, key: Key, interval: tuple[int, int]) -> float:
        """The part of the records that a field is expected to leave: equality with one of many constants leaves few."""
        low, high = interval
        if low == high:
            return 1 / (1 + len(self.axes[key].constants))
        return (high - low + 1) / (self.axes[key].last + 1)

    def pairs(self, batch: pa.RecordBatch) -> Pairs:
        """Records and the conditions that hold for them, sorted by record and then by condition."""
        rows, numbers = self._found(batch)
        rows, numbers = self.residuals.kept(rows, numbers, batch, self.test)
        scanned = self.residuals.scanned(self.scanned, batch, self.test)
        rows = np.concatenate([rows, *(found for found, _ in scanned)])
        numbers = np.concatenate([numbers, *(each for _, each in scanned)])
        return self._sorted(rows, self.numbers[numbers])

    def _sorted(self, rows: Numbers, numbers: Numbers) -> Pairs:
        """Pairs by record and then by condition; a record for which several alternatives hold comes once."""
        ranks = rows * max(self.many, 1) + numbers
        if self.has_alternatives:
            ranks, order = np.unique(ranks, return_index=True)
        else:
            order = np.argsort(ranks, kind="stable")
        return rows[order], numbers[order]

    def _found(self, batch: pa.RecordBatch) -> Pairs:
        """The boxes that records are in, as their alternatives."""
        positions = {key: self._positions(self.axes[key], batch) for key in {*self.trees, *self.checked}}
        every = np.arange(batch.num_rows)
        made: list[Pairs] = []
        for key, tree in self.trees.items():
            rows, boxes = tree.pairs(every, positions[key])
            for other in self.checked:
                at = positions[other][rows]
                kept = (at >= self.low[other][boxes]) & (at <= self.high[other][boxes])
                rows, boxes = rows[kept], boxes[kept]
            made.append((rows, self.owners[boxes]))
        if not made:
            return every[:0], every[:0]
        return np.concatenate([m[0] for m in made]), np.concatenate([m[1] for m in made])

    @staticmethod
    def _positions(axis: Axis, batch: pa.RecordBatch) -> Numbers:
        return axis.positions(batch)


class _Residuals:
    """What no bound says of each condition; those that are alike are computed once."""

    def __init__(self, residuals: Sequence[tuple[Expr, ...]]) -> None:
        known: dict[object, int] = {}
        self.exprs: list[Expr] = []
        self.of = np.full(len(residuals), -1, np.int64)
        for number, parts in enumerate(residuals):
            if parts:
                whole = conjunction(parts)
                at = known.setdefault(whole.shape(), len(self.exprs))
                if at == len(self.exprs):
                    self.exprs.append(whole)
                self.of[number] = at

    def kept(self, rows: Numbers, numbers: Numbers, batch: pa.RecordBatch, test: Test) -> Pairs:
        """The pairs whose residual holds."""
        groups = self.of[numbers]
        keep = groups < 0
        for group in np.unique(groups[~keep]):
            mine = np.flatnonzero(groups == group)
            wanted, back = np.unique(rows[mine], return_inverse=True)
            keep[mine] = test(self.exprs[group], batch, wanted)[back]
        return rows[keep], numbers[keep]

    def scanned(self, numbers: Sequence[int], batch: pa.RecordBatch, test: Test) -> list[Pairs]:
        """The pairs of conditions that no bound finds."""
        every = np.arange(batch.num_rows)
        known: dict[int, Numbers] = {-1: every}
        made: list[Pairs] = []
        for number in numbers:
            group = int(self.of[number])
            if group not in known:
                known[group] = every[test(self.exprs[group], batch, every)]
            made.append((known[group], np.full(len(known[group]), number, np.int64)))
        return made
