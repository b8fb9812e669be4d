"""Records: what a user's function gets and returns, and how both become columns.

A function gets a `Row` (or an instance of the schema's own class) and may give a dict, a tuple, a Row, a dataclass,
or a bare value when there is one field. Whatever it returns is checked against the schema here alone, so that
a wrong value means the same error on every runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from penstock.errors import nearest
from penstock.graph.logic.tagged import TaggedRecord
from penstock.graph.row import row_class
from penstock.graph.schema import Schema
from penstock.kernels.records.brief import brief
from penstock.kernels.records.values import BadValue, Checker, checker_of


class BadRecord(ValueError):
    """A record that does not fit the schema; `at` is its index in the list."""

    def __init__(self, message: str, at: int = 0) -> None:
        super().__init__(message)
        self.at = at


_PLAIN = (str, int, float, bool)


class Shape:
    """The shape of a stream's records: makes rows from columns, and checked columns from records."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.names = schema.names
        self.single = len(self.names) == 1
        self.row_class = row_class(self.names)
        self.checkers: list[Checker] = [checker_of(f.type) for f in schema.fields]
        self.make: Callable[[Iterable[Any]], Any] = self._maker()

    def _maker(self) -> Callable[[Iterable[Any]], Any]:
        record = self.schema.record
        if record is None:
            return self.row_class
        return lambda values: record(*values)

    def rows(self, columns: Sequence[Sequence[Any]]) -> list[Any]:
        """Rows from columns."""
        return list(map(self.make, zip(*columns, strict=True)))

    def columns(self, records: list[Any]) -> list[list[Any]]:
        """Checked columns from whatever records a function gave."""
        if not records:
            return [[] for _ in self.names]
        return self.checked(self.split(records, quick=False))

    def checked(self, columns: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The columns with every value checked against its type and brought into its one form."""
        return [self._check(i, c if isinstance(c, list) else list(c)) for i, c in enumerate(columns)]

    def _check(self, at: int, column: list[Any]) -> list[Any]:
        if not self.schema.fields[at].nullable and None in column:
            raise BadRecord(f"field {self.names[at]!r} is declared not null, got None", column.index(None))
        try:
            return self.checkers[at](column)
        except BadValue as error:
            raise BadRecord(f"field {self.names[at]!r}: {error}", error.at) from None

    def split(self, records: list[Any], *, quick: bool) -> list[list[Any]]:
        """Columns from whatever records a function gave, not checked yet.

        The quick way takes bare values for bare values when the first is one; Arrow finds out when they are not.
        """
        if quick and self.single and type(records[0]) in _PLAIN:
            return [records]
        kinds = set(map(type, records))
        if len(kinds) == 1:
            kind = kinds.pop()
            if kind is tuple and set(map(len, records)) == {len(self.names)}:
                return [[r[at] for r in records] for at in range(len(self.names))]
            if issubclass(kind, tuple):
                return self._from_tuples(records)
            if issubclass(kind, dict):
                return self._from_dicts(records)
            if self.single and not hasattr(kind, self.names[0]) and not hasattr(kind, "__dataclass_fields__"):
                return [records]
            if self.schema.record is kind or (hasattr(kind, "__dataclass_fields__") and kind is not TaggedRecord):
                return self._from_objects(records)
        return [list(c) for c in zip(*(self.values(r, i) for i, r in enumerate(records)), strict=True)]

    def _from_tuples(self, records: list[Any]) -> list[list[Any]]:
        widths = set(map(len, records))
        if widths == {len(self.names)}:
            return [[tuple.__getitem__(r, i) for r in records] for i in range(len(self.names))]
        at = next(i for i, r in enumerate(records) if len(r) != len(self.names))
        raise BadRecord(
            f"expected a tuple of {len(self.names)} {'value' if len(self.names) == 1 else 'values'} "
            f"({', '.join(self.names)}), got {brief(records[at])}",
            at,
        )

    def _from_dicts(self, records: list[Any]) -> list[list[Any]]:
        try:
            columns = [[r[name] for r in records] for name in self.names]
        except KeyError:
            columns = []
        if columns and set(map(len, records)) == {len(self.names)}:
            return columns
        return [list(c) for c in zip(*(self.values(r, i) for i, r in enumerate(records)), strict=True)]

    def _from_objects(self, records: list[Any]) -> list[list[Any]]:
        try:
            return [list(map(attrgetter(name), records)) for name in self.names]
        except AttributeError as error:
            raise BadRecord(f"a record with the fields {', '.join(self.names)} is needed; {error}") from None

    def values(self, record: object, at: int = 0) -> tuple[Any, ...]:
        """The values of one record, in the order of the fields."""
        if isinstance(record, TaggedRecord):
            raise BadRecord(f"the step has no output {record.output!r}; name it with side=...", at)
        if isinstance(record, tuple):
            return tuple(c[0] for c in self._at(at, self._from_tuples, record))
        if isinstance(record, Mapping):
            return self._from_mapping(record, at)
        if self.single and not hasattr(type(record), "__dataclass_fields__"):
            return (record,)
        if hasattr(record, "__next__"):
            raise BadRecord("one record is needed, got a generator. A step that yields is a flat_map", at)
        if record is None or isinstance(record, str | int | float | list | set):
            raise BadRecord(f"expected a record with the fields {', '.join(self.names)}, got {brief(record)}", at)
        return tuple(c[0] for c in self._at(at, self._from_objects, record))

    def _at(self, at: int, split: Callable[[list[Any]], list[list[Any]]], record: object) -> list[list[Any]]:
        try:
            return split([record])
        except BadRecord as error:
            raise BadRecord(str(error), at) from None

    def _from_mapping(self, record: Mapping[str, Any], at: int) -> tuple[Any, ...]:
        unknown = [n for n in record if n not in self.names]
        if unknown:
            raise BadRecord(
                f"the record has a field {unknown[0]!r} that the schema lacks; {nearest(unknown[0], self.names)}", at
            )
        missing = [f.name for f in self.schema.fields if f.name not in record and not f.nullable]
        if missing or not record:
            lacking = (missing or list(self.names))[0]
            raise BadRecord(f"the record lacks the field {lacking!r}, got {brief(record)}", at)
        absent = [n for n in self.names if n not in record]
        if absent:
            raise BadRecord(
                f"the record lacks the field {absent[0]!r} (write None for no value), got {brief(record)}", at
            )
        return tuple(record[n] for n in self.names)

    def row(self, record: object) -> object:
        """A checked row from one record."""
        return self.rows(self.columns([record]))[0]
