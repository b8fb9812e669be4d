"""Records out of lines of CSV (RFC 4180), as Spark's parser cuts and reads them."""

from __future__ import annotations

import re
from typing import Any

from penstock.graph import types as t
from penstock.graph.schema import Schema
from penstock.kernels.expr.cast import cast_value
from penstock.kernels.records.times import moment_of_text
from penstock.kernels.records.unreadable import ESCAPES, Unreadable, reason

_QUOTED = re.compile(r'"((?:[^"]|"")*)"[\x00-\x20]*(?=,|$)', re.DOTALL)
_ODD = re.compile(r'"((?:[^"]|"")*)(?:("(?!")[^,]*)|$)', re.DOTALL)


_TWO, _ONE = '""', '"'


def cells_of(line: str) -> list[str]:
    r"""The cells of a line. What follows a closing quote makes the cell a plain text, quotes and all.

    >>> cells_of('1,"a ""b"", c" ,"d"e,f"g')
    ['1', 'a "b", c', '"d"e', 'f"g']
    """
    cells, at = [], 0
    while True:
        cell, at = _cell_at(line, at)
        cells.append(cell)
        if at >= len(line):
            return cells
        at += 1
        if at == len(line):
            return [*cells, ""]


def _cell_at(line: str, at: int) -> tuple[str, int]:
    """The cell that begins at a character, and where it ends."""
    if line[at : at + 1] != '"':
        end = line.find(",", at)
        return (line[at:], len(line)) if end < 0 else (line[at:end], end)
    if quoted := _QUOTED.match(line, at):
        return quoted[1].replace(_TWO, _ONE), quoted.end()
    odd = _ODD.match(line, at)
    assert odd is not None, "it begins with a quote"
    text = odd[1].replace(_TWO, _ONE)
    return (f'"{text}{odd[2]}' if odd[2] else text or _ONE), odd.end()


def read_csv(line: str, schema: Schema) -> tuple[Any, ...]:
    """The values of a line of CSV, by position.

    Raises:
        Unreadable: There are more or fewer cells than fields, or a cell does not fit; the message names the field.
    """
    found = cells_of(line)
    if len(found) != len(schema.fields):
        raise Unreadable(f"{len(schema.fields)} fields are needed ({', '.join(schema.names)}), got {len(found)}")
    return tuple(_value(text, f) for text, f in zip(found, schema.fields, strict=True))


def _value(text: str, field: t.Field) -> Any:
    if text == "":
        return None
    try:
        if field.type in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
            return moment_of_text(text, field.type)
        _check_spelling(text, field.type)
        return cast_value(t.STRING, field.type)(text)
    except ESCAPES as error:
        raise Unreadable(f"field {field.name!r}: {reason(error)}") from None


def _check_spelling(text: str, kind: t.DataType) -> None:
    """Spark's CSV is stricter than its casts: no blanks around whole numbers, and no words for truth but two."""
    odd_number = kind in t.INTEGERS and text != text.strip()
    if odd_number or (kind == t.BOOLEAN and text.lower() not in ("true", "false")):
        raise ValueError(f"{text!r} is no {kind}")
