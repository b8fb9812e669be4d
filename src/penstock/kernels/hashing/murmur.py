"""The hash that Spark's `hash` function returns (Murmur3, seed 42), so that a key meets the same task on every runtime."""

from __future__ import annotations

import datetime
import decimal
import struct
from collections.abc import Sequence
from typing import Any

from penstock.graph import types as t

_EXACT = decimal.Context(prec=76)
_MASK = 0xFFFFFFFF
_SEED = 42
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICRO = datetime.timedelta(microseconds=1)


def spark_hash(values: Sequence[Any], types: Sequence[t.DataType]) -> int:
    """The hash of some values together, as a signed number of 32 bits.

    >>> spark_hash(["a", 1], [t.STRING, t.INT])
    532252686
    """
    seed = _SEED
    for value, kind in zip(values, types, strict=True):
        seed = _hash(value, kind, seed)
    return seed - (1 << 32) if seed & 0x80000000 else seed


def _hash(value: Any, kind: t.DataType, seed: int) -> int:
    if value is None:
        return seed
    if isinstance(kind, t.Simple):
        return _simple(value, kind, seed)
    if isinstance(kind, t.Decimal):
        return _decimal(value, kind, seed)
    if isinstance(kind, t.Array):
        for item in value:
            seed = _hash(item, kind.item, seed)
        return seed
    if isinstance(kind, t.Struct):
        for field in kind.fields:
            seed = _hash(value[field.name], field.type, seed)
        return seed
    raise TypeError(f"a {kind} has no hash")


def _simple(value: Any, kind: t.Simple, seed: int) -> int:
    if kind == t.STRING:
        return _bytes(value.encode(), seed)
    if kind == t.BINARY:
        return _bytes(value, seed)
    if kind == t.FLOAT:
        return _int(struct.unpack("<i", struct.pack("<f", value or 0.0))[0], seed)
    if kind == t.DOUBLE:
        return _long(struct.unpack("<q", struct.pack("<d", value or 0.0))[0], seed)
    if kind == t.DATE:
        return _int((value - _EPOCH.date()).days, seed)
    if kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return _long((value.replace(tzinfo=value.tzinfo or datetime.UTC) - _EPOCH) // _MICRO, seed)
    return _long(value, seed) if kind == t.BIGINT else _int(int(value), seed)


def _decimal(value: Any, kind: t.Decimal, seed: int) -> int:
    unscaled = int(value.scaleb(kind.scale, _EXACT))
    if kind.precision <= 18:
        return _long(unscaled, seed)
    size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return _bytes(unscaled.to_bytes(size, "big", signed=True), seed)


def _int(value: int, seed: int) -> int:
    return _last(_mix(seed, value & _MASK), 4)


def _long(value: int, seed: int) -> int:
    return _last(_mix(_mix(seed, value & _MASK), (value >> 32) & _MASK), 8)


def _bytes(data: bytes, seed: int) -> int:
    whole = len(data) & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        seed = _mix(seed, word)
    for byte in data[whole:]:
        seed = _mix(seed, (byte - 256 if byte > 127 else byte) & _MASK)
    return _last(seed, len(data))


def _mix(h: int, k: int) -> int:
    k = (k * 0xCC9E2D51) & _MASK
    k = ((k << 15) | (k >> 17)) & _MASK
    h ^= (k * 0x1B873593) & _MASK
    h = ((h << 13) | (h >> 19)) & _MASK
    return (h * 5 + 0xE6546B64) & _MASK


def _last(h: int, length: int) -> int:
    h ^= length
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _MASK
    return h ^ (h >> 16)
