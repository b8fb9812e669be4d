"""A part of a storage: what is under a prefix, as a storage of its own."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.storage.base import Data, Entry, Storage, Version, check_name


@dataclass(frozen=True)
class ScopedStorage:
    """What `storage` keeps under `prefix`, by names that leave the prefix out.

    >>> from penstock.storage.memory import MemoryStorage
    >>> kept = MemoryStorage()
    >>> ScopedStorage(kept, "a/b").write("c", b"1")
    >>> [entry.name for entry in kept.list()], [entry.name for entry in ScopedStorage(kept, "a").list()]
    (['a/b/c'], ['b/c'])
    """

    storage: Storage
    prefix: str

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        """The bytes of an object from `begin`, at most `length` of them."""
        return self.storage.read(self._full(name), begin, length)

    def size(self, name: str) -> int:
        """How many bytes an object has."""
        return self.storage.size(self._full(name))

    def write(self, name: str, data: Data) -> None:
        """Writes an object as a whole."""
        self.storage.write(self._full(name), data)

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Writes an object unless there is one of this name."""
        return self.storage.put_if_absent(self._full(name), data)

    def read_versioned(self, name: str) -> tuple[bytes, Version]:
        """An object and the version of what was read."""
        return self.storage.read_versioned(self._full(name))

    def compare_and_swap(self, name: str, expected: Version | None, data: Data) -> Version:
        """Replaces the content of an object if it is still the expected one."""
        return self.storage.compare_and_swap(self._full(name), expected, data)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """The objects whose names begin with a prefix, in order of their names."""
        above = len(self.prefix) + 1
        return (Entry(each.name[above:], each.size) for each in self.storage.list(f"{self.prefix}/{prefix}"))

    def children(self, prefix: str = "") -> builtins.list[str]:
        """The parts that follow a prefix in the names of objects, in order."""
        return self.storage.children(f"{self.prefix}/{prefix}")

    def delete(self, *names: str) -> None:
        """Deletes objects."""
        self.storage.delete(*map(self._full, names))

    def local_path(self, name: str) -> Path | None:
        """The file of this machine that holds an object; None where there is none."""
        return self.storage.local_path(self._full(name))

    def _full(self, name: str) -> str:
        return f"{self.prefix}/{check_name(name)}"
