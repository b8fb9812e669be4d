"""Values in the wire format of schema registries: a zero, the id of the schema in four bytes, then the value itself.

Avro and Protobuf are read and written in Python on Arrow batches; of JSON Schema values only the front is looked at here, the
rest is Spark's own JSON.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.base import Place, SinkPlace
from penstock.connectors.kafka_avro import AvroReader, avro_writer
from penstock.connectors.kafka_protobuf import ProtobufReader, message_of, protobuf_writer
from penstock.connectors.schema_registry import Registry, registry_at
from penstock.errors import RunError
from penstock.graph.schema import Schema
from penstock.graph.types import quote
from penstock.kernels.arrow import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FRONT = 5
KINDS = {"avro": "AVRO", "json_schema": "JSON", "protobuf": "PROTOBUF"}
"""What the registry calls each format."""
Decode = Callable[[int, bytes], Any]


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


def decoded(frame: DataFrame, place: Place, schema: Schema) -> DataFrame:
    """The fields of the values, and what stands beside them."""
    given = place.options
    url, options, kind = given["registry"], given.get("registry_client"), given["format"]
    about = [n for n in frame.columns if n != "value"]
    if kind == "json_schema":
        return _decoded_json(frame, place, schema, about)
    whole = Schema((*schema.fields, *(place.schema.field(n) for n in about)))
    wanted, shape = arrow_schema(schema), arrow_schema(whole)

    def decode(batches: Iterator[Any]) -> Iterator[Any]:
        registry = registry_at(url, options)
        reader = AvroReader(registry) if kind == "avro" else ProtobufReader(registry, schema)
        for batch in batches:
            records = [None if v is None else reader.read(schema_id(v), v) for v in batch.column("value").to_pylist()]
            columns = [_column(records, f) for f in wanted] + [batch.column(n) for n in about]
            yield pa.record_batch([c.cast(f.type) for c, f in zip(columns, shape)], schema=shape)

    return frame.mapInArrow(decode, str(whole))


def _column(records: list[Any], field: Any) -> Any:
    values = [None if r is None else r.get(field.name) for r in records]
    try:
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
        raise RunError(f"the field {field.name!r} of a value is not {field.type}: {error}") from None


def _decoded_json(frame: DataFrame, place: Place, schema: Schema, about: list[str]) -> DataFrame:
    """Checks and cuts off the front; Spark reads the JSON."""
    given = place.options
    url, options = given["registry"], given.get("registry_client")

    def cut(batches: Iterator[Any]) -> Iterator[Any]:
        registry = registry_at(url, options)
        for batch in batches:
            values = batch.column("value").to_pylist()
            for number in {schema_id(v) for v in values if v is not None}:
                check_kind(registry, number, "JSON")
            rest = pa.array([None if v is None else v[FRONT:] for v in values], pa.binary())
            yield pa.record_batch([rest, *(batch.column(n) for n in about)], names=["value", *about])

    shape = ", ".join(["value binary", *(f"{quote(n)} {place.schema.field(n).type}" for n in about)])
    ddl = str(schema).replace("\\", "\\\\").replace("'", "\\'")
    parsed = f"from_json(cast(value as string), '{ddl}', map('mode', 'FAILFAST')) as __value"
    named = [quote(n) for n in about]
    return frame.mapInArrow(cut, shape).selectExpr(parsed, *named).selectExpr("__value.*", *named)


def check_kind(registry: Registry, number: int, wanted: str) -> None:
    """A schema must be of the kind that the format says."""
    found = registry.schema(number).kind
    if found != wanted:
        named = {v: k for k, v in KINDS.items()}
        raise RunError(
            f"the schema with the id {number} is {found}, not {wanted}; take format={named.get(found, found)!r}"
        )


def encoded(frame: DataFrame, place: SinkPlace) -> DataFrame:
    """The column `value`, a struct, as bytes in the wire format; the schema is registered first."""
    given = place.options
    kind, text = given["format"], given["value_schema"]
    registry = registry_at(given["registry"], given.get("registry_client"))
    if kind == "json_schema":
        number = registry.register(f"{given['topic']}-value", "JSON", text)
        json = "cast(to_json(value, map('ignoreNullFields', 'false')) as binary)"
        made = f"concat(X'{front(number).hex()}', {json}) as value"
        return frame.selectExpr(*(made if n == "value" else quote(n) for n in frame.columns))
    write = _writer(registry, given["topic"], kind, text)
    others = [n for n in frame.columns if n != "value"]
    shape = ", ".join(["value binary", *(f"{quote(n)} {frame.schema[n].dataType.simpleString()}" for n in others)])

    def encode(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            values = pa.array(map(write, batch.column("value").to_pylist(maps_as_pydicts="strict")), pa.binary())
            yield pa.record_batch([values, *(batch.column(n) for n in others)], names=["value", *others])

    return frame.mapInArrow(encode, shape)


def _writer(registry: Registry, topic: str, kind: str, text: str) -> Callable[[Any], bytes]:
    """Makes bytes of a record; holds nothing that cannot travel to a worker."""
    if kind == "avro":
        return avro_writer(front(registry.register(f"{topic}-value", "AVRO", text)), text)
    message = message_of(text)
    return protobuf_writer(front(registry.register(f"{topic}-value", "PROTOBUF", message.text)), message)
