"""What an endpoint can do, checked against what a source or a sink asks of it."""

from __future__ import annotations

from penstock.errors import FlowError
from penstock.graph.endpoints.delivery import checked_delivery
from penstock.graph.endpoints.parsing import reading_policy
from penstock.graph.endpoints.row_errors import sink_policy
from penstock.graph.nodes.endpoint import Sink, Source


def check_source(source: Source) -> None:
    """Refuses a source that cannot be read, or cannot go on as its error policy says."""
    if not source.endpoint.capabilities.reads:
        raise FlowError(f"{source.where}: {source.endpoint.kind} is a sink; it cannot be read")
    if not source.by_flow:
        reading_policy(source.where, source.endpoint, source.on_error)


def check_sink(sink: Sink) -> None:
    """Refuses a sink that cannot be written, or cannot hold the delivery guarantee or the error policy asked for."""
    if not sink.endpoint.capabilities.writes:
        raise FlowError(
            f"{sink.where}: {sink.endpoint.kind} can only be read; to write, take ps.write_files(...), ps.console() or ps.callback(...)"
        )
    checked_delivery(sink.name, sink.endpoint, sink.delivery)
    sink_policy(sink.where, sink.endpoint, sink.on_error)
