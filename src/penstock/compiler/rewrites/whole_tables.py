"""Has Spark itself join, rank, window and compare the rows of tables, where all of them are there at once: in a bounded run.

A table is whole when each of its rows stands, and is there as often as it counts: records are, totals of them, and what is made of those. Then nothing is taken back, and a step
over signed rows is one over rows. Where a table comes as changes of its own, or a step has a policy for bad records or a Python function, rows go on through Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.compiler.plan import Plan
from penstock.graph import types as t
from penstock.graph.expr import Column
from penstock.graph.graph import Graph
from penstock.graph.nodes import (
    AggregateBy,
    AsRecords,
    AssignWindows,
    BatchTime,
    Branch,
    EventTime,
    Explode,
    IntervalJoin,
    JoinStatic,
    LookupJoin,
    Node,
    Output,
    Port,
    Repartition,
    Select,
    SetOperation,
    TableJoin,
    Top,
    Union,
    Where,
    Window,
    WithColumns,
)
from penstock.graph.nodes.base import COUNT
from penstock.graph.nodes.changes import (
    AggregateChanges,
    Consolidate,
    ConsolidateEarly,
    Retract,
    SignedStep,
    TopChanges,
    Upserts,
    visible,
)
from penstock.graph.nodes.join import RIGHT
from penstock.graph.nodes.relational.whole import WholeStep
from penstock.graph.schema import Schema
from penstock.graph.windows import TimeWindow

ROW_BY_ROW = (
    Select, Where, WithColumns, Explode, JoinStatic, Repartition, EventTime, AssignWindows, BatchTime, Branch, Union, AsRecords, ConsolidateEarly, SignedStep,
)  # fmt: skip
"""Steps that look at one row at a time, and carry its count along."""


def whole_tables(plan: Plan) -> Plan:
    """The plan of a bounded run in which steps over whole tables are native. Spouts may emit in several rounds, so with one no table is whole."""
    if any(source.endpoint.capabilities.emits_tuples for source in plan.graph.sources):
        return plan
    return Plan(_Tables(plan.graph).graph_made(), plan.stages)


@dataclass
class _Tables:
    """A graph under way: the steps so far, and the streams that are whole."""

    graph: Graph
    made: dict[str, Node] = field(default_factory=dict)
    whole: set[Port] = field(default_factory=set)

    def graph_made(self) -> Graph:
        """The graph as it runs; the same where nothing changes."""
        for node in self.graph.ordered:
            self._take(node)
        if all(self.made[n.name] is n for n in self.graph.nodes):
            return self.graph
        return Graph(self.graph.name, tuple(self.made[n.name] for n in self.graph.nodes), self.graph.bootstraps)

    def _take(self, node: Node) -> None:
        whole = bool(node.inputs) and all(port in self.whole for port in node.inputs)
        change = CHANGED.get(type(node)) if whole and node.on_error is None and not node.has_functions else None
        made = (change(self, node) if change is not None else None) or node
        self.made[node.name] = made
        stands = made is not node or (whole and isinstance(node, (*ROW_BY_ROW, AggregateBy)))
        for output in node.outputs:
            if stands or (output.changes is None and COUNT not in output.schema):
                self.whole.add(Port(node.name, output.name))

    def given(self, node: Node, at: int = 0) -> Output:
        """An input of a step."""
        return self.graph.output(node.inputs[at])

    def is_alone(self, node: Node) -> bool:
        """Whether nobody reads more of a step than its main output."""
        return not any(self.graph.readers(Port(node.name, each.name)) for each in node.outputs[1:])

    def is_unique(self, port: Port, keys: set[str]) -> bool:
        """Whether no two rows of a stream have the same values of some fields: they come from a total or a rank by a part of these."""
        node = self.made[port.step]
        if isinstance(node, Select):
            sources = {name: value.name for name, value in node.columns if isinstance(value, Column)}
            return self.is_unique(node.inputs[0], {sources[k] for k in keys if k in sources})
        if isinstance(node, WithColumns):
            return self.is_unique(node.inputs[0], keys - {name for name, _ in node.columns})
        if isinstance(node, Where):
            return self.is_unique(node.inputs[0], keys)
        left = _left_fields(self.graph, node)
        if left is not None:
            return self.is_unique(node.inputs[0], {left[k] for k in keys if k in left})
        return any(set(own) <= keys for own in _own_keys(node))


def _left_fields(graph: Graph, node: Node) -> dict[str, str] | None:
    """The fields of the left by their names in the result of a join that makes at most one row of each row of the left; None for other steps."""
    of = node.of if isinstance(node, WholeStep) else None
    if not isinstance(of, TableJoin) or of.how in ("right", "full"):
        return None
    if of.how in ("inner", "left") and not of.single[RIGHT]:
        return None
    names = visible(graph.output(Port(node.name)).schema).names
    return {name: left for name, (left, _) in zip(names, of.columns, strict=True) if left}


def _own_keys(node: Node) -> list[tuple[str, ...]]:
    """The keys by which the rows of a step are there once."""
    if isinstance(node, AggregateBy):
        return [node.keys]
    of = node.of if isinstance(node, WholeStep) else None
    if not isinstance(of, Top | TopChanges):
        return []
    return [*([(*of.keys, of.into)] if of.into else []), *([of.keys] if of.n == 1 else [])]


def _step(tables: _Tables, node: Any) -> WholeStep:
    return WholeStep(node.name, node.inputs, node.keys, of=node, line=node.line, parallelism=node.parallelism)


def _timed_join(tables: _Tables, node: IntervalJoin) -> Node | None:
    return _step(tables, node) if tables.is_alone(node) else None


def _rank(tables: _Tables, node: Top | TopChanges) -> Node | None:
    """Rows of an equal rank go by all their values, which Spark compares as Python does where they are plain."""
    return _step(tables, node) if _are_plain(tables.given(node).schema) else None


def _sets(tables: _Tables, node: SetOperation) -> Node | None:
    """Spark would change some values to compare them: -0.0 becomes 0.0."""
    schema = tables.given(node).schema
    exact = all(f.type not in (t.FLOAT, t.DOUBLE) for f in schema.fields)
    return _step(tables, node) if exact and _are_plain(schema) else None


def _are_plain(schema: Schema) -> bool:
    return not any(isinstance(f.type, t.Array | t.Map | t.Struct) for f in schema.fields)


MOMENTS = ("stddev_samp", "stddev_pop", "var_samp", "var_pop")
"""Aggregates whose last digit depends on the order of rows; over tables they are computed from sums, which can be taken back."""


def _totals(tables: _Tables, node: AggregateChanges) -> Node | None:
    if any(a.own is not None or a.call in MOMENTS for a in node.aggregates):
        return None
    settings = {"calls": node.calls, "always": node.always, "line": node.line}
    return AggregateBy(node.name, node.inputs, node.keys, is_kept=True, counted=True, **settings)  # type: ignore[arg-type]


def _window(tables: _Tables, node: Window) -> Node | None:
    """Windows of a fixed size that are emitted once; pieces of sessions are few, and put together in Python."""
    fixed = isinstance(node.spec, TimeWindow) and node.once and node.ranked is None
    moments = any(a.call in MOMENTS for a in node.aggregates)
    return _step(tables, node) if fixed and not moments and not node.counted and tables.is_alone(node) else None


def _as_they_are(tables: _Tables, node: Any) -> Node:
    """Rows that need not meet those of their key."""
    return replace(_step(tables, node), stays=True)


def _upserts(tables: _Tables, node: Upserts) -> Node | None:
    return _as_they_are(tables, node) if tables.is_unique(node.inputs[0], set(node.keys)) else None


CHANGED: dict[type, Callable[[_Tables, Any], Node | None]] = {
    TableJoin: _step,
    LookupJoin: _step,
    IntervalJoin: _timed_join,
    Top: _rank,
    TopChanges: _rank,
    SetOperation: _sets,
    AggregateChanges: _totals,
    Window: _window,
    Retract: _as_they_are,
    Upserts: _upserts,
    Consolidate: _as_they_are,
}
"""What becomes of a step over whole tables; None leaves it as it is."""
