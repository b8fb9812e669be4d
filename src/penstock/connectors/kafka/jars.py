"""The JARs that connectors need: pinned by organisation, module, revision and SHA-256.

The lists stand in `kafka_jars.json`. `penstock.spark.jvm.jars` fetches what a list names; nothing here touches the network.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources

from penstock.graph.graph import Graph
from penstock.graph.nodes import Endpoint


@dataclass(frozen=True)
class Jar:
    """One artefact.

    >>> Jar("org.apache.kafka", "kafka-clients", "3.9.2", "0" * 64).file
    'kafka-clients-3.9.2.jar'
    """

    org: str
    module: str
    revision: str
    sha256: str

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.module}-{self.revision}.jar"


def kafka_jars(what: str = "connector") -> tuple[Jar, ...]:
    """The JARs of Spark's Kafka `connector`, or of the development `broker`."""
    text = resources.files("penstock.connectors").joinpath("kafka_jars.json").read_text()
    return tuple(Jar(**each) for each in json.loads(text)[what])


def endpoints_of(graph: Graph) -> list[Endpoint]:
    """Everything outside that a flow reads or writes, the tables of its joins among it."""
    found = [getattr(node, name, None) for node in graph.nodes for name in ("endpoint", "table")]
    return [each for each in found if isinstance(each, Endpoint)]


def jars_of(endpoints: Iterable[Endpoint]) -> tuple[Jar, ...]:
    """The JARs that a session needs to serve these endpoints."""
    return kafka_jars() if any(e.capabilities.needs_jars for e in endpoints) else ()
