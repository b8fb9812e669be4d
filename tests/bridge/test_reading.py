"""Bodies and lines, read strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.bridge.records import BadInput, pieces
from penstock.bridge.seen import Known, KnownKeys
from penstock.bridge.socket import Lines
from penstock.log import Log

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(VALUES, max_size=5), st.sampled_from([None, 1]))
def test_the_elements_of_an_array_are_its_records(values: list[Any], indent: int | None) -> None:
    body = json.dumps(values, indent=indent).encode()
    found = list(pieces("application/json", body))
    assert [json.loads(raw) for raw, _ in found] == [parsed for _, parsed in found] == values
    assert all(raw in body for raw, _ in found)


@given(st.lists(VALUES, max_size=5))
def test_lines_of_json_are_its_records(values: list[Any]) -> None:
    body = b"\n".join(json.dumps(v).encode() for v in values)
    assert [parsed for _, parsed in pieces("application/x-ndjson", body)] == values


@given(st.binary(max_size=60) | st.text('[]{},:"1 \\ntrue', max_size=40).map(str.encode))
def test_any_bytes_are_json_to_the_end_or_refused(body: bytes) -> None:
    try:
        found = [parsed for _, parsed in pieces("application/json", body)]
    except BadInput:
        with pytest.raises(ValueError):
            json.loads(body.decode())
        return
    if body.strip(b" \t\r\n"):
        whole = json.loads(body)
        assert found == (whole if isinstance(whole, list) else [whole])


@given(st.binary(max_size=200), st.lists(st.integers(1, 20), min_size=1, max_size=60))
def test_lines_do_not_depend_on_how_they_come(data: bytes, cuts: list[int]) -> None:
    whole, parts = Lines(1000), Lines(1000)
    expected, found, at = whole.add(data), list[bytes](), 0
    for cut in [*cuts, len(data)]:
        found += parts.add(data[at : at + cut])
        at += cut
    assert found == expected
    assert parts.size == whole.size


def test_keys_are_found_again_behind_damage(log: Log) -> None:
    with log.producer() as producer:
        for n in range(3):
            producer.send_many("t", [b"x" * 50], headers=[[("idempotency-key", b"k%d" % n)]])
    segment = next(log.path.glob("topics/t/0/*.log"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    with Log(log.path) as again:
        seen = KnownKeys(1, 100)
        seen.load(again, "t")
    assert seen.get(b"k1", 0) is None
    assert seen.get(b"k2", 0) == Known(2, b"")
