"""Merges files of state: of each key the newest entry stays."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.state import GROUPS
from penstock.spark.statefile import SCHEMA


def merged(batches: list[pa.RecordBatch], groups: int, *, last: bool) -> pa.RecordBatch:
    """One batch of several, oldest first, with the entries of these key groups alone.

    `last` says that nothing lies below, so that entries which only say that a key is gone can go too.
    """
    whole = pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema=SCHEMA)
    order = np.argsort(_places(whole), kind="stable")
    ordered = whole.take(pa.array(order))
    kept = owned(ordered, groups) & ~_older(ordered)
    if last:
        kept &= ordered.column(2).is_valid().to_numpy(zero_copy_only=False)
    return ordered.filter(pa.array(kept))


def _places(batch: pa.RecordBatch) -> Any:
    return batch.column(0).to_numpy(zero_copy_only=False)


def owned(batch: pa.RecordBatch, groups: int) -> Any:
    """Which entries belong to these key groups."""
    mask = np.array([bool(groups >> g & 1) for g in range(GROUPS)])
    return mask[_places(batch) & (GROUPS - 1)]


def _older(batch: pa.RecordBatch) -> Any:
    """Which entries have a newer one of the same key behind them; entries of a place stand oldest first."""
    places = _places(batch)
    older = np.zeros(len(places), bool)
    same = np.nonzero(places[:-1] == places[1:])[0]
    if not len(same):
        return older
    equal = pc.equal(batch.column(1).take(pa.array(same)), batch.column(1).take(pa.array(same + 1)))
    equal = equal.to_numpy(zero_copy_only=False)
    older[same[equal]] = True
    if not equal.all():
        _look_closer(batch, places, same[~equal], older)
    return older


def _look_closer(batch: pa.RecordBatch, places: Any, rows: Any, older: Any) -> None:
    """Places that hold keys of different bytes: other keys of one hash, or one key that was pickled differently."""
    for place in np.unique(places[rows]):
        newest: dict[Any, int] = {}
        for row in range(*np.searchsorted(places, [place, place + 1])):
            key = pickle.loads(batch.column(1)[int(row)].as_py())
            if key in newest:
                older[newest[key]] = True
            older[row] = False
            newest[key] = int(row)
