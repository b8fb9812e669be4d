"""Hostile records: generated ones of every format, and those that once stopped a flow."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

SCHEMA = "id bigint, ts timestamp, day date, x double, m map<string, int>, xs array<int>, s string, b boolean, st struct<a: int, t: timestamp>"


def nested(depth: int, *, closed: bool = True) -> str:
    """A record with lists in each other in a field of text; the record itself is one level more."""
    return '{"id":1,"s":' + "[" * depth + ("]" * depth + "}" if closed else "")


KNOWN: dict[str, bool] = {
    '{"id":1}': True,
    ' {"id": 1} ': True,
    '[{"id":1},{"id":2}]': False,
    "null": False,
    "1": False,
    "{'id':1}": False,
    '{"id":1,"ts":"10000-01-01T00:00:00Z"}': False,
    '{"id":1,"ts":"0000-01-01T00:00:00Z"}': False,
    '{"id":1,"ts":"-0001-01-01T00:00:00Z"}': False,
    '{"id":1,"ts":"294247-01-01T00:00:00Z"}': False,
    '{"id":1,"day":"10000-01-01"}': False,
    '{"id":1,"st":{"t":"10000-01-01T00:00:00Z"}}': False,
    '{"id":1,"m":{"a":1,"a":2}}': False,
    '{"id":1,"id":2}': True,
    '{"id":1,"unknown":{"a":[1,2]}}': True,
    nested(400): True,
    nested(499): True,
    nested(500): False,
    nested(1_100): False,
    nested(100_000): False,
    nested(1_100, closed=False): False,
    nested(100_000, closed=False): False,
    '{"id":9223372036854775808}': False,
    '{"id":1e400}': False,
    '{"xs":[1,"a"]}': False,
    '{"s":"\\u0000"}': True,
    '{"id":': False,
    '{"id":1,}': False,
    '{"s":"a\tb"}': False,
    "\ufeff{}": False,
    "{}": True,
}
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
        "ts": "2020-01-01T00:00:00Z",
        "day": "2020-01-01",
        "x": rng.random(),
        "m": {"a": 1},
        "xs": [1, 2],
        "s": rng.choice(_WORDS),
        "b": True,
        "st": {"a": 1, "t": "2020-01-01T00:00:00Z"},
    }
    for _ in range(rng.randrange(2)):
        made[rng.choice(list(made))] = _any(rng)
    return made


def _mutated(rng: random.Random, text: str) -> str:
    """A text with some of it cut, doubled, or replaced."""
    for _ in range(rng.randrange(1, 3)):
        at, upto = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        part = rng.choice(["", text[at:upto] * 2, rng.choice('{}[]",:0e-\\ \t'), "\ufffd"])
        text = text[:at] + part + text[rng.choice([at, upto]) :]
    return text


def json_texts(many: int, seed: int = 1) -> Iterator[str]:
    """Texts that are JSON of the schema, almost, or not at all; none with a line break in it."""
    rng = random.Random(seed)
    yield from KNOWN
    for _ in range(many - len(KNOWN)):
        text = json.dumps(_fitting(rng), ensure_ascii=bool(rng.randrange(2)))
        text = text if rng.randrange(2) else _mutated(rng, text)
        yield text.replace("\n", " ").replace("\r", " ") or "{}"


def csv_lines(many: int, seed: int = 2) -> Iterator[str]:
    """Lines that are CSV of `id bigint, ts timestamp, s string`, almost, or not at all."""
    rng = random.Random(seed)
    yield from (
        "1,10000-01-01T00:00:00Z,a",
        "1,0000-01-01T00:00:00Z,a",
        '1,,"a',
        "1,2020-01-01T00:00:00Z," + "x" * 200_000,
    )
    for _ in range(many - 4):
        cells = [
            str(rng.choice([*_NUMBERS, rng.randrange(100)])),
            rng.choice(_TIMES),
            rng.choice(["a", "bc", "", "d e"]),
        ]
        line = ",".join(cells)
        yield (line if rng.randrange(2) else _mutated(rng, line)).replace("\n", " ").replace("\r", " ") or "1,,"


def raw_values(many: int, good: list[bytes], seed: int = 3) -> Iterator[bytes]:
    """Bytes that are good records of a binary format, almost, or not at all."""
    rng = random.Random(seed)
    for _ in range(many):
        value = bytearray(rng.choice(good))
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(value) + 1)
            value[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(4))
        yield bytes(value)
