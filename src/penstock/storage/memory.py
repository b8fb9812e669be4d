"""Objects in memory, for tests."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Iterator
from pathlib import Path

from penstock.storage.base import (
    Conflict,
    Data,
    Entry,
    NotFound,
    StorageError,
    Version,
    check_name,
    joined,
    version_of,
)


class MemoryStorage:
    """Keeps objects for as long as it lives.

    >>> kept = MemoryStorage()
    >>> kept.write("a/b", b"hello")
    >>> kept.read("a/b", 1, 3), [entry.name for entry in kept.list("a/")]
    (b'ell', ['a/b'])
    """

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        """The bytes of an object from `begin`, at most `length` of them."""
        return self._content(name)[begin : None if length is None else begin + length]

    def size(self, name: str) -> int:
        """How many bytes an object has."""
        return len(self._content(name))

    def write(self, name: str, data: Data) -> None:
        """Writes an object as a whole."""
        content = joined(data)
        with self._lock:
            self._put(name, content)

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Writes an object unless there is one of this name."""
        content = joined(data)
        with self._lock:
            if check_name(name) in self._objects:
                return False
            self._put(name, content)
            return True

    def read_versioned(self, name: str) -> tuple[bytes, Version]:
        """An object and the version of what was read."""
        content = self._content(name)
        return content, version_of(content)

    def compare_and_swap(self, name: str, expected: Version | None, data: Data) -> Version:
        """Replaces the content of an object if it is still the expected one."""
        content = joined(data)
        with self._lock:
            current = self._objects.get(check_name(name))
            if (None if current is None else version_of(current)) != expected:
                raise Conflict(f"{name!r} was changed by another writer")
            self._put(name, content)
        return version_of(content)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """The objects whose names begin with a prefix, in order of their names."""
        with self._lock:
            found = sorted(Entry(n, len(c)) for n, c in self._objects.items() if n.startswith(prefix))
        return iter(found)

    def children(self, prefix: str = "") -> builtins.list[str]:
        """The parts that follow a prefix in the names of objects, in order."""
        return sorted({entry.name.removeprefix(prefix).partition("/")[0] for entry in self.list(prefix)})

    def delete(self, *names: str) -> None:
        """Deletes objects."""
        with self._lock:
            for name in map(check_name, names):
                self._objects.pop(name, None)

    def local_path(self, name: str) -> Path | None:
        """None: nothing here is a file."""
        check_name(name)
        return None

    def _content(self, name: str) -> bytes:
        try:
            return self._objects[check_name(name)]
        except KeyError:
            raise NotFound(f"there is no object {name!r}") from None

    def _put(self, name: str, content: bytes) -> None:
        parts = check_name(name).split("/")
        above = {"/".join(parts[:n]) for n in range(1, len(parts))}
        if above & self._objects.keys() or any(other.startswith(f"{name}/") for other in self._objects):
            raise StorageError(f"{name!r} cannot be an object: another has it as a part of its name")
        self._objects[name] = content
