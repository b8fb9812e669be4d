"""INSERT INTO: the columns of a query fitted to those of a table, and the sink."""

from __future__ import annotations

from dataclasses import replace

from penstock.frontends.sql.catalog.catalog import Table
from penstock.frontends.sql.catalog.options import policy_of, sink_of
from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan.context import Planning, TableWrite
from penstock.frontends.sql.plan.relations.tables import hinted, physical
from penstock.frontends.sql.text.source import Place
from penstock.frontends.sql.text.statements import Options
from penstock.graph import types as t
from penstock.graph.compose import second_reader
from penstock.graph.expr import Cast, Column, Expr, lit
from penstock.graph.expr.coerce import TypedExpr, implicit
from penstock.graph.ids import child
from penstock.graph.nodes import Endpoint, OnError, Port, Select, Sink, Union
from penstock.graph.relational.overlays import add_layer, add_overlay
from penstock.graph.schema import Schema


def write_table(
    planning: Planning,
    name: str,
    columns: tuple[str, ...],
    relation: Relation,
    place: Place,
    step: str = "",
    options: Options = (),
) -> None:
    """Writes a relation into a table. The sink has the name of the table, unless another is said; records of several statements then share it."""
    table = planning.catalog.table(planning.text, name, place)
    if options:
        table = hinted(planning, table, options, options[0][2])
    if not isinstance(table, Table):
        raise planning.text.error(place, f"{name!r} is a view or a stream, and only tables can be written")
    schema = _columns(table)
    fitted = _fitted(planning, relation, schema, columns, name, place)
    key = (table.name.lower(), *((option, value) for option, value, _ in table.hints))
    known = None if step else planning.session.writes.get(key)
    endpoint = _endpoint(planning, table, planning.schema(fitted.port), place)
    if known is not None and (made := _together(planning, known, fitted.port, table, place)) is not None:
        planning.session.writes[key] = made
        return
    sink = planning.session.step(step or table.name)
    policy = _policy(planning, table, endpoint)
    planning.add(Sink(sink, (fitted.port,), endpoint, on_error=policy), place)
    if not step:
        planning.session.writes.setdefault(key, TableWrite(sink, (fitted.port,)))


def _together(planning: Planning, known: TableWrite, port: Port, table: Table, place: Place) -> TableWrite | None:
    """What is written by several statements, in one sink; None where each has a sink of its own."""
    outputs = [planning.output(each) for each in (*known.ports, port)]
    if not all(each.schema.types_equal(outputs[0].schema) for each in outputs):
        return None
    if all(each.changes is None for each in outputs) and not known.layers:
        return _united(planning, known, port, place)
    sink = planning.builder.node(Port(known.sink))
    assert isinstance(sink, Sink)
    keys = sink.endpoint.key or (table.definition.key if table.definition is not None else ())
    if sink.endpoint.capabilities.table_rows == "added":
        return None
    if not keys:
        return _united(planning, known, port, place)
    return _overlaid(planning, known, port, tuple(keys), place)


def _overlaid(planning: Planning, known: TableWrite, port: Port, keys: tuple[str, ...], place: Place) -> TableWrite:
    """Tables by a key, laid over each other: of a key the row of the last statement that has one."""
    sink = planning.builder.node(Port(known.sink))
    alone = replace(sink, inputs=(port,), outputs=())
    planning.adding(lambda: alone.bound((planning.output(port),)), place)

    def layer(of: Port, number: int) -> Port:
        name = planning.step(f"layer{number}")
        return planning.adding(lambda: add_layer(planning.builder, name, of, keys, number), place)

    layers = known.layers or (layer(sink.inputs[0], 1),)
    layers = (*layers, layer(port, len(layers) + 1))
    ports = (*known.ports, port)
    if known.layers:
        planning.builder.replace(Union(known.union, layers))
        return replace(known, ports=ports, layers=layers)
    name = planning.step("rows")
    whole = planning.adding(lambda: add_overlay(planning.builder, name, layers, keys), place)
    planning.builder.replace(replace(sink, inputs=(whole,)))
    return TableWrite(known.sink, ports, child(name, "layers"), layers)


