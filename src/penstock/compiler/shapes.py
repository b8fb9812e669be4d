"""What a step keeps, as a text by which a changed flow is told from the one that wrote the state.

The text is the kind of step with its keys, a colon, and the fields of what it keeps: `reduce by word string: word string, n bigint`.
Behind a semicolon stands what else decides which of them are kept: `top by word string: word string, n bigint; 3 by n desc`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.graph.aggregates import Aggregate
from penstock.graph.duration import shown
from penstock.graph.graph import Graph
from penstock.graph.nodes import (
    AggregateBy,
    AsOfJoin,
    Changelog,
    DistinctInTime,
    Fold,
    IntervalJoin,
    Keyed,
    Net,
    Node,
    Process,
    Reduce,
    Sort,
    StreamJoin,
    Top,
    Window,
    WindowJoin,
)
from penstock.graph.nodes.join import LEFT, RIGHT
from penstock.graph.schema import Schema


def shape_of_state(node: Node, graph: Graph, store: str = "") -> str:
    """The kind of step, its keys with their types, and what it keeps for each in one of its stores.

    What a bolt keeps is its own affair, and so is what a class keeps of a rule.
    """
    if not isinstance(node, Keyed):
        return node.kind
    side = RIGHT if store.endswith(("@right", "@last")) else LEFT
    schema = graph.output(node.inputs[side]).schema
    keys = ", ".join(f"{k} {schema.field(k).type}" for k in node.keys_of(side))
    if isinstance(node, Window):
        head = f"{node.shape}; {keys}, {', '.join(node.stores.values())}"
        return head if node.function is None else f"{head}: {schema}"
    if isinstance(node, DistinctInTime) and store != node.kept:
        return f"distinct in time by {keys}: {schema}"
    kept = _kept(node, schema) if not isinstance(node, Changelog | Net) else _changes(node, graph)
    return f"{node.kind} by {keys}" if kept is None else f"{node.kind} by {keys}: {kept}"


def _kept(node: Keyed, schema: Schema) -> str | None:
    """What a step keeps of records of a form; None when it is nothing but the keys, or a matter of the user's class."""
    if isinstance(node, AggregateBy):
        return _computed(node.aggregates)
    if isinstance(node, Reduce):
        return str(schema)
    if isinstance(node, Fold):
        return str(Schema(node.output().schema.fields[len(node.keys) :]))
    if isinstance(node, Process):
        return ", ".join(map(str, node.logic.cells().values()))
    bounds = _bounds(node)
    return None if bounds is None else f"{schema}{bounds and f'; {bounds}'}"


def _changes(node: Changelog | Net, graph: Graph) -> str:
    """The rows of a table that changes, and the totals over them, if any: neither is right without the other."""
    log = node if isinstance(node, Changelog) else graph.node(f"{node.name}.changes")
    rows = str(Schema(log.output().schema.fields[1:]))
    over = graph.by_name.get(log.name.removesuffix(".changes"))
    if not isinstance(over, Net):
        return rows
    computed = graph.by_name.get(f"{over.name}.key")
    by = [*over.keys, *(f"{k}={v}" for k, v in computed.settings().items())] if computed else over.keys
    return f"{rows}; {_computed(over.aggregates)} by {', '.join(by)} over {', '.join(log.keys_of(0))}"


def _computed(aggregates: Iterable[Aggregate]) -> str:
    return ", ".join(f"{a.name}={a} {a.type}" for a in aggregates)


def _bounds(node: Any) -> str | None:
    """What decides which whole records a step keeps, and for how long; None when it keeps none."""
    if isinstance(node, Top):
        return f"{node.n} by {', '.join(map(str, node.by))}"
    if isinstance(node, Sort):
        return f"within {shown(node.span)}" if node.span else ""
    return _reach(node) if isinstance(node, StreamJoin) else None


def _reach(node: StreamJoin) -> str:
    """Which records of a join wait for which others."""
    told = node.settings()
    if isinstance(node, IntervalJoin):
        return f"{node.how} within {told['within']}"
    if isinstance(node, WindowJoin):
        return f"{node.how} in {told['window']}"
    assert isinstance(node, AsOfJoin)
    return f"{node.direction} {told.get('tolerance', '')}".strip()
