"""PostgreSQL as source and sink."""

from penstock.connectors.connector import Connector

CONNECTORS = (
    Connector(
        "postgres",
        __name__,
        source="source:PostgresSource",
        local_reader="local:read_rows",
        check="preflight:check_server",
    ),
    Connector(
        "postgres_changes",
        __name__,
        source="changes:PostgresChanges",
        local_reader="local:read_changes",
        check="preflight:check_server",
    ),
    Connector(
        "write_postgres",
        __name__,
        sink="sink:PostgresSink",
        local_writer="local:write_rows",
        check="preflight:check_table",
    ),
)
