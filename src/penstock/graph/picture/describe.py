"""A graph as plain values: what `describe --json` prints, and what the drawing and the text are made of.

The compiler adds where each step runs, the stages and the shuffles; see `penstock.compiler.describe`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.graph.graph import Graph
from penstock.graph.nodes import Bolt, Feedback, Keyed, Node, Output, Port, Sink, Source
from penstock.graph.nodes.base import FOR_EVER
from penstock.graph.schema import Schema

VERSION = 1
Description = dict[str, Any]
"""Plain values only: dicts with text keys, lists, texts, numbers, booleans and None."""


def describe_graph(graph: Graph) -> Description:
    """What a graph says of itself, before it is compiled.

    >>> from penstock.graph.endpoints.basic import console, items
    >>> read = Source("names", (), items(["ada"], "name string"))
    >>> described = describe_graph(Graph("hello", (read, Sink("out", (Port("names"),), console()))))
    >>> [(s["name"], s["runs"]) for s in described["steps"]]
    [('names', 'source'), ('out', 'sink')]
    >>> described["streams"][0]["schema"]
    'name string'
    """
    return {
        "version": VERSION,
        "flow": graph.name,
        "steps": [describe_step(n) for n in graph.ordered],
        "streams": [describe_stream(graph, node, port, back) for node, port, back in streams(graph)],
    }


def describe_step(node: Node) -> Description:
    """A step: its name, its settings, its inputs and its outputs; `drawing` where it has an inside to draw."""
    inside = {"drawing": list(node.drawing)} if node.drawing else {}
    return {
        "name": node.name,
        "kind": node.kind,
        "runs": _runs(node),
        "line": node.line,
        "settings": node.settings(),
        "inputs": [describe_port(p) for p in node.inputs],
        "outputs": [_output(o) for o in node.outputs],
        "parallelism": node.parallelism,
        "keyed": node.keyed,
        "keys": list(node.keys) if isinstance(node, Keyed) else [],
        "keeps": node.keeps,
        "kept_for_ever": node.keeps.endswith(FOR_EVER),
        "approximate": node.approximate,
        "varying": list(node.varying),
        **inside,
    }


def _runs(node: Node) -> str:
    if isinstance(node, Sink):
        return "sink"
    if isinstance(node, Source | Feedback):
        return "source+python" if node.runs_python else "source"
    return "python" if node.runs_python else "native"


def _output(output: Output) -> Description:
    updates = None if output.updates is None else list(output.updates)
    changes = None if output.changes is None else {"key": updates, "deletes": output.changes.deletes}
    known = {"port": output.name, "schema": str(output.schema), "fields": _fields(output.schema)}
    mode = "append-only" if output.changes is None else "changing"
    return {**known, "mode": mode, "updates": updates, "changes": changes}


def _fields(schema: Schema) -> list[Description]:
    return [{"name": f.name, "type": str(f.type), "nullable": f.nullable} for f in schema.fields]


def describe_port(port: Port) -> Description:
    """The address of a stream."""
    return {"step": port.step, "port": port.name}


def streams(graph: Graph) -> Iterator[tuple[Node, Port, bool]]:
    """Who reads what: the reading step, the stream, and whether it goes back to the beginning of a loop."""
    for node in graph.ordered:
        yield from ((node, p, False) for p in node.inputs)
    for loop in graph.loops:
        if loop.fed_by is not None:
            yield loop, loop.fed_by, True


def describe_stream(graph: Graph, node: Node, port: Port, back: bool) -> Description:
    """A stream on its way from one step to another."""
    return {
        "from": describe_port(port),
        "to": node.name,
        "schema": str(graph.output(port).schema),
        "grouping": _grouping(node, port),
        "feedback": back,
    }


def _grouping(node: Node, port: Port) -> str:
    if not isinstance(node, Bolt):
        return ""
    return ", ".join(str(g) for p, g in zip(node.inputs, node.groupings, strict=True) if p == port)
