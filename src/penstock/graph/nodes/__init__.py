"""The steps a flow is made of, a file per family."""

from penstock.graph.nodes.base import LATE, OUT, Changes, Inputs, Node, Output, Port, TimeField, label
from penstock.graph.nodes.calls import MapAsync
from penstock.graph.nodes.changes import TableJoin
from penstock.graph.nodes.endpoint import DeadLetters, Endpoint, Sink, Source
from penstock.graph.nodes.exchange import GROUPINGS, Grouping, Repartition
from penstock.graph.nodes.join import (
    LATE_RIGHT,
    AsOfJoin,
    IntervalJoin,
    JoinStatic,
    Rules,
    StreamJoin,
    WindowJoin,
    WithBroadcast,
)
from penstock.graph.nodes.keyed import AggregateBy, AggregateStep, Combine, Fold, Keyed, Parts, Process, Reduce
from penstock.graph.nodes.ordering import AsTable, BufferedStep, Changelog, Distinct, DistinctInTime, Sort, Top
from penstock.graph.nodes.patterns.match import Match
from penstock.graph.nodes.patterns.operator_match import OperatorMatch
from penstock.graph.nodes.patterns.row_pattern import TIMED_OUT, MatchRows
from penstock.graph.nodes.policy import DEAD, DEAD_LETTER, OnError, on_error_of, retry
from penstock.graph.nodes.relational.assigned import AssignWindows
from penstock.graph.nodes.relational.batch_time import BatchTime
from penstock.graph.nodes.relational.lookup import LookupJoin
from penstock.graph.nodes.relational.over import Frame, Over, OverTable
from penstock.graph.nodes.relational.recent import Recent
from penstock.graph.nodes.relational.sets import SetOperation
from penstock.graph.nodes.relational.trigger import Trigger
from penstock.graph.nodes.stateless import (
    OTHERWISE,
    AsRecords,
    Branch,
    Explode,
    Feedback,
    Filter,
    FlatMap,
    FunctionColumns,
    Map,
    MapBatches,
    Select,
    Union,
    Where,
    WithColumns,
)
from penstock.graph.nodes.time import BAD, EventTime
from penstock.graph.nodes.topology import Bolt, ExternalStep, Route
from penstock.graph.nodes.window import Window, WindowParts, Windows
from penstock.graph.order import Term

__all__ = [
    "BAD",
    "DEAD",
    "DEAD_LETTER",
    "GROUPINGS",
    "LATE",
    "LATE_RIGHT",
    "OUT",
    "OTHERWISE",
    "TIMED_OUT",
    "AggregateBy",
    "AggregateStep",
    "AsOfJoin",
    "AsRecords",
    "AsTable",
    "AssignWindows",
    "BatchTime",
    "Bolt",
    "Branch",
    "FunctionColumns",
    "Changelog",
    "Changes",
    "Combine",
    "DeadLetters",
    "Distinct",
    "DistinctInTime",
    "Endpoint",
    "EventTime",
    "Explode",
    "Feedback",
    "Filter",
    "FlatMap",
    "Fold",
    "ExternalStep",
    "Frame",
    "Grouping",
    "BufferedStep",
    "Inputs",
    "IntervalJoin",
    "JoinStatic",
    "Keyed",
    "LookupJoin",
    "Map",
    "MapAsync",
    "MapBatches",
    "MatchRows",
    "Match",
    "Node",
    "OnError",
    "OperatorMatch",
    "Output",
    "Over",
    "OverTable",
    "Parts",
    "Port",
    "Process",
    "Recent",
    "Reduce",
    "Repartition",
    "Route",
    "Rules",
    "Select",
    "SetOperation",
    "Sink",
    "Sort",
    "Source",
    "StreamJoin",
    "TableJoin",
    "Term",
    "TimeField",
    "Top",
    "Trigger",
    "Union",
    "Where",
    "Window",
    "WindowJoin",
    "WindowParts",
    "Windows",
    "WithBroadcast",
    "WithColumns",
    "label",
    "on_error_of",
    "retry",
]
