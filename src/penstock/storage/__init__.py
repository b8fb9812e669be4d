"""Durable bytes under names: the one seam through which state, manifests, ledgers and savepoints are kept.

`Storage` is what those ask for; `LocalStorage` keeps objects as files of this machine, `MemoryStorage` for as long as a test lasts.
"""

from penstock.storage.base import (
    Conflict,
    Data,
    Entry,
    NotFound,
    Storage,
    StorageError,
    Version,
    object_name,
    read_if_present,
)
from penstock.storage.local import LocalStorage
from penstock.storage.memory import MemoryStorage

__all__ = [
    "Conflict",
    "Data",
    "Entry",
    "LocalStorage",
    "MemoryStorage",
    "NotFound",
    "Storage",
    "StorageError",
    "Version",
    "object_name",
    "read_if_present",
]
