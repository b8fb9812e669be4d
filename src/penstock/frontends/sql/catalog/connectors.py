"""Connectors by the names that WITH has for them, with their options; Flink's names stand beside ours where they mean the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import PenstockError, nearest
from penstock.frontends.sql.catalog.spans import flink_span
from penstock.frontends.sql.text.source import SqlText
from penstock.graph.duration import micros
from penstock.graph.endpoints import basic, kafka, log, servers
from penstock.graph.nodes import Endpoint
from penstock.graph.schema import Schema


@dataclass
class Given:
    """The options of one table, and which of them were used.

    Args:
        text: the text, for errors.
        at: where the table is defined.
        kind: the connector.
        options: the options by name, each with its place.
        schema: the columns of the table.
        key: its primary key.
        partitioned: the columns of PARTITIONED BY.
    """

    text: SqlText
    at: int
    kind: str
    options: Mapping[str, tuple[str, int]]
    schema: Schema
    key: tuple[str, ...] = ()
    partitioned: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    """What is asked of a record beside its columns."""
    used: set[str] = field(default_factory=set)

    def get(self, *names: str, default: str = "") -> str:
        """The value of an option under any of its names."""
        for name in names:
            if name in self.options:
                self.used.add(name)
                return self.options[name][0]
        self.used.update(names)
        return default

    def need(self, *names: str) -> str:
        """The value of an option that must be there."""
        made = self.get(*names)
        if not made:
            raise self.text.error(self.at, f"connector {self.kind!r} needs the option {' or '.join(map(repr, names))}")
        return made

    def number(self, *names: str) -> int | None:
        """A whole number."""
        written = self.get(*names)
        if not written:
            return None
        try:
            return int(written)
        except ValueError:
            raise self.wrong(names, "a whole number", written) from None

    def span(self, *names: str) -> int | None:
        """A span of time in microseconds, as Flink writes it."""
        written = self.get(*names)
        try:
            return micros(flink_span(written)) if written else None
        except PenstockError:
            raise self.wrong(names, "a span of time such as '10 min'", written) from None

    def flag(self, *names: str, default: bool) -> bool:
        """True or false."""
        written = self.get(*names)
        if written.lower() not in ("", "true", "false"):
            raise self.wrong(names, "'true' or 'false'", written)
        return default if not written else written.lower() == "true"

    def wrong(self, names: tuple[str, ...], wanted: str, got: str) -> Exception:
        """The error for an option that does not fit."""
        name = next((n for n in names if n in self.options), names[0])
        at = self.options[name][1] if name in self.options else self.at
        return self.text.error(at, f"option {name!r}: expected {wanted}, got {got!r}")

    def prefixed(self, prefix: str) -> dict[str, str]:
        """The options that begin with a prefix, without it."""
        found = {name: value for name, (value, _) in self.options.items() if name.startswith(prefix)}
        self.used.update(found)
        return {name.removeprefix(prefix): value for name, value in found.items() if name not in _SERVERS}

    def check_all_used(self) -> None:
        """Refuses options that the connector does not have."""
        for name, (_, at) in self.options.items():
            if name not in self.used:
                known = nearest(name, sorted(n for n in self.used if n not in self.options))
                raise self.text.error(at, f"connector {self.kind!r} has no option {name!r}; {known}")


Make = Callable[[Given], Endpoint]


@dataclass(frozen=True)
class LookedUp:
    """A table of a look-up: what reads it whole, and after how many microseconds again; 0 is in every batch, None never."""

    endpoint: Endpoint
    refresh: int | None


@dataclass(frozen=True)
class Maker:
    """How the endpoints of a connector are made: for reading, for writing, and for a look-up where that is another one."""

    reads: Make | None = None
    writes: Make | None = None
    looks_up: Callable[[Given], LookedUp] | None = None


_SERVERS = ("properties.bootstrap.servers", "properties.group.id")
_STARTS = {
    "earliest-offset": "earliest",
    "latest-offset": "latest",
    "group-offsets": "earliest",
    "earliest": "earliest",
    "latest": "latest",
    "latest-full": "latest",
}


def _format(given: Given, default: str = "") -> str:
    written = given.get("format", "value.format", default=default).lower()
    for name in ("json.timestamp-format.standard", "key.format"):
        given.get(name)
    if given.flag("json.fail-on-missing-field", default=False):
        raise given.wrong(("json.fail-on-missing-field",), "'false': a field that is missing is null", "true")
    return {"avro-confluent": "avro", "raw": "text", "jsonl": "json"}.get(written, written)


def _start(given: Given) -> str:
    written = given.get("scan.startup.mode", "start", default="earliest").lower()
    if written not in _STARTS:
        raise given.wrong(("scan.startup.mode", "start"), "'earliest-offset' or 'latest-offset'", written)
    return _STARTS[written]


def _files(given: Given) -> Endpoint:
    path, kind = given.need("path"), _format(given)
    header = given.flag("csv.header", "header", default=True)
    most = given.number("source.files-per-batch", "files_per_batch")
    return basic.files(path, kind, given.schema, header=header, files_per_batch=most)


def _write_files(given: Given) -> Endpoint:
    for name in ("csv.header", "header", "source.files-per-batch", "files_per_batch"):
        given.get(name)
    by = given.partitioned or tuple(n for n in given.get("partition_by").split(",") if n)
    return basic.write_files(given.need("path"), _format(given), partition_by=by)


def _kafka(given: Given) -> Endpoint:
    topic = given.need("topic", "topic-pattern")
    servers_ = given.get("properties.bootstrap.servers", "servers", default=kafka.LOCAL)
    group = given.get("properties.group.id", "group") or None
    options = given.prefixed("properties.")
    known: dict[str, Any] = {"servers": servers_, "format": _format(given), "start": _start(given), "group": group}
    registry = given.get("avro-confluent.url", "value.avro-confluent.url", "registry")
    for name in ("sink.delivery-guarantee", "sink.transactional-id-prefix", "key.fields"):
        given.get(name)
    return kafka.kafka(
        topic.split(";"),
        given.schema,
        also=given.metadata,
        pattern="topic-pattern" in given.options,
        registry=registry,
        options=options or None,
        **known,
    )


def _write_kafka(given: Given) -> Endpoint:
    topic = given.need("topic")
    servers_ = given.get("properties.bootstrap.servers", "servers", default=kafka.LOCAL)
    fields = given.get("key.fields", "key")
    key = given.key or tuple(n.strip() for n in fields.replace(";", ",").split(",") if n.strip())
    options = given.prefixed("properties.")
    registry = given.get("avro-confluent.url", "value.avro-confluent.url", "registry")
    for name in ("scan.startup.mode", "start", "sink.delivery-guarantee", "sink.transactional-id-prefix"):
        given.get(name)
    written = _format(given, "json")
    return kafka.write_kafka(
        topic, servers=servers_, format=written, key=key or None, registry=registry, options=options or None
    )


def _topic(given: Given) -> Endpoint:
    path = given.get("path") or None
    group = given.get("group", "properties.group.id")
    return log.topic(
        given.need("topic"), given.schema, format=_format(given), path=path, start=_start(given), group=group
    )


def _write_topic(given: Given) -> Endpoint:
    for name in ("scan.startup.mode", "start", "group", "properties.group.id"):
        given.get(name)
    path = given.get("path") or None
    key = given.key or tuple(n.strip() for n in given.get("key.fields", "key").split(",") if n.strip())
    kind = _format(given, "json")
    return log.write_topic(given.need("topic"), format=kind, path=path, key=key[0] if len(key) == 1 else (key or None))  # type: ignore[arg-type]


def _url(given: Given) -> str:
    url = given.need("url").removeprefix("jdbc:")
    user, password = given.get("username", "user"), given.get("password")
    if user and "@" not in url:
        scheme, _, rest = url.partition("://")
        url = f"{scheme}://{user}{':' + password if password else ''}@{rest}"
    return url


_CACHES = ("NONE", "PARTIAL", "FULL")


def _without_effect_on_postgres(given: Given) -> None:
    """Options of Flink's that ask for nothing here: batches are read, looked up and written whole."""
    for name in ("driver", "connection.max-retry-timeout", "scan.auto-commit", "lookup.max-retries"):
        given.get(name)
    for name in ("sink.buffer-flush.max-rows", "sink.buffer-flush.interval", "sink.max-retries"):
        given.get(name)
    for name in ("lookup.cache.max-rows", "lookup.partial-cache.max-rows"):
        given.get(name)
    for name in ("lookup.partial-cache.cache-missing-key", "lookup.cache.caching-missing-key"):
        given.get(name)


