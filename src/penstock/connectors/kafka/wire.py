"""Values in the wire format of schema registries: a zero, the id of the schema in four bytes, then the value itself.

Avro and Protobuf are read and written in Python on Arrow batches; of JSON Schema values only the front is looked at here, the
rest is Spark's own JSON.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from penstock.connectors.base import SinkContext, SourceContext
from penstock.connectors.kafka.avro import AvroReader, avro_writer
from penstock.connectors.kafka.protobuf import ProtobufReader, message_of, protobuf_writer
from penstock.connectors.kafka.row_columns import NUMBER, REFUSED
from penstock.connectors.kafka.schema_registry import Registry, RegistryDown, registry_at
from penstock.connectors.malformed import ARROW, MALFORMED, REPLAYED, TYPE, Unreadable, beside, invalid, read_values
from penstock.connectors.parsing import json_reading
from penstock.errors import RunError
from penstock.graph.schema import Schema
from penstock.graph.types import quote
from penstock.kernels.records.arrow import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FRONT = 5
KINDS = {"avro": "AVRO", "json_schema": "JSON", "protobuf": "PROTOBUF"}
"""What the registry calls each format."""


def schema_id(value: bytes) -> int:
    """The id in front of a value.

    >>> schema_id(bytes([0, 0, 0, 0, 7]) + b"...")
    7
    """
    if len(value) < FRONT or value[0] != 0:
        raise RunError(
            f"a value does not begin as the schema registry's wire format does (a zero and four bytes of id) but with {value[:FRONT].hex()!r}; "
            f"was it written without a registry? Then take format='json' or 'raw'"
        )
    return int(struct.unpack(">I", value[1:FRONT])[0])


def front(number: int) -> bytes:
    r"""What stands in front of a value.

    >>> front(7)
    b'\x00\x00\x00\x00\x07'
    """
    return b"\0" + struct.pack(">I", number)


def decoded(frame: DataFrame, context: SourceContext, schema: Schema, position: str) -> DataFrame:
    """The fields of the values, and what stands beside them."""
    if context.options["format"] == "json_schema":
        return _decoded_json(frame, context, schema, position)
    also = context.options["also"]
    columns, *wrong = beside(also)
    cause = f"coalesce({', '.join([*wrong, 'cast(null as string)'])}) as __cause"
    reading = _Reading(context, schema)
    moved = frame.selectExpr("value", *columns, f"{position} as __position", cause)
    return moved.mapInArrow(reading, reading.shape)


@dataclass(frozen=True)
class _Reading:
    """The function of a `mapInArrow` that reads Avro or Protobuf values.

    A batch is read as a whole; only where that fails its records are read one by one.
    """

    context: SourceContext
    schema: Schema

    @property
    def whole(self) -> Schema:
        """The fields of the values, then what stands beside them."""
        return Schema((*self.schema.fields, *(self.context.schema.field(n) for n in self.context.options["also"])))

    @property
    def shape(self) -> str:
        """The columns that come out."""
        return f"{self.whole}, {MALFORMED} {TYPE}" if self.context.keeps_malformed else str(self.whole)

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches that come out."""
        given = self.context.options
        registry = registry_at(given["registry"], given.get("registry_client"))
        reader = AvroReader(registry) if given["format"] == "avro" else ProtobufReader(registry, self.schema)
        for batch in batches:
            try:
                yield self._batch(batch, reader)
            except RegistryDown as down:
                raise RunError(str(down)) from None

    def _batch(self, batch: pa.RecordBatch, reader: AvroReader | ProtobufReader) -> pa.RecordBatch:
        try:
            self._check_causes(batch)
            return self._made(batch, self._columns(batch, reader), [None] * batch.num_rows)
        except RegistryDown:
            raise
        except RunError:
            return (
                pa.Table.from_batches([self._one(batch.slice(at, 1), reader) for at in range(batch.num_rows)])
                .combine_chunks()
                .to_batches()[0]
            )

    def _check_causes(self, batch: pa.RecordBatch) -> None:
        if batch.column("__cause").null_count < batch.num_rows:
            raise RunError(batch.column("__cause").drop_null()[0].as_py())

    def _one(self, batch: pa.RecordBatch, reader: AvroReader | ProtobufReader) -> pa.RecordBatch:
        try:
            self._check_causes(batch)
            return self._made(batch, self._columns(batch, reader), [None])
        except RegistryDown:
            raise
        except RunError as error:
            return self._made(
                batch, [pa.nulls(1, f.type) for f in arrow_schema(self.schema)], [self._described(batch, error)]
            )

    def _described(self, batch: pa.RecordBatch, error: RunError) -> dict[str, Any]:
        """The description of a malformed record; a source that keeps none stops here."""
        raw, position = (batch.column(n)[0].as_py() for n in ("value", "__position"))
        if not self.context.keeps_malformed:
            raise Unreadable(self.context, raw or b"", position or REPLAYED, str(error))
        return {"raw": raw, "position": position or REPLAYED, "cause": str(error)}

    def _columns(self, batch: pa.RecordBatch, reader: AvroReader | ProtobufReader) -> list[Any]:
        values = batch.column("value").to_pylist()
        records = [None if v is None else record_of(reader, v) for v in values]
        return [column_of(records, f) for f in arrow_schema(self.schema)]

    def _made(self, batch: pa.RecordBatch, columns: list[Any], malformed: list[Any]) -> pa.RecordBatch:
        beside = [batch.column(n) for n in self.context.options["also"]]
        shape = list(arrow_schema(self.whole))
        if self.context.keeps_malformed:
            beside.append(pa.array(malformed, ARROW))
            shape.append(pa.field(MALFORMED, ARROW))
        columns = [c.cast(f.type) for c, f in zip([*columns, *beside], shape, strict=True)]
        return pa.record_batch(columns, schema=pa.schema(shape))


