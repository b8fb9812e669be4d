"""The key hash: one number of 64 bits for each key, the same on every host, by which state is looked up and moved.

Its first 15 bits are its slot (`graph/state/key_groups.py`): the last bits of `hash` (Murmur3), by which Spark chooses the task, in reverse. The
others are the last of `xxhash64`. Keys whose hashes are in order are in the order of their key groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from penstock.graph.state.key_groups import HASH_BITS, SLOT_BITS, SLOTS
from penstock.kernels.hashing.columns import I64, MURMUR3, XXHASH64, hash_columns


def key_hashes(keys: Sequence[pa.Array], rows: int) -> I64:
    """The key hash of each row, from the columns of its key; a step without a key has one of zero.

    >>> key_hashes([pa.array(["a", "b", "a"])], 3).tolist()
    [-3882386167622553396, 224967436666202067, -3882386167622553396]
    """
    if not keys:
        return np.zeros(rows, np.int64)
    made: I64 = _first_hashes()[hash_columns(keys, MURMUR3) & (SLOTS - 1)]
    made |= hash_columns(keys, XXHASH64) & ((1 << HASH_BITS) - 1)
    return made


@cache
def _first_hashes() -> I64:
    """The lowest key hash of the slot that the last bits of `hash` name, for each value of theirs."""
    left, slots = np.arange(SLOTS), np.zeros(SLOTS, np.int64)
    for _ in range(SLOT_BITS):
        left, slots = left >> 1, slots << 1 | left & 1
    return (slots - SLOTS // 2) << HASH_BITS
