"""Sinks that may refuse a row, and what is done with it then."""

from __future__ import annotations

from typing import Any

from penstock.errors import FlowError
from penstock.graph.nodes import Endpoint, OnError, on_error_of

REFUSING = ("write_http", "write_postgres")
"""Kinds of sinks that can tell which row of a batch they refuse, and take the rest. A connector of the user's own says so with `reports_row_errors`."""


def sink_policy(where: str, endpoint: Endpoint, given: Any) -> OnError | None:
    """The policy of a sink, checked: it needs a sink that can tell one row from the rest."""
    if given is None:
        return None
    policy = on_error_of(given)
    if policy.retries:
        raise FlowError(f"{where}: a row that is refused is refused again; say on_error={policy.action!r}")
    if endpoint.kind not in REFUSING and not getattr(endpoint.connector, "reports_row_errors", False):
        raise FlowError(
            f"{where}: on_error is for sinks that can tell which row they refuse, which are {' and '.join(REFUSING)}; {endpoint.kind!r} cannot. "
            f"Check the records in a step before it, with .on_error('dead_letter') behind that"
        )
    return policy
