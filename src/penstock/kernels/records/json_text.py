r"""Records out of JSON, one text each, as strictly as Spark reads them here: the same texts are bad on both.

>>> from penstock.graph.schema import schema_of
>>> read_json('{"n": 7}', schema_of("n bigint, s string"))
(7, None)
>>> read_json('{"n": 7}{"n": 8}', schema_of("n bigint"))
Traceback (most recent call last):
    ...
penstock.kernels.records.unreadable.Unreadable: data after the JSON value, at character 8: '{"n": 8}'; a record is one value
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from penstock.graph import types as t
from penstock.graph.schema import Schema
from penstock.kernels.expr.cast import moment_of
from penstock.kernels.expr.json_spelling import json_spelling
from penstock.kernels.expr.values import fit_decimal, single
from penstock.kernels.records.times import moment_of_text
from penstock.kernels.records.unreadable import ESCAPES, Unreadable, reason
from penstock.kernels.records.values import BadValue, checker_of

MAX_DEPTH = 500
"""How deep lists and objects may lie in each other, the record itself among them: what Python's own stack allows."""
MAX_NUMBER = 1_000
"""The digits of a number at most, as Spark's parser has it."""
MAX_NAME = 50_000
"""The characters of a field's name at most, as Spark's parser has it."""
BLANKS = " \t\r\n"
LONE_SURROGATE = (
    r"(?<!\\)(?:\\\\)*(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F])"
)
"""Half of a character in an escape, which is no text; a pattern that Python and Java read alike."""
LARGE_EXPONENT = r'(?:[:,\[]\s*-?[0-9.]+|"[-+0-9.,]+)[eE][-+]?[0-9]{4,}"?\s*[,\]}]'
"""A number that takes Java minutes to round to a decimal; both look for it in records that have decimals."""
_DOUBLES = {"NaN": "nan", "Infinity": "inf", "+Infinity": "inf", "+INF": "inf", "-Infinity": "-inf", "-INF": "-inf"}
_STRINGS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_NUMBERS = re.compile(r"\d[\d.eE+-]*")
_LONE = re.compile(LONE_SURROGATE)
_LARGE = re.compile(LARGE_EXPONENT, re.ASCII)
_SPECIAL = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*"?)|\+Infinity\b|([+-])INF\b', re.DOTALL)


def read_json(text: str, schema: Schema) -> tuple[Any, ...]:
    """The values of a text that is one JSON object.

    Raises:
        Unreadable: The text is no JSON object, has data after it, is nested too deep, or a field does not fit; the message names the field.
    """
    found = _parsed(text, exact=has_decimal(schema))
    if not isinstance(found, _Object):
        raise Unreadable(f"a JSON object is needed, got {type(found).__name__}")
    return _values(found, schema.fields)


def _parsed(text: str, *, exact: bool) -> object:
    _check_limits(text)
    if exact and _LARGE.search(text):
        raise Unreadable("not JSON that can be read: an exponent of more than three digits in a record with decimals")
    begin = len(text) - len(text.lstrip(BLANKS))
    try:
        found, end = _decode(text, begin, exact=exact)
    except ESCAPES as error:
        raise Unreadable(f"not JSON: {reason(error)}") from None
    if rest := text[end:].strip(BLANKS):
        raise Unreadable(f"data after the JSON value, at character {end}: {rest[:40]!r}; a record is one value")
    return found


def _decode(text: str, begin: int, *, exact: bool) -> tuple[object, int]:
    """The first value and where it ends. Infinity may be spelled as Spark allows, for which Python's parser needs help."""
    try:
        return _decoder(exact=exact).raw_decode(text, begin)
    except json.JSONDecodeError:
        spelled = _SPECIAL.sub(_respelled, text)
        if spelled == text:
            raise
        found, end = _decoder(exact=exact).raw_decode(spelled, begin)
        return found, len(text) - (len(spelled) - end)


def _respelled(found: re.Match[str]) -> str:
    if found[1]:
        return found[1]
    return "-Infinity" if found[2] == "-" else "Infinity"


