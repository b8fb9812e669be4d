"""The embedded log as source and sink."""

from penstock.connectors.connector import Connector

CONNECTORS = (
    Connector(
        "log",
        __name__,
        source="source:LogSource",
        local_reader="local:read_topic",
        check="preflight:check_topic",
        check_sent="preflight:check_sent",
    ),
    Connector(
        "write_log",
        __name__,
        sink="sink:LogSink",
        local_writer="local:write_topic",
        check="preflight:check_written",
        makes="preflight:written_topic",
    ),
)
