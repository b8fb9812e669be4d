"""Whether a PostgreSQL server lets a flow in, and can hold its names."""

from __future__ import annotations

from penstock.connectors.postgres.wire import Address
from penstock.connectors.preflight import Preflight, start_hint
from penstock.errors import SetupError
from penstock.graph.endpoints.servers import check_postgres_names
from penstock.graph.endpoints.sniff_postgres import driver


def check_server(asked: Preflight) -> None:
    """The server must take the connection."""
    errors = driver().Error
    address = Address.of(dict(asked.options))
    try:
        address.connect(asked.step).close()
    except errors as error:
        raise SetupError(
            f"{asked.step!r} needs the PostgreSQL at {address.url}, which does not let it in: {address.clean(error).strip()}"
            f"{start_hint(address.url, 'penstock postgres start')}"
        ) from None


def check_table(asked: Preflight) -> None:
    """A sink needs column names that the server can hold, and the server."""
    check_postgres_names(f"sink {asked.step!r}", *asked.fields)
    check_server(asked)
