"""Which steps of a flow have rules, patterns or standing queries. A driver asks that before its JVM starts, so this imports little."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.graph.endpoints.log import RULE_CHANGES
from penstock.graph.graph import Graph
from penstock.graph.nodes import Node, Port, Source
from penstock.graph.nodes.patterns.match import Match
from penstock.graph.nodes.patterns.match_patterns import MatchPatterns
from penstock.graph.nodes.patterns.operator_match import OperatorMatch
from penstock.graph.nodes.patterns.row_pattern import MatchRows
from penstock.graph.nodes.patterns.rules import ApplyRules

MOST_WRITTEN = 500
"""So many rules of a step that stand in the flow are shown."""
QUERIES = "queries"
_LONGEST = 2_000


def rule_sets(graph: Graph) -> list[dict[str, Any]]:
    """The steps of a flow that have rules, patterns or standing queries: what they were written with, and the topic with changes."""
    made = [found for node in graph.nodes if (found := _set_of(graph, node)) is not None]
    topics = {(each["path"], each["topic"]) for each in made if each["topic"]}
    return [*made, *_query_sets(graph, topics)]


def _set_of(graph: Graph, node: Node) -> dict[str, Any] | None:
    if isinstance(node, ApplyRules):
        kind, written = "rules", {rule.name: str(rule) for rule in node.rules.rules[:MOST_WRITTEN]}
    elif isinstance(node, MatchPatterns):
        kind, written = "patterns", {name: str(pattern) for name, pattern in node.source.patterns[:MOST_WRITTEN]}
    elif isinstance(node, Match | OperatorMatch | MatchRows):
        kind, written = "pattern", {node.name: str(getattr(node, "pattern", node.kind))}
    else:
        return None
    topic = _changes_of(graph, node.inputs[1:])
    return {"step": node.name, "kind": kind, **topic, "written": {k: v[:_LONGEST] for k, v in written.items()}}


def _query_sets(graph: Graph, known: set[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Standing queries: the topics with changes that no rules and no patterns read, and the queries of the flow's own text."""
    for source in graph.sources:
        found = _topic_of(source)
        if found is not None and source.name.startswith(f"{QUERIES}.") and (found["path"], found["topic"]) not in known:
            yield {"step": QUERIES, "kind": QUERIES, **found, "written": {}}
            return
    if any(source.name == QUERIES for source in graph.sources):
        yield {"step": QUERIES, "kind": QUERIES, "topic": "", "path": "", "written": {}}


def _changes_of(graph: Graph, ports: tuple[Port, ...]) -> dict[str, str]:
    """The topic from which changes come; empty where they come from elsewhere, or not at all."""
    waiting, seen = [port.step for port in ports], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        node = graph.node(name)
        if isinstance(node, Source) and (found := _topic_of(node)) is not None:
            return found
        waiting += [port.step for port in node.inputs]
    return {"topic": "", "path": ""}


def _topic_of(source: Source) -> dict[str, str] | None:
    given = source.endpoint
    if given.capabilities.topics_in != "log" or given.schema is None or given.schema.names != RULE_CHANGES.names:
        return None
    return {"topic": str(given.options["topic"]), "path": str(Path(given.options["path"]).absolute())}
