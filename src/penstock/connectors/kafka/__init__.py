"""Kafka as source and sink."""

from penstock.connectors.connector import Connector

CONNECTORS = (
    Connector(
        "kafka",
        __name__,
        source="source:KafkaSource",
        local_reader="local:read_topics",
        check="preflight:check_topics",
    ),
    Connector(
        "write_kafka",
        __name__,
        sink="sink:KafkaSink",
        local_writer="local:write_topic",
        check="preflight:check_cluster",
        makes="preflight:written_topic",
    ),
)
