"""What is often asked of a storage, in terms of what every storage has."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from penstock.storage.base import NotFound, Storage, check_name
from penstock.storage.local import LocalStorage
from penstock.storage.scoped import ScopedStorage

PART = 1 << 22
"""How many bytes are read at once while an object is copied or summed up."""


def exists(storage: Storage, name: str) -> bool:
    """Whether there is an object of this name."""
    try:
        return storage.size(name) >= 0
    except NotFound:
        return False


def number_of(name: str) -> int:
    """The number in the name of an object that is one of many: of a feed, of a ledger.

    >>> number_of("sources/words/feed/feed-000000012.parquet")
    12
    """
    return int(name.rpartition("-")[2].split(".")[0])


def names_under(storage: Storage, prefix: str) -> list[str]:
    """The names of the objects whose names begin with a prefix, in order."""
    return [each.name for each in storage.list(prefix)]


def delete_under(storage: Storage, prefix: str) -> None:
    """Deletes all objects whose names begin with a prefix."""
    storage.delete(*names_under(storage, prefix))


def read_parts(storage: Storage, name: str) -> Iterator[bytes]:
    """An object in parts, so that a large one need not be in memory."""
    begin = 0
    while part := storage.read(name, begin, PART):
        yield part
        begin += len(part)


def checksum(storage: Storage, name: str) -> tuple[int, int]:
    """The size and the CRC-32 of an object.

    Raises:
        NotFound: There is no such object.
    """
    crc, size = 0, 0
    for part in read_parts(storage, name):
        crc, size = zlib.crc32(part, crc), size + len(part)
    return size, crc


def copy_object(source: Storage, name: str, target: Storage, copied: str, *, link: bool = True) -> None:
    """Makes an object in another storage, unless one of that name is there.

    Args:
        source: Where the object is.
        name: Its name there.
        target: Where it goes.
        copied: Its name there.
        link: Whether a second name for the same file does, where both storages keep files. Objects are replaced and never changed, so neither
            sees what is done to the other.

    Raises:
        NotFound: There is no such object.
    """
    if not (link and _link(source, name, target, copied)):
        source.size(name)
        target.put_if_absent(copied, read_parts(source, name))


@runtime_checkable
class CopyingStorage(Protocol):
    """A storage that can copy an object itself, so that its bytes do not travel."""

    def copy(self, name: str, copied: str) -> None:
        """Makes a second object of the same content, in place of one that is there."""


def move_object(storage: Storage, name: str, moved: str) -> None:
    """Gives an object another name, in place of one that is there. Both are there for a moment, and nobody sees a part of one.

    >>> from penstock.storage.memory import MemoryStorage
    >>> kept = MemoryStorage()
    >>> kept.write("a", b"1")
    >>> move_object(kept, "a", "b/c")
    >>> names_under(kept, "")
    ['b/c']

    Raises:
        NotFound: There is no such object.
    """
    root, prefix = _rooted(storage, "")
    if isinstance(root, CopyingStorage):
        root.copy(prefix + check_name(name), prefix + check_name(moved))
    else:
        storage.size(name)
        storage.write(moved, read_parts(storage, name))
    storage.delete(name)


def _rooted(storage: Storage, prefix: str) -> tuple[Storage, str]:
    """The storage of which others are parts, and the prefix of this part there."""
    if isinstance(storage, ScopedStorage):
        return _rooted(storage.storage, f"{storage.prefix}/{prefix}")
    return storage, prefix


def _link(source: Storage, name: str, target: Storage, copied: str) -> bool:
    if isinstance(target, ScopedStorage):
        return _link(source, name, target.storage, f"{target.prefix}/{copied}")
    path = source.local_path(name)
    return path is not None and isinstance(target, LocalStorage) and target.link(path, copied)
