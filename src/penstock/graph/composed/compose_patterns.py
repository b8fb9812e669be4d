"""Patterns that may change as a step: the patterns of the flow, and what has changed of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.errors import FlowError
from penstock.graph.builder import GraphBuilder
from penstock.graph.caller import user_line
from penstock.graph.compose import KeyedInput
from penstock.graph.composed.compose_rules import add_changes
from penstock.graph.expr import lit
from penstock.graph.nodes import Port
from penstock.graph.nodes.base import ALL
from penstock.graph.nodes.patterns.match_patterns import MatchPatterns
from penstock.graph.patterns.operators import OperatorPattern
from penstock.graph.patterns.tree import with_conditions
from penstock.graph.rules.pattern_changes import AnyPattern, PatternReader, PatternSource


def add_patterns(
    builder: GraphBuilder,
    name: str,
    keyed: KeyedInput,
    patterns: Mapping[str, AnyPattern],
    reader: PatternReader,
    changes: Port | None,
) -> Port:
    """Patterns over one stream; without a key all events belong together.

    Args:
        builder: where the step is added.
        name: the name of the step.
        keyed: the events.
        patterns: the patterns by name.
        reader: what reads the text of a pattern that changed.
        changes: the changes, or the table that they are in.

    Returns:
        The port of the matches.

    Raises:
        FlowError: there are no patterns, or one does not fit the events.
    """
    if not patterns and changes is None:
        raise FlowError("patterns needs a pattern, such as {'paid': ps.pattern(...)}, or changes=... to take them from")
    if not keyed.keys:
        keyed = KeyedInput(keyed.port, (ALL,), ((ALL, lit(0)),))
    port = keyed.stream(builder, name)
    meant = ((each, _meant(builder, pattern)) for each, pattern in patterns.items())
    functions = builder.scalar_functions
    source = PatternSource(tuple(meant), builder.output(port), keyed.keys, reader, functions)
    step = MatchPatterns(name, (port,), keyed.keys, source=source, line=user_line())
    if changes is not None:
        step = replace(step, inputs=(port, add_changes(builder, step, source, changes)))
    return builder.add(step)


def _meant(builder: GraphBuilder, pattern: AnyPattern) -> AnyPattern:
    if isinstance(pattern, OperatorPattern):
        return pattern
    return replace(pattern, root=with_conditions(pattern.root, builder.meant))
