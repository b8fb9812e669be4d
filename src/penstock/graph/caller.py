"""Finds the line of the user's file that made a step, so that errors can name it."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = str(Path(__file__).resolve().parents[1])


def user_line() -> str:
    """The nearest line outside Penstock on the call stack, as `file.py:12`."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
