from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.log_commands import Commands


@pytest.fixture
def penstock(tmp_path: Path) -> Commands:
    """The command line, on a log that is not there yet."""
    return Commands(tmp_path / "log")
