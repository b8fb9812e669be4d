"""WITH SNAPSHOT: the rows of the table are kept and joined with the constants of queries, so that a new query finds those before it."""

from __future__ import annotations

from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.standing.shapes import KINDS, QUERY, VERSION, Shape, parameter
from penstock.graph.expr import Expr, as_expr, col, lit
from penstock.graph.nodes import AsTable, Port, Select, TableJoin, Where, WithColumns
from penstock.graph.nodes.ordering import AFTER, DELETE, OP
from penstock.graph.types import quote

UNTIL, ALL = f"{QUERY}_until", f"{QUERY}_all"
Equal = tuple[tuple[str, int], ...]


def add_snapshot_match(
    planning: Planning, shape: Shape, events: Relation, changes: Port, equal: Equal, time: str
) -> Port:
    """Each row of a table with each query that may want it: a table, whose rows go when the query goes."""
    place = shape.form.query
    queries, keys = _queries(planning, shape, changes, equal), tuple(f"{QUERY}_k{at}" for _, at in equal)
    port, fields = events.port, tuple(field for field, _ in equal)
    if not equal:
        port = planning.add(WithColumns(planning.step("rows"), (port,), ((ALL, lit(0)),)), place)
        fields = keys = (ALL,)
    joined = planning.add(TableJoin(planning.step("match"), (port, queries), fields, keys), place)
    if time:
        before = as_expr(f"{UNTIL} is null or {quote(time)} < {UNTIL}")
        joined = planning.add(Where(planning.step("until"), (joined,), before), place)
    names = (*planning.schema(events.port).names, QUERY, VERSION, *(f.name for f in shape.parameters))
    return planning.add(Select(planning.step("rows-of"), (joined,), tuple((n, col(n)) for n in names)), place)


def _queries(planning: Planning, shape: Shape, changes: Port, equal: Equal) -> Port:
    """The queries of a shape as a table, with their constants as columns; those they are found by stand there twice."""
    place = shape.form.query
    constants = {parameter(at): _constant(shape, at) for at in range(len(shape.kinds))}
    keys: dict[str, Expr] = {f"{QUERY}_k{at}": _constant(shape, at) for _, at in equal}
    happened = as_expr(f"case when shape = '{shape.id}' and op = 'add' then '{AFTER}' else '{DELETE}' end")
    more: dict[str, Expr] = {} if equal else {ALL: lit(0)}
    columns: dict[str, Expr] = {OP: happened, QUERY: col(QUERY), VERSION: col("version"), UNTIL: col("until")}
    picked = planning.add(
        Select(planning.step("constants"), (changes,), tuple((columns | constants | keys).items())), place
    )
    table = planning.add(AsTable(planning.step("standing"), (picked,), (QUERY,)), place)
    if more:
        table = planning.add(WithColumns(planning.step("standing-all"), (table,), tuple(more.items())), place)
    return table


def _constant(shape: Shape, at: int) -> Expr:
    """A constant of a change: a letter for its kind, then the value. A change that is no query of the shape has none."""
    text = f"substring(element_at(constants, {at + 1}), 2)"
    return as_expr(f"case when shape = '{shape.id}' and op = 'add' then cast({text} as {KINDS[shape.kinds[at]]}) end")
