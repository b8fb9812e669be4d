"""Which storage keeps what is under an address.

Checkpoints, savepoints and dead-letter queues are addressed by paths or URLs. Under a path is a storage that was mounted there, or files of this machine; under a URL the
storage that it names. Whoever keeps something asks `open_storage`, and does not know which.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.location import Address, Location
from penstock.storage.base import Storage
from penstock.storage.local import LocalStorage
from penstock.storage.mirrored import MirroredStorage
from penstock.storage.private import make_private
from penstock.storage.scoped import ScopedStorage
from penstock.storage.urls import storage_at

_MOUNTS: dict[Path, Storage] = {}


def open_storage(address: Address) -> Storage:
    """The storage of what is under an address.

    Args:
        address: a path, or the location that a URL names.

    Returns:
        A storage; names are relative to the address.

    >>> from pathlib import Path
    >>> from penstock.storage import open_storage
    >>> open_storage(Path("/tmp/x"))
    LocalStorage(root=PosixPath('/tmp/x'), is_private=True)
    """
    if isinstance(address, Location):
        return storage_at(address.url)
    for mount in (address, *address.parents):
        if mount in _MOUNTS:
            below = address.relative_to(mount).as_posix()
            return _MOUNTS[mount] if below == "." else ScopedStorage(_MOUNTS[mount], below)
    return LocalStorage(address)


@contextmanager
def mounted(address: Path, storage: Storage) -> Iterator[Path]:
    """Has a storage keep what is under an address, as long as the context lasts.

    >>> from penstock.storage.memory import MemoryStorage
    >>> with mounted(Path("/objects"), MemoryStorage()) as there:
    ...     open_storage(there / "a").write("b", b"1")
    ...     open_storage(there).read("a/b")
    b'1'
    """
    _MOUNTS[address] = storage
    try:
        yield address
    finally:
        del _MOUNTS[address]


def make_directory(address: Address) -> None:
    """Makes a directory that another program, such as Spark, expects to find; a storage of objects has none to make."""
    if isinstance(address, Path) and _has_files(open_storage(address)):
        make_private(address)


def _has_files(storage: Storage) -> bool:
    """Whether what is under a path is there as files."""
    if isinstance(storage, ScopedStorage):
        return isinstance(storage.storage, MirroredStorage)
    return isinstance(storage, LocalStorage | MirroredStorage)
