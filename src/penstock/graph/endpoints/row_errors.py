"""Sinks that may refuse a row, and what is done with it then."""

from __future__ import annotations

from penstock.errors import FlowError
from penstock.graph.nodes import Endpoint, OnError, on_error_of
from penstock.graph.nodes.policy import Policy


def sink_policy(where: str, endpoint: Endpoint, given: Policy | None) -> OnError | None:
    """The policy of a sink, checked: it needs a sink that can tell one row from the rest."""
    if given is None:
        return None
    policy = on_error_of(given)
    if policy.retries:
        raise FlowError(f"{where}: a row that is refused is refused again; say on_error={policy.action!r}")
    if not endpoint.capabilities.reports_row_errors:
        raise FlowError(
            f"{where}: on_error is for sinks that can tell which row they refuse, which are write_http, write_postgres, write_kafka, write_redis, write_topic and write_files with partition_by; this {endpoint.kind} cannot. "
            f"Check the records in a step before it, with .on_error('dead_letter') after that"
        )
    return policy
