"""What a local run executes: the compiled plan of a graph, as in production."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.compiler.compile import compile_graph
from penstock.graph.graph import Graph
from penstock.graph.nodes import Node, Sink, Source

CHUNK = 10_000
"""Records that go through the steps at once; Spark hands as many to a Python worker."""


@dataclass(frozen=True)
class Program:
    """The steps that a run executes, in order, of a graph; and how many records go in at once."""

    graph: Graph
    steps: tuple[Node, ...]
    chunk: int


def compiled(graph: Graph) -> Program:
    """The plan of a live run, in one process and one task: the same passes, steps and kernels.

    Records enter where the user's sources are, so what the compiler makes of generated sources is not needed.
    """
    plan = compile_graph(graph)
    steps = (n for stage in plan.stages for n in stage.nodes)
    return Program(plan.graph, working(graph, steps), CHUNK)


def working(graph: Graph, steps: Iterable[Node]) -> tuple[Node, ...]:
    """Those of some steps that do something between the sources and the sinks of a graph."""
    entries = {source.name for source in graph.sources}
    return tuple(n for n in steps if n.inputs and n.name not in entries and not isinstance(n, Source | Sink))
