"""Redis as source and sink."""

from penstock.connectors.connector import Connector

CONNECTORS = (
    Connector(
        "redis_stream",
        __name__,
        source="source:RedisStreamSource",
        local_reader="local:read_entries",
        check="preflight:check_server",
    ),
    Connector(
        "write_redis",
        __name__,
        sink="sink:RedisSink",
        local_writer="local:write_rows",
        check="preflight:check_server",
    ),
)
