"""The body of a batch: columns laid out as Arrow lays them out, so that reading them needs no copy.

    timestamps   int64 x count      left out when all are equal
    deltas       int32 x count      offset - base; only in compacted batches, which have holes
    values       int32 x (count + 1) offsets, then a validity bitmap if there are tombstones
    keys         the same, left out when no record has a key
    headers      int32 x (count + 1) offsets, left out when no record has one
    data         of values, keys, headers

Everything is little-endian and padded to 8 bytes.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from penstock.log.errors import BadRecord
from penstock.log.record import Headers

Buffer = bytes | memoryview

KEYS, KEY_NULLS, VALUE_NULLS, HEADERS, TIMES, DELTAS, CONTROL = 1, 2, 4, 8, 16, 32, 64
MAX_BODY = 1 << 30
_PAD = tuple(bytes(n) for n in range(8))
_KEY, _VALUE = struct.Struct("<H"), struct.Struct("<i")
_SWAP = sys.byteorder == "big"


@dataclass(frozen=True, slots=True)
class Binary:
    """A column of byte strings: Arrow's offsets, data and validity bitmap."""

    offsets: Buffer
    data: Buffer
    validity: Buffer | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """The records of a batch, column by column; `times` None means that all have `min_time`."""

    count: int
    values: Binary
    keys: Binary | None
    headers: Binary | None
    times: Buffer | None
    min_time: int
    max_time: int
    deltas: Buffer | None = None


def ints(code: str, items: Iterable[int]) -> bytes:
    """Numbers as little-endian bytes: "i" for 32 bits, "q" for 64."""
    numbers = array(code, items)
    if _SWAP:
        numbers.byteswap()
    return numbers.tobytes()


def numbers_of(code: str, raw: Buffer) -> list[int]:
    """The numbers that `ints` wrote."""
    numbers = array(code)
    numbers.frombytes(raw)
    if _SWAP:
        numbers.byteswap()
    return numbers.tolist()


def binary(items: Sequence[bytes | None]) -> Binary:
    """A column of byte strings; None is a null.

    >>> split(binary([b"a", None, b"bc"]), 3)
    [b'a', None, b'bc']
    """
    try:
        return _binary(items)  # type: ignore[arg-type]  # a None among them raises, and is looked at below
    except TypeError:
        for item in items:
            if item is not None and not isinstance(item, bytes):
                raise BadRecord(
                    f"keys and values are bytes or None, not {type(item).__name__}: {item!r:.60}; encode it first"
                ) from None
    column = _binary([item or b"" for item in items])
    return Binary(column.offsets, column.data, _bitmap(items))


def _binary(items: Sequence[bytes]) -> Binary:
    try:
        return Binary(ints("i", accumulate(map(len, items), initial=0)), b"".join(items))
    except OverflowError:
        raise BadRecord(f"{len(items)} records of more than 2 GiB do not fit one batch; send fewer at once") from None


