"""Spans of time as people write them."""

from __future__ import annotations

import typer

from penstock.errors import FlowError
from penstock.graph.duration import WRITTEN, micros


def seconds(text: str) -> float:
    """The seconds in `500ms`, `20s`, `5m`, `1h`, `1h30m`; a bare number counts seconds.

    >>> seconds("500ms"), seconds("1h30m"), seconds("2")
    (0.5, 5400.0, 2.0)
    """
    try:
        return micros(text) / 1_000_000
    except FlowError:
        raise typer.BadParameter(f"expected {WRITTEN}, got {text!r}") from None


def clock(span: float) -> str:
    """A span as a clock shows it.

    >>> clock(42), clock(3661)
    ('00:42', '1:01:01')
    """
    minutes, rest = divmod(int(span), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"
