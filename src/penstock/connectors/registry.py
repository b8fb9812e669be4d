"""Which connector serves which kind of endpoint."""

from __future__ import annotations

from collections.abc import Callable

from penstock.connectors.base import SinkConnector, SourceConnector
from penstock.connectors.console import CallbackSink, ConsoleSink, NothingSink
from penstock.connectors.feed import StdinSource
from penstock.connectors.files import FilesSink, FilesSource
from penstock.connectors.memory import ItemsSource, RateSource, SocketSource
from penstock.connectors.spout import SpoutSource
from penstock.errors import Impossible, nearest
from penstock.graph.nodes import Endpoint

SOURCES: dict[str, Callable[[], SourceConnector]] = {
    "files": FilesSource,
    "items": ItemsSource,
    "rate": RateSource,
    "socket": SocketSource,
    "spout": SpoutSource,
    "stdin": StdinSource,
}
SINKS: dict[str, Callable[[], SinkConnector]] = {
    "console": ConsoleSink,
    "write_files": FilesSink,
    "callback": CallbackSink,
    "nothing": NothingSink,
}


def source_connector(step: str, endpoint: Endpoint) -> SourceConnector:
    """The connector that reads an endpoint."""
    if isinstance(endpoint.connector, SourceConnector):
        return endpoint.connector
    if endpoint.kind not in SOURCES:
        raise Impossible(f"source {step!r}: a {endpoint.kind} cannot be read; {nearest(endpoint.kind, SOURCES)}")
    return SOURCES[endpoint.kind]()


def sink_connector(step: str, endpoint: Endpoint) -> SinkConnector:
    """The connector that writes an endpoint."""
    if isinstance(endpoint.connector, SinkConnector):
        return endpoint.connector
    if endpoint.kind not in SINKS:
        raise Impossible(f"sink {step!r}: a {endpoint.kind} cannot be written; {nearest(endpoint.kind, SINKS)}")
    return SINKS[endpoint.kind]()
