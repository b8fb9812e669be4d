"""The endpoints of the embedded log."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from penstock.errors import FlowError, SchemaError, nearest
from penstock.graph.capabilities import LEDGER_SINK, Capabilities
from penstock.graph.nodes.endpoint import Endpoint
from penstock.graph.schema import Form, schema_of
from penstock.graph.spelling import spelled

FORMATS = ("raw", "text", "json")
_READ = Capabilities(
    reads=True, parses=("json", "text"), is_paced=True, can_shed=True, topics_in="log", runs_locally=True
)
_WRITTEN = replace(LEDGER_SINK, topics_in="log", runs_locally=True, row_errors="staged", table_rows="removed")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,248}")
RAW = schema_of(
    "partition int, offset bigint, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)

RULE_CHANGES = schema_of(
    "rule string, op string, text string, enabled boolean, by string, at timestamp, runs string, function string, version bigint"
)
"""The fields of a change of a rule or pattern: of which one, what happens to it, its text, and who changed it when; of a pattern also what becomes of its
runs, the name of what is to be done with its matches, and its version."""


def log_path(path: str | Path | None) -> str:
    """Where the log is: as given, or `PENSTOCK_LOG`, or `.penstock/log`."""
    return str(path or os.environ.get("PENSTOCK_LOG") or Path(".penstock") / "log")


@spelled
def topic(
    name: str,
    schema: Form | None = None,
    *,
    format: str = "",
    path: str | Path | None = None,
    start: str | int | datetime.datetime | Mapping[int, int] = "earliest",
    group: str = "",
) -> Endpoint:
    """A topic of the embedded log. A source.

    With a schema its values are JSON. Raw records have partition, offset, timestamp, key, value and headers; text has the one field `value`.

    Args:
        name: the topic.
        schema: the fields of the values.
        format: json, text or raw; else it is json with a schema, and raw without.
        path: the directory of the log; else `PENSTOCK_LOG`, or .penstock/log.
        start: where a flow begins that has no checkpoint yet: "earliest", "latest", a datetime, milliseconds since 1970, or offsets as
            {partition: offset}.
        group: the consumer group whose lag can be seen; none without.

    Returns:
        The endpoint, for `Flow.source`.

    Raises:
        FlowError: the name or the start is not one.
        SchemaError: the format is not one, or it and the schema do not go together.

    >>> import penstock as ps
    >>> ps.Flow("demo").source("orders", ps.topic("orders", "id bigint, user string", group="demo"))
    Stream('orders': id bigint, user string)
    """
    _check_name("topic", name)
    kind = format or ("json" if schema is not None else "raw")
    if kind not in FORMATS:
        raise SchemaError(f"topic({name!r}): no format {format!r}; {nearest(format, FORMATS)}")
    if kind == "json" and schema is None:
        raise SchemaError(f"topic({name!r}): JSON needs a schema: ps.topic({name!r}, 'name type, ...')")
    if kind != "json" and schema is not None:
        raise SchemaError(
            f"topic({name!r}): {kind} records have fields of their own; leave the schema out, or take format='json'"
        )
    made = {"raw": RAW, "text": schema_of("value string")}.get(kind) or schema_of(schema)
    options = {"topic": name, "path": log_path(path), "format": kind, "start": _start(name, start), "group": group}
    return Endpoint("log", options, made, capabilities=_READ)


@spelled
def rule_topic(name: str, *, path: str | Path | None = None) -> Endpoint:
    """A topic of the embedded log with changes of rules, as `penstock rules` writes them. A source, for `changes=` of `Stream.rules`.

    Args:
        name: the topic.
        path: the directory of the log; else `PENSTOCK_LOG`, or .penstock/log.

    Returns:
        The endpoint, for `Flow.source`.

    Raises:
        FlowError: the name is not one.

    >>> import penstock as ps
    >>> ps.Flow("demo").source("changes", ps.rule_topic("fraud-rules"))
    Stream('changes': rule string, op string, text string, enabled boolean, by string, at timestamp, runs string, function string, version bigint)
    """
    return topic(name, RULE_CHANGES, path=path)


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FlowError(f"{what}(): a topic name has 1 to 249 of A-Z a-z 0-9 . _ - and no dot in front, got {name!r}")


def _start(name: str, start: object) -> str | int | dict[str, int]:
    """Where to begin, as plain values: a word, milliseconds, or offsets by partition."""
    if isinstance(start, datetime.datetime):
        return round(start.timestamp() * 1000)
    if isinstance(start, dict) and all(_is_count(p) and _is_count(n) for p, n in start.items()):
        return {str(p): n for p, n in start.items()}
    if isinstance(start, str | int) and (start in ("earliest", "latest") or _is_count(start)):
        return start
    raise FlowError(
        f"topic({name!r}): start is 'earliest', 'latest', a datetime, milliseconds since 1970, or offsets as {{partition: offset}}, "
        f"got {start!r}"
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@spelled
def write_topic(
    name: str, *, key: str = "", format: str = "json", path: str | Path | None = None, partitions: int = 1
) -> Endpoint:
    """A topic of the embedded log. A sink that holds exactly once; the topic is made if it is not there.

    A row that goes from a table is a record with its key and no value, which compaction of the topic understands.

    Args:
        name: the topic.
        key: the field whose value becomes the key of the record.
        format: json (the record), text or raw (the field `value`).
        path: the directory of the log; else `PENSTOCK_LOG`, or .penstock/log.
        partitions: with how many a new topic is made.

    Returns:
        The endpoint, for `Stream.sink`.

    Raises:
        FlowError: the name or the number of partitions is not one.
        SchemaError: the format is not one.

    >>> import penstock as ps
    >>> flow = ps.Flow("demo")
    >>> words = flow.source("words", ps.items(["a"], "word string"))
    >>> words.sink("out", ps.write_topic("words", key="word", partitions=4))
    """
    _check_name("write_topic", name)
    if not _is_count(partitions) or not partitions:
        raise FlowError(f"write_topic({name!r}): a topic has at least 1 partition, got partitions={partitions!r}")
    if format not in FORMATS:
        raise SchemaError(f"write_topic({name!r}): no format {format!r}; {nearest(format, FORMATS)}")
    options = {"topic": name, "path": log_path(path), "format": format, "key": key, "partitions": partitions}
    return Endpoint("write_log", options, capabilities=_WRITTEN)
