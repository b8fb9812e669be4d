"""What a reader of records raises, and what it takes for it."""

from __future__ import annotations

import csv

ESCAPES = (ValueError, TypeError, ArithmeticError, LookupError, RecursionError, MemoryError, csv.Error)
"""Whatever gets out of a parser makes a bad record, not a failed batch."""


class Unreadable(ValueError):
    """A text that is not a record of the schema; the message says why."""


def reason(error: BaseException) -> str:
    """What a parser says; those that run out of something say nothing useful."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    return str(error) or type(error).__name__
