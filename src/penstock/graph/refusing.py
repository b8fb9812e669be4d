"""Sinks that may refuse a row, and what is done with it then."""

from __future__ import annotations

from typing import Any

from penstock.errors import FlowError
from penstock.graph.nodes import Endpoint, OnError, on_error_of

REFUSING = ("write_postgres",)
"""Kinds of sinks that can try a batch and take it back."""


def sink_policy(where: str, endpoint: Endpoint, given: Any) -> OnError | None:
    """The policy of a sink, checked: it needs a sink that can try rows without showing them."""
    if given is None:
        return None
    policy = on_error_of(given)
    if policy.retries:
        raise FlowError(f"{where}: a row that is refused is refused again; say on_error={policy.action!r}")
    if endpoint.kind not in REFUSING:
        raise FlowError(
            f"{where}: on_error is for sinks that can try rows and take them back, which is write_postgres; {endpoint.kind!r} cannot. Check the "
            f"records in a step before it, with .on_error('dead_letter') behind that"
        )
    return policy
