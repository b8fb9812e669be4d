"""Values: one form for each type, checked a column at a time.

The quick test is on the set of Python types in a column, which runs in C; only a column that fails it is looked at
value by value.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.errors import nearest
from penstock.graph import types as t
from penstock.kernels.records.brief import brief, error_text

Checker = Callable[[list[Any]], list[Any]]
_NONE = type(None)
_UTC = datetime.UTC


class BadValue(ValueError):
    """A value that does not fit its type; `at` is its index in the column."""

    def __init__(self, message: str, at: int = 0) -> None:
        super().__init__(message)
        self.at = at


def checker_of(kind: t.DataType) -> Checker:
    """A function that checks a column of that type and gives it back, each value in its one form."""
    if kind in t.INTEGERS:
        return _integers(str(kind), _BITS[str(kind)])
    if kind == t.STRING:
        return _strings()
    if kind in _PLAIN:
        expected, convert = _PLAIN[kind]
        return _plain(str(kind), expected, convert)
    return _each(str(kind), _converter(kind))


_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def _integers(name: str, bits: int) -> Checker:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def convert(value: object) -> int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise ValueError(f"{name} needs a whole number, got {brief(value)}")
        number = value.__index__()
        if not low <= number <= high:
            raise ValueError(f"{brief(value)} is outside the range of {name}")
        return int(number)

    slow = _each(name, convert)

    def check(column: list[Any]) -> list[Any]:
        kinds = set(map(type, column))
        if kinds == {int} and low <= min(column) and max(column) <= high:
            return column
        return slow(column) if kinds - {_NONE} else column

    return check


def _plain(name: str, expected: type, convert: Callable[[Any], Any]) -> Checker:
    fine = {expected, _NONE}
    slow = _each(name, convert)

    def check(column: list[Any]) -> list[Any]:
        return column if set(map(type, column)) <= fine else slow(column)

    return check


def _each(name: str, convert: Callable[[Any], Any]) -> Checker:
    """A checker of one value after the other. Whatever a value of a user's class raises while it is looked at makes it a bad one."""

    def check(column: list[Any]) -> list[Any]:
        made: list[Any] = []
        for value in column:
            try:
                made.append(None if value is None else convert(value))
            except (ValueError, TypeError, OverflowError) as error:
                raise BadValue(error_text(error), len(made)) from None
            except Exception as error:
                raise BadValue(_unusable(name, value, error), len(made)) from None
        return made

    return check


def _unusable(name: str, value: object, error: Exception) -> str:
    return f"{name} needs another value than {brief(value)}: {type(error).__name__}: {error_text(error)}"


def _strings() -> Checker:
    slow = _each("string", _string)

    def check(column: list[Any]) -> list[Any]:
        return (
            column
            if set(map(type, column)) <= _TEXTS and _is_encodable("".join(filter(None, column)))
            else slow(column)
        )

    return check


_TEXTS = {str, _NONE}


