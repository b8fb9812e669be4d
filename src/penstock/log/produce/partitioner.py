"""Which partition a record goes to: by its key as Kafka does it, else round robin."""

from __future__ import annotations

from functools import lru_cache

_SEED, _M, _MASK = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's hash of a key, as an unsigned number.

    >>> murmur2(b"21") == -973932308 & 0xFFFFFFFF
    True
    """
    whole = len(data) & ~3
    h = _SEED ^ len(data)
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        h = (h * _M & _MASK) ^ ((k ^ k >> 24) * _M & _MASK)
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


@lru_cache(1 << 16)
def partition_for(key: bytes, partitions: int) -> int:
    """The partition of a key; the same as Kafka's default."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
