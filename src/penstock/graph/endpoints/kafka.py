"""The endpoints of Kafka: descriptions only, so that a flow can be built without Spark and without a broker."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from penstock.errors import FlowError, SchemaError, nearest
from penstock.graph.capabilities import LEDGER_SINK, Capabilities
from penstock.graph.endpoints.secrets import Secret
from penstock.graph.nodes.endpoint import Endpoint
from penstock.graph.schema import Form, Schema, schema_of
from penstock.graph.spelling import spelled
from penstock.graph.types import Field

LOCAL = "127.0.0.1:9092"
"""Where `penstock kafka start` has its broker listen."""
PLAIN, REGISTERED = ("text", "json", "raw"), ("avro", "json_schema", "protobuf")
FORMATS = (*PLAIN, *REGISTERED)
VIAS = ("spark", "python")
Position: TypeAlias = str | datetime.datetime | Mapping[str, Mapping[int, int]]
"""Where to read from or to, as the user writes it: a word, a moment, or offsets by topic and partition."""

ABOUT = schema_of(
    "key binary, topic string, partition int, offset bigint, timestamp timestamp, headers array<struct<key: string, value: binary>>"
)
"""What a record carries beside its value."""
_SECRET = re.compile(r"password|secret|token|credential|jaas|keystore\.key|ssl\.key\.pem|passphrase", re.IGNORECASE)
_REFUSED = {
    "group.id": "say group= instead",
    "bootstrap.servers": "say servers= instead",
    "enable.auto.commit": "a flow keeps its own offsets",
    "auto.offset.reset": "say start= instead",
    "key.deserializer": "say format= instead",
    "value.deserializer": "say format= instead",
    "key.serializer": "say format= instead",
    "value.serializer": "say format= instead",
    "interceptor.classes": "it would run foreign code in the driver",
    "metric.reporters": "it would run foreign code in the driver",
    "plugin.library.paths": "it would run foreign code in the driver",
    "sasl.client.callback.handler.class": "it would run foreign code in the driver",
    "sasl.login.callback.handler.class": "it would run foreign code in the driver",
    "sasl.kerberos.kinit.cmd": "it would run a command on the driver",
    "security.providers": "it would run foreign code in the driver",
    "config.providers": "it would read files or the environment of the driver; a value may be 'env:NAME' or 'file:/path' instead",
}


@spelled
def kafka(  # noqa: PLR0913 - each is a word of Kafka's own
    topics: str | Sequence[str],
    schema: Form | None = None,
    *,
    servers: str | Sequence[str] = LOCAL,
    format: str = "",
    also: str | Sequence[str] = (),
    pattern: bool = False,
    group: str | None = None,
    start: Position = "earliest",
    end: Position = "latest",
    rows_per_batch: int | None = 1_000_000,
    fail_on_data_loss: bool = True,
    read_committed: bool = True,
    registry: str = "",
    registry_options: Mapping[str, str] | None = None,
    via: str = "spark",
    options: Mapping[str, Any] | None = None,
) -> Endpoint:
    """Records of Kafka topics: one, several, or all whose names match a pattern. A source.

    With a schema the values are JSON and make its fields. Without one the fields are `value` and all that a record carries beside it but the
    headers, as text, or as bytes with `format="raw"`.

    Args:
        topics: the topic; several with commas between, or as a list.
        schema: the fields of the values.
        servers: the brokers, as host:port; several with commas between, or as a list.
        format: json, text, raw (bytes), avro, json_schema or protobuf; the last three go by a schema registry. Else it is json with a schema,
            and text without.
        also: what is added of what a record carries beside its value: key, topic, partition, offset, timestamp, headers.
        pattern: whether `topics` is a regular expression for names.
        group: the consumer group that shows how far the flow has come; None names it penstock-<flow>-<source>, "" has none.
        start: where a flow begins that has no checkpoint yet: "earliest", "latest", a datetime, or offsets as {topic: {partition: offset}}.
        end: where a bounded run ends, in the same forms.
        rows_per_batch: how many records a live batch takes at most; None takes all that wait.
        fail_on_data_loss: whether the flow stops when records are gone before it has read them.
        read_committed: whether records of open and aborted transactions are left out.
        registry: the address of the schema registry.
        registry_options: settings of its client, such as a user and a password.
        via: "spark" reads by Spark's connector, whose JARs are fetched once; "python" by the package confluent-kafka.
        options: settings of the Kafka client, such as {"security.protocol": "SSL"}.

    Returns:
        The endpoint, for `Flow.source`.

    Raises:
        FlowError: an option is not one, or is refused.
        SchemaError: the format is not one, or it and the schema do not go together.

    >>> import penstock as ps
    >>> orders = ps.kafka("orders", "id bigint, user string", servers="broker:9092", also="partition, offset")
    >>> ps.Flow("demo").source("orders", orders)
    Stream('orders': id bigint, user string, partition int, offset bigint)
    """
    named = (topics,) if pattern and isinstance(topics, str) and topics else _topics(topics)
    what = f"kafka({','.join(named)!r})"
    kind = _format(what, format, schema)
    made = _schema(what, kind, schema, _words(also))
    given = {
        "topics": list(named),
        "pattern": pattern or None,
        "servers": _servers(what, servers),
        "format": kind,
        "also": list(_words(also)),
        "group": group,
        "start": _position(what, "start", start),
        "end": _position(what, "end", end),
        "rows_per_batch": rows_per_batch,
        "fail_on_data_loss": fail_on_data_loss,
        "read_committed": read_committed,
        "via": _via(what, via),
        "client": client_options(what, options),
        **_registry(what, kind, registry, registry_options),
    }
    return Endpoint("kafka", given, made, capabilities=_readable(kind, made, _words(also), via))


@spelled
def write_kafka(  # noqa: PLR0913 - each is a word of Kafka's own
    topic: str,
    *,
    servers: str | Sequence[str] = LOCAL,
    format: str = "json",
    key: str | Sequence[str] | None = None,
    headers: str = "",
    topic_field: str = "",
    registry: str = "",
    registry_options: Mapping[str, str] | None = None,
    value_schema: str = "",
    ledger: str = "penstock-ledger",
    record_ids: bool = False,
    via: str = "spark",
    options: Mapping[str, Any] | None = None,
) -> Endpoint:
    """Records of a Kafka topic. A sink: exactly once is held by transactions, with a line in a compacted topic.

    The value is all fields as JSON, or the one field `value` with the formats text and raw.

    Args:
        topic: the topic; "" where `topic_field` says it.
        servers: the brokers, as host:port; several with commas between, or as a list.
        format: json, text, raw (bytes), avro, json_schema or protobuf; the last three go by a schema registry.
        key: the field of the record key, or several, which make a JSON object; None takes the key of a table, and none for records.
        headers: a field of type array<struct<key: string, value: binary>>.
        topic_field: a field that says for each record which topic it goes to.
        registry: the address of the schema registry.
        registry_options: settings of its client, such as a user and a password.
        value_schema: the text of the schema to register, for the formats of a registry.
        ledger: the compacted topic that says which batch was written last.
        record_ids: whether each record gets a header that tells it from all others, for consumers that must notice duplicates.
        via: "spark" writes by Spark's connector, "python" by the package confluent-kafka.
        options: settings of the Kafka client, such as {"security.protocol": "SSL"}.

    Returns:
        The endpoint, for `Stream.sink`.

    Raises:
        FlowError: an option is not one, is refused, or is missing.
        SchemaError: the format is not one.

    >>> import penstock as ps
    >>> flow = ps.Flow("demo")
    >>> words = flow.source("words", ps.items(["a"], "word string"))
    >>> words.sink("out", ps.write_kafka("words", servers="broker:9092", key="word"), delivery="exactly_once")
    """
    what = f"write_kafka({topic!r})"
    if bool(topic) == bool(topic_field):
        raise FlowError(f"{what}: give either a topic, or topic_field= with the field that names it")
    kind = _format(what, format, None)
    if kind in REGISTERED and topic_field:
        raise FlowError(
            f"{what}: format={kind!r} registers its schema under the topic, so it needs topic=, not topic_field="
        )
    if kind in REGISTERED and not value_schema:
        raise FlowError(f"{what}: format={kind!r} needs value_schema=, the text of the schema to register")
    given = {
        "topic": topic,
        "servers": _servers(what, servers),
        "format": kind,
        "key": None if key is None else list(_words(key)),
        "headers": headers or None,
        "topic_field": topic_field or None,
        "value_schema": value_schema or None,
        "ledger": ledger,
        "record_ids": record_ids or None,
        "via": _via(what, via),
        "client": client_options(what, options),
        **_registry(what, kind, registry, registry_options),
    }
    able = replace(
        LEDGER_SINK,
        row_errors="staged",
        topics_in="kafka",
        runs_locally=True,
        needs_jars=via != "python",
        package="confluent_kafka",
        extra="kafka",
    )
    return Endpoint("write_kafka", given, capabilities=able if topic_field else replace(able, table_rows="removed"))


def _readable(kind: str, schema: Schema, also: Sequence[str], via: str) -> Capabilities:
    """What the source can do. Spark's connector cannot change between batches how much it takes: it has `rows_per_batch`."""
    has_partition = "partition" in schema and (kind in ("text", "raw") or "partition" in also)
    return Capabilities(
        reads=True,
        parses=("json", "text", *REGISTERED),
        is_paced=via == "python",
        topics_in="kafka",
        partition_field="partition" if has_partition else "",
        runs_locally=True,
        needs_jars=via != "python",
        package="confluent_kafka",
        extra="kafka",
    )


