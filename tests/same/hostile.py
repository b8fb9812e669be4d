"""Hostile records: generated ones of every format, and those that once stopped a flow."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

SCHEMA = (
    "id bigint, ts timestamp, day date, x double, m map<string, int>, xs array<int>, s string, b boolean, "
    "st struct<a: int, t: timestamp>, d decimal(10,2), f float, n tinyint, raw binary, local timestamp_ntz, times array<timestamp>"
)

FLAT_SCHEMA = (
    "id bigint, ts timestamp, day date, x double, xs array<int>, s string, b boolean, d decimal(10,2), "
    "local timestamp_ntz, times array<timestamp>"
)
"""The same without objects inside, which Spark reads by a shorter way where a text is sure to be one value, and of types that are read plainly first."""
PLAIN_SCHEMA = f"{FLAT_SCHEMA}, st struct<a: int, t: timestamp>"
"""The same with an object inside."""


def nested(depth: int, *, closed: bool = True) -> str:
    """A record with lists in each other in a field of text; the record itself is one level more."""
    return '{"id":1,"s":' + "[" * depth + ("]" * depth + "}" if closed else "")


GOOD = [
    '{"id":1}',
    ' {"id": 1} ',
    '\t{"id":1}',
    "{}",
    '{"id":null}',
    '{"id":-9223372036854775808}',
    '{"id":1,"id":2}',
    '{"id":1,"unknown":{"a":[1,2]}}',
    '{"st":{"a":1}}',
    '{ "st" : {"a":1} }',
    '{"st":{"a":1},"m":{"a}":1}}\t',
    '{"id":1,"unknown":{"a":1,"a":2}}',
    '{"ts":1600000000}',
    '{"ts":-62135596800}',
    '{"ts":253402300799}',
    '{"ts":"9999-12-31T23:59:59.999999Z"}',
    '{"ts":"2020-01-01T00:00:00.123456789Z"}',
    '{"ts":"2020-01-01T00:00:00 Europe/Berlin"}',
    '{"day":"2020-1-1"}',
    '{"x":NaN}',
    '{"x":"NaN"}',
    '{"x":-Infinity}',
    '{"x":+INF}',
    '{"x":1e400}',
    '{"f":1e39}',
    '{"x":' + "1" * 400 + "}",
    '{"d":"1,000.50"}',
    '{"d":1.005}',
    '{"n":127}',
    '{"raw":"YWI="}',
    '{"s":"\\u0000"}',
    '{"s":"\\ud83d\\ude42"}',
    '{"s":"\\\\ud83d"}',
    '{"s":{"a":[1,2]}}',
    '{"s":[1e308, -0.0, 1E-7, 1.50, 123456789.125, 5e-324, 1e400, -1e400, NaN, -INF]}',
    '{"s":{"a":1,"a":2,"b":{"c":1.5,"c":{}}}}',
    '{"s":["\\u001f\\u000b\\u007f\\u2028/\\/🙂é"]}',
    '{"s":-1.0e2}',
    '{"s":12345678901234567890123456789}',
    '{"s":"}"}',
    '{"s":"}{","id":1}',
    '{"s":"' + "x" * 200_000 + '"}',
    '{"m":{}}',
    '{"local":"2020-01-01T00:00:00"}',
    '{"times":["2020-01-01", null]}',
    '{"id":1,"' + "n" * 50_000 + '":1}',
    nested(400),
    nested(499),
]
"""Records that are read, however odd they look."""
BAD = [
    "null",
    "1",
    '"a"',
    "[]",
    '[{"id":1},{"id":2}]',
    '{"id":1}{"id":2}',
    '{"id":1} {"id":2}',
    '{"id":1},{"id":2}',
    '{"id":1}]',
    '{"id":1}}',
    '{"id":1}{',
    '{"s":"a}',
    '[{"id":1}',
    '{"id":1,"s":[1}',
    '{"id":1}],"x":[2',
    '{"id":1} garbage',
    '{"id":1}\x00',
    '\x00{"id":1}',
    '{"id":1}\ufeff',
    "\ufeff{}",
    '\ufeff{"id":1}',
    '{"st":{"a":1}',
    '{"st":{"a":1}}{"st":{"a":2}}',
    '{"st":{"a":1},}',
    '{"st":{"a":1}},{"st":{"a":2}}',
    "{'id':1}",
    "{id:1}",
    '/* c */{"id":1}',
    '{"id":',
    '{"id":1,}',
    '{"id":1',
    '{"id":01}',
    '{"id":+1}',
    '{"id":0x10}',
    '{"id":"1"}',
    '{"id":1.0}',
    '{"id":true}',
    '{"id":9223372036854775808}',
    '{"id":1e400}',
    '{"id":' + "1" * 1_001 + "}",
    '{"unknown":' + "1" * 1_001 + "}",
    '{"id":"x","id":2}',
    '{"ts":"10000-01-01T00:00:00Z"}',
    '{"ts":"0000-01-01T00:00:00Z"}',
    '{"ts":"-0001-01-01T00:00:00Z"}',
    '{"ts":"294247-01-01T00:00:00Z"}',
    '{"ts":253402300800}',
    '{"ts":-62135596801}',
    '{"ts":1600000000000}',
    '{"ts":1600000000000000}',
    '{"ts":9223372036854775807}',
    '{"ts":1152921504606846976}',
    '{"ts":-4611686018427387904}',
    '{"ts":1.5}',
    '{"ts":""}',
    '{"ts":"2020-02-30"}',
    '{"day":"10000-01-01"}',
    '{"day":18000}',
    '{"st":{"t":"10000-01-01T00:00:00Z"}}',
    '{"times":["2020-01-01","10000-01-01"]}',
    '{"local":"2020-01-01T00:00:00Z"}',
    '{"m":{"a":1,"a":2}}',
    '{"m":{"a":"x"}}',
    '{"m":[1]}',
    '{"xs":[1,"a"]}',
    '{"xs":{"a":1}}',
    '{"x":INF}',
    '{"x":"1.5"}',
    '{"b":"true"}',
    '{"b":1}',
    '{"d":100000000}',
    '{"d":1e5000000}',
    '{"d":"1e5000000"}',
    '{"d":"x"}',
    '{"n":128}',
    '{"n":255}',
    '{"raw":"@@"}',
    '{"s":"a\tb"}',
    '{"s":"\\x"}',
    '{"s":"\\ud83d"}',
    '{"s":"\\ude42"}',
    '{"unknown":"\\ud800x"}',
    '{"ts":"2020-01-01T00:00:00 Europe"}',
    '{"ts":"2020-01-01T00:00:00 ' + "9" * 300 + '"}',
    '{"id":1,"' + "n" * 50_001 + '":1}',
    nested(500),
    nested(999),
    nested(1_100),
    nested(100_000),
    nested(1_100, closed=False),
    nested(100_000, closed=False),
    '{"unknown":' + "[" * 600 + "]" * 600 + "}",
    '{"unknown":' + '{"a":' * 600 + "1" + "}" * 600 + "}",
]
"""Records that are none: each stopped a flow once, or was read as something else."""
KNOWN = dict.fromkeys(GOOD, True) | dict.fromkeys(BAD, False)
"""Records, and whether they are good."""
_WORDS = [
    "a",
    "",
    "id",
    "ts",
    "x",
    "NaN",
    "\u0000",
    "\u2028",
    "ü",
    "🙂",
    '"',
    "\\",
    "null",
    "1",
    "2020-01-01",
    "10000-01-01T00:00:00Z",
]
_NUMBERS = [0, -1, 7, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 1.5, -0.0, 1e308]
_TIMES = [
    "2020-01-01T00:00:00Z",
    "2020-13-01T00:00:00Z",
    "0000-00-00",
    "9999-12-31T23:59:59.999999Z",
    "10000-01-01T00:00:00Z",
    "x",
]


def _any(rng: random.Random, depth: int = 0) -> object:
    kind = rng.randrange(8 if depth < 4 else 5)
    if kind == 0:
        return rng.choice(_NUMBERS)
    if kind == 1:
        return rng.choice(_WORDS)
    if kind == 2:
        return rng.choice([None, True, False])
    if kind in (3, 4):
        return rng.choice(_TIMES)
    if kind == 5:
        return [_any(rng, depth + 1) for _ in range(rng.randrange(3))]
    return {rng.choice(_WORDS): _any(rng, depth + 1) for _ in range(rng.randrange(3))}


def _fitting(rng: random.Random) -> dict[str, object]:
    """A record that is mostly as the schema says."""
    made: dict[str, object] = {
        "id": rng.randrange(10**6),
        "ts": rng.choice(["2020-01-01T00:00:00Z"] * 9 + ["2020-01-01T00:00:00.128Z", 1_600_000_000, 2**60 + 7]),
        "day": "2020-01-01",
        "x": rng.random(),
        "m": {"a": 1},
        "xs": [1, 2],
        "s": rng.choice(_WORDS),
        "b": True,
        "st": {"a": 1, "t": "2020-01-01T00:00:00Z"},
        "d": rng.choice([1.25, "7", 12]),
        "f": 0.5,
        "n": 3,
        "raw": "YWJj",
        "local": "2020-01-01T00:00:00",
        "times": ["2020-01-01", rng.choice(_NUMBERS)] if rng.randrange(9) == 0 else [],
    }
    if rng.randrange(3) == 0:
        made[rng.choice(list(made))] = _any(rng)
    return made


def _mutated(rng: random.Random, text: str) -> str:
    """A text with some of it cut, doubled, or replaced."""
    for _ in range(rng.randrange(1, 3)):
        at, upto = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        part = rng.choice(["", text[at:upto] * 2, rng.choice('{}[]",:0e-\\ \t'), "\ufffd"])
        text = text[:at] + part + text[rng.choice([at, upto]) :]
    return text


def json_texts(many: int, seed: int = 1, without: tuple[str, ...] = ()) -> Iterator[str]:
    """Texts that are JSON of the schema, almost, or not at all; none with a line break in it."""
    rng = random.Random(seed)
    yield from KNOWN
    for _ in range(many - len(KNOWN)):
        record = {name: value for name, value in _fitting(rng).items() if name not in without}
        text = json.dumps(record, ensure_ascii=bool(rng.randrange(2)))
        text = text if rng.randrange(6) else _mutated(rng, text)
        yield text.replace("\n", " ").replace("\r", " ") or "{}"


CSV_SCHEMA = "id bigint, ts timestamp, s string, d decimal(10,2), x double, b boolean, day date"
CSV_KNOWN = {
    "1,2020-01-01T00:00:00Z,a,1.5,0.5,true,2020-01-01": True,
    "1,,,,,,": True,
    '1,,"a ""b"", c",,,,': True,
    '1,,"a" ,,,,': True,
    '1,,"a"b,,,,': True,
    '1,,a"b,,,,': True,
    "1,,a\\,,,,": True,
    "1,," + "x" * 200_000 + ",,,,": True,
    "1,,a,1e3,,TRUE,": True,
    "1,,a,,Inf,,": True,
    "1,,a,,-Infinity,,": True,
    "1,,a,,0x1.8p1,,": True,
    "\u0661,,a,\uff11,,,": True,
    "1,,a,,INF,,": False,
    "1,,a,,nan,,": False,
    "1,,a,,infinity,,": False,
    "1\0,,a,,,,": False,
    "1,10000-01-01T00:00:00Z,a,,,,": False,
    "1,0000-01-01T00:00:00Z,a,,,,": False,
    "1,294247-01-01T00:00:00Z,a,,,,": False,
    "1,2020-01-01T00:00:00 America/Argentina,a,,,,": False,
    "1,2020-01-01T00:00:00 " + "9" * 300 + ",a,,,,": False,
    "1,,a,,,,10000-01-01": False,
    "1,,a,1e5000000,,,": False,
    "1,,a,x,,,": False,
    "1,,a,123456789,,,": False,
    " 1,,a,,,,": False,
    "1.0,,a,,,,": False,
    "9223372036854775808,,a,,,,": False,
    "1,,a,,,yes,": False,
    "1,,a": False,
    "1,,a,,,,,": False,
    '1,,"a': False,
}
"""Lines, and whether they are good."""


def csv_lines(many: int, seed: int = 2) -> Iterator[str]:
    """Lines that are CSV of the schema, almost, or not at all."""
    rng = random.Random(seed)
    yield from CSV_KNOWN
    for _ in range(many - len(CSV_KNOWN)):
        cells = [
            str(rng.choice([*_NUMBERS, *range(40)])),
            rng.choice([*_TIMES, *_TIMES[:1] * 30]),
            rng.choice(["a", "bc", "", "d e", '"a,b"', '"a ""b"""']),
            rng.choice(["1.5", "2", "", "1e2", "x" * (rng.randrange(9) // 8)]),
            rng.choice(["1.5", "NaN", "", "1e2"]),
            rng.choice(["true", "false", "", "1" * (rng.randrange(9) // 8)]),
            rng.choice(["2020-01-01", "", "2020-1-1"]),
        ]
        line = ",".join(cells)
        yield (line if rng.randrange(4) else _mutated(rng, line)).replace("\n", " ").replace("\r", " ") or "1,,"


def texts(many: int, seed: int = 4) -> Iterator[bytes]:
    """Bytes that are text, almost, or not at all."""
    yield from (
        b"",
        b"\0",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"\xf4\x90\x80\x80",
        "\ufeffa".encode(),
        b"\xe2\x82",
    )
    plain = ["ü🙂€ text".encode(), b"plain", "\u2028".encode()]
    yield from (plain[at % 3] if at % 3 else value for at, value in enumerate(raw_values(many - 8, plain, seed)))


def raw_values(many: int, good: list[bytes], seed: int = 3) -> Iterator[bytes]:
    """Bytes that are good records of a binary format, almost, or not at all."""
    rng = random.Random(seed)
    for _ in range(many):
        value = bytearray(rng.choice(good))
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(value) + 1)
            value[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(4))
        yield bytes(value)
