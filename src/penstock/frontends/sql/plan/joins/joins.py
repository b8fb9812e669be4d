"""Joins in FROM: of rows whenever they come, within a time, and by window; and conditions where they cost least."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.joins.bounds import TimeBounds, bounds_of
from penstock.frontends.sql.plan.queries.conditions import owners_of
from penstock.frontends.sql.plan.windows.windows import settled
from penstock.graph import types as t
from penstock.graph.compose import JoinKeys, add_join
from penstock.graph.expr import Call, Cast, Column, Expr, lit
from penstock.graph.expr.coerce import common_type
from penstock.graph.nodes import IntervalJoin, Port, Select, TableJoin, Where
from penstock.graph.nodes.base import is_plain
from penstock.graph.relational.keys import stand_ins
from penstock.graph.relational.windows import add_window_pairs
from penstock.graph.schema import Schema

SIDES = {"LEFT": "left", "RIGHT": "right", "FULL": "full", "": "inner"}


@dataclass(frozen=True)
class JoinPart:
    """A join as it is written, with the relation on its right.

    Args:
        tree: the join.
        right: what is joined.
        how: inner, left, right, full, semi or anti.
        conditions: what must hold of a pair.
    """

    tree: exp.Join
    right: Relation
    how: str
    conditions: tuple[exp.Expr, ...]


def kind_of(planning: Planning, tree: exp.Join) -> str:
    """What kind of join it is."""
    kind, side = str(tree.args.get("kind") or "").upper(), str(tree.args.get("side") or "").upper()
    if kind in ("SEMI", "ANTI"):
        if side not in ("", "LEFT"):
            raise planning.text.error(tree, f"expected LEFT {kind} JOIN, got {side} {kind} JOIN")
        return kind.lower()
    if side not in SIDES or kind not in ("", "INNER", "OUTER", "CROSS"):
        raise planning.text.error(
            tree, f"expected INNER, LEFT, RIGHT, FULL, CROSS, SEMI or ANTI JOIN, got {side} {kind} JOIN"
        )
    return SIDES[side]


def joined(planning: Planning, left: Relation, part: JoinPart, ttl: int | None) -> Relation:
    """Two relations joined."""
    left, right = settled(planning, left, part.tree), settled(planning, part.right, part.tree)
    left, right, conditions = _filtered_sides(planning, left, right, part)
    right = apart(planning, left, right, part.tree)
    both = replace(left, columns=left.columns + right.columns, times=left.times | right.times)
    pairs, rest = pairs_of(planning, left, right, both, conditions)
    return _Pairing(planning, part, left, right, both, pairs, rest, ttl).planned()


def _filtered_sides(
    planning: Planning, left: Relation, right: Relation, part: JoinPart
) -> tuple[Relation, Relation, list[exp.Expr]]:
    """Conditions that read one side alone are asked before the join, where that changes nothing."""
    rest: list[exp.Expr] = []
    for each in part.conditions:
        owners = owners_of(planning.text, [left, right], each)
        if owners == {0} and part.how in ("inner", "right", "semi"):
            left = narrowed(planning, left, each)
        elif owners == {1} and part.how in ("inner", "left", "semi", "anti"):
            right = narrowed(planning, right, each)
        else:
            rest.append(each)
    return left, right, rest


def narrowed(planning: Planning, relation: Relation, condition: exp.Expr) -> Relation:
    """The rows of a relation for which a condition is true."""
    made, _ = planning.translator(relation).checked(condition, planning.schema(relation.port))
    return relation.at(planning.add(Where(planning.step("where"), (relation.port,), made), condition))


def apart(planning: Planning, left: Relation, right: Relation, place: exp.Expr) -> Relation:
    """The right side under names of fields that the left side does not have."""
    taken = list(planning.schema(left.port).names)
    have = planning.schema(right.port).names
    moved: dict[str, str] = {}
    for name in have:
        moved[name] = fresh(name, [*taken, *moved.values(), *(n for n in have if n != name and n not in moved)])
    if left.port != right.port and all(n == m for n, m in moved.items()):
        return right
    columns = tuple((moved[n], Column(n)) for n in have)
    return right.renamed(planning.add(Select(planning.step("right"), (right.port,), columns), place), moved)


def pairs_of(
    planning: Planning, left: Relation, right: Relation, both: Relation, conditions: list[exp.Expr]
) -> tuple[list[tuple[Expr, Expr]], list[tuple[exp.Expr, Expr]]]:
    """The keys of both sides that must be equal, and the conditions that are left."""
    pairs: list[tuple[Expr, Expr]] = []
    rest: list[tuple[exp.Expr, Expr]] = []
    translator = planning.translator(both)
    for each in conditions:
        pair = _equality(planning, left, right, each)
        if pair is None:
            rest.append((each, translator.expr(each)))
        else:
            pairs.append(pair)
    return pairs, rest


def _equality(planning: Planning, left: Relation, right: Relation, tree: exp.Expr) -> tuple[Expr, Expr] | None:
    """The two sides of an equality between one expression of the left and one of the right, with a type that both have."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if not isinstance(tree, exp.EQ):
        return None
    one, other = tree.this, tree.expression
    owners = [owners_of(planning.text, [left, right], each) for each in (one, other)]
    if owners == [{1}, {0}]:
        one, other = other, one
    elif owners != [{0}, {1}]:
        return None
    mine, my_type = planning.translator(left).checked(one, planning.schema(left.port))
    theirs, their_type = planning.translator(right).checked(other, planning.schema(right.port))
    kind = my_type if str(my_type) == str(their_type) else common_type(my_type, their_type)
    if kind is None:
        raise planning.text.error(tree, f"expected two values of one type, got {my_type} and {their_type}; CAST one")
    ours, others = _as(mine, my_type, kind), _as(theirs, their_type, kind)
    if kind in (t.FLOAT, t.DOUBLE):
        return stand_ins(ours, kind)[0], stand_ins(others, kind)[0]
    return (ours, others) if is_plain(t.Field("key", kind)) else None


