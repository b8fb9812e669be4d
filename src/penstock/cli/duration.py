"""Spans of time as people write them."""

from __future__ import annotations

import re

import typer

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(text: str) -> float:
    """The seconds in `500ms`, `20s`, `5m`, `1h`, `1h30m`; a bare number counts seconds.

    >>> seconds("500ms"), seconds("1h30m"), seconds("2")
    (0.5, 5400.0, 2.0)
    """
    text = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if not re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h|d))+", text):
        raise typer.BadParameter(f"{text!r} is not a span of time; write 500ms, 20s, 5m or 1h")
    return sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text))


def clock(span: float) -> str:
    """A span as a clock shows it.

    >>> clock(42), clock(3661)
    ('00:42', '1:01:01')
    """
    minutes, rest = divmod(int(span), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"
