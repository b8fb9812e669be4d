"""Subqueries in queries with groups: they are joined with the groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.expr.translate import Swap
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.queries.aggregate_calls import aggregates_in
from penstock.frontends.sql.plan.queries.quantified import subqueries_in, subquery_value, test_of
from penstock.graph.expr import Column, Expr
from penstock.graph.nodes import Port


def shown_of(tree: exp.Select) -> list[exp.Expr]:
    """What is computed of the groups: the select list and HAVING."""
    return [*tree.expressions, *filter(None, [tree.args.get("having")])]


def repeated(keys: list[exp.Expr], shown: list[exp.Expr], values: Swap | None) -> Swap | None:
    """What subqueries stand for, those among them that are written once more in the select list or HAVING as they are in a key."""
    if values is None:
        return None
    again = {id(found): key for each in shown for found, key in _same(each, keys)}
    return lambda tree: values(again.get(id(tree), tree))


def _same(tree: exp.Expr, keys: list[exp.Expr]) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """The subqueries of an expression that stand in a part of it that is written like a key, each with its like in the key."""
    key = next((each for each in keys if each is tree or each == tree), None)
    if key is not None:
        yield from zip(subqueries_in(tree), subqueries_in(key), strict=True)
    elif not isinstance(tree, exp.Query):
        for part in tree.iter_expressions():
            yield from _same(part, keys)


@dataclass(frozen=True)
class LateValues:
    """Subqueries in the select list and HAVING: they are joined with the groups, and not with the rows.

    Args:
        trees: the subqueries, by the name of a column that stands for each until then.
    """

    trees: dict[str, exp.Expr]

    @classmethod
    def of(cls, planning: Planning, tree: exp.Select, keys: list[exp.Expr]) -> LateValues:
        """Those that stand in no aggregate and in no key."""
        inside = [c for each in shown_of(tree) for c in aggregates_in(each, planning.catalog)]
        early = {id(found) for call in inside for found in subqueries_in(call)}
        early |= {id(found) for each in shown_of(tree) for found, _ in _same(each, keys)}
        late = [found for each in shown_of(tree) for found in subqueries_in(each) if id(found) not in early]
        return cls({f"$value{at}": each for at, each in enumerate(late)})

    def swap(self, more: Swap) -> Swap:
        """What a subquery stands for in an expression."""
        known = {id(tree): Column(name) for name, tree in self.trees.items()}
        return lambda tree: known[id(tree)] if id(tree) in known else more(tree)

    def operands(self, over: Callable[[exp.Expr], Expr]) -> dict[int, Expr]:
        """What the tests among them compare, as expressions over the groups."""
        tests = filter(None, map(test_of, self.trees.values()))
        return {id(each): over(each) for test in tests for each in test.values}

    def joined(
        self, planning: Planning, rows: Relation, grouped: dict[str, Expr], port: Port, operands: dict[int, Expr]
    ) -> tuple[Port, Callable[[Expr], Expr | None]]:
        """The groups with the values beside them, and what stands for each."""
        keys = {e.name: n for n, e in grouped.items() if isinstance(e, Column)}
        columns = tuple(replace(c, field=keys[c.field]) for c in rows.columns if c.field in keys)
        relation, found = Relation(port, columns), dict[str, Expr]()
        for name, tree in self.trees.items():
            relation, found[name] = subquery_value(planning, relation, tree, lambda each: operands.get(id(each)))
        return relation.port, lambda each: found.get(each.name) if isinstance(each, Column) else None