def _is_encodable(text: str) -> bool:
    """Whether a text has no half of a surrogate pair, which Arrow and Spark do not take."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"string needs a str, got {brief(value)} ({type(value).__name__})")
    if not _is_encodable(value):
        raise ValueError(f"string needs whole characters, got half of a surrogate pair in {brief(value)}")
    return str(value)


def _boolean(value: object) -> bool:
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise ValueError(f"boolean needs True or False, got {brief(value)}")


def _number(value: object) -> float:
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise ValueError(f"a number is needed, got {brief(value)}")
    return float(value)


def _single(value: object) -> float:
    import struct

    return float(struct.unpack("f", struct.pack("f", _number(value)))[0])


def _binary(value: object) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise ValueError(f"binary needs bytes, got {brief(value)}")


def _date(value: object) -> datetime.date:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    raise ValueError(f"date needs a datetime.date, got {brief(value)}")


def _timestamp(value: object) -> datetime.datetime:
    if not isinstance(value, datetime.datetime):
        raise ValueError(f"timestamp needs a datetime.datetime, got {brief(value)}")
    plain = value.replace(tzinfo=_UTC) if value.tzinfo is None else value.astimezone(_UTC)
    return datetime.datetime(*plain.timetuple()[:6], plain.microsecond, tzinfo=_UTC)


def _timestamp_ntz(value: object) -> datetime.datetime:
    if not isinstance(value, datetime.datetime) or value.tzinfo is not None:
        raise ValueError(f"timestamp_ntz needs a datetime without a time zone, got {brief(value)}")
    return value


_PLAIN: dict[t.DataType, tuple[type, Callable[[Any], Any]]] = {
    t.BOOLEAN: (bool, _boolean),
    t.DOUBLE: (float, _number),
    t.BINARY: (bytes, _binary),
    t.DATE: (datetime.date, _date),
}


def _converter(kind: t.DataType) -> Callable[[Any], Any]:
    if kind == t.FLOAT:
        return _single
    if kind == t.TIMESTAMP:
        return _timestamp
    if kind == t.TIMESTAMP_NTZ:
        return _timestamp_ntz
    if isinstance(kind, t.Decimal):
        return _decimal(kind)
    if isinstance(kind, t.Array):
        return _array(kind)
    if isinstance(kind, t.Map):
        return _map(kind)
    if isinstance(kind, t.Struct):
        return _struct(kind)
    raise TypeError(f"no values of type {kind}")


def _decimal(kind: t.Decimal) -> Callable[[Any], Any]:
    step = decimal.Decimal(1).scaleb(-kind.scale)
    limit = decimal.Decimal(10) ** (kind.precision - kind.scale)
    context = decimal.Context(prec=76)

    def convert(value: object) -> decimal.Decimal:
        if isinstance(value, bool | str | float) or not isinstance(value, int | decimal.Decimal):
            raise ValueError(f"{kind} needs a Decimal, got {brief(value)}")
        try:
            made = decimal.Decimal(value).quantize(step, context=context)
        except decimal.InvalidOperation:
            raise ValueError(f"{brief(value)} is outside the range of {kind}") from None
        if made != value:
            raise ValueError(f"{kind} cannot hold {value} without rounding")
        if abs(made) >= limit:
            raise ValueError(f"{brief(value)} is outside the range of {kind}")
        return made or made.copy_abs()  # Spark knows no negative zero

    return convert


def _array(kind: t.Array) -> Callable[[Any], Any]:
    check = checker_of(kind.item)

    def convert(value: object) -> list[Any]:
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            raise ValueError(f"{kind} needs a list, got {brief(value)}")
        return check(sorted(value) if isinstance(value, set | frozenset) else list(value))

    return convert


def _map(kind: t.Map) -> Callable[[Any], Any]:
    keys, items = checker_of(kind.key), checker_of(kind.value)

    def convert(value: object) -> dict[Any, Any]:
        pairs = _pairs(value, kind)
        made = dict(zip(keys([k for k, _ in pairs]), items([v for _, v in pairs]), strict=True))
        if None in made:
            raise ValueError(f"{kind} has no null keys, got {brief(value)}")
        if len(made) != len(pairs):
            raise ValueError(f"a key of {kind} occurs twice, got {brief(value)}")
        return made

    return convert


def _pairs(value: object, kind: t.Map) -> list[tuple[Any, Any]]:
    """The keys and values of a dict, or of a list of pairs."""
    if isinstance(value, Mapping):
        return list(value.items())
    try:
        return [(k, v) for k, v in value]  # type: ignore[attr-defined]  # what is no list of pairs raises
    except (TypeError, ValueError):
        raise ValueError(f"{kind} needs a dict, got {brief(value)}") from None


def _struct(kind: t.Struct) -> Callable[[Any], Any]:
    checks = [(f, checker_of(f.type)) for f in kind.fields]

    def convert(value: object) -> dict[str, Any]:
        return {f.name: _part(f, c, part) for (f, c), part in zip(checks, _parts(value, kind), strict=True)}

    return convert


def _parts(value: object, kind: t.Struct) -> Iterable[Any]:
    """The values of a struct in the order of its fields. A dict must have them all, and no others."""
    names = [f.name for f in kind.fields]
    if isinstance(value, Mapping):
        _check_names(value, names)
        return [value[name] for name in names]
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        if len(value) != len(names):
            raise ValueError(f"{kind} needs {len(names)} values ({', '.join(names)}), got {brief(value)}")
        return value
    try:
        return [getattr(value, name) for name in names]
    except AttributeError:
        raise ValueError(f"{kind} needs a dict with the fields {', '.join(names)}, got {brief(value)}") from None


def _check_names(value: Mapping[Any, Any], names: list[str]) -> None:
    unknown = [n for n in value if n not in names]
    if unknown:
        raise ValueError(f"there is a field {unknown[0]!r} that the schema lacks; {nearest(str(unknown[0]), names)}")
    absent = [n for n in names if n not in value]
    if absent:
        raise ValueError(f"the field {absent[0]!r} is missing (write None for no value), got {brief(value)}")


def _part(field: t.Field, check: Checker, value: object) -> object:
    if value is None and not field.nullable:
        raise ValueError(f"{field.name!r} is declared not null, got None")
    return check([value])[0]
