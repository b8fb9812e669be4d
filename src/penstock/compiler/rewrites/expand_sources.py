"""Turns a source whose records a function makes into numbers and a Python step, so that the step can be fused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.compiler.plan import Plan
from penstock.graph.endpoints.basic import rate
from penstock.graph.graph import Graph
from penstock.graph.ids import child
from penstock.graph.nodes import Map, Node, Port, Source


@dataclass(frozen=True)
class FromNumber:
    """The user's function of a number, as a function of a row."""

    function: Callable[[int], Any]

    def __call__(self, row: Any) -> object:
        """The record of the row's number."""
        return self.function(row.value)


def expand_sources(plan: Plan) -> Plan:
    """The plan of a graph in which each generated source is a `rate` and a `map`."""
    nodes = [made for node in plan.graph.nodes for made in _expand(node)]
    return Plan(Graph(plan.graph.name, tuple(nodes)), plan.stages)


def _expand(node: Node) -> list[Node]:
    if not isinstance(node, Source) or not node.endpoint.capabilities.runs_python:
        return [node]
    options = node.endpoint.options
    numbers = rate(options["rows_per_second"], limit=options["limit"])
    first = Source(child(node.name, "numbers"), (), numbers, line=node.line, searched=node.searched)
    function = FromNumber(options["function"])
    return [
        first,
        Map(
            node.name,
            (Port(first.name),),
            function,
            node.output().schema,
            outputs=node.outputs,
            line=node.line,
            on_error=node.on_error,
        ),
    ]
