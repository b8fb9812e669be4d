"""The compiler: a graph becomes a plan by a few small passes, one file each."""

from __future__ import annotations

from typing import Protocol

from penstock.compiler.plan import Plan
from penstock.compiler.rewrites.assign_hosts import assign_hosts
from penstock.compiler.rewrites.call_functions import call_functions
from penstock.compiler.rewrites.carry_changes import carry_changes
from penstock.compiler.rewrites.combine_early import combine_early
from penstock.compiler.rewrites.drop_roots import drop_roots
from penstock.compiler.rewrites.expand_sources import expand_sources
from penstock.compiler.rewrites.finish_aggregates import finish_aggregates
from penstock.compiler.rewrites.fuse_keyed import fuse_keyed
from penstock.compiler.rewrites.fuse_native import fuse_native
from penstock.compiler.rewrites.fuse_outputs import fuse_outputs
from penstock.compiler.rewrites.fuse_python import fuse_python
from penstock.compiler.rewrites.match_columns import match_columns
from penstock.compiler.rewrites.merge_equal import merge_equal
from penstock.compiler.rewrites.merge_with_state import merge_with_state
from penstock.compiler.rewrites.narrow_shared import narrow_shared
from penstock.compiler.rewrites.prune_unused import prune_unused
from penstock.compiler.rewrites.share_streams import share_behind_union, share_streams
from penstock.compiler.rewrites.whole_tables import whole_tables
from penstock.compiler.rewrites.window_parts import window_parts
from penstock.errors import FlowError
from penstock.graph.graph import Graph


class Rewrite(Protocol):
    """A pass: a plan in, a plan out, nothing else touched."""

    def __call__(self, plan: Plan) -> Plan:
        """The better plan."""


BOTH: tuple[Rewrite, ...] = (
    expand_sources,
    window_parts,
    combine_early,
    assign_hosts,
    prune_unused,
    fuse_python,
    fuse_keyed,
    fuse_outputs,
    fuse_native,
)
FIRST: tuple[Rewrite, ...] = (drop_roots, finish_aggregates, match_columns, call_functions, carry_changes)
BOUNDED: tuple[Rewrite, ...] = (*FIRST, whole_tables, merge_equal, narrow_shared, *BOTH, share_streams)
ROUNDS: tuple[Rewrite, ...] = (*FIRST, merge_with_state, *BOTH, share_streams)
LIVE: tuple[Rewrite, ...] = (*FIRST, merge_with_state, *BOTH, share_behind_union)


def compile_graph(graph: Graph, *, live: bool = True) -> Plan:
    """The plan of a graph: for a live run, whose totals go on from batch to batch, or for a bounded one.

    A bounded flow with a loop goes round, so its totals go on too.
    """
    plan = Plan(graph, ())
    for rule in LIVE if live else ROUNDS if graph.loops else BOUNDED:
        plan = rule(plan)
    return plan


def check_runnable(graph: Graph) -> None:
    """Refuses a flow that would do nothing."""
    if not graph.sinks:
        raise FlowError(
            f"flow {graph.name!r} has no sink, so it would do nothing; end it with stream.sink('out', ps.console())"
        )
    if not graph.sources:
        raise FlowError(f"flow {graph.name!r} has no source; begin it with flow.source(...)")