def _united(planning: Planning, known: TableWrite, port: Port, place: Place) -> TableWrite:
    """Streams of the same fields as one; a stream that is written twice is read a second way."""
    if port in known.ports:
        port = planning.add(second_reader(planning.step("again"), port, planning.output(port)), place)
    ports = (*known.ports, port)
    if known.union:
        planning.builder.replace(Union(known.union, ports))
        return replace(known, ports=ports)
    union = planning.step("all")
    whole = planning.add(Union(union, ports), place)
    sink = planning.builder.node(Port(known.sink))
    planning.builder.replace(replace(sink, inputs=(whole,)))
    return TableWrite(known.sink, ports, union)


def _policy(planning: Planning, table: Table, endpoint: Endpoint) -> OnError | None:
    """What happens to a row that is refused, where the sink can tell it from the others; of a table that is read too, the word is about records."""
    if table.definition is None or not endpoint.capabilities.reports_row_errors:
        return None
    return policy_of(table.text or planning.text, table.definition)


def _columns(table: Table) -> Schema | None:
    """The columns of a table, where it says them."""
    definition = table.definition
    if definition is None or not any(c.type is not None for c in definition.columns):
        return None
    return physical(replace(definition, columns=tuple(c for c in definition.columns if not c.metadata)))


def _endpoint(planning: Planning, table: Table, schema: Schema, place: Place) -> Endpoint:
    if table.endpoint is not None and table.endpoint.capabilities.writes:
        return table.endpoint
    if table.definition is None:
        raise planning.text.error(place, f"table {table.name!r} can be read, not written")
    return sink_of(table.text or planning.text, table.definition, schema)


def _fitted(
    planning: Planning, relation: Relation, schema: Schema | None, columns: tuple[str, ...], name: str, place: Place
) -> Relation:
    """A relation with the columns of a table, by position, cast where that loses nothing."""
    wanted = _wanted(planning, schema, columns, name, place)
    if wanted is None:
        made: list[tuple[str, Expr]] = [(c.name, Column(c.field)) for c in relation.columns]
    else:
        if len(wanted) != len(relation.columns):
            raise planning.text.error(
                place,
                f"table {name!r} takes {len(wanted)} columns ({', '.join(f.name for f in wanted)}), got {len(relation.columns)}",
            )
        have = planning.schema(relation.port)
        made = [
            (f.name, _cast(planning, have.field(c.field).type, c.field, f, place))
            for f, c in zip(wanted, relation.columns, strict=True)
        ]
        if schema is not None and columns:
            given = dict(made)
            made = [(f.name, given.get(f.name, Cast(lit(None), f.type))) for f in schema.fields]
    if tuple(n for n, _ in made) == planning.schema(relation.port).names and all(
        isinstance(e, Column) and e.name == n for n, e in made
    ):
        return relation
    port = planning.add(Select(planning.step("into"), (relation.port,), tuple(made)), place)
    return planning.relation(port)


def _wanted(
    planning: Planning, schema: Schema | None, columns: tuple[str, ...], name: str, place: Place
) -> list[t.Field] | None:
    if schema is None:
        return None
    if not columns:
        return list(schema.fields)
    known = {f.name.lower(): f for f in schema.fields}
    for each in columns:
        if each.lower() not in known:
            raise planning.text.error(place, f"table {name!r} has no column {each!r}; it has {', '.join(schema.names)}")
    return [known[each.lower()] for each in columns]


def _cast(planning: Planning, have: t.DataType, field: str, wanted: t.Field, place: Place) -> Expr:
    if str(have) == str(wanted.type):
        return Column(field)
    if have == t.NULL or implicit(TypedExpr("column", have), wanted.type) is not None or _widens(have, wanted.type):
        return Cast(Column(field), wanted.type)
    raise planning.text.error(
        place, f"column {wanted.name!r} of the table is {wanted.type}, and the query has {have} there; CAST it"
    )


def _widens(have: t.DataType, wanted: t.DataType) -> bool:
    numbers = t.is_numeric(have) and t.is_numeric(wanted)
    moments = {str(have), str(wanted)} <= {"timestamp", "timestamp_ntz", "date"}
    return numbers or moments or (isinstance(have, t.Struct) and isinstance(wanted, t.Struct))
