"""UNION, INTERSECT, EXCEPT, and VALUES."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.queries.exact import exact
from penstock.frontends.sql.plan.queries.ordering import plan_order, without_doubles
from penstock.frontends.sql.plan.queries.projection import same_fields
from penstock.frontends.sql.plan.queries.query import QUERIES, plan_query
from penstock.frontends.sql.plan.relations.from_clause import RELATIONS, aliased
from penstock.frontends.sql.plan.relations.tables import one_row
from penstock.graph import types as t
from penstock.graph.expr import Call, Cast, Column, GetField, lit
from penstock.graph.expr.coerce import common_of
from penstock.graph.nodes import Explode, Port, Select, Union
from penstock.graph.relational.sets import add_set_operation


def _union(planning: Planning, tree: exp.Union) -> Relation:
    """UNION ALL of any number of queries, and UNION."""
    branches = _branches(tree)
    parts = [plan_query(planning.inside(f"{planning.prefix}.{at}"), each) for at, each in enumerate(branches, 1)]
    made = _all(planning, parts, branches)
    if tree.args.get("distinct"):
        made = without_doubles(planning, made, tree)
    return plan_order(planning, tree, made)


def _compared(planning: Planning, tree: exp.Intersect | exp.Except) -> Relation:
    """INTERSECT and EXCEPT, with and without ALL."""
    places = [tree.this, tree.expression]
    parts = [plan_query(planning.inside(f"{planning.prefix}.{at}"), each) for at, each in enumerate(places, 1)]
    left, right = aligned(planning, parts, places)
    operation = "intersect" if isinstance(tree, exp.Intersect) else "except"
    name, every = planning.step(operation), not tree.args.get("distinct")
    port = planning.adding(
        lambda: add_set_operation(planning.builder, name, left.port, right.port, operation, every=every), tree
    )
    return plan_order(planning, tree, Relation(port, left.columns))


def _branches(tree: exp.Union) -> list[exp.Expr]:
    """The queries of a chain of UNIONs of one kind, from left to right."""
    kind = bool(tree.args.get("distinct"))
    made: list[exp.Expr] = []
    left: exp.Expr = tree
    while (
        isinstance(left, exp.Union)
        and bool(left.args.get("distinct")) is kind
        and not (left is not tree and left.args.get("limit"))
    ):
        made.insert(0, left.expression)
        left = left.this
    return [left, *made]


def aligned(planning: Planning, parts: list[Relation], places: list[exp.Expr]) -> list[Relation]:
    """Relations with the names of the first, and types that all share.

    Raises:
        SqlError: they have different numbers of columns, or types that do not go together.
    """
    exactly = [exact(planning, part, place) for part, place in zip(parts, places, strict=True)]
    first = [c.name for c in exactly[0].columns]
    schemas = [planning.schema(part.port) for part in exactly]
    for schema, place in zip(schemas, places, strict=True):
        if len(schema.fields) != len(first):
            raise planning.text.error(
                place, f"expected {len(first)} columns, as the first query has, got {len(schema.fields)}"
            )
    kinds: list[t.DataType] = []
    for at, name in enumerate(first):
        types = [schema.fields[at].type for schema in schemas]
        kind = types[0] if len({str(k) for k in types}) == 1 else common_of(types)
        if kind is None:
            raise planning.text.error(
                places[-1],
                f"column {name!r} has types that do not go together: {', '.join(map(str, types))}; CAST them",
            )
        kinds.append(kind)
    return [_shaped(planning, part, first, kinds, place) for part, place in zip(exactly, places, strict=True)]


def _shaped(planning: Planning, part: Relation, names: list[str], kinds: list[t.DataType], place: exp.Expr) -> Relation:
    schema = planning.schema(part.port)
    columns = [
        (name, Column(f.name) if str(f.type) == str(kind) else Cast(Column(f.name), kind))
        for name, kind, f in zip(names, kinds, schema.fields, strict=True)
    ]
    visible = tuple(VisibleColumn("", name, name) for name in names)
    if same_fields(columns, schema.names):
        return replace(part, columns=visible)
    moved = dict(zip(schema.names, names, strict=True))
    port = planning.add(Select(planning.step("as"), (part.port,), tuple(columns)), place)
    return replace(part.renamed(port, moved), columns=visible)


def _all(planning: Planning, parts: list[Relation], places: list[exp.Expr]) -> Relation:
    shaped = aligned(planning, parts, places)
    if len({part.port for part in shaped}) < len(shaped):
        shaped = _apart(planning, shaped, places)
    port = planning.add(Union(planning.step("union"), tuple(part.port for part in shaped)), places[0])
    bounds = shaped[0].bounds if all(p.bounds == shaped[0].bounds for p in shaped) else None
    times = frozenset.intersection(*(p.times for p in shaped))
    return replace(shaped[0], port=port, bounds=bounds, times=times)


def _apart(planning: Planning, parts: list[Relation], places: list[exp.Expr]) -> list[Relation]:
    """A stream that stands in a union twice is read a second way."""
    seen: set[Port] = set()
    made = []
    for part, place in zip(parts, places, strict=True):
        if part.port in seen:
            columns = tuple((n, Column(n)) for n in planning.schema(part.port).names)
            part = part.at(planning.add(Select(planning.step("again"), (part.port,), columns), place))
        seen.add(part.port)
        made.append(part)
    return made


def _values(planning: Planning, tree: exp.Values) -> Relation:
    """VALUES (1, 'a'), (2, 'b')."""
    start = one_row(planning, tree)
    translator, schema = planning.translator(start), planning.schema(start.port)
    rows = [each.expressions if isinstance(each, exp.Tuple) else [each] for each in tree.expressions]
    width = len(rows[0])
    for row, place in zip(rows, tree.expressions, strict=True):
        if len(row) != width:
            raise planning.text.error(place, f"expected {width} values in each row, got {len(row)}")
    typed = [[translator.checked(each, schema) for each in row] for row in rows]
    kinds = []
    for at in range(width):
        kind = common_of(row[at][1] for row in typed)
        if kind is None:
            raise planning.text.error(tree, f"column {at + 1} of VALUES has types that do not go together")
        kinds.append(t.STRING if kind == t.NULL else kind)
    names = [f"EXPR${at}" for at in range(width)]
    structs = [
        Call("named_struct", tuple(part for at in range(width) for part in (lit(f"c{at}"), _cast(row[at], kinds[at]))))
        for row in typed
    ]
    exploded = planning.add(
        Explode(planning.step("values"), (start.port,), "item", Call("array", tuple(structs))), tree
    )
    columns = tuple((name, GetField(Column("item"), f"c{at}")) for at, name in enumerate(names))
    port = planning.add(Select(planning.step("columns"), (exploded,), columns), tree)
    made = Relation(port, tuple(VisibleColumn("", name, name) for name in names))
    return aliased(planning, tree, made) if tree.args.get("alias") is not None else made


def _cast(typed: tuple[object, t.DataType], kind: t.DataType) -> Cast:
    return Cast(typed[0], kind)  # type: ignore[arg-type]  # an expression and its type


QUERIES[exp.Union] = _union
QUERIES[exp.Intersect] = _compared
QUERIES[exp.Except] = _compared
QUERIES[exp.Values] = _values
RELATIONS[exp.Values] = _values

__all__ = ["aligned"]