def partition_of(endpoint: Endpoint) -> dict[str, str]:
    """What event time should know of an endpoint: partitions of a topic are read at their own speed, and have a time each.

    >>> partition_of(kafka("t", "at timestamp", also="partition")), partition_of(kafka("t", "at timestamp"))
    ({'partition': 'partition'}, {})
    """
    field = endpoint.capabilities.partition_field
    return {"partition": field} if field else {}


def client_options(what: str, options: Mapping[str, Any] | None) -> dict[str, str]:
    """Settings of the Kafka client as texts; those that hold secrets do not show themselves.

    >>> client_options("kafka()", {"kafka.sasl.password": "hush", "client.id": "me"})
    {'sasl.password': ***, 'client.id': 'me'}
    """
    made: dict[str, str] = {}
    for name, value in (options or {}).items():
        plain = str(name).removeprefix("kafka.")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        why = _why_refused(plain, text)
        if why:
            raise FlowError(f"{what}: the option {plain!r} is not taken: {why}")
        made[plain] = Secret(text) if _SECRET.search(plain) else text
    return made


def _why_refused(name: str, text: str) -> str:
    if name.startswith("config.providers"):
        return _REFUSED["config.providers"]
    if name in _REFUSED:
        return _REFUSED[name]
    if name == "sasl.jaas.config" and re.search(r"jndi|ldap", text, re.IGNORECASE):
        return "login modules that look things up elsewhere can be made to run foreign code"
    if name.startswith("sasl.oauthbearer") and name.endswith(".url") and not text.lower().startswith("https://"):
        return "it must be an https address"
    return ""


