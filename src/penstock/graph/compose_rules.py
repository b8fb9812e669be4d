"""Rule sets as steps: the rules, the tables that they update, and the sinks of what they post."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.errors import SchemaError, UnknownName, nearest
from penstock.graph import types as t
from penstock.graph.builder import GraphBuilder
from penstock.graph.expr import Cast, Column, Literal
from penstock.graph.ids import child
from penstock.graph.nodes import AsTable, Changelog, Endpoint, Port, Select, Sink
from penstock.graph.nodes.rules import ApplyRules, RuleTable
from penstock.graph.nodes.stateless import Columns
from penstock.graph.rules import bind_rules
from penstock.graph.rules.actions import OP, Post
from penstock.graph.rules.changes import CHANGES, RuleSource
from penstock.graph.schema import Schema


def add_rules(
    builder: GraphBuilder, step: ApplyRules, posts: Mapping[str, Endpoint], changes: Port | None = None
) -> dict[str, Port]:
    """A rule set over a stream.

    Args:
        builder: where it is added.
        step: the rules.
        posts: the endpoints that rules post to, by name.
        changes: the changes of the rules, or the table that they are in.

    Returns:
        The ports of its streams and tables by name.

    Raises:
        UnknownName: a rule posts to an endpoint that is not there.
        FlowError: the rules do not fit the stream.
    """
    _check_posts(step, posts)
    step = replace(step, rules=step.rules.changed(builder.meant))
    builder.add(step if changes is None else _changing(builder, step, changes))
    node = builder.node(Port(step.name))
    made = {output.name: Port(step.name, output.name) for output in node.outputs}
    for name, keys in step.tables:
        if name in made:
            made[name] = builder.add(AsTable(child(step.name, name), (made[name],), keys, op=OP))
    for name, endpoint in posts.items():
        if name in made:
            builder.add(Sink(f"{step.name}.{name}", (made[name],), endpoint, line=step.line))
    return made


def _changing(builder: GraphBuilder, step: ApplyRules, changes: Port) -> ApplyRules:
    """The step with the rules that changed as its second input."""
    program = bind_rules(step.rules, step.events((builder.output(step.inputs[0]),)))
    source = RuleSource(step.rules, program.settled(), tuple(builder.functions.values()))
    if builder.output(changes).changes is not None:
        changes = builder.add(Changelog(child(step.name, "changelog"), (changes,), line=step.line))
    columns = _change_columns(builder.output(changes).schema)
    read = builder.add(Select(child(step.name, "changes"), (changes,), columns, line=step.line))
    table = builder.add(RuleTable(child(step.name, "rules"), (read,), ("rule",), source=source, line=step.line))
    return replace(step, inputs=(*step.inputs, table), source=source)


def _change_columns(schema: Schema) -> Columns:
    """The fields of changes; those that a stream lacks are null."""
    for name in ("rule", "text"):
        if name not in schema:
            raise SchemaError(
                f"changes of rules have the fields rule and text, and perhaps op, enabled, by and at; got ({schema})"
            )
    return tuple(
        (f.name, Cast(Column(f.name) if f.name in schema else Literal(None, t.NULL), f.type)) for f in CHANGES.fields
    )


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
