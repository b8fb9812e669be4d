"""Tables of connectors: how they are read, with their computed columns and their watermark."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.errors import nearest
from penstock.frontends.sql.catalog.catalog import Named, Table
from penstock.frontends.sql.catalog.options import PARTITION_OPTION, policy_of, source_of
from penstock.frontends.sql.expr.intervals import micros_of
from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.hints import span_set
from penstock.frontends.sql.plan.queries.clocks import with_clock
from penstock.frontends.sql.plan.statements.settings import IDLE_TIMEOUT
from penstock.frontends.sql.text.source import Place
from penstock.frontends.sql.text.statements import ColumnDefinition, CreateTable, Options, WatermarkDefinition
from penstock.graph import types as t
from penstock.graph.endpoints.basic import items
from penstock.graph.expr import Cast, Column, Expr
from penstock.graph.ids import child
from penstock.graph.nodes import EventTime, Node, Port, Select, Source
from penstock.graph.schema import Schema

MAX_LEAD = 24 * 3600 * 1_000_000
"""A row more than a day in the future moves no time."""
IDLE = 60 * 1_000_000
"""A partition that is quiet for so long holds time back no more."""


def read_table(planning: Planning, table: Table, place: Place) -> Relation:
    """A table as a relation; however often it is read, there is one source."""
    key = ("table", table.name.lower(), *((name, value) for name, value, _ in table.hints))
    if key not in planning.session.relations:
        planning.session.relations[key] = _read(planning, table, place)
    return planning.session.relations[key]


def _read(planning: Planning, table: Table, place: Place) -> Relation:
    if table.definition is None:
        assert table.endpoint is not None
        if not table.endpoint.capabilities.reads:
            raise planning.text.error(place, f"table {table.name!r} can be written, not read ({table.endpoint.kind})")
        port = planning.add(Source(planning.session.step(table.name), (), table.endpoint), place)
        return planning.relation(port, table.name)
    inside = Planning(planning.session, table.text or planning.text, planning.session.catalog, table.name)
    return _defined(inside, table, table.definition)


def hinted(planning: Planning, found: Named, options: Options, at: int) -> Table:
    """A table with options of a hint instead of its own.

    Raises:
        SqlError: it has none: it is a view, or was given from Python.
    """
    if not isinstance(found, Table) or found.definition is None or found.endpoint is not None:
        raise planning.text.error(at, f"expected OPTIONS after a table that CREATE TABLE has made, got {found.name!r}")
    named = {name.lower() for name, _, _ in options}
    if "connector" in named:
        raise planning.text.error(at, "expected options of the table's connector, got another connector")
    own = tuple((name, value, at) for name, value, at in options)
    kept = tuple(o for o in found.definition.options if o[0].lower() not in named)
    return replace(found, definition=replace(found.definition, options=kept + own), hints=own)


def one_row(planning: Planning, place: Place) -> Relation:
    """A relation of one row without columns, for queries that have no FROM."""
    name = planning.step("row")
    port = planning.add(Source(name, (), items([(0,)], "zero int")), place)
    return Relation(port, (VisibleColumn("", "zero", "zero", hidden=True),))


def physical(definition: CreateTable) -> Schema:
    """The columns of a table that its connector reads and writes."""
    typed = (c for c in definition.columns if not c.metadata)
    return Schema(tuple(t.Field(c.name, c.type, c.nullable) for c in typed if c.type is not None))


def _defined(planning: Planning, table: Table, definition: CreateTable) -> Relation:
    if not any(c.type is not None for c in definition.columns):
        raise planning.text.error(
            definition.at, f"table {table.name!r} has no columns of a type, so nothing can be read"
        )
    endpoint = table.endpoint or source_of(planning.text, definition, physical(definition))
    name = planning.session.step(table.name)
    carried = any(c.metadata for c in definition.columns) and endpoint.schema is not None
    policy = policy_of(planning.text, definition)
    node = Source(name, (), endpoint, None if carried else physical(definition), on_error=policy)
    port = planning.add(node, definition.at)
    relation, clocks = _computed(planning, port, definition, name)
    if definition.watermark is not None:
        timed = _watermark(planning, relation, definition, definition.watermark, name)
        relation = relation.at(timed)
    visible = {c.name.lower(): c for c in relation.columns}
    ordered = tuple(
        visible.get(c.name.lower()) or VisibleColumn(table.name, c.name, c.name) for c in definition.columns
    )
    return Relation(relation.port, ordered, clocks=clocks)


def _computed(planning: Planning, port: Port, definition: CreateTable, name: str) -> tuple[Relation, frozenset[str]]:
    """The table with its computed columns; PROCTIME() makes a column that only windows and joins look at."""
    relation = planning.relation(port, definition.name)
    clocks = frozenset(c.name for c in definition.columns if c.computed is not None and is_clock(c.computed))
    made: dict[str, Expr] = {n: Column(n) for n in planning.schema(port).names}
    computed = [c for c in definition.columns if (c.computed is not None or c.metadata) and c.name not in clocks]
    if not computed:
        return relation, clocks
    relation = with_clock(planning, relation, [c.computed for c in computed if c.computed is not None])
    port = relation.port
    translator, schema = planning.translator(relation), planning.schema(port)
    for each in computed:
        if each.metadata and each.type is not None:
            made[each.name] = _carried(planning, each, schema)
        elif each.computed is not None:
            made[each.name] = translator.checked(each.computed, schema)[0]
    ordered = tuple((c.name, made[c.name]) for c in definition.columns if c.name in made)
    node: Node = Select(child(name, "columns"), (port,), ordered)
    return planning.relation(planning.add(node, computed[0].at), definition.name), clocks


def _carried(planning: Planning, column: ColumnDefinition, schema: Schema) -> Expr:
    """A column of what the connector knows of a record, as the type that it is declared with."""
    if column.metadata not in schema or column.type is None:
        raise planning.text.error(
            column.at, f"no metadata {column.metadata!r} of this connector; {nearest(column.metadata, schema.names)}"
        )
    kind = schema.field(column.metadata).type
    return Column(column.metadata) if str(kind) == str(column.type) else Cast(Column(column.metadata), column.type)


def is_clock(tree: exp.Expr) -> bool:
    """Whether an expression is PROCTIME()."""
    return isinstance(tree, exp.Anonymous) and str(tree.this).upper() == "PROCTIME"


def _watermark(
    planning: Planning, relation: Relation, definition: CreateTable, given: WatermarkDefinition, name: str
) -> Port:
    found = planning.scope(relation).find("", given.column, given.at)
    if found is None:
        raise planning.scope(relation).unknown("", given.column, given.at)
    lateness = lateness_of(planning, given)
    idle = span_set(planning, IDLE_TIMEOUT) or IDLE
    partition = _partition(planning, relation, definition)
    time = Column(found.field)
    node = EventTime(child(name, "time"), (relation.port,), found.field, time, lateness, MAX_LEAD, idle, partition)
    return planning.add(node, given.at)


def _partition(planning: Planning, relation: Relation, definition: CreateTable) -> str:
    """The field whose values have a watermark each, of which the slowest counts; as an option says."""
    for name, value, at in definition.options:
        if name.lower() == PARTITION_OPTION:
            found = planning.scope(relation).find("", value, at)
            if found is None:
                raise planning.scope(relation).unknown("", value, at)
            return found.field
    return ""


def lateness_of(planning: Planning, given: WatermarkDefinition) -> int:
    """How late rows may come: what is taken off the column."""
    tree = given.expression
    if isinstance(tree, exp.Column):
        return 0
    if isinstance(tree, exp.Sub) and isinstance(tree.this, exp.Column):
        return micros_of(planning.text, tree.expression, "how late rows may come")
    raise planning.text.error(
        given.at, f"expected WATERMARK FOR {given.column} AS {given.column} - INTERVAL '5' SECOND"
    )
