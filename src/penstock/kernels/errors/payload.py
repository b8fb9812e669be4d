"""The payload of a dead letter: the record as JSON, with its schema, that any language reads and a person can edit.

A record that a step failed on: `{"schema": "text string", "record": {"text": "x"}}`. One that a source could not read has its own bytes
instead, as text (`"raw": "nonsense"`) or where they are no text in base64 (`"raw_base64": "AP8="`), and as record what stood beside them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.errors import FlowError
from penstock.graph.schema import Schema, schema_of
from penstock.kernels.records.json_values import Json, NotTheType, from_json, to_json

RECORD, SCHEMA, RAW, RAW_BASE64 = "record", "schema", "raw", "raw_base64"


class BadPayload(ValueError):
    """A text that is no payload; the message says why."""


@dataclass(frozen=True)
class Payload:
    """A payload as values: those of the record by name, and the bytes of one that could not be read."""

    values: dict[str, object] = field(default_factory=dict)
    raw: bytes | None = None

    @property
    def row(self) -> tuple[object, ...]:
        """The record's values in order."""
        return tuple(self.values.values())


def columns_of(records: Sequence[Mapping[str, object]], names: Sequence[str]) -> list[list[object]]:
    """Records as columns of these names. A step may have other fields now than when it failed: what a record lacks is null.

    >>> columns_of([{"n": 1, "old": "x"}, {"text": "y", "n": 2}], ["text", "n"])
    [[None, 'y'], [1, 2]]
    """
    return [[record.get(name) for record in records] for name in names]


def payload_of(values: Sequence[object], schema: Schema) -> str:
    """The payload of a record that a step failed on."""
    return json.dumps({SCHEMA: str(schema), RECORD: to_json(values, schema)})


def raw_payload(raw: bytes, beside: Mapping[str, object], schema: Schema) -> str:
    """The payload of a record that a source could not read, with what stood beside it."""
    made: dict[str, Json] = _raw_to_json(raw)
    if beside:
        some = schema.only(tuple(n for n in schema.names if n in beside))
        made |= {SCHEMA: str(some), RECORD: to_json([beside[n] for n in some.names], some)}
    return json.dumps(made)


def _raw_to_json(raw: bytes) -> dict[str, Json]:
    try:
        return {RAW: raw.decode()}
    except UnicodeDecodeError:
        return {RAW_BASE64: base64.b64encode(raw).decode()}


def read_payload(given: str | Mapping[str, object]) -> Payload:
    """The values of a payload, from its text or what JSON made of that; raises BadPayload for what is none.

    >>> read_payload('{"schema": "n bigint", "record": {"n": 7}}').values
    {'n': 7}
    """
    try:
        found = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError) as error:
        raise BadPayload(f"a payload is a JSON object; this is not JSON: {error}") from None
    if not isinstance(found, Mapping) or not found.keys() & {RECORD, RAW, RAW_BASE64}:
        raise BadPayload(
            f"a payload is a JSON object with {RECORD!r}, {RAW!r} or {RAW_BASE64!r}, got {str(given)[:100]}"
        )
    return Payload(_values(found), _raw(found))


def _values(found: Mapping[str, object]) -> dict[str, object]:
    if RECORD not in found:
        return {}
    try:
        schema = schema_of(found.get(SCHEMA))
        return dict(zip(schema.names, from_json(found[RECORD], schema), strict=True))
    except (FlowError, NotTheType) as error:
        raise BadPayload(str(error)) from None


def _raw(found: Mapping[str, object]) -> bytes | None:
    if RAW in found:
        return str(found[RAW]).encode()
    try:
        return base64.b64decode(str(found[RAW_BASE64]), validate=True) if RAW_BASE64 in found else None
    except ValueError as error:
        raise BadPayload(f"{RAW_BASE64!r} is not base64: {error}") from None