def _bitmap(items: Sequence[bytes | None]) -> bytes:
    bits = "".join("0" if item is None else "1" for item in reversed(items))
    return int(bits, 2).to_bytes((len(items) + 7) // 8, "little")


def split(column: Binary, count: int) -> list[bytes | None]:
    """The byte strings of a column."""
    data = bytes(column.data)
    items: list[bytes | None] = [data[a:b] for a, b in pairwise(numbers_of("i", column.offsets))]
    if column.validity is None:
        return items
    bits = int.from_bytes(column.validity, "little")
    return [item if bits >> n & 1 else None for n, item in enumerate(items[:count])]


def pack_headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """The headers of one record as bytes.

    >>> unpack_headers(pack_headers([("trace", b"1"), ("empty", None)]))
    (('trace', b'1'), ('empty', None))
    """
    parts = []
    for name, value in headers:
        raw = name.encode()
        if len(raw) > 0xFFFF or not isinstance(value, bytes | None):
            raise BadRecord(
                f"a header is a name of up to 65535 bytes with bytes or None, not {name!r:.60}: {value!r:.60}"
            )
        parts += [_KEY.pack(len(raw)), raw, _VALUE.pack(-1 if value is None else len(value)), value or b""]
    return b"".join(parts)


def unpack_headers(raw: bytes) -> Headers:
    """The headers that `pack_headers` wrote."""
    found: list[tuple[str, bytes | None]] = []
    at = 0
    while at < len(raw):
        start = at + 2
        end = start + _KEY.unpack_from(raw, at)[0]
        size = _VALUE.unpack_from(raw, end)[0]
        at = end + 4 + max(size, 0)
        found.append((raw[start:end].decode(), None if size < 0 else raw[end + 4 : at]))
    return tuple(found)


def columns(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None,
    headers: Sequence[Sequence[tuple[str, bytes | None]]] | None,
    timestamps: int | Sequence[int],
    deltas: Sequence[int] | None = None,
) -> Columns:
    """The columns of these records; one timestamp stands for all."""
    count = len(values)
    times, low, high = _times(timestamps, count)
    same = {count, count if keys is None else len(keys), count if headers is None else len(headers)}
    if len(same) > 1:
        raise BadRecord(f"values, keys and headers have different lengths: {sorted(same)}")
    return Columns(
        count,
        binary(values),
        binary(keys) if keys is not None and any(k is not None for k in keys) else None,
        _binary([pack_headers(h) for h in headers]) if headers is not None and any(headers) else None,
        times,
        low,
        high,
        None if deltas is None else ints("i", deltas),
    )


def _times(timestamps: int | Sequence[int], count: int) -> tuple[bytes | None, int, int]:
    if isinstance(timestamps, int):
        return None, timestamps, timestamps
    if len(timestamps) != count:
        raise BadRecord(
            f"expected one timestamp for all values, or one each, got {len(timestamps)} timestamps for {count} values"
        )
    low, high = min(timestamps, default=0), max(timestamps, default=0)
    return (None if low == high else ints("q", timestamps)), low, high


def pack(cols: Columns) -> tuple[bytes, int]:
    """The body bytes and the flags that say which columns are there."""
    flags = 0
    parts: list[Buffer] = []
    data: list[Buffer] = []
    for column, flag in ((cols.times, TIMES), (cols.deltas, DELTAS)):
        if column is not None:
            flags |= flag
            parts.append(column)
    for strings, flag, nulls in (
        (cols.values, 0, VALUE_NULLS),
        (cols.keys, KEYS, KEY_NULLS),
        (cols.headers, HEADERS, 0),
    ):
        if strings is not None:
            flags |= flag
            parts.append(strings.offsets)
            data.append(strings.data)
            if strings.validity is not None:
                flags |= nulls
                parts.append(strings.validity)
    return _padded(parts + data), flags


def _padded(parts: Sequence[Buffer]) -> bytes:
    whole: list[Buffer] = []
    for part in parts:
        whole += (part, _PAD[-len(part) % 8])
    body = b"".join(whole)
    if len(body) > MAX_BODY:
        raise BadRecord(
            f"a batch holds at most {MAX_BODY} bytes, not {len(body)}; send fewer or smaller records at once"
        )
    return body


class _Taker:
    """Cuts padded columns off a body."""

    def __init__(self, body: memoryview) -> None:
        self.body = body
        self.at = 0

    def take(self, size: int) -> memoryview:
        start, self.at = self.at, self.at + size + (-size % 8)
        return self.body[start : start + size]


def unpack(body: memoryview, flags: int, count: int, min_time: int, max_time: int) -> Columns:
    """The columns of a body, without a copy."""
    taker = _Taker(body)
    times = taker.take(8 * count) if flags & TIMES else None
    deltas = taker.take(4 * count) if flags & DELTAS else None
    shapes = []
    for there, nulls in ((True, VALUE_NULLS), (bool(flags & KEYS), KEY_NULLS), (bool(flags & HEADERS), 0)):
        offsets = taker.take(4 * (count + 1)) if there else None
        shapes.append((offsets, taker.take((count + 7) // 8) if there and flags & nulls else None))
    found = [
        None if offsets is None else Binary(offsets, taker.take(_VALUE.unpack_from(offsets, 4 * count)[0]), validity)
        for offsets, validity in shapes
    ]
    values = found[0]
    assert values is not None
    return Columns(count, values, found[1], found[2], times, min_time, max_time, deltas)