def _lookup_refresh(given: Given) -> int | None:
    """After how many microseconds a look-up reads the table again."""
    cache = given.get("lookup.cache").upper()
    if cache not in ("", *_CACHES):
        raise given.wrong(("lookup.cache",), "'NONE', 'PARTIAL' or 'FULL'", cache)
    after = ("lookup.partial-cache.expire-after-write", "lookup.cache.ttl")
    again = given.span("lookup.full-cache.periodic-reload.interval")
    kept = given.span(*after)
    if cache == "FULL":
        return again
    return 0 if cache == "NONE" else kept or 0


def _looked_up_postgres(given: Given) -> LookedUp:
    for name in ("scan.by", "by", "scan.fetch-size", "rows_per_batch", "mode", "create"):
        given.get(name)
    _without_effect_on_postgres(given)
    refresh = _lookup_refresh(given)
    return LookedUp(servers.postgres_table(_url(given), given.need("table-name", "table"), given.schema), refresh)


def _postgres(given: Given) -> Endpoint:
    _without_effect_on_postgres(given)
    _lookup_refresh(given)
    by = tuple(n.strip() for n in given.get("scan.by", "by").split(",") if n.strip()) or given.key
    if not by:
        raise given.text.error(
            given.at,
            "a table that is read from PostgreSQL needs 'scan.by' = 'a column that only grows'; only a look-up, JOIN ... FOR SYSTEM_TIME AS OF "
            "a column of PROCTIME(), reads it without",
        )
    url, table = _url(given), given.need("table-name", "table")
    most = given.number("scan.fetch-size", "rows_per_batch") or 100_000
    return servers.postgres(url, table, by=by, schema=given.schema, rows_per_batch=most)


