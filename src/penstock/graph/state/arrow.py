"""Arrow arrays as Python values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.arrays import BoolArray


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of an array; maps become dicts.

    >>> values_of(pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())))
    [{'a': 1}]
    """
    if _has_map(column.type):
        return list(column.to_pylist(maps_as_pydicts="strict"))
    return list(column.to_pylist())


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(_has_map(kind.field(i).type) for i in range(kind.num_fields))


def wide_type(kind: pa.DataType) -> pa.DataType:
    """The type in which texts and bytes may be more than 2 GiB together; any other as it is.

    >>> wide_type(pa.string()), wide_type(pa.int64())
    (DataType(large_string), DataType(int64))
    """
    return _WIDE.get(kind, kind)


_WIDE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def equal(one: pa.Array, other: pa.Array) -> BoolArray:
    """Where two arrays are equal, as a numpy array; null equals null.

    >>> equal(pa.array([1, None, 3]), pa.array([1, None, None])).tolist()
    [True, True, False]
    """
    same = pc.equal(one, other)
    if same.null_count:
        same = pc.or_(pc.fill_null(same, False), pc.and_(one.is_null(), other.is_null()))
    array: BoolArray = same.to_numpy(zero_copy_only=False)
    return array
