"""A storage that can do what an object store can, and nothing more: no directories, no rename, no append, no files of this machine.

A version is what the store says it is (a number that counts up, as with the generations of some), not a hash that others could work out.
"""

from __future__ import annotations

import builtins
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

from penstock.storage import Conflict, Data, Entry, NotFound, Version
from penstock.storage.base import check_name, joined


class ObjectStorage:
    """Objects by key. `requests` counts what was asked."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, Version]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self.requests: dict[str, int] = {}

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        """A GET with a range."""
        return self._get(name)[0][begin : None if length is None else begin + length]

    def size(self, name: str) -> int:
        """A HEAD."""
        return len(self._get(name)[0])

    def write(self, name: str, data: Data) -> None:
        """A PUT."""
        with self._lock:
            self._put(name, joined(data))

    def put_if_absent(self, name: str, data: Data) -> bool:
        """A PUT with If-None-Match."""
        content = joined(data)
        with self._lock:
            if check_name(name) in self._objects:
                return False
            self._put(name, content)
            return True

    def read_versioned(self, name: str) -> tuple[bytes, Version]:
        """A GET with the version of what it got."""
        return self._get(name)

    def compare_and_swap(self, name: str, expected: Version | None, data: Data) -> Version:
        """A PUT with If-Match, or If-None-Match."""
        content = joined(data)
        with self._lock:
            current = self._objects.get(check_name(name))
            if (None if current is None else current[1]) != expected:
                raise Conflict(f"{name!r} was changed by another writer")
            return self._put(name, content)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """A listing of keys."""
        with self._lock:
            self._count("list")
            return iter(sorted(Entry(n, len(c)) for n, (c, _) in self._objects.items() if n.startswith(prefix)))

    def children(self, prefix: str = "") -> builtins.list[str]:
        """A listing with a delimiter."""
        assert not prefix or prefix.endswith("/"), prefix
        return sorted({entry.name.removeprefix(prefix).partition("/")[0] for entry in self.list(prefix)})

    def delete(self, *names: str) -> None:
        """A DELETE for each key."""
        with self._lock:
            for name in map(check_name, names):
                self._count("delete")
                self._objects.pop(name, None)

    def local_path(self, name: str) -> Path | None:
        """None: nothing here is a file."""
        check_name(name)
        return None

    def _get(self, name: str) -> tuple[bytes, Version]:
        with self._lock:
            self._count("get")
            try:
                return self._objects[check_name(name)]
            except KeyError:
                raise NotFound(f"there is no object {name!r}") from None

    def _put(self, name: str, content: bytes) -> Version:
        self._count("put")
        version = Version(f"generation {next(self._numbers)}")
        self._objects[check_name(name)] = (content, version)
        return version

    def _count(self, request: str) -> None:
        self.requests[request] = self.requests.get(request, 0) + 1
