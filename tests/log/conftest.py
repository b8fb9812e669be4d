from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.log import Log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """A fresh log."""
    with Log(tmp_path / "log") as opened:
        yield opened
