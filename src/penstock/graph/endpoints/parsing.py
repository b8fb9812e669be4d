"""Sources that read records out of text or bytes: which they are, and what they do with one they cannot read."""

from __future__ import annotations

from penstock.errors import FlowError
from penstock.graph.nodes import Endpoint, Node, OnError, Source, on_error_of
from penstock.graph.nodes.policy import FAIL, Policy


def parses(endpoint: Endpoint) -> bool:
    """Whether the source reads its records out of text or bytes."""
    return endpoint.options.get("format", "") in endpoint.capabilities.parses


def keeps_malformed(node: Node) -> bool:
    """Whether a source goes on when it cannot read a record."""
    chosen = isinstance(node, Source) and node.on_error is not None and node.on_error.action != FAIL
    return chosen and parses(node.endpoint)  # type: ignore[attr-defined]  # it is a source


def reading_policy(where: str, endpoint: Endpoint, given: Policy | None) -> OnError | None:
    """The policy of a source, checked: a record that cannot be read now cannot be read a second later either."""
    if given is None:
        return None
    policy = on_error_of(given)
    if policy.retries:
        raise FlowError(
            f"{where}: a record that does not read does not read better the second time; say on_error={policy.action!r}"
        )
    if not parses(endpoint):
        form = endpoint.options.get("format", "")
        raise FlowError(
            f"{where}: on_error is for sources that read records out of text or bytes: files in JSON or CSV, topics and Kafka in any "
            f"format but raw, Redis streams, changes of PostgreSQL. {f'{endpoint.kind} {form}'.strip()!r} is none of them; say it after a step, or of the flow"
        )
    return policy
