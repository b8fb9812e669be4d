"""Lowers a plan, stage by stage."""

from __future__ import annotations

from penstock.compiler.plan import NATIVE, PYTHON, SOURCE
from penstock.errors import NotYet
from penstock.graph import nodes as n
from penstock.graph.nodes.changes import ConsolidateEarly
from penstock.graph.nodes.relational.whole import WholeStep
from penstock.spark.dead_letters.malformed import readable
from penstock.spark.lower import exchange, join, keyed, stateless, time, whole, window
from penstock.spark.lower.context import Lower, Lowering
from penstock.spark.lower.python import python_stage
from penstock.spark.lower.topology import tuple_routes

NODES: dict[type, Lower] = {
    n.Select: stateless.select,
    n.WithColumns: stateless.with_columns,
    n.Where: stateless.where,
    n.Explode: stateless.explode,
    n.Union: stateless.union,
    n.Branch: stateless.branch,
    n.AsRecords: stateless.as_is,
    ConsolidateEarly: stateless.as_is,
    n.Repartition: exchange.repartition,
    n.Parts: keyed.parts,
    n.AggregateBy: keyed.aggregate,
    n.JoinStatic: join.join_static,
    n.EventTime: time.event_time,
    n.WindowParts: window.window_parts,
    n.AssignWindows: window.assign_windows,
    n.BatchTime: time.batch_time,
    WholeStep: whole.whole_step,
}


def lower(at: Lowering) -> None:
    """Makes the frame of every stream from the frames of the sources."""
    at.routes.update(tuple_routes(at))
    for stage in at.plan.stages:
        if stage.host == SOURCE:
            for port in stage.outputs:
                if port in at.frames:
                    at.frames[port] = readable(at, port)
                    at.give(port, at.with_replays(port.step, 0, port))
        elif stage.host == PYTHON:
            python_stage(at, stage)
        elif stage.host == NATIVE:
            for node in stage.nodes:
                _native(at, node)


def _native(at: Lowering, node: n.Node) -> None:
    if type(node) not in NODES:
        raise NotYet(f"step {node.name!r}: a {node.kind} does not run on Spark yet")
    NODES[type(node)](at, node)