def _as(made: Expr, have: t.DataType, kind: t.DataType) -> Expr:
    return made if str(have) == str(kind) else Cast(made, kind)


@dataclass(frozen=True)
class _Pairing:
    """A join whose conditions are taken apart."""

    planning: Planning
    part: JoinPart
    left: Relation
    right: Relation
    both: Relation
    pairs: list[tuple[Expr, Expr]]
    rest: list[tuple[exp.Expr, Expr]]
    ttl: int | None

    def planned(self) -> Relation:
        """The step of the join that fits."""
        bounds = self._bounds()
        if self._by_window():
            return self._result(self._window_pairs())
        if bounds.is_closed and self.part.how in ("inner", "left", "right", "full"):
            return self._result(self._within(bounds))
        return self._result(self._whenever())

    def _times(self) -> tuple[str, str]:
        """The fields of the event time of both sides; empty where there is none."""
        outputs = [self.planning.output(side.port) for side in (self.left, self.right)]
        return tuple(o.event_time.column if o.event_time and not o.event_time.shift else "" for o in outputs)  # type: ignore[return-value]

    def _bounds(self) -> TimeBounds:
        left, right = self._times()
        if not left or not right or any(self.planning.output(s.port).changes for s in (self.left, self.right)):
            return TimeBounds()
        return bounds_of(self.rest, left, right)

    def _by_window(self) -> bool:
        """Whether both sides carry windows, and both bounds of them are compared."""
        ours, theirs = self.left.bounds, self.right.bounds
        if ours is None or theirs is None or self.part.how not in ("inner", "left", "right", "full"):
            return False
        wanted = list(zip(ours, theirs, strict=True))
        found = [(a.name, b.name) for a, b in self.pairs if isinstance(a, Column) and isinstance(b, Column)]
        return all(pair in found for pair in wanted)

    def _keys(self) -> tuple[JoinKeys, JoinKeys]:
        return keys_of(self.planning, self.left, self.right, self.pairs)

    def _condition(self, left_out: tuple[exp.Expr, ...] = ()) -> Expr | None:
        made = [e for tree, e in self.rest if not any(tree is each for each in left_out)]
        whole: Expr | None = None
        for each in made:
            whole = each if whole is None else Call("and", (whole, each))
        return whole

    def _check(self) -> None:
        """Conditions are true or false; shown at their place."""
        schema = self._schema()
        for tree, made in self.rest:
            kind = self.planning.translator(self.both).type(tree, made, schema)
            if kind != t.BOOLEAN:
                raise self.planning.text.error(tree, f"expected a condition that is true or false, got {kind}")

    def _schema(self) -> Schema:
        fields = self.planning.schema(self.left.port).fields + self.planning.schema(self.right.port).fields
        return Schema(fields, internal=True)

    def _whenever(self) -> Port:
        self._check()
        ours, theirs = self._keys()
        node = TableJoin(
            ours.name,
            (ours.port, theirs.port),
            ours.names,
            theirs.names,
            self.part.how,
            condition=self._condition(),
            ttl=self.ttl,
        )
        return self.planning.adding(lambda: add_join(self.planning.builder, node), self.part.tree)

    def _within(self, bounds: TimeBounds) -> Port:
        ours, theirs = self._keys()
        node = IntervalJoin(
            ours.name,
            (ours.port, theirs.port),
            ours.names,
            theirs.names,
            self.part.how,
            condition=self._condition(bounds.used),
            low=bounds.low or 0,
            high=bounds.high or 0,
        )
        return self.planning.adding(lambda: add_join(self.planning.builder, node), self.part.tree)

    def _window_pairs(self) -> Port:
        times = [self.planning.output(side.port).event_time for side in (self.left, self.right)]
        pairs = list(self.pairs)
        if times[0] is not None and times[1] is not None and times[0].shift == times[1].shift:
            timed = (Column(times[0].column), Column(times[1].column))
            pairs += [] if any(a.same(timed[0]) for a, _ in pairs) else [timed]
        ours, theirs = keys_of(self.planning, self.left, self.right, pairs)
        node = IntervalJoin(
            ours.name,
            (ours.port, theirs.port),
            ours.names,
            theirs.names,
            self.part.how,
            condition=self._condition(),
            low=0,
            high=0,
        )
        return self.planning.adding(lambda: add_window_pairs(self.planning.builder, node), self.part.tree)

    def _result(self, port: Port) -> Relation:
        names = set(self.planning.schema(port).names)
        columns = tuple(c for c in self.both.columns if c.field in names)
        bounds = self.left.bounds if self.left.bounds and set(self.left.bounds) <= names else None
        return Relation(port, columns, times=frozenset(self.both.times & names), bounds=bounds)


