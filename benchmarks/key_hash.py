"""The key hash: candidates in Python, over a million keys. `python benchmarks/key_hash.py`."""

from __future__ import annotations

import pickle
import time
import zlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.kernels.hashing.columns import MURMUR3, XXHASH64, hash_columns
from penstock.kernels.hashing.key_hash import key_hashes

ROWS = 1_000_000


def _pickled(keys: pa.Array) -> object:
    """CRC-32 and Adler-32 of a pickle: the hash of the local host up to decision 10."""
    made = (pickle.dumps((key,), 5) for key in keys.to_pylist())
    return np.fromiter((zlib.crc32(d) << 31 | zlib.adler32(d) & 0x7FFFFFFF for d in made), np.int64)


CANDIDATES: dict[str, Callable[[pa.Array], object]] = {
    "crc32 and adler32 of a pickle": _pickled,
    "murmur3": lambda keys: hash_columns([keys], MURMUR3),
    "xxhash64": lambda keys: hash_columns([keys], XXHASH64),
    "murmur3 twice": lambda keys: (hash_columns([pa.nulls(len(keys)), keys], MURMUR3), hash_columns([keys], MURMUR3)),
    "key hash: xxhash64 and murmur3": lambda keys: key_hashes([keys], len(keys)),
}


def main() -> None:
    """Prints nanoseconds per key, the best of three."""
    numbers = np.random.default_rng(1).integers(0, 1 << 40, ROWS)
    kinds = {"bigint": pa.array(numbers), "string": pa.array([f"user-{n % 1_000_000}" for n in numbers.tolist()])}
    for name, candidate in CANDIDATES.items():
        taken = [min(_time(candidate, keys) for _ in range(3)) for keys in kinds.values()]
        print(name, *(f"{kind} {t * 1e9 / ROWS:.0f} ns" for kind, t in zip(kinds, taken, strict=True)), sep="  ")


def _time(candidate: Callable[[pa.Array], object], keys: pa.Array) -> float:
    begin = time.process_time()
    candidate(keys)
    return time.process_time() - begin


if __name__ == "__main__":
    main()
