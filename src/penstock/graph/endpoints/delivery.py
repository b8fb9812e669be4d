"""How surely records reach a sink: the words for it, and what each kind of sink can hold."""

from __future__ import annotations

from typing import Any

from penstock.errors import FlowError, nearest
from penstock.graph.nodes.endpoint import Endpoint

EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE = "exactly_once", "at_least_once", "at_most_once"
DELIVERIES = (EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE)
"""From the strongest promise to the weakest."""
WEAKER = (AT_LEAST_ONCE, AT_MOST_ONCE)
WHY: dict[str, str] = {
    "console": "a terminal cannot take back what it has shown",
    "callback": "a function may be called again for a batch after a crash; it has batch.id to tell",
    "write_http": "a server may have acted on a request whose answer was lost; it gets an Idempotency-Key",
    "nothing": "it keeps nothing",
}
"""Kinds of sinks that cannot hold exactly_once, and why."""


def checked_delivery(sink: str, endpoint: Endpoint, wanted: Any) -> str:
    """A delivery that the kind of sink can hold, or an error that says why it cannot; empty when none is wanted."""
    if wanted in (None, ""):
        return ""
    if wanted not in DELIVERIES:
        raise FlowError(f"sink {sink!r}: no delivery {wanted!r}; {nearest(str(wanted), DELIVERIES)}")
    if wanted == EXACTLY_ONCE and endpoint.kind in WHY:
        raise FlowError(
            f"sink {sink!r} cannot hold delivery='exactly_once': {WHY[endpoint.kind]}. Take delivery='at_least_once', or a sink "
            f"that keeps a ledger (files, the log, Kafka, PostgreSQL, Redis)"
        )
    return str(wanted)
