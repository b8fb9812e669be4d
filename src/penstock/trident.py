"""Trident's operations, aggregators, states and queries, for `penstock.TridentTopology`.

>>> from penstock import trident
>>> trident.Count().zero()
0
"""

from penstock.frontends.trident.grouped import ChainedAggregation, GroupedStream
from penstock.frontends.trident.state import TridentState
from penstock.frontends.trident.stream import TridentStream
from penstock.graph.logic.trident.aggregators import Aggregator, CombinerAggregator, Count, ReducerAggregator, Sum
from penstock.graph.logic.trident.operations import (
    Collector,
    ExpandList,
    Filter,
    FilterNull,
    Function,
    OperationContext,
    Split,
)
from penstock.graph.logic.trident.queries import MapGet, QueryFunction, SnapshotGet, StateUpdater, TupleCollectionGet
from penstock.graph.logic.trident.states import (
    MapState,
    MemoryStore,
    NonTransactionalMap,
    OpaqueMap,
    State,
    StateFactory,
    TransactionalMap,
)
from penstock.graph.logic.trident.values import OpaqueValue, TransactionalValue

__all__ = [
    "Aggregator",
    "ChainedAggregation",
    "Collector",
    "CombinerAggregator",
    "Count",
    "ExpandList",
    "Filter",
    "FilterNull",
    "Function",
    "GroupedStream",
    "MapGet",
    "MapState",
    "MemoryStore",
    "NonTransactionalMap",
    "OpaqueMap",
    "OpaqueValue",
    "OperationContext",
    "QueryFunction",
    "ReducerAggregator",
    "SnapshotGet",
    "Split",
    "State",
    "StateFactory",
    "StateUpdater",
    "Sum",
    "TransactionalMap",
    "TransactionalValue",
    "TridentState",
    "TridentStream",
    "TupleCollectionGet",
]
