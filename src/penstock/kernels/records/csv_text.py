"""Records out of lines of CSV (RFC 4180), as Spark's parser cuts and reads them."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from penstock.graph import types as t
from penstock.graph.schema import Schema
from penstock.kernels.expr.cast import cast_value
from penstock.kernels.expr.values import single
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
        return _plain(text, field.type)
    except ESCAPES as error:
        raise Unreadable(f"field {field.name!r}: {reason(error)}") from None


def _plain(text: str, kind: t.DataType) -> Any:
    """Spark's CSV reads by other rules than its casts: no blanks around whole numbers, two words for truth, Java's spelling of real numbers."""
    if kind in (t.FLOAT, t.DOUBLE):
        return _real(text, kind)
    exact = kind in t.INTEGERS or isinstance(kind, t.Decimal)
    odd_number = kind in t.INTEGERS and text != text.strip(_BLANKS)
    if odd_number or (kind == t.BOOLEAN and text.lower() not in ("true", "false")):
        raise ValueError(f"{text!r} is no {kind}")
    return cast_value(t.STRING, kind)(_in_ascii(text) if exact else text)


_BLANKS = "".join(map(chr, range(0x21)))


def _real(text: str, kind: t.DataType) -> float:
    if _HEXADECIMAL.fullmatch(text.strip(_BLANKS)):
        made = float.fromhex(text.strip(_BLANKS).rstrip("dDfF"))
        return made if kind == t.DOUBLE else single(made)
    if (
        _WORD.search(text)
        and text.strip(_BLANKS).lstrip("+-") not in ("NaN", "Infinity")
        and text not in ("Inf", "-Inf")
    ):
        raise ValueError(f"{text!r} is no {kind}")
    return float(cast_value(t.STRING, kind)(text))


_WORD = re.compile("[nN]")
_HEXADECIMAL = re.compile(r"[-+]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][-+]?\d+[dDfF]?", re.ASCII)


def _in_ascii(text: str) -> str:
    """A number with the digits of any script as Java reads them."""
    return text if text.isascii() else "".join(str(unicodedata.decimal(c, c)) for c in text)
