"""What is read plainly is what Spark's parser reads, value by value; all else is left to it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.connectors.parsing import PLAIN_JSON, PLAIN_SETTING, json_reading, literal, reads_plainly
from penstock.graph.schema import schema_of
from penstock.spark.jvm import plain_json
from penstock.spark.jvm.plain_json import offer_plain_json
from tests.same import hostile

pytestmark = pytest.mark.spark

SCHEMA = hostile.PLAIN_SCHEMA + ", small smallint, i int, e decimal(38,10)"
VALUES: dict[str, list[str]] = {
    "id": ["0", "-0", "-7", "007", "9" * 18, "9" * 19, "1.0", "1e2", '"1"', "true", "+1", "-", "12 ", "12\t"],
    "small": ["32767", "32768", "-32768", "-32769"],
    "i": ["2147483647", "2147483648", "-2147483648", "-2147483649"],
    "x": [
        "0",
        "-0",
        "-0.0",
        "0.1",
        "123456789.123456789",
        "1.",
        ".5",
        "01.5",
        "1e5",
        "NaN",
        '"NaN"',
        "5e-324",
        "9" * 18,
    ],
    "d": ["1", "1.5", "1.25", "1.255", "-0.05", "99999999.99", "100000000", '"7"', "1e1", "0.0", "-12.5"],
    "e": ["1", "-1.0123456789", "1234567.12345678901", "123456789012345678", "0.5"],
    "b": ["true", "false", "null", '"true"', "True", "truex", "nul"],
    "s": [
        *('""', '"a"', '"ü🙂"', r'"a\"b"', r'"\\"', r'"\/\b\f\n\r\t"', r'"\u0041"', r'"\ud83d"', r'"\x"', '"a\\'),
        *('"a\tb"', '"a\x7fb"', '"\u2028"', "1", "1.50", "true", "[1]", '{"a":1}', "null", '"'),
    ],
    "ts": [
        *(
            f'"{date} 12:30:15"'
            for date in ("0001-01-01", "1582-10-10", "2000-02-29", "1900-02-29", "2020-02-30", "9999-12-31")
        ),
        *(f'"2020-0{m}-31T00:00:00Z"' for m in range(1, 10)),
        *(
            f'"2020-01-01T{time}"'
            for time in ("23:59:59.9", "23:59:59.999999", "1:2:3", "24:00:00", "00:60:00", "00:00:60")
        ),
        *(f'"2020-01-01 00:00:00{rest}"' for rest in (".", ".1234567", "Z", "+01:00", " ", "z", ".5Z", "ZZ")),
        *(
            '"2020-01-01"',
            '" 2020-01-01 00:00:00"',
            '"0000-01-01 00:00:00"',
            '"10000-01-01 00:00:00"',
            "0",
            '""',
            '"x"',
        ),
    ],
    "day": [
        '"2020-02-29"',
        '"2019-02-29"',
        '"2020-1-1"',
        '"2020-01-01 "',
        '"2020-01-01T00:00:00"',
        "1",
        '"0001-01-01"',
    ],
    "local": [
        '"2020-01-01T00:00:00"',
        '"2020-01-01 00:00:00.123"',
        '"2020-01-01T00:00:00Z"',
        '"1969-12-31 23:59:59.000001"',
    ],
    "xs": ["[]", "[ ]", "[1,2]", "[1 , null]", "[1,]", "[,1]", "[1", "[1.5]", "{}", "1"],
    "times": ['["2020-01-01 00:00:00"]', "[null]", "[1]"],
    "st": [
        "{}",
        '{"a":1}',
        '{"a":1,"a":2}',
        '{"t":"2020-01-01 00:00:00","a":null}',
        '{"b":{}}',
        '{"b":1.5}',
        "[]",
        "1",
    ],
    "other": ["1", "-1.5", "1e5", "true", "null", '"x"', '"\\u0041"', "[1]", "{}", "nan", "01"],
}
"""Values at the borders of what is plain, by their field."""
PLAIN = [
    *(
        '{"id":1}',
        '{"id":1,"s":"ü"}',
        '{ "id" : 1 , "s" : "a\\nb" }',
        "{}",
        '{"other":1,"id":2}',
        '{"st":{"a":1},"xs":[1]} ',
    ),
    *('{"ts":"2020-01-01 00:00:00","d":1.5,"x":0.5,"b":true}',),
]
"""Texts that must be read plainly: they are what most records look like."""


def texts() -> Iterator[str]:
    """Records of one field each, with blanks and with something after it; and some of all fields, in any order."""
    chance = random.Random(11)
    for name, values in VALUES.items():
        for value in values:
            yield f'{{"{name}":{value}}}'
            yield f' {{ "{name}" :{value} , "id":1}} '
            yield f'{{"{name}":{value}}}{chance.choice("x} ,")}'
            yield f'{{"{name}":{value},"{name}":{value}}}'
    for _ in range(1_000):
        names = chance.sample(list(VALUES), 6)
        yield f"{{{','.join(f'{json.dumps(name)}:{chance.choice(VALUES[name])}' for name in names)}}}"
    yield from hostile.json_texts(2_000, 9, ("m",))


def test_what_is_read_plainly_is_what_spark_reads(compiled_spark: Any) -> None:
    offer_plain_json(compiled_spark)
    assert compiled_spark.conf.get(PLAIN_SETTING) == "true"
    schema = schema_of(SCHEMA)
    slow = json_reading("text", schema)
    fields = ", ".join(f"__parsed.{name}" for name in schema.names)
    plain = f"{PLAIN_JSON}(text, {literal(str(schema))}, current_timezone()) as plain"
    frame = compiled_spark.createDataFrame([(text,) for text in texts()], "text string")
    read = frame.selectExpr("text", plain, *slow.columns).selectExpr(
        "text", "plain", f"struct({fields}) as slow", f"({slow.is_bad}) as bad"
    )
    wrong = read.where("plain is not null and (bad or not to_json(plain) <=> to_json(slow))").collect()
    assert wrong == []
    assert read.where("plain is not null").count() > 500


def test_where_the_classes_cannot_be_made_json_is_read_as_before(
    penstock_spark: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(plain_json, "_FILES", ("PlainMissing",))
    session = penstock_spark.newSession()
    offer_plain_json(session)
    offer_plain_json(session)
    assert not reads_plainly(session)
    assert [message.partition(":")[0] for message in caplog.messages] == [
        "JSON is read by from_json alone, which is slower"
    ]


def test_most_records_are_plain(compiled_spark: Any) -> None:
    offer_plain_json(compiled_spark)
    frame = compiled_spark.createDataFrame([(text,) for text in PLAIN], "text string")
    plain = f"{PLAIN_JSON}(text, {literal(str(schema_of(SCHEMA)))}, current_timezone())"
    assert frame.where(f"{plain} is null").collect() == []
