"""Subqueries of one value in queries with groups: they are joined with the groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.expr.translate import Swap
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.queries.subqueries import aggregates_in, scalar_value, scalars_in
from penstock.graph.expr import Column, Expr
from penstock.graph.nodes import Port


def shown_of(tree: exp.Select) -> list[exp.Expr]:
    """What is computed of the groups: the select list and HAVING."""
    return [*tree.expressions, *filter(None, [tree.args.get("having")])]


@dataclass(frozen=True)
class LateValues:
    """Subqueries of one value in the select list and HAVING: they are joined with the groups, and not with the rows.

    Args:
        trees: the subqueries, by the name of a column that stands for each until then.
    """

    trees: dict[str, exp.Subquery]

    @classmethod
    def of(cls, planning: Planning, tree: exp.Select) -> LateValues:
        """Those that stand in no aggregate."""
        inside = [c for each in shown_of(tree) for c in aggregates_in(each, planning.catalog)]
        early = {id(found) for call in inside for found in scalars_in(call)}
        late = [found for each in shown_of(tree) for found in scalars_in(each) if id(found) not in early]
        return cls({f"$value{at}": each for at, each in enumerate(late)})

    def swap(self, more: Swap) -> Swap:
        """What a subquery stands for in an expression."""
        known = {id(tree): Column(name) for name, tree in self.trees.items()}
        return lambda tree: known[id(tree)] if id(tree) in known else more(tree)

    def joined(
        self, planning: Planning, rows: Relation, grouped: dict[str, Expr], port: Port
    ) -> tuple[Port, Callable[[Expr], Expr | None]]:
        """The groups with the values beside them, and what stands for each."""
        keys = {e.name: n for n, e in grouped.items() if isinstance(e, Column)}
        columns = tuple(replace(c, field=keys[c.field]) for c in rows.columns if c.field in keys)
        relation, found = Relation(port, columns), dict[str, Expr]()
        for name, tree in self.trees.items():
            relation, found[name] = scalar_value(planning, relation, tree)
        return relation.port, lambda each: found.get(each.name) if isinstance(each, Column) else None
