"""Which functions of a query are aggregates, and where it calls them."""

from __future__ import annotations

from sqlglot import exp

from penstock.frontends.sql.catalog.catalog import Catalog
from penstock.frontends.sql.expr.functions import MADE, OTHER_NAMES
from penstock.graph.aggregates.aggregate import RECIPES
from penstock.graph.expr import AGGREGATES, AggregateFunction


def is_aggregate_name(name: str, catalog: Catalog) -> bool:
    """Whether a function is an aggregate."""
    own = catalog.function(name)
    if own is not None:
        return isinstance(own, AggregateFunction)
    plain = OTHER_NAMES.get(name.lower(), name.lower())
    return plain in AGGREGATES or plain in RECIPES or plain in MADE


def is_aggregated(tree: exp.Select, catalog: Catalog) -> bool:
    """Whether a SELECT has GROUP BY, HAVING or aggregates of its own."""
    if tree.args.get("group") is not None or tree.args.get("having") is not None:
        return True
    return any(holds_aggregate(each, catalog) for each in tree.expressions)


def holds_aggregate(tree: exp.Expr, catalog: Catalog) -> bool:
    """Whether an expression calls an aggregate outside of OVER and of subqueries."""
    if isinstance(tree, exp.Window | exp.Query):
        return False
    if isinstance(tree, exp.Anonymous) and is_aggregate_name(str(tree.this), catalog):
        return True
    return any(holds_aggregate(part, catalog) for part in tree.iter_expressions())


def aggregates_in(tree: exp.Expr, catalog: Catalog) -> list[exp.Expr]:
    """The aggregates of an expression, each with its FILTER."""
    if isinstance(tree, exp.Window | exp.Query):
        return []
    if isinstance(tree, exp.Filter) or (isinstance(tree, exp.Anonymous) and is_aggregate_name(str(tree.this), catalog)):
        return [tree]
    return [each for part in tree.iter_expressions() for each in aggregates_in(part, catalog)]
