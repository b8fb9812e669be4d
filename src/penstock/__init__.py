"""Penstock: distributed stream processing for Python, on Apache Spark."""

from penstock.errors import nearest as _nearest
from penstock.flowfiles.load import flow_file
from penstock.frontends.drpc.linear import LinearDRPCTopologyBuilder
from penstock.frontends.patterns.any_text import pattern_reader
from penstock.frontends.patterns.events import pattern_text
from penstock.frontends.patterns.rows import row_pattern
from penstock.frontends.patterns.sase import sase_text
from penstock.frontends.patterns.vendor_json import pattern_json
from penstock.frontends.rules.files import rules
from penstock.frontends.sql.flow import sql_flow, sql_query
from penstock.frontends.streams.flow import Flow
from penstock.frontends.streams.patterns import one_of, pattern
from penstock.frontends.streams.stream import Stream
from penstock.frontends.topology.topology import Topology
from penstock.frontends.trident.topology import TridentTopology
from penstock.graph.aggregates.aggregate import Aggregator
from penstock.graph.endpoints.basic import (
    callback,
    connector,
    console,
    files,
    files_schema,
    generate,
    items,
    rate,
    socket_lines,
    stdin,
    write_files,
)
from penstock.graph.endpoints.kafka import kafka, write_kafka
from penstock.graph.endpoints.log import rule_topic, topic, write_topic
from penstock.graph.endpoints.servers import (
    postgres,
    postgres_changes,
    postgres_schema,
    redis_stream,
    write_http,
    write_postgres,
    write_redis,
)
from penstock.graph.endpoints.shedding import shed
from penstock.graph.expr import Expr, aggregate_function, col, expr, fn, function, lit, sql, when
from penstock.graph.logic.broadcast import BroadcastProcess
from penstock.graph.logic.calls import AsyncFunction
from penstock.graph.logic.process import Process, Timer, list_of, map_of, value
from penstock.graph.logic.tagged import to
from penstock.graph.logic.topology.acks import FailedException, ReportedFailedException
from penstock.graph.logic.topology.bolts import BasicBolt, StatefulBolt, StatefulWindowedBolt, WindowedBolt
from penstock.graph.logic.topology.components import END, Bolt, Spout
from penstock.graph.logic.topology.elements import ProcessingElement
from penstock.graph.logic.topology.metrics import CountMetric, Metric, TaskHook
from penstock.graph.logic.topology.partitioned import PartitionedSpout
from penstock.graph.logic.topology.tuples import Tuple
from penstock.graph.multilang.shell import ShellBolt, ShellSpout
from penstock.graph.nodes.policy import retry
from penstock.graph.patterns.limits import run_limit
from penstock.graph.row import Row
from penstock.graph.rules.build import action, rule
from penstock.graph.run import RunSpec
from penstock.graph.schema import Schema
from penstock.graph.windows import (
    count_window,
    cumulating,
    every_interval,
    every_records,
    global_window,
    session,
    sliding,
    tumbling,
)
from penstock.launcher import ask, run
from penstock.launcher import load_ipython_extension as load_ipython_extension
from penstock.version import __version__

PE = ProcessingElement
"""S4's short name."""

__all__ = [
    "END",
    "Aggregator",
    "AsyncFunction",
    "BasicBolt",
    "Bolt",
    "BroadcastProcess",
    "CountMetric",
    "Expr",
    "FailedException",
    "Flow",
    "LinearDRPCTopologyBuilder",
    "Metric",
    "PE",
    "PartitionedSpout",
    "Process",
    "ProcessingElement",
    "ReportedFailedException",
    "Row",
    "RunSpec",
    "Schema",
    "ShellBolt",
    "ShellSpout",
    "Spout",
    "StatefulBolt",
    "StatefulWindowedBolt",
    "Stream",
    "TaskHook",
    "Timer",
    "Topology",
    "TridentTopology",
    "Tuple",
    "WindowedBolt",
    "__version__",
    "action",
    "aggregate_function",
    "ask",
    "callback",
    "col",
    "connector",
    "console",
    "count_window",
    "cumulating",
    "every_interval",
    "every_records",
    "expr",
    "files",
    "files_schema",
    "flow_file",
    "fn",
    "function",
    "generate",
    "global_window",
    "items",
    "kafka",
    "list_of",
    "lit",
    "map_of",
    "one_of",
    "pattern",
    "pattern_json",
    "pattern_reader",
    "pattern_text",
    "postgres",
    "postgres_changes",
    "postgres_schema",
    "rate",
    "redis_stream",
    "retry",
    "row_pattern",
    "rule",
    "rule_topic",
    "rules",
    "run",
    "run_limit",
    "sase_text",
    "session",
    "shed",
    "sliding",
    "socket_lines",
    "sql",
    "sql_flow",
    "sql_query",
    "stdin",
    "to",
    "topic",
    "tumbling",
    "value",
    "when",
    "write_files",
    "write_http",
    "write_kafka",
    "write_postgres",
    "write_redis",
    "write_topic",
]


def __getattr__(name: str) -> object:
    """A name that is not there: the error names the nearest."""
    raise AttributeError(f"penstock has no {name!r}; {_nearest(name, __all__)}")
