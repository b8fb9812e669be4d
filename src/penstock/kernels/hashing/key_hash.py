"""The key hash: one number of 64 bits for each key, the same on every host, by which state is looked up and moved.

Its upper 57 bits are those of `xxhash64`, its lower seven the key group: `hash` (Murmur3) modulo 128, by which Spark chooses the task.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.graph.state.layout import KEY_GROUPS
from penstock.kernels.hashing.columns import I64, MURMUR3, XXHASH64, hash_columns


def key_hashes(keys: Sequence[pa.Array], rows: int) -> I64:
    """The key hash of each row, from the columns of its key; a step without a key has one of zero.

    >>> key_hashes([pa.array(["a", "b", "a"])], 3).tolist()
    [-8582455328737087278, -6391946315847899199, -8582455328737087278]
    """
    if not keys:
        return np.zeros(rows, np.int64)
    return (hash_columns(keys, XXHASH64) & -KEY_GROUPS) | (hash_columns(keys, MURMUR3) % KEY_GROUPS)