@lru_cache(maxsize=2)
def _decoder(*, exact: bool) -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_Object.of, parse_float=_Real if exact else None)


def _check_limits(text: str) -> None:
    if depth_of(text) > MAX_DEPTH:
        raise Unreadable(f"not JSON that can be read: nested deeper than {MAX_DEPTH}")
    if "\\u" in text and _LONE.search(text):
        raise Unreadable("not JSON that can be read: half of a surrogate pair in an escape, which is no character")
    if len(text) > MAX_NUMBER:
        _check_lengths(text)


def _check_lengths(text: str) -> None:
    if any(
        sum(map(str.isdigit, n)) > MAX_NUMBER for n in _NUMBERS.findall(_STRINGS.sub('""', text)) if len(n) > MAX_NUMBER
    ):
        raise Unreadable(f"not JSON that can be read: a number of more than {MAX_NUMBER} digits")
    if len(text) > MAX_NAME and any(len(n) > MAX_NAME for n in _names(text)):
        raise Unreadable(f"not JSON that can be read: a name of more than {MAX_NAME} characters")


def _names(text: str) -> Iterator[str]:
    """The long names of fields, without their quotes, and with escapes as one character."""
    for found in _STRINGS.finditer(text):
        if len(found[0]) > MAX_NAME and text[found.end() :].lstrip(BLANKS)[:1] == ":":
            yield re.sub(r"\\(?:u....|.)", "x", found[0][1:-1])


def depth_of(text: str) -> int:
    """How deep lists and objects lie in each other, at most; looked at closely only where there are many.

    >>> depth_of('{"a": [1]}'), depth_of("[" * 2000), depth_of('{"a": "' + "[" * 2000 + '"}')
    (2, 2000, 1)
    """
    if (many := text.count("[") + text.count("{")) <= MAX_DEPTH:
        return min(many, 2) if many else 0
    depth = deepest = 0
    for bracket in re.findall(r"[\[{\]}]", _STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


class _Real(float):
    """A number with a fraction, which knows all its digits."""

    text: str

    def __new__(cls, text: str) -> _Real:
        made = super().__new__(cls, text)
        made.text = text
        return made


class _Object(dict[str, Any]):
    """An object of JSON; one that has a name twice knows all its pairs."""

    pairs: list[tuple[str, Any]] | None = None

    @classmethod
    def of(cls, pairs: list[tuple[str, Any]]) -> _Object:
        made = cls(pairs)
        if len(made) < len(pairs):
            made.pairs = pairs
        return made

    @property
    def duplicate(self) -> str:
        """The first name that was there before."""
        seen: set[str] = set()
        return next(name for name, _ in self.pairs or () if name in seen or seen.add(name))  # type: ignore[func-returns-value]  # it is None


def _values(found: _Object, fields: Iterable[t.Field], *, replaced: bool = False) -> tuple[Any, ...]:
    """The values of fields; of a name that is there twice the last counts."""
    made = tuple(_field(found.get(f.name), f, replaced=replaced) for f in fields)
    for field in fields if found.pairs else ():
        for value in (v for name, v in found.pairs or () if name == field.name):
            _field(value, field, replaced=True)
    return made


def _field(value: Any, field: t.Field, *, replaced: bool) -> Any:
    try:
        return _value(value, field.type, replaced=replaced)
    except ESCAPES as error:
        raise Unreadable(f"field {field.name!r}: {reason(error)}") from None


def _value(value: Any, kind: t.DataType, *, replaced: bool) -> Any:
    """A value of a type. One that a later one of its name replaces must only be such that Spark's parser goes on."""
    if value is None:
        return None
    if isinstance(kind, t.Array):
        return [_value(v, kind.item, replaced=replaced) for v in _expected(value, list, kind)]
    if isinstance(kind, t.Map):
        return _map(_expected(value, dict, kind), kind, replaced=replaced)
    if isinstance(kind, t.Struct):
        return _values(_expected(value, dict, kind), kind.fields, replaced=replaced)
    return _plain(*_let_pass(value, kind)) if replaced else _plain(value, kind)


def _let_pass(value: Any, kind: t.DataType) -> tuple[Any, t.DataType]:
    """What stands for a value that is replaced: any year passes, and any byte."""
    if kind in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ) and isinstance(value, str):
        return _YEAR.sub("2000", value), kind
    if kind == t.TIMESTAMP and isinstance(value, int) and not isinstance(value, bool):
        return value, t.BIGINT
    return value, t.SMALLINT if kind == t.TINYINT else kind