def column_of(records: list[Any], field: pa.Field) -> pa.Array:
    """The values of a field of records, of which each must fit its type."""
    values = [None if r is None else r.get(field.name) for r in records]
    try:
        made = pa.array(values, field.type)
        if _has_time(field.type):
            made.to_pylist()  # a number may stand for a time that Python does not know
    except Exception as error:  # whatever gets out of a parser makes a bad record
        raise RunError(f"field {field.name!r}: it is no {field.type}: {error}") from None
    return made


def _has_time(kind: pa.DataType) -> bool:
    return pa.types.is_temporal(kind) or any(_has_time(kind.field(at).type) for at in range(kind.num_fields))


def record_of(reader: AvroReader | ProtobufReader, value: bytes) -> Any:
    """A value as a record; whatever gets out of a parser (no memory, no stack, a number too large) makes a bad record."""
    number = schema_id(value)
    try:
        return reader.read(number, value)
    except (RunError, RegistryDown):
        raise
    except Exception as error:
        why = str(error) or type(error).__name__
        raise RunError(f"a value cannot be read with the schema of id {number}: {why}") from None


def _decoded_json(frame: DataFrame, context: SourceContext, schema: Schema, position: str) -> DataFrame:
    """Checks what stands in front of the values; Spark reads the JSON after it."""
    columns, *wrong = beside(context.options["also"])
    url, options = context.options["registry"], context.options.get("registry_client")
    names = frame.columns
    shape = StructType([*frame.schema.fields, StructField("__front", StringType())])

    def check(batches: Iterator[Any]) -> Iterator[Any]:
        registry = registry_at(url, options)
        for batch in batches:
            causes = pa.array(_causes(batch.column("value").to_pylist(), registry), pa.string())
            yield pa.record_batch([*batch.columns, causes], names=[*names, "__front"])

    body = f"cast(substring(value, {FRONT + 1}) as string)"
    reading, wrong = json_reading(body, schema), ["__front", invalid(body, "value"), *wrong]
    return read_values(frame.mapInArrow(check, shape), context, schema, reading, position, columns, *wrong)


def _causes(values: list[Any], registry: Registry) -> list[str | None]:
    """What is wrong with the front of each value, if anything is."""
    return [None if v is None else _front_cause(v, registry) for v in values]


def _front_cause(value: bytes, registry: Registry) -> str | None:
    try:
        check_kind(registry, schema_id(value), "JSON")
    except RegistryDown as down:
        raise RunError(str(down)) from None
    except RunError as error:
        return str(error)
    return None


def check_kind(registry: Registry, number: int, wanted: str) -> None:
    """A schema must be of the kind that the format says."""
    found = registry.schema(number).kind
    if found != wanted:
        named = {v: k for k, v in KINDS.items()}
        raise RunError(
            f"the schema with the id {number} is {found}, not {wanted}; take format={named.get(found, found)!r}"
        )


def encoded(frame: DataFrame, context: SinkContext) -> DataFrame:
    """The column `value`, a struct, as bytes in the wire format; the schema is registered first.

    With a column of numbers a value that does not fit its schema gets a cause, instead of an error.
    """
    given = context.options
    kind, text = given["format"], given["value_schema"]
    registry = registry_at(given["registry"], given.get("registry_client"))
    if kind == "json_schema":
        number = registry.register(f"{given['topic']}-value", "JSON", text)
        json = "cast(to_json(value, map('ignoreNullFields', 'false')) as binary)"
        made = f"concat(X'{front(number).hex()}', {json}) as value"
        return frame.selectExpr(*(made if n == "value" else quote(n) for n in frame.columns))
    write = value_writer(registry, given["topic"], kind, text)
    others = [n for n in frame.columns if n != "value"]
    keeps = NUMBER in others
    shape = ", ".join(
        [
            "value binary",
            *(f"{quote(n)} {frame.schema[n].dataType.simpleString()}" for n in others),
            *([f"{REFUSED} string"] if keeps else []),
        ]
    )

    def encode(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            rows = batch.column("value").to_pylist(maps_as_pydicts="strict")
            made = [_written(write, row, keeps=keeps) for row in rows]
            values, causes = pa.array([v for v, _ in made], pa.binary()), pa.array([c for _, c in made], pa.string())
            columns = [values, *(batch.column(n) for n in others), causes]
            names = ["value", *others, REFUSED]
            yield pa.record_batch(columns[: len(names) - (not keeps)], names=names[: len(names) - (not keeps)])

    return frame.mapInArrow(encode, shape)


def _written(write: Callable[[Any], bytes], row: Any, *, keeps: bool) -> tuple[bytes | None, str | None]:
    """A row as bytes, and why it cannot be written where that is to be kept."""
    try:
        return None if row is None else write(row), None
    except RunError as error:
        if not keeps:
            raise
        return None, str(error)


def value_writer(registry: Registry, topic: str, kind: str, text: str) -> Callable[[Any], bytes]:
    """Makes bytes of a record; holds nothing that cannot travel to a worker."""
    if kind == "avro":
        return avro_writer(front(registry.register(f"{topic}-value", "AVRO", text)), text)
    message = message_of(text)
    return protobuf_writer(front(registry.register(f"{topic}-value", "PROTOBUF", message.text)), message)
