"""Fields without a type: Storm names fields and leaves their types open.

A field that is named without a type travels as a text. A text stays as it is; any other value is its JSON after a sign that no text begins with, so
that the next component gets the value back.

>>> outputs = outputs_of(["word", "n bigint"])
>>> str(outputs.schema), outputs.is_open
('word string, n bigint', (True, False))
>>> closed("a"), opened(closed(5)), opened(closed([1, None]))
('a', 5, [1, None])
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import SchemaError
from penstock.graph import types as t
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.multilang.codecs import plain_value
from penstock.graph.schema import Form, Schema, schema_of

SIGN = "\x01"


@dataclass(frozen=True)
class OpenFields:
    """The fields of a stream, and which of them have no type of their own."""

    schema: Schema
    is_open: tuple[bool, ...]

    def record(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """A record of these fields, as it travels."""
        if len(values) != len(self.is_open):
            raise SchemaError(
                f"expected {len(self.is_open)} values ({', '.join(self.schema.names)}), got {len(values)}: {values!r}"
            )
        return tuple(closed(v) if o else v for v, o in zip(values, self.is_open, strict=True))


def outputs_of(given: Form | Sequence[str]) -> OpenFields:
    """Fields from a schema, or from a list of names, each with a type after it or without one."""
    if not isinstance(given, list | tuple):
        schema = schema_of(given)
        return OpenFields(schema, (False,) * len(schema.names))
    fields: list[t.Field] = []
    is_open = []
    for each in given:
        typed = " " in each.strip()
        fields += schema_of(each).fields if typed else [t.Field(each, t.STRING)]
        is_open.append(not typed)
    return OpenFields(Schema(tuple(fields)), tuple(is_open))


def streams_given(given: Any) -> dict[str, OpenFields]:
    """The streams of a component: none, one as a schema or a list of names, or several by name."""
    if given is None or given == []:
        return {}
    if isinstance(given, Mapping):
        return {name: outputs_of(fields) for name, fields in given.items()}
    return {DEFAULT: outputs_of(given)}


def closed(value: Any) -> Any:
    """A value of an open field, as it travels."""
    if value is None or (type(value) is str and value[:1] != SIGN and (value.isascii() or _is_whole(value))):
        return value
    return SIGN + json.dumps(value, default=plain_value, sort_keys=True)


def _is_whole(text: str) -> bool:
    """Whether a text has no half of a character, as JavaScript makes them and UTF-8 does not have."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def opened(value: Any) -> Any:
    """A value as its component emitted it. A text from outside may begin with the sign too, and is a text then."""
    if type(value) is not str or value[:1] != SIGN:
        return value
    try:
        return json.loads(value[1:])
    except (ValueError, RecursionError):
        return value