def _topics(given: str | Sequence[str]) -> tuple[str, ...]:
    names = _words(given)
    if not names:
        raise FlowError("kafka() needs the name of a topic, or several")
    return names


def _words(given: str | Sequence[str]) -> tuple[str, ...]:
    parts = given.split(",") if isinstance(given, str) else list(given)
    return tuple(p.strip() for p in parts if p.strip())


def _format(what: str, format: str, schema: Form | None) -> str:
    kind = format or ("text" if schema is None else "json")
    if kind not in FORMATS:
        raise SchemaError(f"{what}: no format {kind!r}; {nearest(kind, FORMATS)}")
    return kind


def _schema(what: str, kind: str, schema: Form | None, also: tuple[str, ...]) -> Schema:
    if kind in ("text", "raw"):
        if schema is not None:
            raise SchemaError(
                f"{what}: format={kind!r} has fields of its own; leave schema= out, or take format='json'"
            )
        return _plain_schema(kind, also)
    if schema is None:
        raise SchemaError(f"{what}: format={kind!r} needs schema=, the fields of the value")
    made = schema_of(schema)
    for name in also:
        if name in made:
            raise SchemaError(
                f"{what}: {name!r} is a field of the schema and stands in also= too; leave out one of them"
            )
    return Schema((*made.fields, *(_about(what, name, kind) for name in also)), made.record if not also else None)


