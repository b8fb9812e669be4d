"""Many subscriptions by content over one topic: an index finds those that may want a record, and only these are asked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.errors import FlowError
from penstock.kernels.rules.bounds import ANY, NULL, REAL, TEXT, WHOLE, Bound, Bounds
from penstock.kernels.rules.index import ConditionIndex
from penstock.log import Record
from penstock.log.consume.predicate import Comparison, ParsedPredicate, RecordFields, parsed

_EXACT = 2**53
"""Whole numbers below it are exact as doubles; comparisons with others are left to the predicates."""
_TYPES = {REAL: pa.float64(), TEXT: pa.string(), WHOLE: pa.bool_(), ANY: pa.bool_()}


class Subscriptions:
    """Predicates by name, as `consumer(where=...)` takes them as text.

    Args:
        predicates: the predicate of each subscription.

    Raises:
        BadPredicate: one cannot be read.

    >>> many = Subscriptions({"large": "total > 100", "web": "kind = 'web'"})
    >>> [(record.offset, names) for record, names in many.wanted([Record("t", 0, 7, 0, None, b'{"total": 200, "kind": "web"}')])]
    [(7, ['large', 'web'])]
    """

    def __init__(self, predicates: Mapping[str, str]) -> None:
        self.names = list(predicates)
        self.predicates: list[ParsedPredicate] = [parsed(text) for text in predicates.values()]
        self.columns: dict[tuple[str, str], int] = {}
        self.index = ConditionIndex([self._alternatives(each) for each in self.predicates], _unused)

    def _alternatives(self, predicate: ParsedPredicate) -> list[Bounds]:
        """The bounds of each alternative of a predicate; one without any, where an alternative has none."""
        made = [Bounds(tuple(self._bounds(each)), ()) for each in predicate.alternatives]
        return made if made and all(each.bounds for each in made) else [Bounds((), ())]

    def _bounds(self, comparisons: Iterable[Comparison]) -> Iterator[Bound]:
        return (bound for each in comparisons if (bound := self._bound(each)) is not None)

    def _bound(self, comparison: Comparison) -> Bound | None:
        """A comparison as a bound of the column with the values of its kind; None where there is no such."""
        if comparison.op == NULL:
            return Bound(self.columns.setdefault((comparison.field, ANY), len(self.columns)), ANY, NULL, (0,))
        kinds = {_kind(value) for value in comparison.values}
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is None or (kind == WHOLE and comparison.op != "="):
            return None
        column = self.columns.setdefault((comparison.field, kind), len(self.columns))
        values = tuple(dict.fromkeys(_constant(value, kind) for value in comparison.values))
        return Bound(column, kind, comparison.op, values)

    def wanted(self, records: Sequence[Record]) -> list[tuple[Record, list[str]]]:
        """The records that some subscription wants, in their order, with the names of those that do."""
        fields = [RecordFields(record) for record in records]
        rows, numbers = self.index.pairs(self._batch(fields))
        made: dict[int, list[str]] = {}
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
            if self.predicates[number].test(fields[row]):
                made.setdefault(row, []).append(self.names[number])
        return [(records[row], names) for row, names in made.items()]

    def _batch(self, fields: Sequence[RecordFields]) -> pa.RecordBatch:
        """The values that the index looks at, a column for each field and kind; null where a value is of another kind."""
        columns = {f"{name} {kind}": _column(fields, name, kind) for name, kind in self.columns}
        return pa.record_batch(columns or {"nothing": pa.nulls(len(fields))})


def _unused(*given: object) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    raise AssertionError("the bounds of subscriptions leave no residual: the predicates themselves are asked")


def _kind(value: object) -> str | None:
    if isinstance(value, bool):
        return WHOLE
    if isinstance(value, int | float):
        return REAL if abs(value) < _EXACT else None
    return TEXT if isinstance(value, str) else None


def _constant(value: object, kind: str) -> int | float | str:
    if kind == REAL:
        return float(value)  # type: ignore[arg-type]  # a number
    return str(value) if kind == TEXT else int(value)  # type: ignore[call-overload]  # a boolean


def _column(fields: Sequence[RecordFields], name: str, kind: str) -> pa.Array:
    if kind == ANY:
        return pa.array([None if each.get(name) is None else True for each in fields], _TYPES[kind])
    values = [value if _fits(value, kind) else None for value in (each.get(name) for each in fields)]
    return pa.array([*map(_real, values)] if kind == REAL else values, _TYPES[kind])


def _real(value: object) -> float | None:
    """A number as a double; one that is too large for it counts as endless."""
    try:
        return None if value is None else float(value)  # type: ignore[arg-type]  # a number
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]  # a number


def _fits(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == WHOLE
    return isinstance(value, str) if kind == TEXT else kind == REAL and isinstance(value, int | float)


def subscriptions_of(path: Path) -> Subscriptions:
    """The subscriptions of a YAML file: a name and a predicate on each line.

    Raises:
        FlowError: the file cannot be read, or is none.
        BadPredicate: a predicate cannot be read.
    """
    import yaml

    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise FlowError(f"the subscriptions {path} cannot be read: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(each, str) for pair in found.items() for each in pair):
        raise FlowError(f"{path}: subscriptions are names and predicates, such as: large: total > 100")
    return Subscriptions(found)
