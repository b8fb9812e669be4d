"""The plans of standing queries: one for each shape, over the records that its queries may want."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.errors import NameTaken
from penstock.frontends.sql.catalog.catalog import StreamTable
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.from_clause import plan_table
from penstock.frontends.sql.plan.projection import exact
from penstock.frontends.sql.plan.query import plan_query
from penstock.frontends.sql.plan.sinks import write_table
from penstock.frontends.sql.plan.statements import ACTIONS, FINISHING, Script
from penstock.frontends.sql.standing.reading import CONSTANTS, ReadQuery
from penstock.frontends.sql.standing.shapes import QUERY, Shape, shape_of
from penstock.frontends.sql.text.statements import CreateStandingQuery
from penstock.graph import types as t
from penstock.graph.compose import add_broadcast
from penstock.graph.endpoints.basic import items
from penstock.graph.endpoints.log import rule_topic
from penstock.graph.logic.standing import MatchQueries
from penstock.graph.nodes import FlatMap, Port, Source, Union
from penstock.graph.nodes.policy import DEAD_LETTER, OnError
from penstock.graph.schema import Schema

TOPIC = "standing.queries.topic"
"""SET gives the topic by which queries are added and dropped while the flow runs."""
STEP = "queries"


def add(script: Script, statement: CreateStandingQuery) -> None:
    """CREATE STANDING QUERY: it is planned with the others of its shape, when all statements are read."""
    known = {each.name for each in script.standing}
    if statement.name in known:
        raise script.text.error(statement.at, f"standing query {statement.name!r} is there already; name it otherwise")
    script.standing.append(statement)


def plan_standing(script: Script) -> None:
    """Plans all standing queries of a script."""
    if not script.standing:
        return
    shapes: dict[str, tuple[Shape, CreateStandingQuery]] = {}
    numbers: dict[str, int] = {}
    rows: list[tuple[Any, ...]] = []
    for statement in script.standing:
        shape, constants = shape_of(script.text, statement)
        shapes.setdefault(shape.key, (shape, statement))
        number = numbers.setdefault(shape.key, len(numbers))
        rows.append((statement.name, "add", number, constants, statement.until))
    changes = _changes(script, tuple(shapes), rows)
    for number, (shape, statement) in enumerate(shapes.values()):
        _planned(script, number, shape, changes, statement)


def _changes(script: Script, shapes: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Port:
    """The queries of the script, and those of the topic, as constants of their shapes."""
    planning, place = script.planning(STEP), script.standing[0].query
    own = planning.add(Source(planning.session.step(STEP), (), items(rows, CONSTANTS)), place)
    topic = script.session.settings.get(TOPIC)
    if not topic:
        return own
    given = planning.add(Source(planning.step("topic"), (), rule_topic(topic)), place)
    read = FlatMap(planning.step("read"), (given,), ReadQuery(shapes), CONSTANTS, on_error=OnError(DEAD_LETTER))
    return planning.add(Union(planning.step("all"), (own, planning.add(read, place))), place)


def _planned(script: Script, number: int, shape: Shape, changes: Port, statement: CreateStandingQuery) -> None:
    """The plan of a shape: records with the queries that may want them, then the query itself over these."""
    planning = script.planning(f"{STEP}.{number}")
    events = plan_table(planning, shape.table, statement.query)
    stream = planning.output(events.port)
    if QUERY in stream.schema:
        raise planning.text.error(
            statement.query,
            f"table {shape.table!r} has a column {QUERY!r}, the name of the column that says of which query a row is",
        )
    time = stream.event_time.column if stream.event_time is not None else ""
    if statement.until is not None and not time:
        raise planning.text.error(statement.at, f"UNTIL goes by event time; give table {shape.table!r} a WATERMARK")
    fields = {c.name.lower(): c.field for c in events.columns}
    equal = tuple(
        (fields[name.lower()], at)
        for name, at in shape.equal
        if name.lower() in fields and _is_alike(stream.schema, fields[name.lower()], shape, at)
    )
    made = Schema((*stream.schema.fields, t.Field(QUERY, t.STRING), *shape.parameters))
    logic = MatchQueries(number, stream.schema.names, equal, time)
    name = planning.step("match")
    matched = _blamed(
        planning, statement, lambda: add_broadcast(planning.builder, name, events.port, changes, (QUERY,), logic, made)
    )
    catalog = planning.catalog.child()
    catalog.define(StreamTable(shape.table, matched))
    inside = replace(planning, catalog=catalog)
    relation = exact(inside, plan_query(inside, shape.tree), statement.query)
    write_table(planning, shape.sink, (), relation, statement.query)


def _is_alike(schema: Schema, field: str, shape: Shape, at: int) -> bool:
    """Whether equal values of a field and of a constant are the same in Python."""
    kind, constant = schema.field(field).type, shape.kinds[at]
    return (kind == t.STRING and constant == "s") or (kind in t.INTEGERS and constant == "i")


def _blamed(planning: Planning, statement: CreateStandingQuery, action: Any) -> Port:
    try:
        made: Port = action()
    except NameTaken as error:
        raise planning.text.error(statement.at, str(error)) from None
    return made


ACTIONS[CreateStandingQuery] = add
FINISHING.append(plan_standing)
