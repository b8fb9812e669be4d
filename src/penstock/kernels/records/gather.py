"""Puts small batches together before they leave a worker: each costs the JVM the same, however few rows are in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

ROWS, BYTES, SECONDS = 50_000, 4 << 20, 1.0
"""Batches are held back until they have so many rows or bytes together, or the first of them has waited so long."""


def gathered(
    batches: Iterable[pa.RecordBatch], clock: Callable[[], float] = time.monotonic
) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order, in fewer batches.

    >>> [batch.num_rows for batch in gathered(pa.record_batch({"n": [n] * 20_000}) for n in range(4))]
    [60000, 20000]
    """
    held: list[pa.RecordBatch] = []
    rows = size = 0
    since = 0.0
    for batch in batches:
        since = since if held else clock()
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= ROWS or size >= BYTES or clock() - since >= SECONDS:
            yield _one(held)
            held, rows, size = [], 0, 0
    if held:
        yield _one(held)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1 or not any(batch.num_rows for batch in batches):
        return batches[0]
    made: pa.RecordBatch = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    return made
