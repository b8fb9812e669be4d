"""Intervals: INTERVAL '10' SECOND, INTERVAL '1:30' MINUTE TO SECOND."""

from __future__ import annotations

import datetime
import decimal

from sqlglot import exp

from penstock.errors import ExpressionError
from penstock.frontends.sql.text.source import SqlText
from penstock.graph.expr import Expr, Literal
from penstock.graph.expr.literals import MONTHS, interval_unit
from penstock.graph.expr.model import INTERVAL, INTERVAL_DAY, INTERVAL_MONTH

_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")


def interval_of(text: SqlText, tree: exp.Interval) -> Expr:
    """The constant of an interval.

    Raises:
        SqlError: it is not one.
    """
    months = months_of(text, tree)
    if months is not None:
        return Literal(months, INTERVAL_MONTH)
    span, days = span_of(text, tree)
    return Literal(span, INTERVAL_DAY if days else INTERVAL)


def months_of(text: SqlText, tree: exp.Interval) -> int | None:
    """The months of an interval of years and months; None where it is of other units."""
    unit, given = tree.args.get("unit"), tree.this
    is_span = isinstance(unit, exp.IntervalSpan)
    units = (unit.this, unit.expression) if isinstance(unit, exp.IntervalSpan) else (unit,)
    names = [part.name.lower().removesuffix("s") for part in units if part is not None]
    if not names or any(name not in MONTHS for name in names):
        return None
    sign, given = (-1, given.this) if isinstance(given, exp.Neg) else (1, given)
    written = str(given.this).strip() if isinstance(given, exp.Literal) else ""
    if written[:1] in ("-", "+"):
        sign, written = (-sign if written[0] == "-" else sign), written[1:]
    parts = written.split("-") if is_span else [written]
    if len(parts) != len(names) or not all(part.strip().isdigit() for part in parts):
        raise text.error(tree, f"expected INTERVAL '3' MONTH or INTERVAL '1-2' YEAR TO MONTH, got {written!r}")
    return sign * sum(int(part) * MONTHS[name] for part, name in zip(parts, names, strict=True))


def micros_of(text: SqlText, tree: exp.Expr, what: str) -> int:
    """The length of an interval in microseconds."""
    if not isinstance(tree, exp.Interval):
        raise text.error(tree, f"expected {what} as an interval such as INTERVAL '10' SECOND")
    return span_of(text, tree)[0] // datetime.timedelta(microseconds=1)


def span_of(text: SqlText, tree: exp.Interval) -> tuple[datetime.timedelta, bool]:
    """The length of an interval, and whether it is of whole days."""
    given, unit = tree.this, tree.args.get("unit")
    sign = 1
    if isinstance(given, exp.Neg):
        sign, given = -1, given.this
    if not isinstance(given, exp.Literal):
        raise text.error(tree, "expected an interval such as INTERVAL '10' SECOND, with a constant")
    written = str(given.this).strip()
    if written[:1] in ("-", "+"):
        sign, written = (-sign if written[0] == "-" else sign), written[1:].strip()
    try:
        if isinstance(unit, exp.IntervalSpan):
            return sign * _spread(written, unit.this.name.upper(), unit.expression.name.upper()), False
        if unit is None:
            written, _, name = written.partition(" ")
        else:
            name = unit.name
        step, days = interval_unit(name.strip())
        micros = decimal.Decimal(written) * (step // datetime.timedelta(microseconds=1))
        return sign * datetime.timedelta(microseconds=int(micros)), days
    except ExpressionError as error:
        raise text.error(tree, f"{error}; years and months have no fixed length") from None
    except (decimal.InvalidOperation, ValueError, OverflowError):
        raise text.error(tree, f"expected a number in an interval, got {written!r}") from None


def _spread(written: str, first: str, last: str) -> datetime.timedelta:
    """A span over several units: '1 02:03:04.5' DAY TO SECOND."""
    if first not in _UNITS or last not in _UNITS:
        raise ExpressionError(f"an interval goes from one of {', '.join(_UNITS)} to another, got {first} TO {last}")
    units = _UNITS[_UNITS.index(first) : _UNITS.index(last) + 1]
    parts = written.replace(" ", ":").split(":")
    if len(parts) != len(units):
        raise ValueError(written)
    names = {"DAY": "days", "HOUR": "hours", "MINUTE": "minutes", "SECOND": "seconds"}
    return datetime.timedelta(**{names[u]: float(p) for u, p in zip(units, parts, strict=True)})
