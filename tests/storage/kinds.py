"""Every storage there is, for the contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from penstock.storage import LocalStorage, MemoryStorage, Storage

KINDS: dict[str, Callable[[Path], Storage]] = {
    "local": lambda path: LocalStorage(path / "root"),
    "local, shared": lambda path: LocalStorage(path / "root", is_private=False),
    "memory": lambda _: MemoryStorage(),
}
