"""Every storage there is, for the contract."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.storage import LocalStorage, MemoryStorage, ScopedStorage, Storage, storage_at
from tests.storage.objects import ObjectStorage

KINDS: dict[str, Callable[[Path], Storage]] = {
    "local": lambda path: LocalStorage(path / "root"),
    "local, shared": lambda path: LocalStorage(path / "root", is_private=False),
    "memory": lambda _: MemoryStorage(),
    "scoped local": lambda path: ScopedStorage(LocalStorage(path / "root"), "a/part"),
    "scoped memory": lambda _: ScopedStorage(MemoryStorage(), "a/part"),
    "objects": lambda _: ObjectStorage(),
}
SERVERS = ("s3", "hdfs")
"""Those behind a server, which the fixture of the same name starts."""
_MARKS = {"hdfs": [pytest.mark.spark, pytest.mark.slow]}
"""A NameNode and its DataNodes take a while to start."""
ALL = [*KINDS, *(pytest.param(name, marks=_MARKS.get(name, [pytest.mark.spark])) for name in SERVERS)]
FLAT = ("objects", "s3")
"""Those that do not tell a name from the beginning of another."""


def make(kind: str, path: Path, request: pytest.FixtureRequest) -> Storage:
    """A storage of a kind, with nothing in it."""
    if kind in SERVERS:
        return storage_at(f"{request.getfixturevalue(kind)}/{uuid.uuid4().hex}")
    return KINDS[kind](path)
