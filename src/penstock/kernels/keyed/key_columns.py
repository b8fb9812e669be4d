"""Keys as columns: many of them numbered at once, for steps that work on columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.state.arrow import equal

MANY = 64
"""From so many rows on columns are quicker than rows."""


@dataclass(frozen=True)
class NumberedKeys:
    """Keys with a number each.

    Attributes:
        hashes: The hash of each key.
        first: A row with each key.
        ids: The number of the key in each row.
    """

    hashes: IntArray
    first: IntArray
    ids: IntArray

    def __len__(self) -> int:
        return len(self.hashes)

    def rows(self, flags: BoolArray, ids: IntArray) -> IntArray | None:
        """The row of each key among those whose flag is set, -1 where it has none; None when a key has several."""
        rows = np.full(len(self), -1)
        marked = np.flatnonzero(flags)
        rows[ids[marked]] = marked
        return rows if np.count_nonzero(rows >= 0) == len(marked) else None


def numbered(keys: Sequence[pa.Array], hashes: IntArray) -> NumberedKeys | None:
    """Numbers the keys of some rows by their hashes; None when two keys have the same hash."""
    encoded = pa.array(hashes).dictionary_encode()
    ids, first = encoded.indices.to_numpy(), np.empty(len(encoded.dictionary), np.int64)
    first[ids[::-1]] = np.arange(len(ids))[::-1]
    made = NumberedKeys(encoded.dictionary.to_numpy(), first, ids)
    return made if all(_are_equal(key, key.take(pa.array(first[ids]))) for key in keys) else None


def _are_equal(one: pa.Array, other: pa.Array) -> bool:
    return bool(equal(one, other).all())
