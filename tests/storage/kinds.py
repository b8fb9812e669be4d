"""Every storage there is, for the contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from penstock.storage import LocalStorage, MemoryStorage, ScopedStorage, Storage
from tests.storage.objects import ObjectStorage

KINDS: dict[str, Callable[[Path], Storage]] = {
    "local": lambda path: LocalStorage(path / "root"),
    "local, shared": lambda path: LocalStorage(path / "root", is_private=False),
    "memory": lambda _: MemoryStorage(),
    "scoped local": lambda path: ScopedStorage(LocalStorage(path / "root"), "a/part"),
    "scoped memory": lambda _: ScopedStorage(MemoryStorage(), "a/part"),
    "objects": lambda _: ObjectStorage(),
}
FLAT = ("objects",)
"""Those that do not tell a name from the beginning of another."""
