"""What a flow needs outside is looked for before Spark is started: packages, servers, topics, files. Nothing is made or changed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from penstock.errors import SetupError, nearest
from penstock.graph.endpoints.servers import check_postgres_names
from penstock.graph.graph import Graph
from penstock.graph.nodes import Endpoint

PATIENCE = 10.0
"""Seconds that a server has to answer."""
Options = Mapping[str, Any]


def check_outside(graph: Graph) -> None:
    """Raises SetupError for what is missing, with the step that needs it and the command that mends it."""
    written = {_written(e) for _, e in _endpoints(graph) if e.kind.startswith("write_")}
    for sink in graph.sinks:
        if sink.endpoint.kind == "write_postgres" and sink.inputs:
            check_postgres_names(f"sink {sink.name!r}", *graph.output(sink.inputs[0]).schema.names)
    for step, endpoint in _endpoints(graph):
        check = _CHECKS.get(endpoint.kind)
        if check is not None:
            check(step, endpoint.options, written)


def _endpoints(graph: Graph) -> list[tuple[str, Endpoint]]:
    nodes = [*graph.nodes, *(n for b in graph.bootstraps for n in b.nodes)]
    found = [(n.name, getattr(n, part, None)) for n in nodes for part in ("endpoint", "table")]
    return [(step, e) for step, e in found if isinstance(e, Endpoint)]


def _written(endpoint: Endpoint) -> tuple[str, str]:
    """What a sink of the flow makes itself, so that a source of it may find it later."""
    options = endpoint.options
    if endpoint.kind == "write_files":
        return "files", str(Path(str(options["path"])).absolute())
    return endpoint.kind.removeprefix("write_"), str(options.get("topic", ""))


def _files(step: str, options: Options, written: set[tuple[str, str]]) -> None:
    path = str(options["path"])
    if "://" in path or any(c in path for c in "*?[{") or Path(path).exists():
        return
    if ("files", str(Path(path).absolute())) in written:
        return
    folder = Path(path).absolute().parent
    there = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
    hint = f"; {nearest(Path(path).name, there)}" if there else ""
    raise SetupError(
        f"{step!r} reads {path}, and there is no such file or directory{hint}. "
        f"If files will arrive there, make it first: mkdir -p {shlex.quote(path)}"
    )


def _log(step: str, options: Options, written: set[tuple[str, str]]) -> None:
    from penstock.log import Log

    topic, path = str(options["topic"]), str(options["path"])
    if ("log", topic) in written:
        return
    topics: list[str] = []
    if Path(path).is_dir():
        with Log(path) as log:
            topics = log.topics()
    if topic not in topics:
        raise SetupError(
            f"{step!r} reads the topic {topic!r}, and the log at {path} has none of that name; {nearest(topic, topics)}. "
            f"Make it: penstock topics create {topic} --log {shlex.quote(path)}"
        )


def _kafka(step: str, options: Options, written: set[tuple[str, str]]) -> None:
    known = _kafka_topics(step, options)
    for topic in options.get("topics") or ():
        if topic not in known and ("kafka", topic) not in written:
            raise SetupError(
                f"{step!r} reads the topic {topic!r}, and {options['servers']} has none of that name; {nearest(topic, known)}. "
                f"Make it: penstock kafka topics --create {topic} --servers {options['servers']}"
            )


def _write_kafka(step: str, options: Options, written: set[tuple[str, str]]) -> None:
    _kafka_topics(step, options)


def _kafka_topics(step: str, options: Options) -> list[str]:
    """The topics of a cluster, which must answer soon."""
    from penstock.connectors.kafka.admin import Cluster, said
    from penstock.connectors.kafka.settings import confluent

    errors = confluent().KafkaException
    cluster = Cluster(options["servers"], options["client"])
    try:
        return sorted(cluster.admin.list_topics(timeout=PATIENCE).topics)
    except errors as error:
        raise SetupError(
            f"{step!r} needs the Kafka cluster at {options['servers']}, which does not answer: {said(error)}"
            f"{_start_one(str(options['servers']), 'penstock kafka start')}"
        ) from None
    finally:
        cluster.close()


def _postgres(step: str, options: Options, written: set[tuple[str, str]]) -> None:
    from penstock.connectors.postgres.wire import Address
    from penstock.graph.endpoints.sniff_postgres import driver

    errors = driver().Error
    address = Address.of(dict(options))
    try:
        address.connect(step).close()
    except errors as error:
        raise SetupError(
            f"{step!r} needs the PostgreSQL at {address.url}, which does not let it in: {address.clean(error).strip()}"
            f"{_start_one(address.url, 'penstock postgres start')}"
        ) from None


def _redis(step: str, options: Options, written: set[tuple[str, str]]) -> None:
    from penstock.connectors.redis.wire import Address, driver

    errors = driver().RedisError
    address = Address.of(dict(options))
    try:
        address.client().ping()
    except errors as error:
        raise SetupError(
            f"{step!r} needs the Redis at {address.url}, which does not answer: {address.clean(error).strip()}"
        ) from None


def _start_one(address: str, command: str) -> str:
    """A hint for a server on this machine."""
    local = any(host in address for host in ("localhost", "127.0.0.1", "[::1]"))
    return f". For one to develop with: {command}" if local else ""


_CHECKS: dict[str, Callable[[str, Options, set[tuple[str, str]]], None]] = {
    "files": _files,
    "log": _log,
    "kafka": _kafka,
    "write_kafka": _write_kafka,
    "postgres": _postgres,
    "postgres_changes": _postgres,
    "write_postgres": _postgres,
    "redis_stream": _redis,
    "write_redis": _redis,
}
"""By the kind of endpoint; others need nothing that can be missing."""
