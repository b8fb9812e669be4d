"""Values in the wire format of schema registries: Avro, JSON Schema, Protobuf; there and back, and what goes wrong."""

from __future__ import annotations

import base64
import datetime
import io
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from penstock.connectors.kafka.protobuf import indexes
from penstock.connectors.kafka.schema_registry import Registry
from penstock.connectors.kafka.wire import front, schema_id
from penstock.errors import RunError
from penstock.graph.endpoints.kafka import kafka as endpoint
from penstock.graph.endpoints.kafka import write_kafka
from tests.kafka.conftest import Kafka
from tests.kafka.flows import collected, written
from tests.kafka.registry import Schemas, schema_registry

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "amount", "type": ["null", "double"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
FIELDS = "user string, amount double, at timestamp, tags array<string>"
AT = datetime.datetime(2024, 5, 1, 12, 30, 0, 250000, tzinfo=datetime.UTC)
ROWS = [("ada", 2.5, AT, ["x", "y"]), ("bob", None, AT, [])]


@pytest.fixture
def registry() -> Iterator[Schemas]:
    with schema_registry() as made:
        yield made


def avro(number: int, schema: Any, record: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), record)
    return front(number) + out.getvalue()


def plain(rows: list[Any]) -> list[tuple[Any, ...]]:
    return [tuple(v.astimezone(datetime.UTC) if isinstance(v, datetime.datetime) else v for v in r) for r in rows]


def test_the_front_of_a_value() -> None:
    assert (schema_id(front(7)), front(258)) == (7, b"\0\0\0\1\2")
    for wrong in (b"", b"\0\0", b'{"a": 1}'):
        with pytest.raises(RunError, match="wire format"):
            schema_id(wrong)


def test_avro_there_and_back(kafka: Kafka, penstock_spark: Any, tmp_path: Path, registry: Schemas) -> None:
    topic = kafka.topic(1)
    sink = write_kafka(
        topic, servers=kafka.servers, format="avro", registry=registry.url, value_schema=json.dumps(AVRO), key="user"
    )
    written(ROWS, FIELDS, sink, penstock_spark, tmp_path)
    (number,) = registry.subjects[f"{topic}-value"]
    found = kafka.read(topic)
    assert {schema_id(m.value()) for m in found} == {number}
    read = fastavro.schemaless_reader(io.BytesIO(found[0].value()[5:]), fastavro.parse_schema(AVRO), None)
    assert isinstance(read, dict)
    assert (read["user"], read["at"]) == ("ada", AT)
    source = endpoint(topic, FIELDS, servers=kafka.servers, format="avro", registry=registry.url, also="key")
    assert plain(collected(source, penstock_spark)) == [(*r, r[0]) for r in ROWS]


def test_values_of_older_and_newer_schemas_in_one_topic(kafka: Kafka, penstock_spark: Any, registry: Schemas) -> None:
    older = {**AVRO, "fields": AVRO["fields"][:1]}
    topic = kafka.topic(1)
    one, two = (registry.add(topic, {"schema": json.dumps(s)}) for s in (older, AVRO))
    record = {"user": "bob", "amount": 1.0, "at": AT, "tags": ["z"]}
    kafka.send(topic, [avro(one, older, {"user": "ada"}), avro(two, AVRO, record), None])
    source = endpoint(topic, FIELDS, servers=kafka.servers, format="avro", registry=registry.url)
    rows = plain(collected(source, penstock_spark))
    assert rows == [("ada", None, None, None), ("bob", 1.0, AT, ["z"]), (None, None, None, None)]


def test_a_schema_that_refers_to_another(kafka: Kafka, penstock_spark: Any, registry: Schemas) -> None:
    city = {"type": "record", "name": "City", "fields": [{"name": "name", "type": "string"}]}
    person = {"type": "record", "name": "Person", "fields": [{"name": "city", "type": "City"}]}
    registry.add("city", {"schema": json.dumps(city)})
    reference = {"name": "City", "subject": "city", "version": 1}
    number = registry.add("person", {"schema": json.dumps(person), "references": [reference]})
    topic = kafka.topic(1)
    whole = {**person, "fields": [{"name": "city", "type": city}]}
    kafka.send(topic, [avro(number, whole, {"city": {"name": "Delft"}})])
    shape = "city struct<name: string>"
    source = endpoint(topic, shape, servers=kafka.servers, format="avro", registry=registry.url)
    assert [r.city["name"] for r in collected(source, penstock_spark)] == ["Delft"]


def test_json_schema_there_and_back(kafka: Kafka, penstock_spark: Any, tmp_path: Path, registry: Schemas) -> None:
    topic = kafka.topic(1)
    text = json.dumps({"type": "object", "properties": {"user": {"type": "string"}}})
    about: dict[str, Any] = {"servers": kafka.servers, "format": "json_schema", "registry": registry.url}
    written(ROWS, FIELDS, write_kafka(topic, value_schema=text, **about), penstock_spark, tmp_path)
    assert registry.by_id[registry.subjects[f"{topic}-value"][0]]["schemaType"] == "JSON"
    assert json.loads(kafka.values(topic)[0][5:])["user"] == "ada"
    assert plain(collected(endpoint(topic, FIELDS, **about), penstock_spark)) == ROWS


