"""Which connector serves which kind of endpoint. Each is imported when it is first asked for: some need libraries of their own."""

from __future__ import annotations

from importlib import import_module

from penstock.connectors.base import SinkConnector, SourceConnector
from penstock.errors import Impossible, nearest
from penstock.graph.nodes import Endpoint

SOURCES: dict[str, str] = {
    "files": "files.source:FilesSource",
    "items": "process.memory:ItemsSource",
    "kafka": "kafka.source:KafkaSource",
    "log": "log.source:LogSource",
    "postgres": "postgres.source:PostgresSource",
    "postgres_changes": "postgres.changes:PostgresChanges",
    "rate": "process.memory:RateSource",
    "redis_stream": "redis.source:RedisStreamSource",
    "socket": "process.memory:SocketSource",
    "spout": "process.spout:SpoutSource",
    "stdin": "process.feed:StdinSource",
}
SINKS: dict[str, str] = {
    "callback": "process.console:CallbackSink",
    "console": "process.console:ConsoleSink",
    "nothing": "process.console:NothingSink",
    "write_files": "files.sink:FilesSink",
    "write_kafka": "kafka.sink:KafkaSink",
    "write_http": "http:HttpSink",
    "write_log": "log.sink:LogSink",
    "write_postgres": "postgres.sink:PostgresSink",
    "write_redis": "redis.sink:RedisSink",
}
"""Kind of endpoint to `module:Class`, the module being one of this package."""


def source_connector(step: str, endpoint: Endpoint) -> SourceConnector:
    """The connector that reads an endpoint."""
    if isinstance(endpoint.connector, SourceConnector):
        return endpoint.connector
    if endpoint.kind not in SOURCES:
        raise Impossible(f"source {step!r}: a {endpoint.kind} cannot be read; {nearest(endpoint.kind, SOURCES)}")
    made: SourceConnector = connector_class(SOURCES[endpoint.kind])()
    return made


def sink_connector(step: str, endpoint: Endpoint) -> SinkConnector:
    """The connector that writes an endpoint."""
    if isinstance(endpoint.connector, SinkConnector):
        return endpoint.connector
    if endpoint.kind not in SINKS:
        raise Impossible(f"sink {step!r}: a {endpoint.kind} cannot be written; {nearest(endpoint.kind, SINKS)}")
    made: SinkConnector = connector_class(SINKS[endpoint.kind])()
    return made


def connector_class(name: str) -> type:
    """The class that an entry names.

    >>> connector_class("process.console:ConsoleSink").__name__
    'ConsoleSink'
    """
    module, _, cls = name.partition(":")
    found: type = getattr(import_module(f"penstock.connectors.{module}"), cls)
    return found
