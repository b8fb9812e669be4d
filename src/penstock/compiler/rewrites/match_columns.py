"""Takes the conditions of patterns to where columns are: an event comes to its step with a mask that says which it satisfies.

Spark computes the mask, drops events that can change no run before they are moved, and moves only the fields that are looked at later.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from penstock.compiler.plan import Plan
from penstock.graph import types as t
from penstock.graph.expr import Call, Case, Column, Expr, Literal
from penstock.graph.graph import Graph
from penstock.graph.ids import child
from penstock.graph.nodes import LATE, Match, Node, Port, Select, Where, WithColumns
from penstock.graph.nodes.patterns.match import MASK, MOST_TESTS, TIMED_OUT
from penstock.graph.patterns.tree import Predicate
from penstock.graph.schema import Schema


def match_columns(plan: Plan) -> Plan:
    """The plan of a graph in which steps with patterns get their events with masks."""
    graph = plan.graph
    if not any(isinstance(node, Match) for node in graph.nodes):
        return plan
    nodes = [made for node in graph.nodes for made in _split(graph, node)]
    return Plan(Graph(graph.name, tuple(nodes), graph.bootstraps), plan.stages)


def _split(graph: Graph, node: Node) -> list[Node]:
    if not isinstance(node, Match) or node.masked is not None:
        return [node]
    node = replace(node, reports=bool(graph.readers(Port(node.name, TIMED_OUT))))
    if not _is_split(graph, node):
        return [node]
    return _masked(node, graph.output(node.inputs[0]).schema)


def _is_split(graph: Graph, node: Match) -> bool:
    """Whether masks can be computed outside. Where late events are read, or some become dead letters, they must be as they were."""
    tests = node.automaton.tests
    if node.on_error is not None and node.looks_at_runs(node.event_schema(graph.output(node.inputs[0]).schema)):
        return False
    python = any(isinstance(test.condition, Predicate) and not test.condition.sees_taken for test in tests)
    return 0 < len(tests) <= MOST_TESTS and not python and not graph.readers(Port(node.name, LATE))


def _masked(node: Match, schema: Schema) -> list[Node]:
    event = node.event_schema(schema)
    filters = [node.filter_of(number, event) for number in range(len(node.automaton.tests))]
    plain = tuple(at for at, _ in enumerate(filters) if (made := node.tested(at, event)) is not None and made.is_plain)
    mask = WithColumns(child(node.name, "tests"), node.inputs, ((MASK, _mask(filters)),), hidden=True, line=node.line)
    steps: list[Node] = [mask]
    if node.may_pass_by and all(condition is not None for condition in filters):
        relevant = Call("<>", (Column(MASK), Literal(0, t.BIGINT)))
        steps.append(Where(child(node.name, "relevant"), (Port(mask.name),), relevant, line=node.line))
    hidden = [name for name in schema.names if name.startswith("__")]
    names = (*node.read_fields(event), *hidden, MASK)
    columns = tuple((name, Column(name)) for name in names)
    steps.append(Select(child(node.name, "events"), (Port(steps[-1].name),), columns, line=node.line))
    return [*steps, replace(node, inputs=(Port(steps[-1].name),), outputs=(), masked=plain)]


def _mask(filters: list[Expr | None]) -> Expr:
    bits = [_bit(1 << at, condition) for at, condition in enumerate(filters)]
    return reduce(lambda one, other: Call("+", (one, other)), bits)


def _bit(bit: int, condition: Expr | None) -> Expr:
    value = Literal(bit, t.BIGINT)
    return value if condition is None else Case(((condition, value),), Literal(0, t.BIGINT))
