"""Spans of time as Flink writes them."""

from __future__ import annotations

import re


def flink_span(span: str) -> str:
    """A span in our words: Flink writes `1 h`, `10 min`."""
    words = {
        "min": "m",
        "minute": "m",
        "minutes": "m",
        "sec": "s",
        "second": "s",
        "seconds": "s",
        "hour": "h",
        "hours": "h",
    }
    days = {"day": "d", "days": "d"}
    return re.sub(r"[a-z]+", lambda m: {**words, **days}.get(m[0], m[0]), span.lower())
