"""Kafka topics without a JVM, by confluent-kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from penstock.connectors.base import Place
from penstock.connectors.kafka.columns import body_fields, check_columns, key_fields, value_field
from penstock.connectors.kafka.reader import BoundedReader, reading_of
from penstock.connectors.kafka.sink import HeldRows
from penstock.connectors.local import LocalSink, LocalSource, Record
from penstock.connectors.messages import Message, field_bytes, json_bytes, message_reader
from penstock.errors import Impossible
from penstock.graph.endpoints.kafka import PLAIN
from penstock.graph.row import Row

Write = Callable[[Row], bytes | None]


def read_topics(source: LocalSource) -> Iterator[Record]:
    """What the topics hold between start and end, partition by partition."""
    _check_format("source", source.step, source.options["format"])
    read = message_reader(source.endpoint, source.schema)
    reader = BoundedReader(reading_of(Place(source.step, source.endpoint, source.schema, Path())))
    for partition in reader.partitions():
        for batch in reader.read(partition):
            yield from (read(Message(**row)) for row in batch.to_pylist())


def write_topic(sink: LocalSink, rows: Sequence[Row]) -> None:
    """Sends all rows, and waits until the broker has confirmed them."""
    _check_format("sink", sink.step, sink.options["format"])
    check_columns(sink.place())
    HeldRows(pa.Table.from_batches([_columns(sink, rows)]), sink.place()).commit()


def _columns(sink: LocalSink, rows: Sequence[Row]) -> pa.RecordBatch:
    key, value = _key(sink), _value(sink)
    columns = {
        "key": pa.array([key(r) for r in rows], pa.binary()),
        "value": pa.array([value(r) for r in rows], pa.binary()),
    }
    for name, option in (("topic", "topic_field"), ("headers", "headers")):
        if sink.options.get(option):
            columns[name] = sink.arrow(rows).column(sink.options[option])
    return pa.RecordBatch.from_pydict(columns)


def _key(sink: LocalSink) -> Write:
    names = key_fields(sink.place())
    if not names:
        return lambda row: None
    return field_bytes(sink.schema, names[0]) if len(names) == 1 else json_bytes(sink.schema, names)


def _value(sink: LocalSink) -> Write:
    place = sink.place()
    if sink.options["format"] == "json":
        return json_bytes(sink.schema, body_fields(place))
    return field_bytes(sink.schema, value_field(place))


def _check_format(what: str, step: str, form: str) -> None:
    if form not in PLAIN:
        raise Impossible(f"{what} {step!r}: {form} needs the schema registry, which only a run on Spark asks")
