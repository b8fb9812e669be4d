"""Finds the line of the user's file that made a step, so that errors can name it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_HERE = str(Path(__file__).resolve().parents[1])
_written_at: ContextVar[str] = ContextVar("written_at", default="")


def user_line() -> str:
    """The nearest line outside Penstock on the call stack, as `file.py:12`; that of a file which is read now, such as `flow.yaml:12`."""
    named = _written_at.get()
    if named:
        return named
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


@contextmanager
def written_at(line: str) -> Iterator[None]:
    """What is made inside was written at that line of a file that is no Python.

    >>> with written_at("flow.yaml:7"):
    ...     user_line()
    'flow.yaml:7'
    """
    token = _written_at.set(line)
    try:
        yield
    finally:
        _written_at.reset(token)