def _plain_schema(kind: str, also: tuple[str, ...]) -> Schema:
    text = "string" if kind == "text" else "binary"
    base = schema_of(f"key {text}, value {text}, topic string, partition int, offset bigint, timestamp timestamp")
    more = tuple(_about("kafka()", name, kind) for name in also if name not in base)
    return Schema((*base.fields, *more))


def _about(what: str, name: str, kind: str) -> Field:
    if name not in ABOUT:
        raise SchemaError(f"{what}: also={name!r} is nothing that a record carries; {nearest(name, ABOUT.names)}")
    return schema_of("key string").field("key") if name == "key" and kind != "raw" else ABOUT.field(name)


def _position(what: str, name: str, given: object) -> str | dict[str, Any]:
    """A position to read from or to: a word, a time, or offsets."""
    if given in ("earliest", "latest"):
        return given
    if isinstance(given, datetime.datetime):
        if given.tzinfo is None:
            raise FlowError(f"{what}: {name}={given!r} has no time zone; say datetime(..., tzinfo=datetime.UTC)")
        return {"at": int(given.timestamp() * 1000)}
    if isinstance(given, Mapping) and all(isinstance(v, Mapping) for v in given.values()):
        return {"offsets": {str(t): {str(p): int(o) for p, o in each.items()} for t, each in given.items()}}
    raise FlowError(
        f"{what}: {name} is 'earliest', 'latest', a datetime, or {{topic: {{partition: offset}}}}, got {given!r}"
    )


def _servers(what: str, servers: str | Sequence[str]) -> str:
    names = _words(servers)
    wrong = [n for n in names if not re.fullmatch(r"[\w.\-\[\]:]+:\d+", n)]
    if wrong or not names:
        raise FlowError(
            f"{what}: servers are host:port, several with commas between, got {wrong[0] if wrong else ''!r}"
        )
    return ",".join(names)


def _via(what: str, via: str) -> str:
    if via not in VIAS:
        raise FlowError(f"{what}: via is 'spark' (its connector, JARs are fetched) or 'python', got {via!r}")
    return via


def _registry(what: str, kind: str, registry: str, options: Mapping[str, str] | None) -> dict[str, Any]:
    if kind not in REGISTERED:
        if registry:
            raise FlowError(f"{what}: registry= goes with format {', '.join(REGISTERED)}; the format is {kind!r}")
        return {}
    if not registry.startswith(("http://", "https://")):
        raise FlowError(f"{what}: format={kind!r} needs registry=, the address of a schema registry (http or https)")
    if "@" in registry.split("/")[2]:
        raise FlowError(
            f"{what}: leave name and password out of registry=; say registry_options={{'user': ..., 'password': ...}}"
        )
    kept = {k: Secret(v) if _SECRET.search(k) else v for k, v in (options or {}).items()}
    return {"registry": registry, "registry_client": kept or None}
