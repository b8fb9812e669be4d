from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.log import Log


@pytest.fixture
def fast_path() -> Iterator[Path]:
    """A directory in memory, where there is one: for tests that make thousands of logs."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """A fresh log."""
    with Log(tmp_path / "log") as opened:
        yield opened
