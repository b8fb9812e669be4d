"""Files as source and sink."""

from penstock.connectors.connector import Connector

CONNECTORS = (
    Connector(
        "files",
        __name__,
        source="source:FilesSource",
        local_reader="local:read_files",
        check="preflight:check_path",
        check_sent="preflight:check_sent",
    ),
    Connector(
        "write_files",
        __name__,
        sink="sink:FilesSink",
        local_writer="local:write_files",
        check="preflight:check_folder",
        makes="preflight:written_path",
    ),
)
