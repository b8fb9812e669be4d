"""Waits for what a test looks for, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(holds: Callable[[], bool], seconds: float = 300) -> None:
    """Waits for something that another thread or process does; fails after a time that a busy machine does not need."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not happen within {seconds:g} s"
        time.sleep(0.02)
