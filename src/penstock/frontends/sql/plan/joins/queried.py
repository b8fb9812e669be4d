"""Joins with subqueries in ON: what a subquery says of one side is a column of it; what it says of pairs is asked of the pairs.

Where pairs are asked, the rows without one are those that no pair has: rows that are equal have the same pairs, so they are known by their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.joins.joins import JoinPart, apart, joined
from penstock.frontends.sql.plan.queries.conditions import columns_in, holds_query, owners_of
from penstock.frontends.sql.plan.queries.correlation import marked, qualified, read_around, unwrapped
from penstock.frontends.sql.plan.queries.quantified import subqueries_in, test_of, with_subqueries
from penstock.frontends.sql.plan.queries.subqueries import plan_condition
from penstock.frontends.sql.plan.windows.windows import settled
from penstock.graph import types as t
from penstock.graph.expr import Cast, Column, Expr, lit
from penstock.graph.nodes import Port, Select, Union

_SIDE = "$row"


def joined_by_queries(planning: Planning, left: Relation, part: JoinPart, ttl: int | None) -> Relation:
    """Two relations joined by conditions of which some hold subqueries."""
    left, right = settled(planning, left, part.tree), settled(planning, part.right, part.tree)
    conditions: list[exp.Expr] = []
    asked: list[exp.Expr] = []
    for each in part.conditions:
        sides = {side for query in subqueries_in(each) for side in _sides_of(planning, left, right, query)}
        if not holds_query(each):
            conditions.append(each)
        elif sides <= {0}:
            left, made = _with_values(planning, left, each)
            conditions.append(made)
        elif sides == {1}:
            right, made = _with_values(planning, right, each)
            conditions.append(made)
        else:
            asked.append(each)
    plain = replace(part, right=right, conditions=tuple(conditions))
    if not asked:
        return joined(planning, left, plain, ttl)
    return _Asked(planning, plain, tuple(asked), ttl).planned(left)


def _sides_of(planning: Planning, left: Relation, right: Relation, tree: exp.Expr) -> set[int]:
    """Which sides a subquery reads, with what it compares."""
    test = test_of(tree)
    query = test.query if test is not None else tree.this
    read = [c for each in (test.values if test is not None else ()) for c in columns_in(each)]
    if isinstance(query, exp.Select) and query.args.get("from_") is not None:
        both = replace(left, columns=left.columns + right.columns)
        read += read_around(planning, both, query)
    made: set[int] = set()
    for each in read:
        made |= owners_of(planning.text, [left, right], each) or {0, 1}
    return made


def _with_values(planning: Planning, relation: Relation, tree: exp.Expr) -> tuple[Relation, exp.Expr]:
    """A relation with the subqueries of a condition as columns, and the condition over them."""
    relation, swap = with_subqueries(planning, relation, [tree])
    assert swap is not None
    schema = planning.schema(relation.port)
    fields: dict[str, Expr] = {n: Column(n) for n in schema.names}
    columns, names, owner = list(relation.columns), dict[int, exp.Column](), f"${planning.step('asked')}"
    for each in subqueries_in(tree):
        value = swap(each)
        assert value is not None
        field = fresh("asked", fields)
        fields[field] = value
        columns.append(VisibleColumn(owner, f"${field}", field, hidden=True))
        names[id(each)] = exp.column(f"${field}", owner)
    port = planning.add(Select(planning.step("asked"), (relation.port,), tuple(fields.items())), tree)
    return replace(relation, port=port, columns=tuple(columns)), _exchanged(tree, names)


def _exchanged(tree: exp.Expr, names: dict[int, exp.Column]) -> exp.Expr:
    """A condition in which columns stand for its subqueries."""
    if id(tree) in names:
        return names[id(tree)]
    wanted = [names[id(each)] for each in subqueries_in(tree)]
    made = tree.copy()
    for each, name in zip(subqueries_in(made), wanted, strict=True):
        each.replace(name)
    return made


@dataclass(frozen=True)
class _Asked:
    """A join in which pairs are asked: those for which everything holds, and the rows that are in none of them."""

    planning: Planning
    part: JoinPart
    asked: tuple[exp.Expr, ...]
    ttl: int | None

    def planned(self, left: Relation) -> Relation:
        """The pairs, and beside them the rows that an outer join keeps."""
        planning, how = self.planning, self.part.how
        right = apart(planning, left, self.part.right, self.part.tree)
        whole = joined(planning, left, replace(self.part, right=right, how="inner"), self.ttl)
        for each in self.asked:
            whole = plan_condition(planning, whole, each)
        if how in ("semi", "anti"):
            return self._of_pairs(left, right, whole.port, how)
        fields = [(f.name, f.type) for side in (left, right) for f in planning.schema(side.port).fields]
        ports = [self._row(whole.port, fields, [n for n, _ in fields])]
        for side, other, word in ((left, right, "left"), (right, left, "right")):
            if how in (word, "full"):
                lone = self._of_pairs(side, other, whole.port, "anti")
                ports.append(self._row(lone.port, fields, planning.schema(side.port).names))
        port = ports[0] if len(ports) == 1 else planning.add(Union(planning.step("pairs"), tuple(ports)), self.place)
        return Relation(port, left.columns + right.columns)

    @property
    def place(self) -> exp.Join:
        """What errors point to."""
        return self.part.tree

    def _row(self, port: Port, fields: list[tuple[str, t.DataType]], have: Sequence[str]) -> Port:
        """Rows with the fields of both sides: those that they do not have are null."""
        columns = tuple((n, Column(n) if n in have else Cast(lit(None), kind)) for n, kind in fields)
        return self.planning.add(Select(self.planning.step("pair"), (port,), columns), self.place)

    def _of_pairs(self, side: Relation, other: Relation, pairs: Port, how: str) -> Relation:
        """The rows of a side that are in a pair (`semi`), or in none (`anti`)."""
        planning, names = self.planning, self.planning.schema(side.port).names
        own = tuple(VisibleColumn(_SIDE, f"{_SIDE}{n}", n, hidden=True) for n in names)
        side = replace(side, columns=side.columns + own)
        fields = tuple((n, Column(n)) for n in names)
        rows = replace(side, port=planning.add(Select(planning.step("paired"), (pairs,), fields), self.place))
        columns = [exp.column(each.name, _SIDE) for each in own]
        same: list[exp.Expr] = [_like(planning, rows, exp.EQ, each) for each in self._keys(side, other)]
        same += [_like(planning, rows, exp.NullSafeEQ, each) for each in columns]
        return joined(planning, side, JoinPart(self.place, marked(rows), how, tuple(same)), self.ttl)

    def _keys(self, side: Relation, other: Relation) -> list[exp.Expr]:
        """What of a side must be equal to something of the other: rows need to be compared with none but those that share it."""
        made = []
        for each in map(unwrapped, self.part.conditions):
            if isinstance(each, exp.EQ):
                for mine, theirs in ((each.this, each.expression), (each.expression, each.this)):
                    owners = [owners_of(self.planning.text, [side, other], one) for one in (mine, theirs)]
                    made += [mine] if owners == [{0}, {1}] else []
        return made


def _like(planning: Planning, rows: Relation, kind: type[exp.Binary], tree: exp.Expr) -> exp.Expr:
    """A value of a side and the same of the rows that are in pairs, compared."""
    return kind(this=tree.copy(), expression=qualified(planning, rows, tree))
