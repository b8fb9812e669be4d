"""Functions of processing time, as expressions over the column that holds it."""

from __future__ import annotations

from penstock.frontends.sql.expr.functions import SPECIAL, FunctionContext
from penstock.graph import types as t
from penstock.graph.expr import Call, Cast, Column, Expr

CLOCK, NOW = "$clock", "$now"
"""The name of the column that holds the processing time, which no statement can write."""
CLOCKS = (
    "current_timestamp",
    "now",
    "localtimestamp",
    "current_row_timestamp",
    "current_date",
    "unix_timestamp",
)


def _now(context: FunctionContext) -> Expr:
    found = context.translator.scope.find(CLOCK, NOW, context.tree)
    if context.arguments or found is None:
        raise context.error(
            f"{context.name.upper()} stands in the select list, WHERE or computed columns, over rows that only come; elsewhere take the time "  # noqa: S608 - a message
            "from the rows"
        )
    return Column(found.field)


def _date(context: FunctionContext) -> Expr:
    return Cast(_now(context), t.DATE)


def _seconds(context: FunctionContext) -> Expr:
    if context.arguments:
        return Call("unix_timestamp", context.values())
    return Call("unix_seconds", (_now(context),))


SPECIAL.update({**dict.fromkeys(CLOCKS, _now), "current_date": _date, "unix_timestamp": _seconds})
