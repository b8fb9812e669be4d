"""Bounds in time: how far apart the event times of two sides may be, read from the conditions of a join."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from sqlglot import exp

from penstock.graph.expr import Call, Column, Expr, Literal

_MICRO = datetime.timedelta(microseconds=1)
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "="}


@dataclass(frozen=True)
class TimeBounds:
    """How far the right side's time may be after the left side's, in microseconds; None where nothing says so.

    `used` are the conditions that say it and nothing else.
    """

    low: int | None = None
    high: int | None = None
    used: tuple[exp.Expr, ...] = field(default=(), compare=False)

    @property
    def is_closed(self) -> bool:
        """Whether there is a bound on both sides."""
        return self.low is not None and self.high is not None and self.low <= self.high

    def narrowed(self, low: int | None, high: int | None, tree: exp.Expr) -> TimeBounds:
        """Both bounds, and these."""
        lows = [n for n in (self.low, low) if n is not None]
        highs = [n for n in (self.high, high) if n is not None]
        return TimeBounds(max(lows, default=None), min(highs, default=None), (*self.used, tree))


def bounds_of(conditions: list[tuple[exp.Expr, Expr]], left: str, right: str) -> TimeBounds:
    """The bounds that conditions on the times of both sides make.

    Args:
        conditions: the conditions, as they are written and as expressions over both sides.
        left: the field of the left side's event time.
        right: that of the right side's.
    """
    found = TimeBounds()
    for tree, made in conditions:
        parts = made.args if isinstance(made, Call) and made.name == "and" else (made,)
        spans = [_span(part, left, right) for part in parts]
        if all(span is not None for span in spans):
            for span in spans:
                assert span is not None
                found = found.narrowed(*span, tree)
    return found


def _span(made: Expr, left: str, right: str) -> tuple[int | None, int | None] | None:
    """The bounds of one comparison between the two times."""
    if not isinstance(made, Call) or made.name not in _TURNED or len(made.args) != 2:
        return None
    one, other = map(_moment, made.args)
    if one is None or other is None or {one[0], other[0]} != {left, right}:
        return None
    name = made.name if one[0] == right else _TURNED[made.name]
    ours, theirs = (one[1], other[1]) if one[0] == right else (other[1], one[1])
    distance = theirs - ours
    if name == "=":
        return distance, distance
    if name in (">=", ">"):
        return distance + (name == ">"), None
    return None, distance - (name == "<")


def _moment(made: Expr) -> tuple[str, int] | None:
    """A field and the microseconds that are added to it."""
    if isinstance(made, Column):
        return made.name, 0
    if isinstance(made, Call) and made.name in ("+", "-") and len(made.args) == 2:
        inner, span = _moment(made.args[0]), made.args[1]
        if inner is not None and isinstance(span, Literal) and isinstance(span.value, datetime.timedelta):
            return inner[0], inner[1] + (1 if made.name == "+" else -1) * (span.value // _MICRO)
    return None
