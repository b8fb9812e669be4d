"""Times in the texts of records."""

from __future__ import annotations

import datetime

from penstock.errors import ExpressionError
from penstock.graph import types as t
from penstock.graph.expr.literals import to_date, to_timestamp


def moment_of_text(text: str, kind: t.DataType) -> datetime.date:
    """A date or a timestamp; one without a time zone is spelled without one.

    >>> moment_of_text("2026-05-01T12:00:00Z", t.TIMESTAMP).isoformat()
    '2026-05-01T12:00:00+00:00'
    """
    try:
        if kind == t.DATE:
            return to_date(text)
        if kind == t.TIMESTAMP:
            return to_timestamp(text)
        return to_timestamp(text, zoned=False).replace(tzinfo=None)
    except ExpressionError as error:
        raise ValueError(f"{error}; the years 1 to 9999 are known") from None
