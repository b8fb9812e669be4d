"""LATERAL and UNNEST: rows made of a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.joins.lateral_queries import plan_lateral_query
from penstock.frontends.sql.plan.joins.table_functions import flat_mapped, plan_table_function
from penstock.graph import types as t
from penstock.graph.expr import Call, Cast, Column, Expr, GetField, lit
from penstock.graph.nodes import Explode, Select
from penstock.graph.schema import Schema


def is_lateral(tree: exp.Join) -> bool:
    """Whether the right side of a join reads columns of the left."""
    return isinstance(tree.this, exp.Unnest | exp.Lateral)


def plan_lateral(planning: Planning, left: Relation, tree: exp.Join, how: str) -> Relation:
    """A join with rows that are made of each row of the left."""
    if tree.args.get("on") is not None and not (isinstance(tree.args["on"], exp.Boolean) and tree.args["on"].this):
        raise planning.text.error(tree, "expected ON TRUE after LATERAL and UNNEST; put conditions into WHERE")
    if how not in ("inner", "left"):
        raise planning.text.error(
            tree, f"expected CROSS JOIN or LEFT JOIN with rows made of a row, got {how.upper()} JOIN"
        )
    if isinstance(tree.this, exp.Unnest):
        return _unnested(planning, left, tree.this, how)
    if isinstance(tree.this.this, exp.Subquery | exp.Query):
        return plan_lateral_query(planning, left, tree.this, how)
    return plan_table_function(planning, left, tree.this, how)


def _unnested(planning: Planning, left: Relation, tree: exp.Unnest, how: str) -> Relation:
    if len(tree.expressions) != 1:
        raise planning.text.error(tree, f"expected one array in UNNEST, got {len(tree.expressions)}")
    schema = planning.schema(left.port)
    made, kind = planning.translator(left).checked(tree.expressions[0], schema)
    names, alias = _names(tree)
    if tree.args.get("offset") or isinstance(kind, t.Map):
        return _numbered(planning, left, tree, made, kind, how)
    made, item = _items(planning, made, kind, tree)
    if how == "left":
        made = Call(
            "if",
            (Call(">", (Call("nvl", (Call("size", (made,)), _zero())), _zero())), made, Call("array", (_null(item),))),
        )
    field = fresh("item", schema.names)
    port = planning.add(Explode(planning.step("unnest"), (left.port,), field, made), tree)
    columns = _columns(planning, left, field, item, names, alias, tree)
    if isinstance(item, t.Struct):
        return _flat(planning, left, port, field, item, columns, tree)
    return replace(left, port=port, columns=left.columns + columns)


def _numbered(planning: Planning, left: Relation, tree: exp.Unnest, made: Expr, kind: t.DataType, how: str) -> Relation:
    """UNNEST WITH ORDINALITY, and UNNEST of a map: by a Python step."""
    offset = tree.args.get("offset") or None
    if isinstance(kind, t.Map):
        fields: tuple[t.Field, ...] = (t.Field("key", kind.key), t.Field("value", kind.value))
    else:
        item = _items(planning, made, kind, tree)[1]
        fields = item.fields if isinstance(item, t.Struct) else (t.Field("item", item),)
    numbered = tree.copy()
    if offset is not None:
        fields = (*fields, t.Field("ordinality", t.INT))
        _with_number(numbered, offset)
    body = Unnesting(isinstance(kind, t.Map), offset is not None)
    return flat_mapped(planning, left, numbered, body, [made], Schema(fields), how)


def _with_number(tree: exp.Expr, offset: object) -> None:
    """The name of the number stands last among the names of the columns."""
    alias = tree.args.get("alias")
    if alias is not None and alias.args.get("columns") and isinstance(offset, exp.Identifier):
        alias.set("columns", [*alias.args["columns"], offset.copy()])


@dataclass(frozen=True)
class Unnesting:
    """The items of an array or a map as rows, with their number from 1."""

    is_map: bool
    with_number: bool

    def __call__(self, items: Any) -> Iterator[tuple[object, ...]]:
        """A row for each item."""
        listed = (items or {}).items() if self.is_map else items or ()
        for number, each in enumerate(listed, 1):
            row = (
                tuple(each.values())
                if isinstance(each, dict)
                else tuple(each)
                if isinstance(each, tuple | list)
                else (each,)
            )
            yield (*row, number) if self.with_number else row


def _zero() -> Expr:
    return lit(0)


def _null(kind: t.DataType) -> Expr:
    return Cast(lit(None), kind)


def _names(tree: exp.Expr) -> tuple[list[str], str]:
    alias = tree.args.get("alias")
    if alias is None:
        return [], ""
    return [c.name for c in (alias.args.get("columns") or ())], alias.name if alias.this is not None else ""


def _items(planning: Planning, made: Expr, kind: t.DataType, tree: exp.Expr) -> tuple[Expr, t.DataType]:
    if isinstance(kind, t.Array):
        return made, kind.item
    raise planning.text.error(tree, f"expected an array in UNNEST, got {kind}")


def _columns(
    planning: Planning, left: Relation, field: str, item: t.DataType, names: list[str], alias: str, tree: exp.Expr
) -> tuple[VisibleColumn, ...]:
    if not isinstance(item, t.Struct):
        if len(names) > 1:
            raise planning.text.error(tree, f"expected one name for the items of UNNEST, got {len(names)}")
        return (VisibleColumn(alias, names[0] if names else (alias or "EXPR$0"), field),)
    wanted = names or [f.name for f in item.fields]
    if len(wanted) != len(item.fields):
        raise planning.text.error(
            tree, f"expected {len(item.fields)} names for the fields of UNNEST, got {len(wanted)}"
        )
    taken = list(planning.schema(left.port).names)
    made: list[VisibleColumn] = []
    for name in wanted:
        made.append(VisibleColumn(alias, name, fresh(name, [*taken, *(c.field for c in made)])))
    return tuple(made)


def _flat(
    planning: Planning,
    left: Relation,
    port: object,
    field: str,
    item: t.Struct,
    columns: tuple[VisibleColumn, ...],
    tree: exp.Expr,
) -> Relation:
    """A row of structs as columns."""
    have = [(n, Column(n)) for n in planning.schema(left.port).names]
    made = [(c.field, GetField(Column(field), f.name)) for c, f in zip(columns, item.fields, strict=True)]
    step = planning.add(Select(planning.step("fields"), (port,), (*have, *made)), tree)  # type: ignore[arg-type]
    return replace(left, port=step, columns=left.columns + columns)
