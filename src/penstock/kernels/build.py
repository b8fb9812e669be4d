"""Finds the kernel of a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.errors import NotYet
from penstock.graph import nodes as n
from penstock.graph.graph import Graph
from penstock.graph.nodes import changes as c
from penstock.graph.nodes.batch import CombineBatch, KeyedBatch
from penstock.graph.nodes.patterns.match_patterns import MatchPatterns
from penstock.graph.nodes.patterns.rules import ApplyRules, KeyedRules, RuleTable
from penstock.graph.nodes.relational.trigger import Trigger
from penstock.graph.schema import Schema
from penstock.kernels import stateless
from penstock.kernels.base import Kernel
from penstock.kernels.calls.kernel import MapAsyncKernel
from penstock.kernels.changes import log, upserts
from penstock.kernels.changes.aggregate import AggregateChangesKernel
from penstock.kernels.changes.answers import AnswersKernel
from penstock.kernels.changes.column_upserts import upserts_kernel
from penstock.kernels.changes.early import early_kernel
from penstock.kernels.changes.fold import FoldChangesKernel
from penstock.kernels.changes.joins.lookup import LookupKernel
from penstock.kernels.changes.joins.single_join import table_join_kernel
from penstock.kernels.changes.linear import SignedKernel
from penstock.kernels.changes.sets import SetKernel
from penstock.kernels.changes.settle import SettleKernel
from penstock.kernels.changes.top import TopChangesKernel
from penstock.kernels.changes.window_totals import window_changes_kernel
from penstock.kernels.joins.asof import AsOfJoinKernel
from penstock.kernels.joins.broadcast import BroadcastKernel, RulesKernel
from penstock.kernels.joins.interval import IntervalJoinKernel
from penstock.kernels.joins.window import WindowJoinKernel
from penstock.kernels.keyed.column_merge import aggregate_kernel
from penstock.kernels.keyed.combine import combine_kernel
from penstock.kernels.keyed.group import GroupKernel
from penstock.kernels.keyed.process import ProcessKernel
from penstock.kernels.keyed.reduce import FoldKernel, ReduceKernel
from penstock.kernels.keyed.trigger import TriggerKernel
from penstock.kernels.ordering import over, ranking, recent, sort
from penstock.kernels.patterns.kernel import MatchKernel
from penstock.kernels.patterns.many import MatchPatternsKernel
from penstock.kernels.patterns.operators.kernel import OperatorKernel
from penstock.kernels.patterns.rows.kernel import MatchRowsKernel
from penstock.kernels.rules.changes import RuleTableKernel
from penstock.kernels.rules.kernel import ApplyRulesKernel
from penstock.kernels.rules.keyed import KeyedRulesKernel
from penstock.kernels.scalar_functions import FunctionsKernel
from penstock.kernels.time import EventTimeKernel
from penstock.kernels.topology.batches import CombineBatchKernel, KeyedBatchKernel
from penstock.kernels.topology.bolts import BoltKernel, RouteKernel
from penstock.kernels.windows.assign import AssignWindowsKernel
from penstock.kernels.windows.batch_time import BatchTimeKernel
from penstock.kernels.windows.build import window_kernel
from penstock.kernels.windows.group import window_group_kernel

_PLAIN: dict[type, Callable[[Any], Kernel]] = {
    n.Map: stateless.MapKernel,
    n.FlatMap: stateless.FlatMapKernel,
    n.Filter: stateless.FilterKernel,
    n.MapBatches: stateless.MapBatchesKernel,
    n.MapAsync: MapAsyncKernel,
    n.Union: stateless.PassKernel,
    n.Repartition: stateless.PassKernel,
    n.AsRecords: stateless.PassKernel,
}
_OF_INPUT: dict[type, Callable[[Any, Schema], Kernel]] = {
    n.Select: stateless.SelectKernel,
    n.WithColumns: stateless.SelectKernel,
    n.Where: stateless.WhereKernel,
    n.Explode: stateless.ExplodeKernel,
    n.AssignWindows: AssignWindowsKernel,
    n.BatchTime: BatchTimeKernel,
    n.FunctionColumns: FunctionsKernel,
    n.Branch: stateless.BranchKernel,
    n.AggregateBy: aggregate_kernel,
    n.Combine: combine_kernel,
    n.Parts: GroupKernel,
    n.WindowParts: window_group_kernel,
    n.Reduce: ReduceKernel,
    n.Fold: FoldKernel,
    n.Process: ProcessKernel,
    n.EventTime: EventTimeKernel,
    n.Rules: RulesKernel,
    n.WithBroadcast: BroadcastKernel,
    ApplyRules: ApplyRulesKernel,
    KeyedRules: KeyedRulesKernel,
    RuleTable: RuleTableKernel,
    n.Distinct: sort.DistinctKernel,
    n.DistinctInTime: sort.DistinctInTimeKernel,
    n.Sort: sort.SortKernel,
    n.MatchRows: MatchRowsKernel,
    n.Top: ranking.TopKernel,
    n.Over: over.OverKernel,
    n.Recent: recent.RecentKernel,
    n.OverTable: over.OverTableKernel,
    n.OperatorMatch: OperatorKernel,
    n.Match: MatchKernel,
    MatchPatterns: MatchPatternsKernel,
    n.Changelog: log.ChangelogKernel,
    n.AsTable: log.AsTableKernel,
    c.AggregateChanges: AggregateChangesKernel,
    c.TopChanges: TopChangesKernel,
    c.FoldChanges: FoldChangesKernel,
    c.WindowChanges: window_changes_kernel,
    c.Settle: SettleKernel,
    c.Retract: upserts.RetractKernel,
    c.Upserts: upserts_kernel,
    c.Consolidate: upserts.ConsolidateKernel,
    c.ConsolidateEarly: early_kernel,
}
_OF_GRAPH: dict[type, Callable[[Any, Graph], Kernel]] = {
    n.Bolt: BoltKernel,
    n.Route: RouteKernel,
    KeyedBatch: KeyedBatchKernel,
    CombineBatch: CombineBatchKernel,
    n.Window: window_kernel,
    n.AsOfJoin: AsOfJoinKernel,
    n.IntervalJoin: IntervalJoinKernel,
    n.WindowJoin: WindowJoinKernel,
    c.TableJoin: table_join_kernel,
    n.LookupJoin: LookupKernel,
    n.SetOperation: SetKernel,
    c.Answers: AnswersKernel,
    Trigger: TriggerKernel,
}


def kernel_of(node: n.Node, graph: Graph) -> Kernel:
    """The kernel that does the work of a step."""
    if isinstance(node, c.SignedStep):
        return SignedKernel(node, graph.output(node.inputs[0]).schema, _over)
    if type(node) in _PLAIN or type(node) in _OF_INPUT:
        return _over(node, graph.output(node.inputs[0]).schema)
    if type(node) in _OF_GRAPH:
        return _OF_GRAPH[type(node)](node, graph)
    raise NotYet(f"step {node.name!r}: no kernel for a {node.kind}")


def _over(node: n.Node, schema: Schema) -> Kernel:
    """The kernel of a step that needs to know no more than the fields of its input."""
    return _PLAIN[type(node)](node) if type(node) in _PLAIN else _OF_INPUT[type(node)](node, schema)
