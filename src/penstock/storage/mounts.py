"""Which storage keeps what is under an address.

Flows, checkpoints and savepoints are addressed by paths. Under a path is a storage that was mounted there, or files of this machine: whoever keeps
something asks `open_storage`, and does not know which.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.storage.base import Storage
from penstock.storage.local import LocalStorage
from penstock.storage.private import make_private
from penstock.storage.scoped import ScopedStorage

_MOUNTS: dict[Path, Storage] = {}


def open_storage(address: Path) -> Storage:
    """The storage of what is under an address.

    >>> open_storage(Path("/tmp/x"))
    LocalStorage(root=PosixPath('/tmp/x'), is_private=True)
    """
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


def make_directory(address: Path) -> None:
    """Makes a directory that another program, such as Spark, expects to find; a storage of objects has none to make."""
    if isinstance(open_storage(address), LocalStorage):
        make_private(address)
