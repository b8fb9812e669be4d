"""A record with the name of the output it goes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tagged:
    """What `to` makes: a record and its output."""

    output: str
    record: Any


def to(output: str, record: object) -> Tagged:
    """Sends a record to a side output: `yield ps.to("bad", row)`."""
    return Tagged(output, record)