@pytest.fixture
def order_message() -> Iterator[Any]:
    """What a generated module has: a message with nested, repeated and map fields, an enum and a timestamp."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type.add(name="Other")
    order = file.message_type.add(name="Order")
    kinds = [("user", field.TYPE_STRING, ""), ("n", field.TYPE_INT64, ""), ("state", field.TYPE_ENUM, ".shop.State")]
    kinds += [
        ("at", field.TYPE_MESSAGE, ".google.protobuf.Timestamp"),
        ("city", field.TYPE_MESSAGE, ".shop.Order.City"),
    ]
    for at, (name, kind, named) in enumerate(kinds, 1):
        order.field.add(name=name, number=at, type=kind, type_name=named or None, label=field.LABEL_OPTIONAL)
    order.field.add(name="tags", number=6, type=field.TYPE_STRING, label=field.LABEL_REPEATED)
    order.nested_type.add(name="City").field.add(
        name="name", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL
    )
    state = file.enum_type.add(name="State")
    for number, name in enumerate(("OPEN", "DONE")):
        state.value.add(name=name, number=number)
    from google.protobuf import timestamp_pb2

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    module = types.ModuleType("shop_pb2")
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    module.Order = made  # type: ignore[attr-defined]
    sys.modules["shop_pb2"] = module
    yield made
    del sys.modules["shop_pb2"]


def test_protobuf_there_and_back(
    kafka: Kafka, penstock_spark: Any, tmp_path: Path, registry: Schemas, order_message: Any
) -> None:
    topic = kafka.topic(1)
    about: dict[str, Any] = {"servers": kafka.servers, "format": "protobuf", "registry": registry.url}
    shape = "user string, n bigint, state string, at timestamp, city struct<name: string>, tags array<string>"
    rows = [("ada", 1 << 40, "DONE", AT, {"name": "Delft"}, ["a", "b"]), ("bob", 0, "OPEN", None, None, [])]
    written(rows, shape, write_kafka(topic, value_schema="shop_pb2:Order", **about), penstock_spark, tmp_path)
    value = kafka.values(topic)[0]
    path, at = indexes(value, 5)
    assert path == (1,)
    message = order_message()
    message.ParseFromString(value[at:])
    assert (message.user, message.n, message.city.name) == ("ada", 1 << 40, "Delft")
    kept = registry.by_id[registry.subjects[f"{topic}-value"][0]]
    assert descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(kept["schema"])).package == "shop"
    found = plain(collected(endpoint(topic, shape, **about), penstock_spark))
    assert [(*r[:4], dict(r[4]) if r[4] else None, r[5]) for r in found] == rows


def test_an_unknown_id_is_named(kafka: Kafka, penstock_spark: Any, registry: Schemas) -> None:
    topic = kafka.topic(1)
    kafka.send(topic, [front(4711) + b"x"])
    for kind in ("avro", "protobuf", "json_schema"):
        source = endpoint(topic, "a int", servers=kafka.servers, format=kind, registry=registry.url)
        with pytest.raises(RunError, match="knows no schema with the id 4711"):
            collected(source, penstock_spark)


def test_a_schema_of_another_kind_is_named(kafka: Kafka, penstock_spark: Any, registry: Schemas) -> None:
    topic = kafka.topic(1)
    number = registry.add(topic, {"schema": "{}", "schemaType": "JSON"})
    kafka.send(topic, [front(number) + b"{}"])
    with pytest.raises(RunError, match="is JSON, not AVRO"):
        collected(endpoint(topic, "a int", servers=kafka.servers, format="avro", registry=registry.url), penstock_spark)


def test_a_schema_is_asked_for_once(registry: Schemas) -> None:
    number = registry.add("s", {"schema": json.dumps(AVRO)})
    client = Registry(registry.url)
    assert [client.schema(number).text for _ in range(3)] == [json.dumps(AVRO)] * 3
    assert [client.register("s", "AVRO", json.dumps(AVRO)) for _ in range(3)] == [number] * 3
    assert len(registry.asked) == 2


def test_a_registry_with_a_password() -> None:
    login = f"Basic {base64.b64encode(b'ada:hush').decode()}"
    with schema_registry(login) as schemas:
        number = schemas.add("s", {"schema": json.dumps(AVRO)})
        assert Registry(schemas.url, {"user": "ada", "password": "hush"}).schema(number).kind == "AVRO"
        with pytest.raises(RunError, match="answers 401") as caught:
            Registry(schemas.url, {"user": "ada", "password": "wrong-word"}).schema(number)
        assert "wrong-word" not in str(caught.value)
    with pytest.raises(RunError, match="does not answer"):
        Registry(schemas.url).schema(number)
