"""Totals over a window of CQL that slides: they are there at the instants at which the window holds no rows too."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.queries.scalars import COUNTS
from penstock.graph.expr import Call, Cast, Expr, lit
from penstock.graph.nodes import Port
from penstock.graph.nodes.window import WINDOW_END, WINDOW_START
from penstock.graph.relational.instants import add_empty_instants, add_images

EMPTY_INSTANTS = "empty_instants"
"""Where a total over a window of CQL is noted, in `meta`, which is there at instants without rows too."""


@dataclass(frozen=True)
class EmptyInstants:
    """What becomes of the instants at which a window that slides holds no rows.

    Args:
        slide: the time between two instants, in microseconds.
        compared: whether one instant is compared with the next; else all are rows of the result.
    """

    slide: int
    compared: bool


def at_empty_instants(planning: Planning, tree: exp.Select, calls: dict[str, Expr], port: Port) -> Port:
    """A total over a window of CQL, with what it is at the instants without rows; all else as it is."""
    asked = tree.meta.get(EMPTY_INSTANTS)
    if not isinstance(asked, EmptyInstants):
        return port
    name, bounds = planning.step("instants"), (WINDOW_START, WINDOW_END)
    fields = (f for f in planning.schema(port).fields if f.name not in bounds)
    empty: dict[str, Expr] = {f.name: Cast(_over_nothing(calls.get(f.name)), f.type) for f in fields}
    if asked.compared:
        return planning.adding(lambda: add_images(planning.builder, name, port, bounds, empty), tree)
    return planning.adding(lambda: add_empty_instants(planning.builder, name, port, bounds, asked.slide, empty), tree)


def _over_nothing(call: Expr | None) -> Expr:
    """An aggregate over no rows."""
    return lit(0 if call is None or (isinstance(call, Call) and call.name in COUNTS) else None)
