"""Values with a schema in a registry, read and written without a JVM, by the same readers and writers as in Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.connectors.base import SinkContext
from penstock.connectors.kafka.avro import AvroReader
from penstock.connectors.kafka.columns import body_fields
from penstock.connectors.kafka.protobuf import ProtobufReader
from penstock.connectors.kafka.schema_registry import Registry, RegistryDown, registry_at
from penstock.connectors.kafka.wire import FRONT, check_kind, column_of, front, record_of, schema_id, value_writer
from penstock.connectors.local import LocalSink
from penstock.connectors.messages import ReadBody, json_body, json_bytes
from penstock.errors import RunError
from penstock.graph.row import Row
from penstock.graph.schema import Schema
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.reading import Unreadable

Options = dict[str, Any]


def _registry(options: Options) -> Registry:
    return registry_at(options["registry"], options.get("registry_client"))


def body_reader(options: Options, schema: Schema) -> ReadBody:
    """A function from a value to the fields of its record; a value that is none raises Unreadable."""
    read = _read_json(options) if options["format"] == "json_schema" else _read_record(options, schema)

    def checked(value: bytes | None, body: Schema) -> tuple[Any, ...]:
        if value is None:
            return (None,) * len(body.fields)
        try:
            return read(value, body)
        except RegistryDown as down:
            raise RunError(str(down)) from None
        except RunError as error:
            raise Unreadable(str(error)) from None

    return checked


def _read_json(options: Options) -> Callable[[bytes, Schema], tuple[Any, ...]]:
    registry = _registry(options)

    def read(value: bytes, body: Schema) -> tuple[Any, ...]:
        check_kind(registry, schema_id(value), "JSON")
        return json_body(value[FRONT:], body)

    return read


def _read_record(options: Options, schema: Schema) -> Callable[[bytes, Schema], tuple[Any, ...]]:
    registry = _registry(options)
    reader = AvroReader(registry) if options["format"] == "avro" else ProtobufReader(registry, schema)

    def read(value: bytes, body: Schema) -> tuple[Any, ...]:
        record = record_of(reader, value)
        return tuple(column_of([record], f)[0].as_py(maps_as_pydicts="strict") for f in arrow_schema(body))

    return read


def written_values(sink: LocalSink, rows: Sequence[Row]) -> list[bytes]:
    """The values of rows; their schema is registered first."""
    context = sink.context()
    names, options = body_fields(context), context.options
    if options["format"] == "json_schema":
        return _json_values(sink, context, rows)
    write = value_writer(_registry(options), options["topic"], options["format"], options["value_schema"])
    records = sink.arrow(rows).select(list(names)).to_pylist(maps_as_pydicts="strict")
    return [write(record) for record in records]


def _json_values(sink: LocalSink, context: SinkContext, rows: Sequence[Row]) -> list[bytes]:
    options = context.options
    number = _registry(options).register(f"{options['topic']}-value", "JSON", options["value_schema"])
    write, before = json_bytes(sink.schema, body_fields(context)), front(number)
    return [before + write(row) for row in rows]
