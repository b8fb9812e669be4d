from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.log import Log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """A log with a topic `t` of one partition and `two` of two."""
    with Log(tmp_path / "log") as made:
        made.create_topic("t")
        made.create_topic("two", 2)
        yield made
