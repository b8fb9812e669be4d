"""Copies of objects that never change, on the disk of the machine that reads them: a worker maps a copy instead of asking the store again.

All processes of a machine and a user share the copies. What a process writes it also keeps, so the worker that reads it next finds it. The directory is bounded: the copies that were used longest ago go
first. A copy that turns out to be damaged is discarded, and the object is read again.

An object that another machine has written is not read as a whole: `partial` is a copy that has the parts that were asked for.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from penstock.storage.base import Data, Entry, Storage, Version, joined
from penstock.storage.partial import PartialCopy
from penstock.storage.private import make_private, open_private

MOST = 4 << 30
"""How many bytes of copies a machine keeps, unless `PENSTOCK_STATE_CACHE_BYTES` says otherwise."""


def _is_any(name: str) -> bool:
    return True


@dataclass(frozen=True)
class CachedStorage:
    """What `storage` keeps, with copies of the objects that `is_fixed` names on this machine.

    Such an object is written once and never replaced. `local_path` makes the copy.

    Attributes:
        storage: What keeps the objects.
        is_fixed: Says of a name whether its object never changes.
        directory: Where the copies are; by default one that is found on each machine.
        most: How many bytes they may have.
    """

    storage: Storage
    is_fixed: Callable[[str], bool] = _is_any
    directory: Path | None = None
    most: int = field(default_factory=lambda: int(os.environ.get("PENSTOCK_STATE_CACHE_BYTES") or MOST))

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        """The bytes of an object from `begin`, at most `length` of them."""
        return self.storage.read(name, begin, length)

    def size(self, name: str) -> int:
        """How many bytes an object has."""
        return self.storage.size(name)

    def write(self, name: str, data: Data) -> None:
        """Writes an object as a whole, and keeps a copy."""
        if not self.is_fixed(name):
            self.storage.write(name, data)
            return
        content = joined(data)
        self.storage.write(name, content)
        with suppress(OSError):
            self._keep(self.copy_of(name), content)

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Writes an object unless there is one of this name."""
        return self.storage.put_if_absent(name, data)

    def read_versioned(self, name: str) -> tuple[bytes, Version]:
        """An object and the version of what was read."""
        return self.storage.read_versioned(name)

    def compare_and_swap(self, name: str, expected: Version | None, data: Data) -> Version:
        """Replaces the content of an object if it is still the expected one."""
        return self.storage.compare_and_swap(name, expected, data)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """The objects whose names begin with a prefix, in order of their names."""
        return self.storage.list(prefix)

    def children(self, prefix: str = "") -> builtins.list[str]:
        """The parts that follow a prefix in the names of objects, in order."""
        return self.storage.children(prefix)

    def delete(self, *names: str) -> None:
        """Deletes objects; copies go when their room is needed."""
        self.storage.delete(*names)

    def local_path(self, name: str) -> Path | None:
        """The copy of an object that never changes, made if there is none; None for others, and where no copy can be made.

        Raises:
            NotFound: There is no such object.
        """
        if not self.is_fixed(name):
            return self.storage.local_path(name)
        copy = self.copy_of(name)
        if copy.is_file():
            with suppress(OSError):
                os.utime(copy)
            return copy
        content = self.storage.read(name)
        try:
            self._keep(copy, content)
        except OSError:  # a disk that is full, or a directory of another user
            return None
        return copy

    def complete(self, name: str) -> Path | None:
        """The copy of an object, if all of it is here; nothing is read for it."""
        copy = self.copy_of(name)
        return copy if copy.is_file() else None

    def partial(self, name: str, size: int) -> PartialCopy:
        """Parts of an object that never changes and has `size` bytes; in memory where no file of that size can be kept."""
        read, path = partial(self.storage.read, name), self._partial_of(name)
        try:
            self._check_room(path.parent, size)
            return PartialCopy.in_file(path, size, read, self._make_room)
        except (OSError, ValueError):  # a disk that is full, a directory of another user; nothing to map
            return PartialCopy.in_memory(size, read)

    def discard(self, name: str) -> None:
        """Removes the copy of an object, because it is damaged."""
        for copy in (self.copy_of(name), self._partial_of(name)):
            with suppress(OSError):
                copy.unlink()

    def _partial_of(self, name: str) -> Path:
        copy = self.copy_of(name)
        return copy.with_name(f"{copy.name}.part")

    def _check_room(self, directory: Path, size: int) -> None:
        """Refuses what cannot be kept in the directory of copies, which is made if it is not there."""
        if size > self.most // 2:
            raise OSError("too large to keep")
        make_private(directory)
        if directory.stat().st_uid != os.getuid():
            raise PermissionError("the directory belongs to another user")
        if shutil.disk_usage(directory).free < 2 * size:
            raise OSError("the disk is nearly full")

    def copy_of(self, name: str) -> Path:
        """Where the copy of an object is, or would be."""
        digest = hashlib.sha256(f"{self.storage!r} {name}".encode()).hexdigest()
        return self._directory / digest

    @property
    def _directory(self) -> Path:
        named = self.directory or os.environ.get("PENSTOCK_STATE_CACHE")
        return Path(named or Path(tempfile.gettempdir()) / f"penstock-state-{os.getuid()}")

    def _keep(self, copy: Path, content: bytes) -> None:
        """Makes a copy in one step; it need not survive the machine."""
        self._check_room(copy.parent, len(content))
        aside = copy.with_name(f".{uuid.uuid4().hex}")
        try:
            with open_private(aside) as file:
                file.write(content)
            aside.replace(copy)
        finally:
            aside.unlink(missing_ok=True)
        self._make_room(copy)

    def _make_room(self, newest: Path) -> None:
        """Removes the copies that were used longest ago, when there are too many."""
        found = sorted(_stats(newest.parent))
        total = sum(size for _, size, _ in found)
        for _, size, path in found:
            if total <= self.most:
                return
            if path != newest:
                path.unlink(missing_ok=True)
                total -= size


def _stats(directory: Path) -> Iterator[tuple[float, int, Path]]:
    for each in directory.iterdir():
        with suppress(FileNotFoundError):
            about = each.stat()
            yield about.st_mtime, min(about.st_size, about.st_blocks * 512), each  # a partial copy has holes
