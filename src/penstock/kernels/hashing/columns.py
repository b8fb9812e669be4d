"""Murmur3 and xxHash64 of Arrow columns, a column at a time; equal to Spark's `hash` and `xxhash64`.

>>> words = pa.array(["a", None, "stream"])
>>> hash_columns([words], MURMUR3).tolist()
[1485273170, 42, 65827218]
>>> hash_columns([words], XXHASH64).tolist()
[-8582455328737087284, 42, -967371225967720174]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

U32: TypeAlias = npt.NDArray[np.uint32]
U64: TypeAlias = npt.NDArray[np.uint64]
I64: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.unsignedinteger]
Bytes: TypeAlias = npt.NDArray[np.uint8]
_SEED = 42
_SMALL = (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.date32())
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(p)
    for p in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)


@dataclass(frozen=True)
class Text:
    """The texts of a column: their bytes, with eight more at the end, and where each begins and how long it is."""

    data: Bytes
    begin: I64
    length: I64

    def words(self, at: I64, width: int) -> Words:
        """The little-endian words of a width that begin at some bytes."""
        kind = np.dtype(f"<u{width}")
        every = np.ndarray((max(len(self.data) - width + 1, 0),), kind, self.data.data, strides=(1,))
        found: Words = every[at]
        return found


@dataclass(frozen=True)
class Hash:
    """A hash of Spark's: how a number of 32 bits, one of 64 bits and a text change the hash of the columns before."""

    kind: type[np.unsignedinteger]
    of_int: Callable[[U32, Words], Words]
    of_long: Callable[[U64, Words], Words]
    of_text: Callable[[Text, Words], Words]


def hash_columns(columns: Sequence[pa.Array], how: Hash) -> I64:
    """The hash of each row of some columns, as Spark's signed number."""
    rows = len(columns[0]) if columns else 0
    seed: Words = np.full(rows, _SEED, how.kind)
    with np.errstate(over="ignore"):
        for column in columns:
            seed = _hashed(column, seed, how)
    signed: I64 = seed.view(np.int32 if how.kind is np.uint32 else np.int64).astype(np.int64)
    return signed


