"""A failure on its way from where records are to the driver: one word inside a longer text."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from typing import Any

MARK = "penstock-failure:"
"""Stands in front of the word."""


def encode(failure: dict[str, Any]) -> str:
    """A failure as one word."""
    return base64.b64encode(json.dumps(failure).encode()).decode()


def decode(text: str) -> dict[str, Any] | None:
    """The failure inside a longer text, if one is there; the text may also show the part of a plan that makes the word.

    >>> decode(f"concat('{MARK}', x) ... {MARK}{encode({'step': 'parse'})} at ...")
    {'step': 'parse'}
    """
    for word in re.findall(f"{MARK}([A-Za-z0-9+/=]+)", text):
        with contextlib.suppress(ValueError):
            made: dict[str, Any] = json.loads(base64.b64decode(word))
            return made
    return None
