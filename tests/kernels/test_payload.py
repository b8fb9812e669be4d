"""The payload of a dead letter: every type there and back, and never a pickle."""

from __future__ import annotations

import datetime
import decimal
import json
import math

import pytest

from penstock.graph.schema import schema_of
from penstock.kernels.errors.payload import BadPayload, payload_of, raw_payload, read_payload

NOON = datetime.datetime(2024, 5, 1, 12, 0, 0, 7, tzinfo=datetime.UTC)
VALUES: list[tuple[str, object]] = [
    ("boolean", True),
    ("tinyint", -128),
    ("smallint", 32767),
    ("int", -(1 << 31)),
    ("bigint", (1 << 63) - 1),
    ("float", 0.5),
    ("double", 1e-300),
    ("double", math.inf),
    ("double", -math.inf),
    ("string", 'a"b\\\n\x00 ü'),
    ("binary", b"\x00\xff"),
    ("date", datetime.date(1, 1, 1)),
    ("timestamp", NOON),
    ("timestamp_ntz", datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ("decimal(38,3)", decimal.Decimal("12345678901234567890123456789012345.678")),
    ("array<array<int>>", [[1, None], []]),
    ("map<string,decimal(3,1)>", {"a": decimal.Decimal("1.5"), "b": None}),
    ("map<int,binary>", {1: b"x", 2: b""}),
    ("map<timestamp,int>", {NOON: 1}),
    ("struct<a: int, b: struct<c: date>>", {"a": 1, "b": {"c": datetime.date(2024, 1, 1)}}),
    ("array<struct<a: timestamp>>", [{"a": NOON}, {"a": None}]),
]


@pytest.mark.parametrize("kind, value", VALUES)
def test_every_type_comes_back_as_it_was(kind: str, value: object) -> None:
    schema = schema_of(f"x {kind}, y {kind}")
    made = payload_of((value, None), schema)
    assert read_payload(made).row == (value, None)
    assert read_payload(json.loads(made)).row == (value, None)


def test_what_is_no_number_comes_back_too() -> None:
    (value,) = read_payload(payload_of((math.nan,), schema_of("x double"))).row
    assert isinstance(value, float)
    assert math.isnan(value)


def test_structs_are_taken_from_tuples_too() -> None:
    schema = schema_of("x struct<a: int, b: string>")
    assert read_payload(payload_of(((1, "b"),), schema)).row == ({"a": 1, "b": "b"},)


@pytest.mark.parametrize("raw", [b"", b"text", "ü".encode(), b"\xff\xfe", bytes(range(256))])
def test_bytes_come_back_as_they_were_with_what_stood_beside_them(raw: bytes) -> None:
    schema = schema_of("n bigint, key string, at timestamp")
    found = read_payload(raw_payload(raw, {"at": NOON, "key": "k"}, schema))
    assert found.raw == raw
    assert found.values == {"key": "k", "at": NOON}


@pytest.mark.parametrize(
    "text, says",
    [
        ("gASVHQ==", "not JSON"),
        ("[]", "a payload is a JSON object with 'record', 'raw' or 'raw_base64'"),
        ("{}", "a payload is a JSON object"),
        ('{"record": {"n": 1}}', "schema"),
        ('{"schema": "n bigint", "record": [1]}', "a record is a JSON object with the fields n"),
        ('{"schema": "n bigint", "record": {"n": 1.5}}', "field 'n': bigint needs a whole number"),
        ('{"schema": "n tinyint", "record": {"n": 300}}', "outside the range"),
        ('{"schema": "d date", "record": {"d": "soon"}}', "field 'd'"),
        ('{"schema": "a array<int>", "record": {"a": 1}}', "array<int> is a list"),
        ('{"raw_base64": "%"}', "not base64"),
    ],
)
def test_what_is_no_payload_is_refused_with_the_reason(text: str, says: str) -> None:
    with pytest.raises(BadPayload) as refused:
        read_payload(text)
    assert says in str(refused.value)
