"""The steps a flow is made of, a file per family."""

from penstock.graph.nodes.base import Node, Output, Port, Timed, label
from penstock.graph.nodes.endpoint import Endpoint, Sink, Source
from penstock.graph.nodes.exchange import GROUPINGS, Grouping, Repartition
from penstock.graph.nodes.join import JoinStatic
from penstock.graph.nodes.keyed import AggregateBy, Combine, Keyed, Parts, Process, Reduce
from penstock.graph.nodes.stateless import (
    AsRecords,
    Branch,
    Explode,
    Feedback,
    Filter,
    FlatMap,
    Map,
    MapBatches,
    Select,
    Union,
    Where,
    WithColumns,
)
from penstock.graph.nodes.time import BAD, EventTime
from penstock.graph.nodes.topology import Bolt, Route

__all__ = [
    "BAD",
    "GROUPINGS",
    "AggregateBy",
    "AsRecords",
    "Bolt",
    "Branch",
    "Combine",
    "Endpoint",
    "EventTime",
    "Explode",
    "Feedback",
    "Filter",
    "FlatMap",
    "Grouping",
    "JoinStatic",
    "Keyed",
    "Map",
    "MapBatches",
    "Node",
    "Output",
    "Parts",
    "Port",
    "Process",
    "Reduce",
    "Repartition",
    "Route",
    "Select",
    "Sink",
    "Source",
    "Timed",
    "Union",
    "Where",
    "WithColumns",
    "label",
]
