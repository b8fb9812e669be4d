"""An index by time inside a file of state, so that a batch reads what is due and not what is kept.

Rows of a file stand by key hash. For a column of times two more stand beside it: the times in order (`sorted:NAME`), and the rows
that they belong to (`order:NAME`). A span of time is a binary search in the first and a slice of the second. Both are made when a file is
written and are no part of what is kept: whoever merges files leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.graph.arrays import IntArray
from penstock.graph.times import FOREVER
from penstock.state.file import OpenFile

ORDER, SORTED = "order:", "sorted:"


def with_index(batch: pa.RecordBatch, names: Iterable[str]) -> pa.RecordBatch:
    """A batch with the index of each of these columns that it has; a time that is null counts as FOREVER."""
    for name in (n for n in names if n in batch.schema.names):
        times = batch.column(name).fill_null(FOREVER).to_numpy(zero_copy_only=False)
        order = np.argsort(times)
        batch = batch.append_column(ORDER + name, pa.array(order.astype(np.int32)))
        batch = batch.append_column(SORTED + name, pa.array(times[order]))
    return batch


def is_index(name: str) -> bool:
    """Whether a column is part of an index.

    >>> is_index("order:@event"), is_index("value:@event")
    (True, False)
    """
    return name.startswith((ORDER, SORTED))


def without_index(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch as it was before its index was made."""
    return batch.select([n for n in batch.schema.names if not is_index(n)])


class TimeIndex:
    """The index of one column of times in an open file."""

    def __init__(self, file: OpenFile, name: str) -> None:
        self.file, self.name = file, name
        self.has_column = name in file.batch.schema.names
        self.has_index = SORTED + name in file.batch.schema.names

    def between(self, after: int, until: int) -> IntArray:
        """The numbers of the rows with a time in `(after, until]`, in the order of time; up to FOREVER those without one too."""
        if not self.has_column or until <= after:
            return np.zeros(0, np.int64)
        if not self.has_index:
            return self._scanned(after, until)
        return self._rows(self._first(after), self._first(until))

    def some_after(self, after: int, skip: int, most: int) -> tuple[Any, int]:
        """Up to `most` rows with a time after `after`, the earliest but for `skip` of them; and the time of the next one."""
        if not self.has_column:
            return np.zeros(0, np.int64), FOREVER
        if not self.has_index:
            return self._scanned(after, FOREVER - 1), FOREVER
        begin = self._first(after) + skip
        end = min(begin + most, self._first(FOREVER - 1))
        return self._rows(begin, end), self._time(max(begin, end))

    def many_after(self, after: int) -> int:
        """How many rows have a time after `after`; of a file without an index none are counted."""
        return max(self._first(FOREVER - 1) - self._first(after), 0) if self.has_index else 0

    def earliest(self, begin: int) -> int:
        """The earliest time at or after `begin`; FOREVER when there is none."""
        if not self.has_index:
            rows = self._scanned(begin - 1, FOREVER - 1)
            return int(self._times()[rows[0]]) if len(rows) else FOREVER
        return self._time(self._first(begin - 1))

    def _first(self, after: int) -> int:
        """The first index in the order whose time is later than `after`."""
        low, high = 0, self.file.batch.num_rows
        while low < high:
            middle = (low + high) >> 1
            low, high = (middle + 1, high) if self._time(middle) <= after else (low, middle)
        return low

    def _time(self, at: int) -> int:
        if at >= self.file.batch.num_rows:
            return FOREVER
        return int(self.file.taken(SORTED + self.name, np.array([at]))[0].as_py())

    def _rows(self, begin: int, end: int) -> IntArray:
        found = self.file.taken(ORDER + self.name, np.arange(begin, max(begin, end)))
        rows: IntArray = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return rows

    def _scanned(self, after: int, until: int) -> IntArray:
        """The same for a file without an index, which was written before there was one."""
        times = self._times()
        rows = np.flatnonzero((times > after) & (times <= until))
        return rows[np.argsort(times[rows], kind="stable")]

    def _times(self) -> IntArray:
        times: IntArray = self.file.whole().column(self.name).fill_null(FOREVER).to_numpy(zero_copy_only=False)
        return times