def _hashed(column: pa.Array, seed: Words, how: Hash) -> Words:
    """The hash with one more column; null leaves it as it is."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    made = _of_type(column, seed, how)
    if not column.null_count:
        return made
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return np.where(valid, made, seed)


def _of_type(column: pa.Array, seed: Words, how: Hash) -> Words:
    kind = column.type
    if kind in _SMALL:
        return how.of_int(_numbers(column, pa.int32()).view(np.uint32), seed)
    if pa.types.is_int64(kind) or pa.types.is_timestamp(kind):
        return how.of_long(_numbers(column, pa.int64()).view(np.uint64), seed)
    if pa.types.is_floating(kind):
        return _of_float(column, seed, how)
    if pa.types.is_decimal(kind):
        return _of_decimal(column, seed, how)
    if pa.types.is_null(kind):
        return seed
    return how.of_text(_text(column), seed)


def _numbers(column: pa.Array, kind: pa.DataType) -> npt.NDArray[np.signedinteger]:
    """The numbers of a column; zero for null."""
    same = column.cast(pa.int32()) if column.type == pa.bool_() else column
    whole = same.view(kind) if same.type.bit_width == kind.bit_width else same.cast(kind)
    found: npt.NDArray[np.signedinteger] = (pc.fill_null(whole, 0) if whole.null_count else whole).to_numpy()
    return found


def _of_float(column: pa.Array, seed: Words, how: Hash) -> Words:
    """The bits of a number; those of zero have no sign, and those of not-a-number are one."""
    kind, bits = (np.float32, np.uint32) if column.type == pa.float32() else (np.float64, np.uint64)
    filled = pc.fill_null(column, 0.0) if column.null_count else column
    found = np.where(np.isnan(filled.to_numpy()), kind("nan"), filled.to_numpy() + kind(0.0)).astype(kind)
    return how.of_int(found.view(bits), seed) if bits is np.uint32 else how.of_long(found.view(bits), seed)


def _of_decimal(column: pa.Array, seed: Words, how: Hash) -> Words:
    """The unscaled number where it has up to 18 digits; else the bytes of it, as few as will do."""
    if column.type.precision > 18:
        return how.of_text(_text(pa.array([_unscaled(v) for v in column.to_pylist()], pa.binary())), seed)
    pairs = np.frombuffer(column.buffers()[1], np.uint64).reshape(-1, 2)
    return how.of_long(np.ascontiguousarray(pairs[column.offset : column.offset + len(column), 0]), seed)


def _unscaled(value: object) -> bytes | None:
    if value is None:
        return None
    sign, digits, _ = value.as_tuple()  # type: ignore[attr-defined]  # a Decimal of the column's scale
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(size, "big", signed=True)


def _text(column: pa.Array) -> Text:
    kind = (
        pa.large_binary()
        if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
        else pa.large_string()
    )
    filled = pc.fill_null(column, b"" if kind == pa.large_binary() else "") if column.null_count else column
    _, offsets, data = filled.cast(kind).buffers()
    begin = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + len(filled) + 1]
    used = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    padded = np.concatenate([used[: begin[-1] if len(begin) else 0], np.zeros(8, np.uint8)])
    return Text(padded, begin[:-1], np.diff(begin))


def _rotl(value: Words, by: int) -> Words:
    bits = value.dtype.itemsize * 8
    kind = value.dtype.type
    return (value << kind(by)) | (value >> kind(bits - by))


def _mix(h: Words, k: Words) -> Words:
    k = _rotl(k * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return _rotl(h ^ k, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _last32(h: Words, length: Words | np.uint32) -> Words:
    h = h ^ length
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return h ^ (h >> np.uint32(16))


def _murmur_int(value: U32, seed: Words) -> Words:
    return _last32(_mix(seed, value), np.uint32(4))


def _murmur_long(value: U64, seed: Words) -> Words:
    low, high = value.astype(np.uint32), (value >> np.uint64(32)).astype(np.uint32)
    return _last32(_mix(_mix(seed, low), high), np.uint32(8))


def _murmur_text(text: Text, seed: Words) -> Words:
    """Words of four bytes, then the bytes that are left, each with its sign."""
    made = seed.copy()
    left = text.length.copy()
    at = text.begin.copy()
    while len(rows := np.flatnonzero(left >= 4)):
        made[rows] = _mix(made[rows], text.words(at[rows], 4))
        at[rows] += 4
        left[rows] -= 4
    while len(rows := np.flatnonzero(left > 0)):
        signed = text.data[at[rows]].view(np.int8).astype(np.int32).view(np.uint32)
        made[rows] = _mix(made[rows], signed)
        at[rows] += 1
        left[rows] -= 1
    return _last32(made, text.length.astype(np.uint32))


def _last64(h: Words) -> Words:
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    return h ^ (h >> np.uint64(32))


def _round4(h: Words, k: Words) -> Words:
    return _rotl(h ^ (k * _P1), 23) * _P2 + _P3


def _round8(h: Words, k: Words) -> Words:
    return _rotl(h ^ (_rotl(k * _P2, 31) * _P1), 27) * _P1 + _P4


def _xx_int(value: U32, seed: Words) -> Words:
    return _last64(_round4(seed + _P5 + np.uint64(4), value.astype(np.uint64)))


def _xx_long(value: U64, seed: Words) -> Words:
    return _last64(_round8(seed + _P5 + np.uint64(8), value))


def _xx_text(text: Text, seed: Words) -> Words:
    """Stripes of 32 bytes where there are any, then words of eight, four and one byte."""
    made = seed + _P5
    at, left = text.begin.copy(), text.length.copy()
    long = np.flatnonzero(left >= 32)
    if len(long):
        made[long] = _stripes(text, seed[long], long)
        at[long] += left[long] & ~31
        left[long] &= 31
    made += text.length.astype(np.uint64)
    for width, step in ((8, _round8), (4, _round4), (1, _round1)):
        while len(rows := np.flatnonzero(left >= width)):
            made[rows] = step(made[rows], text.words(at[rows], width).astype(np.uint64))
            at[rows] += width
            left[rows] -= width
    return _last64(made)


def _round1(h: Words, k: Words) -> Words:
    return _rotl(h ^ (k * _P5), 11) * _P1


def _stripes(text: Text, seed: Words, rows: I64) -> Words:
    lanes = [seed + _P1 + _P2, seed + _P2, seed.copy(), seed - _P1]
    at, left = text.begin[rows], text.length[rows]
    while len(some := np.flatnonzero(left >= 32)):
        for lane, values in enumerate(lanes):
            values[some] = _rotl(values[some] + text.words(at[some] + 8 * lane, 8) * _P2, 31) * _P1
        at[some] += 32
        left[some] -= 32
    made = _rotl(lanes[0], 1) + _rotl(lanes[1], 7) + _rotl(lanes[2], 12) + _rotl(lanes[3], 18)
    for values in lanes:
        made = (made ^ (_rotl(values * _P2, 31) * _P1)) * _P1 + _P4
    return made


MURMUR3 = Hash(np.uint32, _murmur_int, _murmur_long, _murmur_text)
"""Spark's `hash`: it decides to which task a record goes."""
XXHASH64 = Hash(np.uint64, _xx_int, _xx_long, _xx_text)
"""Spark's `xxhash64`."""
