"""Kafka topics without a JVM, by confluent-kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from penstock.connectors.base import SourceContext
from penstock.connectors.kafka.columns import body_fields, check_columns, key_fields, value_field
from penstock.connectors.kafka.reader import BoundedReader, reading_of
from penstock.connectors.kafka.registered import body_reader, written_values
from penstock.connectors.kafka.sink import HeldRows, sending_settings
from penstock.connectors.local import LocalSink, LocalSource, Record
from penstock.connectors.messages import Message, ReadBody, field_bytes, json_bytes, message_reader
from penstock.graph.endpoints.kafka import PLAIN
from penstock.graph.row import Row
from penstock.graph.schema import Schema

Write = Callable[[Row], bytes | None]


def read_topics(source: LocalSource) -> Iterator[Record]:
    """What the topics hold between start and end, partition by partition."""
    is_plain = source.options["format"] in PLAIN
    read = message_reader(source.endpoint, source.schema, None if is_plain else _registered(source))
    reader = BoundedReader(reading_of(SourceContext(source.step, source.endpoint, source.schema, Path())))
    for partition in reader.partitions():
        for batch in reader.read(partition):
            yield from (read(Message(**row)) for row in batch.to_pylist())


def write_topic(sink: LocalSink, rows: Sequence[Row]) -> None:
    """Sends all rows, and waits until the broker has confirmed them."""
    check_columns(sink.context())
    context = sink.context()
    HeldRows(pa.Table.from_batches([_columns(sink, rows)]), context, sending_settings(context)).commit()


def _columns(sink: LocalSink, rows: Sequence[Row]) -> pa.RecordBatch:
    key = _key(sink)
    columns = {
        "key": pa.array([key(r) for r in rows], pa.binary()),
        "value": pa.array(_values(sink, rows), pa.binary()),
    }
    for name, option in (("topic", "topic_field"), ("headers", "headers")):
        if sink.options.get(option):
            columns[name] = sink.arrow(rows).column(sink.options[option])
    return pa.RecordBatch.from_pydict(columns)


def _key(sink: LocalSink) -> Write:
    names = key_fields(sink.context())
    if not names:
        return lambda row: None
    return field_bytes(sink.schema, names[0]) if len(names) == 1 else json_bytes(sink.schema, names)


def _values(sink: LocalSink, rows: Sequence[Row]) -> list[bytes | None]:
    if sink.options["format"] not in PLAIN:
        return [*written_values(sink, rows)]
    write = _value(sink)
    return [write(row) for row in rows]


def _value(sink: LocalSink) -> Write:
    context = sink.context()
    if sink.options["format"] == "json":
        return json_bytes(sink.schema, body_fields(context))
    return field_bytes(sink.schema, value_field(context))


def _registered(source: LocalSource) -> ReadBody:
    also = source.options["also"]
    body = Schema(tuple(f for f in source.schema.fields if f.name not in also))
    return body_reader(source.options, body)
