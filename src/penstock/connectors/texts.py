"""Values as the texts that servers give and take: JSON for what has parts, and texts back to Arrow columns."""

from __future__ import annotations

import datetime
import decimal
import json
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def json_text(value: object) -> str:
    """A value with parts as JSON; points in time in ISO 8601, as the JSON of files and topics has them.

    >>> json_text({"day": datetime.date(2026, 1, 2), "at": datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC), "n": [1, None]})
    '{"day": "2026-01-02", "at": "2026-01-02T03:00:00+00:00", "n": [1, null]}'
    """
    return json.dumps(value, default=_plain, allow_nan=False)


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, datetime.datetime) else str(value)


def from_text(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column of texts as the type it stands for; one that has the type already stays as it is.

    >>> from_text(pa.array(["t", None, "f"]), pa.bool_()).to_pylist(), from_text(pa.array(["1.50"]), pa.decimal128(5, 2)).to_pylist()
    ([True, None, False], [Decimal('1.50')])
    """
    if column.type == kind:
        return column
    if pa.types.is_boolean(kind):
        return _truths(column)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        read = _reader(kind)
        return pa.array([None if v is None else read(v) for v in column.to_pylist()], kind)
    return pc.cast(column, kind)


_TRUE, _FALSE = ("t", "true", "1"), ("f", "false", "0")


def _truths(column: pa.Array) -> pa.Array:
    """Texts as booleans; any other text is an error."""
    known = pc.is_in(column, pa.array([*_TRUE, *_FALSE]))
    odd = column.filter(pc.and_(pc.is_valid(column), pc.invert(known)))
    if len(odd):
        raise ValueError(f"{odd[0].as_py()!r} is no boolean; t, true, 1, f, false and 0 are")
    return pc.if_else(pc.is_valid(column), pc.is_in(column, pa.array(_TRUE)), None)


def _reader(kind: pa.DataType) -> Callable[[str], Any]:
    if pa.types.is_binary(kind):
        return lambda text: bytes.fromhex(text.removeprefix("\\x"))
    return lambda text: shaped(array_values(text) if _is_array(text, kind) else json.loads(text), kind)


def _is_array(text: str, kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind)) and text.startswith("{")


_ARRAY = re.compile(r'"((?:[^"\\]|\\.)*)"|([{},])|([^{},"]+)')


def array_values(text: str) -> list[Any]:
    """The items of an array as PostgreSQL writes it; they stay texts.

    >>> array_values('{a,NULL,"b, c",{1,2}}')
    ['a', None, 'b, c', ['1', '2']]
    """
    open_lists: list[list[Any]] = [[]]
    for quoted, mark, plain in _ARRAY.findall(text):
        if mark == "{":
            open_lists.append([])
        elif mark == "}":
            done = open_lists.pop()
            open_lists[-1].append(done)
        elif not mark:
            item = plain or re.sub(r"\\(.)", r"\1", quoted)
            open_lists[-1].append(None if plain.upper() == "NULL" else item)
    made: list[Any] = open_lists[0][0]
    return made


def shaped(value: Any, kind: pa.DataType) -> object:
    """A value out of JSON as Arrow takes it for a type."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return [(shaped(k, kind.key_type), shaped(v, kind.item_type)) for k, v in value.items()]
    if pa.types.is_list(kind):
        return [shaped(v, kind.value_type) for v in value]
    if pa.types.is_struct(kind):
        return {f.name: shaped(value.get(f.name), f.type) for f in kind}
    return _scalar(value, kind)


def _scalar(value: Any, kind: pa.DataType) -> object:
    if pa.types.is_timestamp(kind):
        at = datetime.datetime.fromisoformat(value)
        return at.replace(tzinfo=datetime.UTC) if kind.tz and at.tzinfo is None else at
    if pa.types.is_date(kind):
        return datetime.date.fromisoformat(value)
    if pa.types.is_decimal(kind):
        return decimal.Decimal(str(value))
    if pa.types.is_binary(kind):
        return bytes.fromhex(value.removeprefix("\\x"))
    if pa.types.is_boolean(kind):
        return value if isinstance(value, bool) else _truths(pa.array([str(value)]))[0].as_py()
    if pa.types.is_integer(kind):
        return _whole(value)
    if pa.types.is_floating(kind):
        return float(value)
    return str(value) if pa.types.is_string(kind) and not isinstance(value, str) else value


def _whole(value: str | float) -> int:
    """A whole number; one that has a fraction is an error, not cut off."""
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(f"{value!r} is no whole number")
    return int(value)