def _write_postgres(given: Given) -> Endpoint:
    for name in ("scan.by", "by", "scan.fetch-size", "rows_per_batch"):
        given.get(name)
    _without_effect_on_postgres(given)
    _lookup_refresh(given)
    create = given.flag("create", default=False)
    mode = given.get("mode")
    return servers.write_postgres(
        _url(given), given.need("table-name", "table"), mode=mode, key=given.key, create=create
    )


def _postgres_changes(given: Given) -> Endpoint:
    url, table = _url(given), given.need("table-name", "table")
    slot = given.get("slot.name", "slot") or "penstock"
    publication = given.get("publication")
    return servers.postgres_changes(url, table, slot=slot, publication=publication, schema=given.schema)


def _redis(given: Given) -> Endpoint:
    return servers.redis_stream(given.need("url"), given.need("stream", "key"), given.schema)


def _write_redis(given: Given) -> Endpoint:
    kind = given.get("kind", "data-type", default="hash")
    return servers.write_redis(given.need("url"), kind, key=given.key, name=given.get("name", "stream", "key"))


def _http(given: Given) -> Endpoint:
    most = given.number("per_request", "sink.buffer-flush.max-rows") or 1
    return servers.write_http(given.need("url"), per_request=most, method=given.get("method", default="POST"))


def _rate(given: Given) -> Endpoint:
    per_second = given.number("rows-per-second", "rows_per_second") or 10
    return basic.rate(per_second, limit=given.number("number-of-rows", "limit"))


def _console(given: Given) -> Endpoint:
    given.get("print-identifier")
    return basic.console(given.number("rows") or 20)


def _socket(given: Given) -> Endpoint:
    return basic.socket_lines(given.get("hostname", "host", default="127.0.0.1"), given.number("port") or 9999)


CONNECTORS: dict[str, Maker] = {
    "filesystem": Maker(_files, _write_files),
    "files": Maker(_files, _write_files),
    "kafka": Maker(_kafka, _write_kafka),
    "upsert-kafka": Maker(_kafka, _write_kafka),
    "topic": Maker(_topic, _write_topic),
    "log": Maker(_topic, _write_topic),
    "jdbc": Maker(_postgres, _write_postgres, _looked_up_postgres),
    "postgres": Maker(_postgres, _write_postgres, _looked_up_postgres),
    "postgres-cdc": Maker(_postgres_changes),
    "redis": Maker(_redis, _write_redis),
    "http": Maker(writes=_http),
    "rate": Maker(_rate),
    "socket": Maker(_socket),
    "stdin": Maker(lambda given: basic.stdin()),
    "print": Maker(writes=_console),
    "console": Maker(writes=_console),
    "blackhole": Maker(writes=lambda given: basic.nothing()),
}
"""The connectors by name. One more is a line here."""
