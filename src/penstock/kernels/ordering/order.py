"""Orders of records: as SQL has them (null is the smallest value, not-a-number the largest), for Arrow tables and for tuples.

Every order ends with all the values of a record, so that it does not depend on the order of arrival.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.nodes import Term

_PLAIN = (str, int, float, bool, bytes, decimal.Decimal, datetime.date, datetime.datetime)


def sorted_by(table: pa.Table, terms: Sequence[Term], names: Sequence[str]) -> pa.Table:
    """A table in the order of some terms, and of all its values where these are equal."""
    more = [Term(n) for n in names if n not in {t.column for t in terms}]
    columns, orders = [], []
    for term in (*terms, *more):
        for column in _sortable(table.column(term.column)):
            columns.append(column)
            orders.append("descending" if term.descending else "ascending")
    keys = [(str(i), order) for i, order in enumerate(orders)]
    at = pc.sort_indices(pa.table(columns, [k for k, _ in keys]), sort_keys=keys)
    return table.take(at)


def _sortable(column: pa.ChunkedArray) -> Iterable[Any]:
    """What to sort a column by: whether a value is there, whether it is no number, the value."""
    if pa.types.is_nested(column.type) or pa.types.is_null(column.type):
        column = pa.array([None if v is None else repr(v) for v in column.to_pylist()], pa.string())
    if column.null_count:
        yield pc.is_valid(column)
    if pa.types.is_floating(column.type):
        nan = pc.fill_null(pc.is_nan(column), False)
        if pc.any(nan).as_py():
            yield nan
    yield column


def in_order(records: Iterable[tuple[Any, ...]], terms: Sequence[Term], names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Tuples in the order of some terms, and of all their values where these are equal.

    >>> in_order([(1, "b"), (None, "a"), (2, "c"), (1, "a")], [Term("n", True)], ["n", "s"])
    [(2, 'c'), (1, 'a'), (1, 'b'), (None, 'a')]
    """
    made = sorted(records, key=_all)
    for term in reversed(terms):
        made.sort(key=_of(names.index(term.column)), reverse=term.descending)
    return made


def order_of(value: object) -> tuple[int, Any]:
    """What a value is ordered by, null and not-a-number too."""
    return _value(value)


def _all(record: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(_value, record))


def _of(at: int) -> Callable[[tuple[Any, ...]], Any]:
    return lambda record: _value(record[at])


def _value(value: object) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    if isinstance(value, float) and math.isnan(value):
        return (2, 0)
    return (1, value if isinstance(value, _PLAIN) else repr(value))
