"""Penstock: distributed stream processing for Python, on Apache Spark."""

from penstock.frontends.streams.flow import Flow
from penstock.frontends.streams.stream import Stream
from penstock.frontends.topology.topology import Topology
from penstock.graph.aggregates import Aggregator
from penstock.graph.components import END, Bolt, Spout, Tuple
from penstock.graph.endpoints import (
    callback,
    connector,
    console,
    files,
    generate,
    items,
    rate,
    socket_lines,
    stdin,
    write_files,
)
from penstock.graph.expr import Expr, col, expr, fn, lit, sql, when
from penstock.graph.logic import Process, list_of, map_of, value
from penstock.graph.row import Row
from penstock.graph.schema import Schema
from penstock.graph.tagged import to
from penstock.launcher import run
from penstock.version import __version__

__all__ = [
    "END",
    "Aggregator",
    "Bolt",
    "Expr",
    "Flow",
    "Process",
    "Row",
    "Schema",
    "Spout",
    "Stream",
    "Topology",
    "Tuple",
    "__version__",
    "callback",
    "col",
    "connector",
    "console",
    "expr",
    "files",
    "fn",
    "generate",
    "items",
    "list_of",
    "lit",
    "map_of",
    "rate",
    "run",
    "socket_lines",
    "sql",
    "stdin",
    "to",
    "value",
    "when",
    "write_files",
]
