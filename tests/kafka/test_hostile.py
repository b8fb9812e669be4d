"""Hostile values of Kafka topics: each is read, or has a cause, the same on Spark; none stops the task. No broker."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import penstock as ps
from penstock.connectors.base import SourceContext
from penstock.connectors.kafka import wire
from penstock.connectors.kafka.schema_registry import RegisteredSchema, Registry
from penstock.connectors.kafka.source import fields
from penstock.connectors.malformed import MALFORMED
from penstock.errors import RunError
from penstock.graph.schema import Schema, schema_of
from penstock.kernels.records.reading import Unreadable, read_json
from tests.kafka.registry import schema_registry
from tests.same.hostile import SCHEMA as JSON_SCHEMA
from tests.same.hostile import json_texts, raw_values

MANY = 20_000
SCHEMA = "id bigint, ts timestamp, s string, xs array<bigint>"
AVRO = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "s", "type": ["null", "string"]},
        {"name": "xs", "type": {"type": "array", "items": "long"}},
    ],
}


class Schemas(Registry):
    """A registry that has one schema, of id 7."""

    def __init__(self, only: RegisteredSchema) -> None:
        super().__init__("http://none")
        self.only = only

    def schema(self, number: int, form: str = "") -> RegisteredSchema:
        if number != 7:
            raise RunError(f"no schema with the id {number}")
        return self.only


def avro_values() -> list[bytes]:
    made = []
    for number in (0, 1, 2**40):
        out = io.BytesIO(wire.front(7))
        out.seek(5)
        record = {"id": number, "ts": 1_600_000_000_000_000, "s": "word", "xs": [1, 2, number]}
        fastavro.schemaless_writer(out, fastavro.parse_schema(AVRO), record)
        made.append(out.getvalue())
    far = io.BytesIO(wire.front(7))
    far.seek(5)
    plain = json.loads(json.dumps(AVRO).replace(', "logicalType": "timestamp-micros"', ""))
    fastavro.schemaless_writer(far, fastavro.parse_schema(plain), {"id": 1, "ts": 2**62, "s": None, "xs": []})
    return [*made, far.getvalue(), wire.front(7) + b"\x02\x00\x02\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"]


def protobuf_schema() -> tuple[RegisteredSchema, list[bytes]]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="event.proto", syntax="proto3")
    message = file.message_type.add(name="Event")
    kinds = descriptor_pb2.FieldDescriptorProto
    message.field.add(name="id", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    message.field.add(name="s", number=2, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    message.field.add(name="xs", number=3, type=kinds.TYPE_INT64, label=kinds.LABEL_REPEATED)
    message.field.add(name="ts", number=4, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    event: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("Event"))
    texts = [event(id=n, s="word", xs=[1, n], ts=n).SerializeToString() for n in (0, 5, 2**62)]
    return RegisteredSchema("PROTOBUF", base64.b64encode(file.SerializeToString()).decode()), [
        wire.front(7) + b"\0" + text for text in texts
    ]


def reported(form: str, registered: RegisteredSchema, values: list[bytes], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(wire, "registry_at", lambda *_: Schemas(registered))
    endpoint = ps.kafka("t", SCHEMA, format=form, registry="http://none")
    assert endpoint.schema is not None
    context = SourceContext("in", endpoint, endpoint.schema, Path("none"), keeps_malformed=True)
    reading = wire._Reading(context, endpoint.schema)
    nothing = pa.nulls(len(values), pa.string())
    rows = pa.record_batch([pa.array(values, pa.binary()), nothing, nothing], names=["value", "__position", "__cause"])
    return pa.Table.from_batches(list(reading(iter([rows]))))


def values_of(form: str) -> tuple[RegisteredSchema, list[bytes]]:
    """Generated values of a format, those that once stopped a flow among them."""
    if form == "json":
        return RegisteredSchema("JSON", "{}"), [t.encode() for t in json_texts(MANY, 6)]
    registered, good = (
        (RegisteredSchema("AVRO", json.dumps(AVRO)), avro_values()) if form == "avro" else protobuf_schema()
    )
    return registered, [*good, b"", b"\0", wire.front(8) + b"x", *raw_values(MANY, good)]


@pytest.mark.parametrize("form", ["avro", "protobuf"])
def test_generated_values_are_read_or_have_a_cause(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    registered, values = values_of(form)
    made = reported(form, registered, values, monkeypatch)
    assert made.num_rows == len(values)
    malformed = [row for row in made.column(MALFORMED).to_pylist() if row is not None]
    assert 0 < len(malformed) < len(values)
    assert all(row["cause"] and row["raw"] is not None for row in malformed)
    made.to_pylist()


@pytest.mark.spark
@pytest.mark.parametrize("form", ["json", "avro", "protobuf"])
def test_generated_values_are_read_the_same_way_on_spark(
    form: str, penstock_spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered, values = values_of(form)
    with schema_registry() as registry:
        registry.by_id[7] = {"schemaType": registered.kind, "schema": registered.text, "references": []}
        options: dict[str, Any] = {} if form == "json" else {"registry": registry.url}
        endpoint = ps.kafka("t", JSON_SCHEMA if form == "json" else SCHEMA, format=form, also="offset", **options)
        assert endpoint.schema is not None
        context = SourceContext("in", endpoint, endpoint.schema, Path("none"), keeps_malformed=True)
        rows = [(value, "t", 0, at) for at, value in enumerate(values)]
        frame = penstock_spark.createDataFrame(rows, "value binary, topic string, partition int, offset bigint")
        found = fields(frame.repartition(2), context).selectExpr("offset", f"{MALFORMED} is null as good").collect()
    assert {row.offset for row in found if row.good} == set(good_ones(form, registered, values, monkeypatch))
    assert len(found) == len(values)


def good_ones(
    form: str, registered: RegisteredSchema, values: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    """The numbers of the values that are read without Spark."""
    if form == "json":
        schema = schema_of(JSON_SCHEMA)
        return [at for at, value in enumerate(values) if not _is_unreadable(value, schema)]
    made = reported(form, registered, values, monkeypatch)
    return [at for at, row in enumerate(made.column(MALFORMED).to_pylist()) if row is None]


def _is_unreadable(value: bytes, schema: Schema) -> bool:
    try:
        read_json(value.decode(), schema)
    except Unreadable:
        return True
    return False
