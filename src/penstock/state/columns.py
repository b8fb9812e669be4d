"""Columns of state files: keys and values of a store as Arrow arrays, and back.

A file has `key_hash`, then `key:NAME` for each part of the key, then `value:NAME` and, where values did not fit their type or have
none, `pickled:NAME`. `gone` marks keys that are forgotten; it is there only when some are. A file may lack columns that
the store has gained since: nothing is kept in them.
"""

from __future__ import annotations

import datetime
import decimal
import pickle
import zoneinfo
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import StateError
from penstock.graph.state.arrow import values_of, wide_type
from penstock.graph.state.layout import ABSENT, Column, Layout, PickledValue

KEY, VALUE, PICKLED, GONE = "key:", "value:", "pickled:", "gone"
UNFIT = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    OverflowError,
    UnicodeError,
    TypeError,
    ValueError,
)
"""What Arrow raises for a value that does not fit a type."""
_UTC = datetime.UTC
_ZONES = (_UTC, zoneinfo.ZoneInfo("UTC"))
Fits = Callable[[Any], bool]
Dumps = Callable[[Any], bytes]
"""A function that pickles a value."""


def encode_keys(layout: Layout, keys: list[Any]) -> list[Any]:
    """An array for each part of the keys."""
    parts = [keys] if layout.bare else list(zip(*keys, strict=True)) or [()] * len(layout.keys)
    return [pa.array(part, wide_type(c.type)) for part, c in zip(parts, layout.keys, strict=True)]


def decode_keys(layout: Layout, batch: pa.RecordBatch) -> list[Any]:
    """The keys of a batch."""
    parts = [batch.column(KEY + c.name).to_pylist() for c in layout.keys]
    return parts[0] if layout.bare else list(zip(*parts, strict=True)) or [()] * batch.num_rows


def dumps(value: object) -> bytes:
    """A value as bytes; a host whose classes travel by value has a way of its own."""
    return pickle.dumps(value, 5)


def unpickled(content: bytes) -> Any:
    """What a step has kept as a Python object.

    Raises:
        StateError: It cannot be made again, as when its class was moved.
    """
    try:
        return pickle.loads(content)
    except StateError:
        raise
    except Exception as error:
        raise StateError(
            f"an object that the step has kept cannot be read ({type(error).__name__}: {error}): its class was moved or changed since. "
            f"Put the class back, give the step a name of its own, which begins with no state, or start afresh with --fresh"
        ) from error


def encode_values(layout: Layout, values: list[Any], dumps: Dumps = dumps) -> list[tuple[str, Any]]:
    """Named arrays for the values."""
    if layout.single:
        return encode(layout.values[0], values, dumps)
    parts = list(zip(*values, strict=True)) or [()] * len(layout.values)
    return [made for column, part in zip(layout.values, parts, strict=True) for made in encode(column, part, dumps)]


def encode(column: Column, values: Sequence[Any], dumps: Dumps) -> list[tuple[str, Any]]:
    """The arrays of one column: typed, pickled, or both."""
    if column.type is None:
        return [(PICKLED + column.name, pa.array([_packed(v, dumps) for v in values], pa.large_binary()))]
    whole = _typed(column, values)
    if whole is not None:
        return [(VALUE + column.name, whole)]
    fits = [_typed(column, [v]) is not None for v in values]
    typed = [v if fit and v is not ABSENT else None for v, fit in zip(values, fits, strict=True)]
    pickled = [None if fit else dumps(v) for v, fit in zip(values, fits, strict=True)]
    made = _typed(Column(column.name, column.type, column.exact), typed)
    return [(VALUE + column.name, made), (PICKLED + column.name, pa.array(pickled, pa.large_binary()))]


def _typed(column: Column, values: Sequence[Any]) -> pa.Array | None:
    """The values as an array, or None when one does not fit. None itself fits where it is what nothing looks like."""
    if column.exact is not None:
        kinds = set(map(type, values))
        if column.default is not None and type(None) in kinds:
            return None
        if column.default is ABSENT and type(ABSENT) in kinds:
            kinds.discard(type(ABSENT))
            values = [None if v is ABSENT else v for v in values]
        also: Fits = _ALSO.get(column.exact, _always)
        if not kinds <= {column.exact, type(None)} or not also(values):
            return None
        if column.exact is decimal.Decimal:
            values = [None if v is None else str(v) for v in values]
    try:
        return pa.array(values, wide_type(column.type))
    except UNFIT:
        return None


def _always(values: Sequence[Any]) -> bool:
    return True


def _in_utc(values: Sequence[Any]) -> bool:
    return all(v is None or (v.tzinfo in _ZONES and not v.fold) for v in values)


_ALSO: dict[type, Fits] = {datetime.datetime: _in_utc}


def decode(column: Column, typed: pa.Array | None, pickled: pa.Array | None, rows: int) -> list[Any]:
    """The values of one column; either array may be missing."""
    if column.type is None:
        return [column.default] * rows if pickled is None else _unpickled(column, pickled)
    values = [column.default] * rows if typed is None else _values(column, typed)
    if pickled is not None and pickled.null_count < rows:
        for at in pc.indices_nonzero(pickled.is_valid()).to_pylist():
            values[at] = unpickled(pickled[at].as_py())
    return values


def _unpickled(column: Column, pickled: pa.Array) -> list[Any]:
    load: Callable[[bytes], Any] = PickledValue if column.lazy else unpickled
    if not pickled.null_count:
        return list(map(load, pickled.to_pylist()))
    return [column.default if v is None else load(v) for v in pickled.to_pylist()]


def _values(column: Column, typed: pa.Array) -> list[Any]:
    values = values_of(typed)
    if column.exact is decimal.Decimal:
        values = [None if v is None else decimal.Decimal(v) for v in values]
    elif column.exact is datetime.datetime:
        values = [None if v is None else v.replace(tzinfo=_UTC) for v in values]
    if column.default is not None and typed.null_count:
        values = [column.default if v is None else v for v in values]
    return values


def assembled(layout: Layout, columns: list[list[Any]], rows: int) -> Iterable[Any]:
    """Values from their columns; a step that keeps nothing but timers has none."""
    if not columns:
        return [()] * rows
    return columns[0] if layout.single else zip(*columns, strict=True)


def _packed(value: object, dumps: Dumps) -> bytes | None:
    if value is ABSENT:
        return None
    return value if type(value) is PickledValue else dumps(value)
