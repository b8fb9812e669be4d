"""FROM with its joins: columns that nobody reads are left out, and conditions are asked as early as they may be."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.hints import ttl_of
from penstock.frontends.sql.plan.joins.joins import JoinPart, joined, kind_of, narrowed, using
from penstock.frontends.sql.plan.joins.laterals import is_lateral, plan_lateral
from penstock.frontends.sql.plan.joins.queried import joined_by_queries
from penstock.frontends.sql.plan.joins.special_joins import special_join
from penstock.frontends.sql.plan.queries.clocks import clock_in
from penstock.frontends.sql.plan.queries.conditions import conjuncts, holds_over, holds_query, owners_of
from penstock.frontends.sql.plan.relations.from_clause import plan_relation
from penstock.frontends.sql.plan.relations.tables import one_row
from penstock.graph.expr import Column
from penstock.graph.nodes import Select


def plan_from(planning: Planning, tree: exp.Select) -> tuple[Relation, list[exp.Expr]]:
    """FROM and its joins, and the conditions of WHERE that are still to be asked."""
    given, where = tree.args.get("from_"), tree.args.get("where")
    conditions = conjuncts(where.this) if where is not None else []
    if given is None:
        return one_row(planning, tree), conditions
    joins = list(tree.args.get("joins") or ())
    first = plan_relation(planning, given.this)
    if not joins:
        return first, conditions
    return _Joins(planning, tree, conditions).planned(first, joins)


class _Joins:
    """The joins of one FROM."""

    def __init__(self, planning: Planning, tree: exp.Select, conditions: list[exp.Expr]) -> None:
        self.planning, self.tree, self.conditions = planning, tree, conditions
        self.ttl = ttl_of(planning, tree)
        self.asked: set[int] = set()
        """The columns of conditions that are asked already, by the identity of their nodes: nothing after a join reads them."""
        self.owners: set[str] = set()
        """The names of all relations, in lower case."""
        self.may_take = True
        """Whether no later join keeps rows without a pair, of which the conditions of WHERE are asked too."""

    def planned(self, first: Relation, joins: list[exp.Join]) -> tuple[Relation, list[exp.Expr]]:
        """One join after the other, from left to right."""
        lateral = [is_lateral(join) or special_join(join) is not None for join in joins]
        rights = [
            None if apart else plan_relation(self.planning, join.this)
            for join, apart in zip(joins, lateral, strict=True)
        ]
        known = [first, *(r for r in rights if r is not None)]
        self.owners = {q.lower() for r in known for q in r.qualifiers}
        hows = [kind_of(self.planning, join) for join in joins]
        may_push = not any(how in ("right", "full") for how in hows)
        first = self._early(first, known, may_push)
        left = self._pruned(first) if not any(lateral) else first
        for at, (join, right, how) in enumerate(zip(joins, rights, hows, strict=True)):
            self.may_take = not any(later in ("right", "full") for later in hows[at:])
            left = self._one(left, join, right, how, known, may_push)
        return left, self.conditions

    def _one(
        self, left: Relation, join: exp.Join, right: Relation | None, how: str, known: list[Relation], may_push: bool
    ) -> Relation:
        own = special_join(join)
        if own is not None:
            return own(self.planning, left, join)
        if right is None:
            return plan_lateral(self.planning, left, join, how)
        if how in ("inner", "semi", "anti"):
            right = self._early(right, known, may_push and how == "inner")
        left, right, more = using(self.planning, left, self._pruned(right), join)
        conditions = [*conjuncts(join.args.get("on")), *more]
        if how == "inner" and may_push:
            self.conditions += [each for each in conditions if holds_query(each)]
            conditions = [each for each in conditions if not holds_query(each)]
        if how == "inner" and self.may_take:
            conditions += self._taken(left, right, known)
        if any(holds_query(each) for each in conditions):
            return joined_by_queries(self.planning, left, JoinPart(join, right, how, tuple(conditions)), self.ttl)
        return joined(self.planning, left, JoinPart(join, right, how, tuple(conditions)), self.ttl)

    def _early(self, relation: Relation, known: list[Relation], may: bool) -> Relation:
        """Conditions of WHERE that read one relation alone are asked before it is joined."""
        if not may or relation.window is not None or relation.rank is not None:
            return relation
        at = next(i for i, each in enumerate(known) if each is relation)
        for each in list(self.conditions):
            if not _waits(each) and owners_of(self.planning.text, known, each) == {at}:
                relation = narrowed(self.planning, relation, each)
                self.asked |= {id(column) for column in each.find_all(exp.Column)}
                self.conditions = [c for c in self.conditions if c is not each]
        known[at] = relation
        return relation

    def _taken(self, left: Relation, right: Relation, known: list[Relation]) -> list[exp.Expr]:
        """Conditions of WHERE that an inner join can take: they read both of its sides and nothing else."""
        taken = []
        for each in list(self.conditions):
            if _waits(each) or owners_of(self.planning.text, known, each) is None:
                continue
            if owners_of(self.planning.text, [left, right], each) == {0, 1}:
                taken.append(each)
                self.conditions = [c for c in self.conditions if c is not each]
        return taken

    def _pruned(self, relation: Relation) -> Relation:
        """A relation without the columns that the query does not name."""
        if relation.window is not None or relation.rank is not None or _has_star(self.tree, relation):
            return relation
        names = {name for c in self.tree.find_all(exp.Column) for name in self._named(c, relation)}
        names |= {each.name.lower() for j in self.tree.args.get("joins") or () for each in j.args.get("using") or ()}
        kept = tuple(c for c in relation.columns if c.name.lower() in names)
        output = self.planning.output(relation.port)
        timed = {output.event_time.column} if output.event_time is not None else set[str]()
        fields = {c.field for c in kept} | timed | set(relation.bounds or ())
        wanted = [n for n in output.schema.names if n in fields]
        if not kept or not wanted or len(wanted) == len(output.schema.names):
            return relation
        columns = tuple((n, Column(n)) for n in wanted)
        port = self.planning.share(Select("pruned", (relation.port,), columns), self.tree)
        return replace(relation, port=port, columns=kept)

    def _named(self, column: exp.Column, relation: Relation) -> list[str]:
        """What a column of the query may name of a relation: nothing where it is of another, or is read no more."""
        if id(column) in self.asked:
            return []
        parts = [part.name.lower() for part in column.parts]
        if len(parts) > 1 and parts[0] in self.owners:
            return parts[1:] if parts[0] in {q.lower() for q in relation.qualifiers} else []
        return parts


def _waits(condition: exp.Expr) -> bool:
    """Whether a condition is asked after the joins: it needs what is computed of their result."""
    return holds_query(condition) or holds_over(condition) or clock_in(condition) is not None


def _has_star(tree: exp.Select, relation: Relation) -> bool:
    owners = {q.lower() for q in relation.qualifiers}
    for star in tree.find_all(exp.Star):
        parent = star.parent
        if isinstance(parent, exp.Anonymous):
            continue
        if not isinstance(parent, exp.Column) or not parent.table or parent.table.lower() in owners:
            return True
    return any(str(j.args.get("method") or "").upper() == "NATURAL" for j in tree.args.get("joins") or ())
