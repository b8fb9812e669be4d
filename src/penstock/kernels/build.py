"""Finds the kernel of a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.errors import NotYet
from penstock.graph import nodes as n
from penstock.graph.graph import Graph
from penstock.graph.schema import Schema
from penstock.kernels import keyed, stateless
from penstock.kernels.base import Kernel
from penstock.kernels.time import EventTimeKernel
from penstock.kernels.topology import BoltKernel, RouteKernel

_PLAIN: dict[type, Callable[[Any], Kernel]] = {
    n.Map: stateless.MapKernel,
    n.FlatMap: stateless.FlatMapKernel,
    n.Filter: stateless.FilterKernel,
    n.MapBatches: stateless.MapBatchesKernel,
    n.Union: stateless.PassKernel,
    n.Repartition: stateless.PassKernel,
    n.AsRecords: stateless.PassKernel,
}
_OF_INPUT: dict[type, Callable[[Any, Schema], Kernel]] = {
    n.Select: stateless.SelectKernel,
    n.WithColumns: stateless.SelectKernel,
    n.Where: stateless.WhereKernel,
    n.Explode: stateless.ExplodeKernel,
    n.Branch: stateless.BranchKernel,
    n.AggregateBy: keyed.aggregate_kernel,
    n.Combine: keyed.combine_kernel,
    n.Reduce: keyed.ReduceKernel,
    n.Process: keyed.ProcessKernel,
    n.EventTime: EventTimeKernel,
}
_OF_GRAPH: dict[type, Callable[[Any, Graph], Kernel]] = {n.Bolt: BoltKernel, n.Route: RouteKernel}


def kernel_of(node: n.Node, graph: Graph) -> Kernel:
    """The kernel that does the work of a step."""
    if type(node) in _PLAIN:
        return _PLAIN[type(node)](node)
    if type(node) in _OF_INPUT:
        return _OF_INPUT[type(node)](node, graph.output(node.inputs[0]).schema)
    if type(node) in _OF_GRAPH:
        return _OF_GRAPH[type(node)](node, graph)
    raise NotYet(f"step {node.name!r}: no kernel for a {node.kind}")
