"""Table functions after LATERAL: rows that a Python function makes of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.frontends.sql.catalog.catalog import OwnFunction
from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.graph.expr import Column, Expr
from penstock.graph.nodes import FlatMap, Select
from penstock.graph.row import Row
from penstock.graph.schema import Schema


@dataclass(frozen=True)
class TableFunction(OwnFunction):
    """A Python function that returns or yields any number of rows."""

    body: Callable[..., Iterable[object]]
    schema: Schema


@dataclass(frozen=True)
class Laterally:
    """What a step does for each row: calls the function with the last fields, and puts its rows beside the others."""

    body: Callable[..., Iterable[object]]
    arguments: int
    width: int
    outer: bool

    def __call__(self, row: Row) -> Iterator[tuple[object, ...]]:
        """The rows that are made of a row."""
        values = tuple(row)
        mine, given = values[: len(values) - self.arguments], values[len(values) - self.arguments :]
        found = False
        for each in self.body(*given) or ():
            found = True
            yield (*mine, *(tuple(each) if isinstance(each, tuple | list) else (each,)))
        if not found and self.outer:
            yield (*mine, *(None,) * self.width)


def plan_table_function(planning: Planning, left: Relation, tree: exp.Expr, how: str) -> Relation:
    """LATERAL TABLE(f(x, y)) AS t(a, b)."""
    call = tree.this
    while isinstance(call, exp.Anonymous) and str(call.this).upper() == "TABLE" and len(call.expressions) == 1:
        call = call.expressions[0]
    name = str(call.this) if isinstance(call, exp.Anonymous) else ""
    own = planning.catalog.function(name) if name else None
    if not isinstance(own, TableFunction):
        raise planning.text.error(
            tree, f"expected a table function after LATERAL, got {name or 'something else'}; CREATE FUNCTION it"
        )
    schema = planning.schema(left.port)
    translator = planning.translator(left)
    arguments = [translator.checked(each, schema)[0] for each in call.expressions]
    return flat_mapped(planning, left, tree, own.body, arguments, own.schema, how)


def flat_mapped(
    planning: Planning,
    left: Relation,
    tree: exp.Expr,
    body: Callable[..., Iterable[object]],
    arguments: list[Expr],
    made: Schema,
    how: str,
) -> Relation:
    """Rows that a function makes of each row, beside the row itself."""
    schema = planning.schema(left.port)
    alias = tree.args.get("alias")
    names = [c.name for c in (alias.args.get("columns") or ())] if alias is not None else []
    if names and len(names) != len(made.fields):
        raise planning.text.error(tree, f"expected {len(made.fields)} names of columns, got {len(names)}")
    shown = names or list(made.names)
    fields: list[str] = []
    for name in shown:
        fields.append(fresh(name, [*schema.names, *fields]))
    held = [fresh(f"argument{at}", schema.names) for at in range(len(arguments))]
    columns = (*((n, Column(n)) for n in schema.names), *zip(held, arguments, strict=True))
    port = planning.add(Select(planning.step("arguments"), (left.port,), columns), tree)
    result = Schema(
        (*schema.fields, *(replace(f, name=n, nullable=True) for f, n in zip(made.fields, fields, strict=True)))
    )
    logic = Laterally(body, len(arguments), len(fields), how == "left")
    port = planning.add(FlatMap(planning.step("lateral"), (port,), logic, result), tree)
    owner = alias.name if alias is not None and alias.this is not None else ""
    added = tuple(VisibleColumn(owner, name, field) for name, field in zip(shown, fields, strict=True))
    return replace(left, port=port, columns=left.columns + added)
