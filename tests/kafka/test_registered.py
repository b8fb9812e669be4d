"""Values with a schema in a registry, without a JVM and without Kafka: what is written is read again, and what is none is named."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.kafka.local import _columns, _registered
from penstock.connectors.local import LocalSink, LocalSource
from penstock.connectors.messages import Message, message_reader
from penstock.graph.row import row_class
from penstock.graph.schema import schema_of
from penstock.kernels.records.reading import MalformedRecord
from tests.kafka.registry import Schemas, schema_registry

SCHEMA = "id bigint, name string, tags map<string, bigint>"
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Row",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": ["null", "string"]},
            {"name": "tags", "type": {"type": "map", "values": "long"}},
        ],
    }
)
ROWS = [(1, "a", {"x": 1}), (2, "b", {}), (3, "ü", {"y": 2, "z": 3})]
FORMS: dict[str, tuple[str, str, list[tuple[Any, ...]]]] = {
    "avro": (AVRO, SCHEMA, ROWS),
    "protobuf": ("google.protobuf.timestamp_pb2:Timestamp", "seconds bigint, nanos int", [(1, 2), (3, 4)]),
    "json_schema": ('{"type": "object"}', SCHEMA, ROWS),
}
"""Each with the schema that is registered, the fields of records, and records."""


@pytest.fixture
def registry() -> Iterator[Schemas]:
    with schema_registry() as made:
        yield made


def values(form: str, registry: Schemas) -> list[bytes]:
    text, schema, records = FORMS[form]
    endpoint = ps.write_kafka("rows", format=form, registry=registry.url, value_schema=text)
    sink = LocalSink("flow", "out", endpoint, schema_of(schema))
    rows = [tuple.__new__(row_class(sink.schema.names), row) for row in records]
    return [v for v in _columns(sink, rows).column("value").to_pylist() if v is not None]


def read(form: str, registry: Schemas, found: list[bytes | None]) -> list[Any]:
    schema = FORMS[form][1]
    endpoint = ps.kafka("rows", schema, format=form, registry=registry.url, also=["offset"])
    source = LocalSource("in", endpoint, schema_of(f"{schema}, offset bigint"))
    reader = message_reader(endpoint, source.schema, _registered(source))
    now = datetime.datetime.now(datetime.UTC)
    return [reader(Message("rows", 0, at, now, None, value)) for at, value in enumerate(found)]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_is_read_again(form: str, registry: Schemas) -> None:
    written = values(form, registry)
    assert all(value[0] == 0 for value in written), "the wire format begins with a zero and the id of the schema"
    assert list(registry.subjects) == ["rows-value"]
    assert read(form, registry, [*written]) == [(*row, at) for at, row in enumerate(FORMS[form][2])]


@pytest.mark.parametrize("form", FORMS)
def test_a_value_that_is_none_is_named_with_its_position(form: str, registry: Schemas) -> None:
    good = values(form, registry)[0]
    made = read(form, registry, [good, b"no front", good[:5] + b"\xff\xff\xff", None])
    assert made[0] == (*FORMS[form][2][0], 0)
    assert made[3] == (*[None] * len(FORMS[form][2][0]), 3)
    for at in (1, 2):
        assert isinstance(made[at], MalformedRecord)
        assert made[at].position == f"topic rows, partition 0, offset {at}"
    assert "wire format" in made[1].cause
