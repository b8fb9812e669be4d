"""Which connector serves which kind of endpoint. Each is imported when it is first asked for: some need libraries of their own."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from penstock.connectors.base import SinkConnector, SourceConnector
from penstock.errors import Impossible, nearest
from penstock.graph.nodes import Endpoint

SOURCES: dict[str, str] = {
    "files": "files:FilesSource",
    "items": "memory:ItemsSource",
    "kafka": "kafka:KafkaSource",
    "log": "log_source:LogSource",
    "postgres": "postgres_source:PostgresSource",
    "postgres_changes": "postgres_changes:PostgresChanges",
    "rate": "memory:RateSource",
    "redis_stream": "redis_source:RedisStreamSource",
    "socket": "memory:SocketSource",
    "spout": "spout:SpoutSource",
    "stdin": "feed:StdinSource",
}
SINKS: dict[str, str] = {
    "callback": "console:CallbackSink",
    "console": "console:ConsoleSink",
    "nothing": "console:NothingSink",
    "write_files": "files_sink:FilesSink",
    "write_kafka": "kafka_sink:KafkaSink",
    "write_http": "http:HttpSink",
    "write_log": "log_sink:LogSink",
    "write_postgres": "postgres:PostgresSink",
    "write_redis": "redis_sink:RedisSink",
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


def connector_class(name: str) -> Any:
    """The class that an entry names.

    >>> connector_class("console:ConsoleSink").__name__
    'ConsoleSink'
    """
    module, _, cls = name.partition(":")
    return getattr(import_module(f"penstock.connectors.{module}"), cls)