_YEAR = re.compile(r"^[\x00-\x20]*[-+]?\d{4,6}", re.ASCII)


def _map(found: _Object, kind: t.Map, *, replaced: bool) -> dict[str, Any]:
    if found.pairs and not replaced:
        raise ValueError(f"the key {found.duplicate!r} occurs twice")
    for _, value in found.pairs or ():
        _value(value, kind.value, replaced=True)
    return {k: _value(v, kind.value, replaced=replaced) for k, v in found.items()}


def _expected(value: Any, kind: type, target: t.DataType) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{target} needs a {'list' if kind is list else 'JSON object'}, got {value!r}")
    return value


def _plain(value: Any, kind: t.DataType) -> Any:
    if kind == t.STRING:
        return value if isinstance(value, str) else json_spelling(value)
    if kind in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return _moment(value, kind)
    if isinstance(kind, t.Decimal):
        return _decimal(value, kind)
    if kind in (t.FLOAT, t.DOUBLE):
        return _real(value, kind)
    if kind == t.BINARY and isinstance(value, str):
        return _binary(value)
    return _checked(value, kind)


def _checked(value: Any, kind: t.DataType) -> Any:
    try:
        return checker_of(kind)([value])[0]
    except BadValue as error:
        raise ValueError(str(error)) from None


def _moment(value: Any, kind: t.DataType) -> Any:
    """A text, or for a timestamp a whole number of seconds since 1970."""
    if isinstance(value, str):
        return moment_of_text(value, kind)
    if kind == t.TIMESTAMP and isinstance(value, int) and not isinstance(value, bool):
        return _seconds(value)
    return _checked(value, kind)


def _seconds(value: int) -> datetime.datetime:
    try:
        return moment_of(value * 1_000_000)
    except OverflowError:
        raise ValueError(f"a timestamp lies between the years 1 and 9999, got {value} seconds since 1970") from None


def _decimal(value: Any, kind: t.Decimal) -> decimal.Decimal:
    if isinstance(value, bool) or not isinstance(value, int | _Real | str):
        raise ValueError(f"{kind} needs a number, got {value!r}")
    text = value.text if isinstance(value, _Real) else str(value).replace(",", "")
    if not _EXACT.fullmatch(text):
        raise ValueError(f"{kind} needs a number, got {value!r}")
    return fit_decimal(decimal.Decimal(text), kind)


_EXACT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)


def _real(value: Any, kind: t.DataType) -> float:
    """A number; one that is too large is infinite, as in Spark."""
    if isinstance(value, str) and value in _DOUBLES:
        return float(_DOUBLES[value])
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _nearest(value, kind)
    return float(_checked(value, kind))


def _nearest(value: float, kind: t.DataType) -> float:
    try:
        made = float(value)
        return made if kind == t.DOUBLE else single(made)
    except OverflowError:
        return float("-inf" if value < 0 else "inf")


def _binary(value: str) -> bytes:
    """Groups of four characters, each perhaps padded, with blanks between them."""
    if not _BASE64.fullmatch(value):
        raise ValueError(f"binary is base64, got {value[:40]!r}")
    return b"".join(base64.b64decode(group) for group in _GROUP.findall(value))


_GROUP = re.compile(r"[A-Za-z0-9+/]{2}(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==)")
_BASE64 = re.compile(rf"(?:[\x00-\x20]*{_GROUP.pattern})*[\x00-\x20]*")


@lru_cache(maxsize=64)
def has_decimal(schema: Schema) -> bool:
    """Whether any field, or part of one, is a decimal."""
    return "decimal(" in str(schema)
