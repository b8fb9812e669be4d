"""Durable bytes under names: the one seam through which state, manifests, ledgers and savepoints are kept.

`Storage` is what those ask for; `LocalStorage` keeps objects as files of this machine, `MemoryStorage` for as long as a test lasts. `storage_at`
opens the storage that a URL names; `open_storage` returns the storage of an address.
"""

from penstock.location import is_url
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
from penstock.storage.cached import CachedStorage
from penstock.storage.local import LocalStorage
from penstock.storage.memory import MemoryStorage
from penstock.storage.mirrored import MirroredStorage, has_only_name, shared_side
from penstock.storage.mounts import make_directory, mounted, open_storage
from penstock.storage.objects import checksum, copy_object, delete_under, exists, move_object, names_under, number_of
from penstock.storage.scoped import ScopedStorage
from penstock.storage.urls import storage_at

__all__ = [
    "CachedStorage",
    "Conflict",
    "Data",
    "Entry",
    "LocalStorage",
    "MemoryStorage",
    "MirroredStorage",
    "NotFound",
    "ScopedStorage",
    "Storage",
    "StorageError",
    "Version",
    "checksum",
    "copy_object",
    "delete_under",
    "exists",
    "has_only_name",
    "is_url",
    "make_directory",
    "mounted",
    "move_object",
    "names_under",
    "number_of",
    "object_name",
    "open_storage",
    "read_if_present",
    "shared_side",
    "storage_at",
]
