"""The values of one field among the constants that conditions compare it with.

A value is mapped to a position: 2k + 1 where it is the constant number k, 2k where it lies just before that; a missing one is after all others. So every
comparison with a constant, of whatever type, is an interval of positions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.rules.bounds import ANY, NULL, REAL, TEXT, Bound, Constant, as_whole

Numbers = npt.NDArray[np.int64]


class Axis:
    """The sorted constants of a field.

    >>> axis = Axis(0, "whole", [5, 9], ranges=True)
    >>> axis.positions(pa.record_batch({"n": [4, 5, 6, 9, 10, None]})).tolist(), axis.interval(">=", 5)
    ([0, 1, 2, 3, 4, 5], (1, 4))
    """

    def __init__(self, column: int, kind: str, constants: Iterable[Constant], *, ranges: bool) -> None:
        self.column, self.kind, self.ranges = column, kind, ranges
        self.constants: list[Constant] = [] if kind == ANY else sorted(set(constants))
        self.last = 2 * len(self.constants)
        """The position after all constants."""
        self.null = self.last + 1
        """The position of a missing value, which no comparison with a constant takes in."""
        if kind == TEXT:
            self.values = pa.array(self.constants, pa.string())
        else:
            self.numbers = np.array(self.constants, np.float64 if kind == REAL else np.int64)

    def interval(self, op: str, constant: Constant) -> tuple[int, int]:
        """The first and the last position for which a comparison with a constant holds."""
        if op == NULL:
            return self.null, self.null
        at = 2 * bisect_left(self.constants, constant) + 1
        return {"=": (at, at), ">": (at + 1, self.last), ">=": (at, self.last), "<": (0, at - 1), "<=": (0, at)}[op]

    def positions(self, batch: pa.RecordBatch) -> Numbers:
        """The position of each record."""
        column = batch.column(self.column)
        if self.kind == ANY:
            made = np.zeros(len(column), np.int64)
        elif self.kind == TEXT:
            made = self._in_order(column) if self.ranges else self._equal(column)
        else:
            made = self._numbers(column)
        if column.null_count:
            made[column.is_null().to_numpy(zero_copy_only=False)] = self.null
        return made

    def _numbers(self, column: pa.Array) -> Numbers:
        """NaN is sorted last by numpy, and is greater than all else for Spark."""
        plain = column.cast(pa.float64()) if self.kind == REAL else as_whole(column)
        values = plain.fill_null(0).to_numpy(zero_copy_only=False)
        at = np.searchsorted(self.numbers, values)
        equal = self.numbers[np.minimum(at, len(self.numbers) - 1)] == values
        made: Numbers = 2 * at.astype(np.int64) + (equal & (at < len(self.numbers)))
        return made

    def _equal(self, column: pa.Array) -> Numbers:
        """The positions of texts where only equality counts: all others are at 0."""
        found = pc.index_in(column, value_set=self.values).fill_null(-1).to_numpy(zero_copy_only=False)
        made: Numbers = np.where(found < 0, 0, 2 * found.astype(np.int64) + 1)
        return made

    def _in_order(self, column: pa.Array) -> Numbers:
        """The positions of texts in their order, looked up once for each text of the batch."""
        coded = column.dictionary_encode()
        known = [self._position(text) for text in coded.dictionary.to_pylist()]
        codes = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        made: Numbers = np.array(known or [0], np.int64)[codes]
        return made

    def _position(self, text: str) -> int:
        at = bisect_left(self.constants, text)
        return 2 * at + (at < len(self.constants) and self.constants[at] == text)


def axes_of(bounds: Iterable[Bound]) -> dict[tuple[int, str], Axis]:
    """An axis for each field that conditions compare with constants."""
    constants: dict[tuple[int, str], list[Constant]] = {}
    ranges: set[tuple[int, str]] = set()
    for bound in bounds:
        constants.setdefault((bound.column, bound.kind), []).extend(bound.value)
        if bound.op != "=":
            ranges.add((bound.column, bound.kind))
    return {key: Axis(*key, values, ranges=key in ranges) for key, values in constants.items() if values}
