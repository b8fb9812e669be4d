"""Rule sets as steps: the rules, the tables that they update, and the sinks of what they post."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from penstock.errors import FlowError, NameTaken, SchemaError, UnknownName, nearest
from penstock.graph import types as t
from penstock.graph.builder import GraphBuilder
from penstock.graph.compose import KeyedInput, add_broadcast
from penstock.graph.expr import Call, Cast, Column, Expr, Literal, lit
from penstock.graph.ids import child
from penstock.graph.logic.lookup import LookUp
from penstock.graph.nodes import AsTable, Changelog, Endpoint, JoinStatic, Node, Port, Select, Sink, Union
from penstock.graph.nodes.base import ALL
from penstock.graph.nodes.join import CHANGED
from penstock.graph.nodes.patterns.rules import ApplyRules, KeyedRules, RuleTable
from penstock.graph.nodes.stateless import Columns
from penstock.graph.rules import bind_rules
from penstock.graph.rules.actions import OP, Post
from penstock.graph.rules.changes import CHANGES, ChangeSource, RuleSource
from penstock.graph.schema import Schema


@dataclass(frozen=True)
class LookUpTable:
    """A table that conditions look up in: static, read again when its files change, or a stream of which the newest row of each key counts.

    Args:
        name: the name of the struct that rules see.
        table: the table.
        keys: the fields that stream and table share.
    """

    name: str
    table: Endpoint | Port
    keys: tuple[str, ...]


@dataclass(frozen=True)
class RuleOptions:
    """What a rule set is connected to.

    Args:
        posts: the endpoints that rules post to, by name.
        changes: the changes of the rules, or the table that they are in.
        events: further streams that the rules are applied to, by the name of the event.
    """

    posts: Mapping[str, Endpoint] = field(default_factory=dict)
    changes: Port | None = None
    events: Mapping[str, Port] = field(default_factory=dict)


def add_rules(builder: GraphBuilder, step: ApplyRules, options: RuleOptions) -> dict[str, Port]:
    """A rule set over a stream, or over several.

    Args:
        builder: where it is added.
        step: the rules over the first stream.
        options: what else they are connected to.

    Returns:
        The ports of its streams and tables by name.

    Raises:
        UnknownName: a rule posts to an endpoint that is not there.
        FlowError: the rules do not fit the streams.
    """
    _check_posts(step, options.posts)
    step = replace(step, rules=step.rules.changed(builder.meant))
    if step.rules.has_switches and not step.keyed:
        _check_one_stream(step, options.events)
        step = _in_one_task(builder, step)
    step = _together(builder, step, options.events) if options.events else step
    step = step if options.changes is None else _changing(builder, step, options.changes)
    made = _applied(builder, step, options.events)
    for name, keys in step.tables:
        if name in made:
            made[name] = builder.add(AsTable(child(step.name, name), (made[name],), keys, op=OP))
    for name, endpoint in options.posts.items():
        if name in made:
            builder.add(Sink(f"{step.name}.{name}", (made[name],), endpoint, line=step.line))
    return made


def add_look_up(builder: GraphBuilder, step: str, port: Port, look_up: LookUpTable) -> Port:
    """A stream with the row that each record finds in a table, as a struct of the name of the look-up.

    Args:
        builder: where it is added.
        step: the step that it is made for.
        port: the stream.
        look_up: the table.

    Raises:
        SchemaError: a key is not there, or the stream has a field of the name of the look-up.
    """
    schema = builder.output(port).schema
    if look_up.name in schema:
        raise SchemaError(f"the stream has a field {look_up.name!r}; give the look-up another name")
    return (
        _found_in_stream(builder, step, port, look_up)
        if isinstance(look_up.table, Port)
        else _found_in_table(builder, step, port, look_up)
    )


def _found_in_table(builder: GraphBuilder, step: str, port: Port, look_up: LookUpTable) -> Port:
    table = look_up.table
    assert isinstance(table, Endpoint)
    if table.schema is None:
        raise SchemaError(f"the table of the look-up {look_up.name!r} has no schema of its own; give schema=... to it")
    refresh = CHANGED if table.capabilities.can_watch else None
    join = JoinStatic(child(step, look_up.name), (port,), replace(table, bounded=True), look_up.keys, "left", refresh)
    found = builder.add(join)
    rest = [name for name in table.schema.names if name not in look_up.keys]
    parts = [part for name in rest for part in (Literal(name, t.STRING), Column(name))]
    columns = {name: Column(name) for name in builder.output(port).schema.names}
    whole = Call("named_struct", tuple(parts))
    return builder.add(Select(child(step, look_up.name, "row"), (found,), (*columns.items(), (look_up.name, whole))))


def _found_in_stream(builder: GraphBuilder, step: str, port: Port, look_up: LookUpTable) -> Port:
    assert isinstance(look_up.table, Port)
    schema, table = builder.output(port).schema, builder.output(look_up.table).schema
    for key in look_up.keys:
        mine, theirs = schema.field(key), table.field(key)
        if mine.type != theirs.type:
            raise SchemaError(f"{key!r} is {mine.type} in the stream and {theirs.type} in the table; cast one")
    rest = tuple(f for f in table.fields if f.name not in look_up.keys)
    made = Schema((*schema.fields, t.Field(look_up.name, t.Struct(rest))))
    logic = LookUp(schema.names, look_up.keys, tuple(f.name for f in rest))
    return add_broadcast(builder, child(step, look_up.name), port, look_up.table, look_up.keys, logic, made)


def _check_one_stream(step: ApplyRules, events: Mapping[str, Port]) -> None:
    if events:
        raise FlowError(
            f"step {step.name!r}: rules that activate others are on one stream, for which it is kept what is active; got the events "
            f"{', '.join(map(repr, events))} too. Put them together with union, and a field that says which each is"
        )


def _in_one_task(builder: GraphBuilder, step: ApplyRules) -> ApplyRules:
    """Rules that switch each other without a key: all records belong together."""
    everything = KeyedInput(step.inputs[0], (ALL,), ((ALL, lit(0)),))
    own = {each.name: getattr(step, each.name) for each in fields(step) if each.name not in ("inputs", "outputs")}
    return KeyedRules(inputs=(everything.stream(builder, step.name),), keys=everything.keys, **own)


def _together(builder: GraphBuilder, step: ApplyRules, events: Mapping[str, Port]) -> ApplyRules:
    """The step with the events of all streams, which its rules see; the time of alerts is the field that all have."""
    ports = {step.event: step.inputs[0], **events}
    if len(ports) <= len(events):
        raise NameTaken(
            f"the event {step.event!r} is the stream that the rules are applied to; call the other one otherwise"
        )
    times = {builder.output(port).event_time for port in ports.values()}
    shared = times.pop() if len(times) == 1 else None
    together = tuple((name, builder.output(port).schema) for name, port in ports.items())
    return replace(step, together=together, time=shared.column if shared else "")


def _applied(builder: GraphBuilder, step: ApplyRules, events: Mapping[str, Port]) -> dict[str, Port]:
    """The step over each stream, and what they emit together."""
    builder.add(step)
    steps = [step.name]
    for name, port in events.items():
        other = replace(step, name=child(step.name, name), inputs=(port, *step.inputs[1:]), event=name)
        builder.add(other)
        steps.append(other.name)
    outputs = [output.name for output in builder.node(Port(step.name)).outputs]
    if not events:
        return {name: Port(step.name, name) for name in outputs}
    return {
        name: builder.add(
            Union(child(step.name, "all", name), tuple(Port(each, name) for each in steps), line=step.line)
        )
        for name in outputs
    }


def _changing(builder: GraphBuilder, step: ApplyRules, changes: Port) -> ApplyRules:
    """The step with the rules that changed as its second input."""
    program = bind_rules(step.rules, step.events((builder.output(step.inputs[0]),)))
    source = RuleSource(step.rules, program.settled(), builder.scalar_functions, step.keyed)
    table = add_changes(builder, step, source, changes)
    return replace(step, inputs=(*step.inputs, table), source=source)


def add_changes(builder: GraphBuilder, step: Node, source: ChangeSource, changes: Port) -> Port:
    """The table of what has changed of the rules or patterns of a step.

    Args:
        builder: where it is added.
        step: the step.
        source: what changes are made over.
        changes: the changes, or the table that they are in. The names of vendors' tables of patterns are known too: `id` and `pattern`.

    Raises:
        SchemaError: it has not the fields of changes.
    """
    if builder.output(changes).changes is not None:
        changes = builder.add(Changelog(child(step.name, "changelog"), (changes,), line=step.line))
    columns = _change_columns(builder.output(changes).schema)
    read = builder.add(Select(child(step.name, "changes"), (changes,), columns, line=step.line))
    return builder.add(RuleTable(child(step.name, "rules"), (read,), ("rule",), source=source, line=step.line))


_ALSO = {"rule": "id", "text": "pattern"}
"""What tables of patterns call the fields of changes."""


def _change_columns(schema: Schema) -> Columns:
    """The fields of changes; those that a stream lacks are null."""
    for name, other in _ALSO.items():
        if name not in schema and other not in schema:
            raise SchemaError(
                f"changes of rules have the fields rule and text, and perhaps op, enabled, by and at; got ({schema})"
            )
    return tuple((f.name, _change_column(schema, f)) for f in CHANGES.fields)


def _change_column(schema: Schema, wanted: t.Field) -> Expr:
    name = wanted.name if wanted.name in schema else _ALSO.get(wanted.name, wanted.name)
    if name not in schema:
        return Cast(Literal(None, t.NULL), wanted.type)
    same = schema.field(name).type == wanted.type
    return Column(name) if same else Cast(Column(name), wanted.type)


def _check_posts(step: ApplyRules, posts: Mapping[str, Endpoint]) -> None:
    for rule in step.rules:
        for action in rule.actions:
            if isinstance(action, Post) and action.stream not in posts:
                hint = (
                    nearest(action.stream, posts)
                    if posts
                    else "say posts={'" + action.stream + "': ps.write_http(...)}"
                )
                raise UnknownName(f"{rule.where} posts to {action.stream!r}, which is no endpoint of the step; {hint}")
