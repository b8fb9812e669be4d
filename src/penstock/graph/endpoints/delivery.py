"""The delivery guarantee of a sink, checked against what the sink can hold."""

from __future__ import annotations

from penstock.errors import FlowError, nearest
from penstock.graph.capabilities import AT_LEAST_ONCE, AT_MOST_ONCE, DELIVERIES, EXACTLY_ONCE, WEAKER
from penstock.graph.nodes.endpoint import Endpoint

__all__ = ["AT_LEAST_ONCE", "AT_MOST_ONCE", "DELIVERIES", "EXACTLY_ONCE", "WEAKER", "checked_delivery"]


def checked_delivery(sink: str, endpoint: Endpoint, wanted: object) -> str:
    """A delivery that the kind of sink can hold, or an error that says why it cannot; empty when none is wanted."""
    if wanted in (None, ""):
        return ""
    if wanted not in DELIVERIES:
        raise FlowError(f"sink {sink!r}: no delivery {wanted!r}; {nearest(str(wanted), DELIVERIES)}")
    able = endpoint.capabilities
    if wanted == EXACTLY_ONCE and not able.holds(EXACTLY_ONCE) and able.weakness:
        raise FlowError(
            f"sink {sink!r} cannot hold delivery='exactly_once': {able.weakness}. Take delivery='at_least_once', or a sink "
            f"that keeps a ledger (files, the log, Kafka, PostgreSQL, Redis)"
        )
    return str(wanted)
