"""Records as Arrow tables, and Arrow columns as records; the bytes of a batch are used where they lie."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from penstock.log.errors import BadRecord
from penstock.log.record import Headers, Record
from penstock.log.storage.batch import Batch, headers_of
from penstock.log.storage.columns import Binary, Columns, binary, pack_headers

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TIME = pa.timestamp("ms", tz="UTC")
SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIME),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
    ]
)
_SMALL = 64


def table(batches: Iterable[Batch], topic: str, partition: int, end: int | None) -> pa.Table:
    """The records of the batches up to `end`, a chunk per batch; small batches share a chunk."""
    chunks: list[pa.RecordBatch] = []
    small: list[Record] = []
    for batch in batches:
        if batch.header.records < _SMALL:
            small += (r for r in batch.records(topic, partition) if end is None or r.offset < end)
            continue
        if small:
            chunks.append(_from_records(small))
            small = []
        chunks.append(_cut(_from_batch(batch, partition), batch.since, end))
    if small:
        chunks.append(_from_records(small))
    return pa.Table.from_batches(chunks, SCHEMA)


def _cut(chunk: pa.RecordBatch, since: int, end: int | None) -> pa.RecordBatch:
    offsets = chunk.column("offset").to_numpy()
    first = int(np.searchsorted(offsets, since))
    last = len(offsets) if end is None else int(np.searchsorted(offsets, end))
    return chunk if (first, last) == (0, len(offsets)) else chunk.slice(first, max(last - first, 0))


def _from_records(records: list[Record]) -> pa.RecordBatch:
    columns = [
        pa.array([r.partition for r in records], pa.int32()),
        pa.array([r.offset for r in records], pa.int64()),
        pa.array([r.timestamp for r in records], pa.int64()).view(TIME),
        pa.array([r.key for r in records], pa.binary()),
        pa.array([r.value for r in records], pa.binary()),
        _headers([r.headers for r in records]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _headers(rows: list[Headers]) -> pa.Array:
    return pa.array([[{"key": k, "value": v} for k, v in row] or None for row in rows], HEADERS)


def _from_batch(batch: Batch, partition: int) -> pa.RecordBatch:
    cols = batch.columns()
    n = cols.count
    columns = [
        pa.array(np.full(n, partition, np.int32)),
        pa.array(_offsets(cols, batch.header.base)),
        _times(cols),
        pa.nulls(n, pa.binary()) if cols.keys is None else _binary(cols.keys, n),
        _binary(cols.values, n),
        pa.nulls(n, HEADERS) if cols.headers is None else _headers(headers_of(cols)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _offsets(cols: Columns, base: int) -> pa.Array:
    if cols.deltas is None:
        return np.arange(base, base + cols.count, dtype=np.int64)
    return np.frombuffer(cols.deltas, "<i4").astype(np.int64) + base


def _times(cols: Columns) -> pa.Array:
    if cols.times is None:
        return pa.array(np.full(cols.count, cols.min_time, np.int64)).view(TIME)
    return pa.Array.from_buffers(TIME, cols.count, [None, pa.py_buffer(cols.times)])


def _binary(column: Binary, count: int) -> pa.Array:
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    buffers = [validity, pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def columns_of(data: pa.Table | pa.RecordBatch, now_ms: int) -> Columns:
    """Columns from a table with `value`, and if it has them `key`, `timestamp` and `headers`."""
    names = data.schema.names
    if "value" not in names:
        raise BadRecord(
            f"a table to append has a column 'value' (and may have key, timestamp, headers); it has {names}"
        )
    times = _array(data, "timestamp").cast(TIME).view(pa.int64()).to_numpy() if "timestamp" in names else None
    low, high = (now_ms, now_ms) if times is None or not len(times) else (int(times.min()), int(times.max()))
    keys = _array(data, "key") if "key" in names else None
    return Columns(
        data.num_rows,
        _from_arrow(_array(data, "value")),
        None if keys is None or keys.null_count == len(keys) else _from_arrow(keys),
        _pack_headers(_array(data, "headers")) if "headers" in names else None,
        None if times is None or low == high else times.astype("<i8").tobytes(),
        low,
        high,
    )


def _array(data: pa.Table | pa.RecordBatch, name: str) -> pa.Array:
    column = data.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _from_arrow(array: pa.Array) -> Binary:
    array = array.cast(pa.binary())
    _, offsets, data = array.buffers()
    count, at = len(array), array.offset
    if not count:
        return Binary(bytes(4), b"")
    numbers = np.frombuffer(offsets, np.int32)[at : at + count + 1]
    body = b"" if data is None else memoryview(data)[numbers[0] : numbers[-1]]
    valid = None
    if array.null_count:
        valid = np.packbits(array.is_valid().to_numpy(zero_copy_only=False), bitorder="little").tobytes()
    return Binary((numbers - numbers[0]).astype("<i4").tobytes(), body, valid)


def _pack_headers(array: pa.Array) -> Binary | None:
    rows = [[(h["key"], h["value"]) for h in row or ()] for row in array.to_pylist()]
    return binary([pack_headers(r) for r in rows]) if any(rows) else None
