"""Splits windows of native aggregates in two: parts by key and pane, made by Spark before the shuffle, and what puts them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.compiler.plan import Plan
from penstock.errors import FlowError
from penstock.graph import types as t
from penstock.graph.duration import micros
from penstock.graph.expr import Expr
from penstock.graph.graph import Graph
from penstock.graph.ids import child
from penstock.graph.nodes import LATE, Map, Node, Port, Window, WindowParts
from penstock.graph.nodes.window import GAP
from penstock.graph.schema import Schema
from penstock.graph.windows import SessionWindow


@dataclass(frozen=True)
class WithGap:
    """A function from a record to its values and the gap after it."""

    function: Callable[[Any], Any]
    names: tuple[str, ...]

    def __call__(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """The values and the gap."""
        gap = micros(self.function(row), "the gap of a session")
        if gap <= 0:
            raise FlowError(f"the gap of a session is a span of time above zero, got {gap!r}")
        return (*(getattr(row, n) for n in self.names), gap)


def window_parts(plan: Plan) -> Plan:
    """The plan of a graph in which windows of native aggregates have a `parts` step before them."""
    graph = plan.graph
    split = [n for n in graph.nodes if isinstance(n, Window) and _splits(graph, n)]
    moved = {Port(n.name, LATE): Port(child(n.name, "parts"), LATE) for n in split if not _is_session(n)}
    nodes = [_rewired(made, moved) for node in graph.nodes for made in _split(graph, node)]
    return Plan(Graph(graph.name, tuple(nodes)), plan.stages)


def _splits(graph: Graph, node: Window) -> bool:
    """Whether a step is split. Which records of a session are late shows only after the shuffle: where they are read, only sessions that are
    emitted once are made of parts, of a record each.
    """
    asked = _is_session(node) and bool(graph.readers(Port(node.name, LATE)))
    return node.native and not node.parts and (node.once or not asked)


def _is_session(node: Window) -> bool:
    return isinstance(node.spec, SessionWindow)


def _rewired(node: Node, moved: dict[Port, Port]) -> Node:
    """A step that reads late records reads them where they are found."""
    if not any(p in moved for p in node.inputs):
        return node
    return replace(node, inputs=tuple(moved.get(p, p) for p in node.inputs))


def _split(graph: Graph, node: Node) -> list[Node]:
    if not isinstance(node, Window) or not _splits(graph, node):
        return [node]
    before = _gaps(graph, node)
    read = Port(before[-1].name) if before else node.inputs[0]
    counted = not graph.readers(Port(node.name, LATE))
    first = WindowParts(child(node.name, "parts"), (read,), node, counted, line=node.line)
    outputs = node.outputs if first.by_record else node.outputs[:1]
    rest = replace(node, inputs=(Port(first.name),), outputs=outputs, parts=True)
    return [*before, first, rest]


def _gaps(graph: Graph, node: Window) -> list[Node]:
    """The step that asks a Python function for the gap after each record."""
    if not isinstance(node.spec, SessionWindow) or isinstance(node.spec.gap, int | Expr):
        return []
    given = graph.output(node.inputs[0]).schema
    schema = Schema((*given.fields, t.Field(GAP, t.BIGINT)), internal=True)
    function = WithGap(node.spec.gap, given.names)
    return [Map(child(node.name, "gap"), node.inputs, function, schema, line=node.line)]
