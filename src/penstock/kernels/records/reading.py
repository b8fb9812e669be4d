"""Records out of lines of text, with Spark's meaning: for the runtime without a JVM, and to say why Spark could not read one.

>>> from penstock.graph.schema import schema_of
>>> read_json('{"n": 7}', schema_of("n bigint, s string"))
(7, None)
>>> why_malformed("json", b'{"n": "x"}', schema_of("n bigint"))
"field 'n': bigint needs a whole number, got 'x'"
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.graph.schema import Schema
from penstock.kernels.records.csv_text import read_csv
from penstock.kernels.records.json_text import read_json
from penstock.kernels.records.unreadable import Unreadable

__all__ = ["READERS", "MalformedRecord", "Unreadable", "decoded", "read_csv", "read_json", "read_text", "why_malformed"]


@dataclass(frozen=True)
class MalformedRecord:
    """A record that a source could not read: its bytes, its position, and why."""

    raw: bytes
    position: str
    cause: str

    @property
    def text(self) -> str:
        """The record as people see it."""
        return self.raw.decode(errors="backslashreplace")


def read_text(text: str, schema: Schema) -> tuple[Any, ...]:
    """A text is a record as it is."""
    return (text,)


READERS: dict[str, Callable[[str, Schema], tuple[Any, ...]]] = {"json": read_json, "csv": read_csv, "text": read_text}


def decoded(raw: bytes) -> str:
    """Bytes as text.

    Raises:
        Unreadable: They are not UTF-8.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8: {error.reason} at byte {error.start}") from None


def why_malformed(form: str, raw: bytes, schema: Schema) -> str:
    """Why a record could not be read. Values of JSON Schema have five bytes in front, which are right where this is asked."""
    try:
        text = decoded(raw[5 if form == "json_schema" else 0 :])
        if not text.strip():
            return "it is empty"
        READERS.get(form, read_json)(text, schema)
    except Unreadable as error:
        return str(error)
    return f"it does not fit the schema ({schema})"
