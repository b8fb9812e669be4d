"""Objects in two storages: one that machines share and that makes them durable, and files of this machine that another program reads."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.storage.base import Conflict, Data, Entry, Storage, Version, joined, read_if_present
from penstock.storage.scoped import ScopedStorage


@dataclass(frozen=True)
class MirroredStorage:
    """What `shared` keeps, with a copy in `local`, which answers all that is read.

    An object is durable in `shared` before the copy shows it. Objects that `is_final` names never change: of two writers one gets a
    `Conflict`, and so does one that replaces an object that `is_swapped` names where `shared` has another than `local`. Objects that `is_local` names are in `local` alone. Of objects that `is_name` names `local` has an empty file: another program is to
    see that they are there, and `shared` answers what is in them.

    >>> from penstock.storage.memory import MemoryStorage
    >>> shared, local = MemoryStorage(), MemoryStorage()
    >>> both = MirroredStorage(shared, local, is_local=lambda name: name == "pace")
    >>> both.write("feed", b"1"); both.write("pace", b"2")
    >>> [entry.name for entry in shared.list()], [entry.name for entry in both.list()]
    (['feed'], ['feed', 'pace'])
    """

    shared: Storage
    local: Storage
    check: Callable[[], None] = lambda: None
    """Called before anything is written or deleted; raises where this process may not write any more."""
    is_final: Callable[[str], bool] = lambda name: False
    is_local: Callable[[str], bool] = lambda name: False
    is_name: Callable[[str], bool] = lambda name: False
    is_swapped: Callable[[str], bool] = lambda name: False
    _sent: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)
    """The content that was sent last to each object that `is_swapped` names."""

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        """The bytes of an object from `begin`, at most `length` of them."""
        return self._holder(name).read(name, begin, length)

    def size(self, name: str) -> int:
        """How many bytes an object has."""
        return self._holder(name).size(name)

    def _holder(self, name: str) -> Storage:
        return self.shared if self.is_name(name) else self.local

    def write(self, name: str, data: Data) -> None:
        """Writes an object as a whole, first where it is durable."""
        content = joined(data)
        if not self.is_local(name):
            self.check()
            self._share(name, content)
        self._show(name, content)

    def _show(self, name: str, content: bytes) -> None:
        self.local.write(name, b"" if self.is_name(name) else content)

    def _share(self, name: str, content: bytes) -> None:
        if self.is_swapped(name):
            self._swap(name, content)
        elif not self.is_final(name):
            self.shared.write(name, content)
        elif not self.shared.put_if_absent(name, content) and self.shared.read(name) != content:
            raise Conflict(f"{name!r} was written by another driver of the same flow")

    def _swap(self, name: str, content: bytes) -> None:
        """Replaces an object of which this process knows the content: also when it was paused before, nothing of another writer goes.

        What it has sent before without an answer may be there too: that is its own.
        """
        known, found = read_if_present(self.local, name), read_if_present(self.shared, name)
        own = (known and known[0], self._sent.get(name, known and known[0]))
        if (found and found[0]) not in own:
            raise Conflict(f"{name!r} was written by another driver of the same flow")
        self._sent[name] = content
        self.shared.compare_and_swap(name, found and found[1], content)

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Writes an object unless there is one of this name."""
        content = joined(data)
        if self.is_local(name):
            return self.local.put_if_absent(name, content)
        self.check()
        if not self.shared.put_if_absent(name, content):
            return False
        self._show(name, content)
        return True

    def read_versioned(self, name: str) -> tuple[bytes, Version]:
        """An object and the version of what was read."""
        return self._holder(name).read_versioned(name)

    def compare_and_swap(self, name: str, expected: Version | None, data: Data) -> Version:
        """Replaces the content of an object; `expected` is a version that `read_versioned` gave."""
        content = joined(data)
        version = self.local.compare_and_swap(name, expected, content)
        if not self.is_local(name):
            self.check()
            self.shared.write(name, content)
        return version

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """The objects whose names begin with a prefix, in order of their names."""
        return self.local.list(prefix)

    def children(self, prefix: str = "") -> builtins.list[str]:
        """The parts that follow a prefix in the names of objects, in order."""
        return self.local.children(prefix)

    def delete(self, *names: str) -> None:
        """Deletes objects, first where others would find them."""
        shared = [name for name in names if not self.is_local(name)]
        if shared:
            self.check()
            self.shared.delete(*shared)
        self.local.delete(*names)

    def local_path(self, name: str) -> Path | None:
        """The file of this machine that holds an object; None where there is none."""
        return None if self.is_name(name) else self.local.local_path(name)


def shared_side(storage: Storage) -> Storage:
    """Where a storage keeps its objects durably: for whoever writes from another process, in which there is no copy.

    >>> from penstock.storage.memory import MemoryStorage
    >>> shared = MemoryStorage()
    >>> shared_side(MirroredStorage(shared, MemoryStorage())) is shared
    True
    """
    if isinstance(storage, ScopedStorage):
        return ScopedStorage(shared_side(storage.storage), storage.prefix)
    return shared_side(storage.shared) if isinstance(storage, MirroredStorage) else storage


def has_only_name(storage: Storage, name: str) -> bool:
    """Whether this machine has no more of an object than its name.

    >>> from penstock.storage.memory import MemoryStorage
    >>> both = MirroredStorage(MemoryStorage(), MemoryStorage(), is_name=lambda name: name == "a/feed")
    >>> has_only_name(ScopedStorage(both, "a"), "feed"), has_only_name(both, "feed")
    (True, False)
    """
    if isinstance(storage, ScopedStorage):
        return has_only_name(storage.storage, f"{storage.prefix}/{name}")
    return isinstance(storage, MirroredStorage) and storage.is_name(name)