def keys_of(
    planning: Planning, left: Relation, right: Relation, pairs: list[tuple[Expr, Expr]]
) -> tuple[JoinKeys, JoinKeys]:
    """The keys of both sides as fields; without any, all rows meet."""
    wanted = pairs or [(lit(0), lit(0))]
    name = planning.step("join")
    ours = JoinKeys(name, "left-key", left.port, tuple(_written(a) for a, _ in wanted))
    theirs = JoinKeys(name, "right-key", right.port, tuple(_written(b) for _, b in wanted))
    return ours.resolved(planning.builder), theirs.resolved(planning.builder)


def _written(key: Expr) -> str | Expr:
    return key.name if isinstance(key, Column) else key


def using(
    planning: Planning, left: Relation, right: Relation, tree: exp.Join
) -> tuple[Relation, Relation, list[exp.Expr]]:
    """USING and NATURAL: the columns that both sides have are equal, and `*` has them once."""
    given = tree.args.get("using") or ()
    names = [each.name for each in given]
    if str(tree.args.get("method") or "").upper() == "NATURAL":
        mine = {c.name.lower() for c in left.columns}
        names = [c.name for c in right.columns if c.name.lower() in mine]
    if not names:
        return left, right, []
    if kind_of(planning, tree) in ("right", "full"):
        raise planning.text.error(tree, "USING and NATURAL go with INNER and LEFT joins; say ON a.x = b.x")
    conditions: list[exp.Expr] = []
    for name in names:
        sides = [planning.scope(r).find("", name, tree) for r in (left, right)]
        if sides[0] is None or sides[1] is None:
            raise planning.text.error(tree, f"column {name!r} of USING must be on both sides")
        left, one = _named_side(left, sides[0], "left")
        right, other = _named_side(right, sides[1], "right")
        conditions.append(exp.EQ(this=one, expression=other))
    hidden = tuple(_hidden(c, names) for c in right.columns)
    return left, replace(right, columns=hidden), conditions


def _named_side(relation: Relation, column: VisibleColumn, side: str) -> tuple[Relation, exp.Expr]:
    """A column of one side as a condition names it; one of a table without a name gets a second name that no other has."""
    if column.qualifier:
        return relation, exp.column(column.name, column.qualifier)
    own = VisibleColumn(f"${side}{len(relation.columns)}", f"${column.name}", column.field, hidden=True)
    return replace(relation, columns=(*relation.columns, own)), exp.column(own.name, own.qualifier)


def _hidden(column: VisibleColumn, names: list[str]) -> VisibleColumn:
    return replace(column, hidden=True) if column.name.lower() in {n.lower() for n in names} else column
