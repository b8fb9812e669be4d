"""The clock of a storage: when it says that an object was written."""

from __future__ import annotations

from penstock.storage.base import Storage
from penstock.storage.scoped import ScopedStorage


def written_at(storage: Storage, name: str) -> float | None:
    """The moment at which an object was written, in seconds since 1970 by the storage's clock.

    Args:
        storage: The storage.
        name: An object of it.

    Returns:
        The moment, to the second where the store knows no better; None where a storage does not say.

    >>> from penstock.storage.memory import MemoryStorage
    >>> kept = MemoryStorage()
    >>> kept.write("a", b"1")
    >>> written_at(kept, "a") is None
    True
    """
    if isinstance(storage, ScopedStorage):
        return written_at(storage.storage, f"{storage.prefix}/{name}")
    path = storage.local_path(name)
    if path is not None:
        return path.stat().st_mtime
    modified = getattr(storage, "modified", None)
    return float(modified(name)) if modified is not None else None
