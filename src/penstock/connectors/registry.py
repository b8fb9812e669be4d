"""Which connector serves which kind of endpoint: the packages of this folder say so themselves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from penstock import connectors as packages
from penstock.connectors.base import SinkConnector, SourceConnector
from penstock.connectors.connector import Connector
from penstock.errors import Impossible, nearest
from penstock.graph.nodes import Endpoint


@cache
def connectors() -> Mapping[str, Connector]:
    """Every connector by the kind of its endpoint.

    >>> connectors()["console"].sink
    'console:ConsoleSink'
    """
    names = [m.name for m in iter_modules(packages.__path__) if m.ispkg]
    found = [each for name in names for each in import_module(f"{packages.__name__}.{name}").CONNECTORS]
    return {each.kind: each for each in found}


def connector_of(endpoint: Endpoint, part: str) -> Connector | None:
    """The connector of an endpoint, where it has a part."""
    found = connectors().get(endpoint.kind)
    return found if found is not None and found.has(part) else None


def kinds_with(part: str) -> list[str]:
    """The kinds of endpoint whose connectors have a part."""
    return [kind for kind, each in connectors().items() if each.has(part)]


def source_connector(step: str, endpoint: Endpoint) -> SourceConnector:
    """The connector that reads an endpoint."""
    if isinstance(endpoint.connector, SourceConnector):
        return endpoint.connector
    found = connector_of(endpoint, "source")
    if found is None:
        known = nearest(endpoint.kind, kinds_with("source"))
        raise Impossible(f"source {step!r}: a {endpoint.kind} cannot be read; {known}")
    return cast("type[SourceConnector]", found.part("source"))()


def sink_connector(step: str, endpoint: Endpoint) -> SinkConnector:
    """The connector that writes an endpoint."""
    if isinstance(endpoint.connector, SinkConnector):
        return endpoint.connector
    found = connector_of(endpoint, "sink")
    if found is None:
        known = nearest(endpoint.kind, kinds_with("sink"))
        raise Impossible(f"sink {step!r}: a {endpoint.kind} cannot be written; {known}")
    return cast("type[SinkConnector]", found.part("sink"))()
