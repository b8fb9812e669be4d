"""What became of a list of events, and how events are shown in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

Events: TypeAlias = dict[str, list[int]]
"""The numbers of the events that each stage or tag has, from 1."""


@dataclass(frozen=True)
class Explanation:
    """What became of a list of events; as text, line by line.

    Args:
        matches: the events of each match, by stage or tag, numbered from 1 in the order in which they are looked at.
        timed_out: the events of each run whose time was up.
        open: the events of each run that still waits when the events end, and what it waits for.
        lines: what each event did.

    >>> import penstock as ps
    >>> from penstock.testing import explain_match
    >>> paid = ps.pattern("paid").begin("order", "kind = 'order'").next("paid", "kind = 'paid'")
    >>> explain_match(paid, ["order", "paid"], "kind string").matches
    [{'order': [1], 'paid': [2]}]
    """

    matches: list[Events] = field(default_factory=list)
    timed_out: list[Events] = field(default_factory=list)
    open: list[tuple[Events, str]] = field(default_factory=list)
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.lines)


def shown_fields(names: Sequence[str], values: Sequence[object]) -> str:
    """An event as its fields."""
    return ", ".join(f"{name}={_text(value)}" for name, value in zip(names, values, strict=True))


def shown_events(events: Events) -> str:
    """The numbers of events by stage or tag: `order=1 paid=2,3`."""
    return " ".join(f"{name}={','.join(map(str, numbers))}" for name, numbers in events.items())


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else repr(value)
