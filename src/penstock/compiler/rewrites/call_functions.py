"""Takes the calls of Python functions out of expressions: one Python step computes them all, the step after it reads their results.

The calls of a step share one pass through Python, those inside of others too. They are computed for every record, whatever the expression
around them would do: a `case` does not keep a function from being called.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.compiler.plan import Plan
from penstock.graph.expr import Column, Expr, PythonCall
from penstock.graph.expr.rewrite import rewritten
from penstock.graph.graph import Graph
from penstock.graph.ids import child
from penstock.graph.node_expressions import with_expressions
from penstock.graph.nodes import (
    LATE,
    OUT,
    Branch,
    Explode,
    Feedback,
    FunctionColumns,
    Match,
    MatchRows,
    Node,
    Port,
    Select,
    StreamJoin,
    Where,
    Window,
    WithColumns,
)

PASSING = (Where, Explode, Branch, WithColumns)
"""Steps whose outputs have all the fields of their input."""


def call_functions(plan: Plan) -> Plan:
    """The plan of a graph in which Python functions stand in steps of their own."""
    return Plan(called(plan.graph), plan.stages)


def called(graph: Graph) -> Graph:
    """The graph with the calls taken out; one without any is returned as it is."""
    if not any(_splits(node) for node in graph.nodes):
        return graph
    splitting = _Splitting(graph)
    nodes = [made for node in graph.nodes for made in splitting.split(node)]
    return Graph(graph.name, tuple(splitting.rewired(node) for node in nodes), graph.bootstraps)


def _splits(node: Node) -> bool:
    """Whether calls are taken out of a step. Conditions of joins and of patterns look at several records, in Python, with their calls in them."""
    return node.has_functions and not isinstance(node, FunctionColumns | StreamJoin | Match | MatchRows)


@dataclass
class _Calls:
    """The calls of one step, in the order in which they are computed, by the names of their fields."""

    columns: dict[str, PythonCall] = field(default_factory=dict)

    def taken_out(self, expr: Expr) -> Expr:
        """An expression that reads the results of its calls."""
        return rewritten(expr, self._column)

    def _column(self, node: Expr) -> Column | None:
        if not isinstance(node, PythonCall):
            return None
        call = PythonCall(node.function, tuple(map(self.taken_out, node.args)))
        known = next((name for name, other in self.columns.items() if call.same(other)), None)
        name = known or f"__call_{len(self.columns)}"
        self.columns.setdefault(name, call)
        return Column(name)


@dataclass
class _Splitting:
    """A graph under way, and where streams of the user's are now."""

    graph: Graph
    moved: dict[Port, Port] = field(default_factory=dict)

    def split(self, node: Node) -> list[Node]:
        """The calls of a step, the step, and what takes the results off its outputs."""
        if not _splits(node):
            return [node]
        calls, (read,) = _Calls(), node.inputs
        made = with_expressions(node, calls.taken_out)
        name = child(node.name, "functions")
        first = FunctionColumns(
            name, (read,), tuple(calls.columns.items()), hidden=True, line=node.line, on_error=node.on_error
        )
        rest = replace(made, inputs=(Port(name),), outputs=())
        return [first, rest, *self._cleared(node)]

    def _cleared(self, node: Node) -> list[Node]:
        """A step for each output that is read and would show the results."""
        passing = [
            o for o in node.outputs if isinstance(node, PASSING) or (isinstance(node, Window) and o.name == LATE)
        ]
        made: list[Node] = []
        for output in passing:
            port = Port(node.name, output.name)
            if self.graph.readers(port) or any(loop.fed_by == port for loop in self.graph.loops):
                columns = tuple((name, Column(name)) for name in output.schema.names)
                part = "fields" if output.name == OUT else f"fields-{output.name}"
                clear = Select(child(node.name, part), (port,), columns, record=output.schema.record, line=node.line)
                self.moved[port] = Port(clear.name)
                made.append(clear)
        return made

    def rewired(self, node: Node) -> Node:
        """A step that reads what the user's step emits reads it where it is now."""
        if node.name not in self.graph.by_name and not isinstance(node, FunctionColumns):
            return node
        if isinstance(node, Feedback) and node.fed_by in self.moved:
            return replace(node, fed_by=self.moved[node.fed_by])
        if not any(port in self.moved for port in node.inputs):
            return node
        return replace(node, inputs=tuple(self.moved.get(port, port) for port in node.inputs))
