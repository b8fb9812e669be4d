"""What changes between two states of some rows, as signed rows in columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.arrays import BoolArray
from penstock.graph.state.arrow import equal

Arrays = Sequence[pa.Array]


def signed_change(keys: Arrays, before: Arrays, after: Arrays, was: BoolArray, stands: BoolArray) -> list[pa.Array]:
    """The rows that go, each with -1, then those that come, with 1; rows that stay as they are do neither.

    Args:
        keys: Columns that are the same before and after.
        before, after: The other columns, with the same rows.
        was, stands: Which rows are there before, and after.

    >>> change = signed_change([pa.array("abc")], [pa.array([1, 2, 3])], [pa.array([1, 5, 6])], np.array([1, 1, 0], bool), np.ones(3, bool))
    >>> list(zip(*(column.to_pylist() for column in change)))
    [('b', 2, -1), ('b', 5, 1), ('c', 6, 1)]
    """
    same = was & stands
    for one, other in zip(before, after, strict=True):
        same &= _are_same(one, other)
    old, new = np.flatnonzero(was & ~same), np.flatnonzero(stands & ~same)
    gone, come = pa.array(old), pa.array(new)
    made = [
        pa.concat_arrays([one.take(gone), other.take(come)])
        for one, other in zip((*keys, *before), (*keys, *after), strict=True)
    ]
    return [*made, pa.array(np.repeat(np.array([-1, 1], np.int64), [len(old), len(new)]))]


def _are_same(one: pa.Array, other: pa.Array) -> BoolArray:
    """Where values are equal; not-a-number equals itself."""
    same = equal(one, other)
    if pa.types.is_floating(one.type):
        both = pc.and_(pc.is_nan(one), pc.is_nan(other))
        same |= pc.fill_null(both, False).to_numpy(zero_copy_only=False)
    return same
