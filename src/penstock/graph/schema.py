"""Schemas: the named, typed fields of a stream, from whatever the user finds handy.

>>> schema_of("word string, n bigint").names
('word', 'n')
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from penstock.errors import SchemaError, nearest
from penstock.graph import types as t

_PYTHON: dict[Any, t.DataType] = {
    str: t.STRING,
    int: t.BIGINT,
    float: t.DOUBLE,
    bool: t.BOOLEAN,
    bytes: t.BINARY,
    datetime.datetime: t.TIMESTAMP,
    datetime.date: t.DATE,
    decimal.Decimal: t.Decimal(38, 18),
}


@dataclass(frozen=True)
class Schema:
    """The fields of a stream, in order.

    You seldom make one: wherever a schema is asked for, DDL text, a dict of names to types, a dataclass, a NamedTuple or a TypedDict will do.

    Args:
        fields: the fields, each with a name, a type, and whether it may be null.
        record: the Python class its rows take in Python steps, if any.
        internal: whether names that begin with two underscores are allowed; they are Penstock's own.

    Raises:
        SchemaError: there is no field, a name occurs twice, or begins with two underscores.

    >>> import penstock as ps
    >>> schema = ps.Flow("demo").source("words", ps.items([], "word string, n bigint")).schema
    >>> schema.names, "word" in schema, str(schema)
    (('word', 'n'), True, 'word string, n bigint')
    """

    fields: tuple[t.Field, ...]
    record: type | None = dataclasses.field(default=None, compare=False)
    internal: bool = dataclasses.field(default=False, compare=False)

    def __post_init__(self) -> None:
        if not self.fields:
            raise SchemaError("a schema needs at least one field")
        seen: set[str] = set()
        for field in self.fields:
            if field.name.startswith("__") and not self.internal:
                raise SchemaError(f"field {field.name!r}: names that begin with two underscores are Penstock's own")
            if field.name.lower() in seen:
                raise SchemaError(f"field {field.name!r} appears twice in the schema {self}")
            seen.add(field.name.lower())

    def __str__(self) -> str:
        return ", ".join(f"{t.quote(f.name)} {f.type}{'' if f.nullable else ' not null'}" for f in self.fields)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the fields, in order."""
        return tuple(f.name for f in self.fields)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def field(self, name: str) -> t.Field:
        """A field by its name.

        Args:
            name: the name.

        Returns:
            The field: its `name`, its `type`, and whether it is `nullable`.

        Raises:
            SchemaError: there is none; the message has the nearest name.
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise SchemaError(f"no field {name!r}; {nearest(name, self.names)}")

    def only(self, names: tuple[str, ...]) -> Schema:
        """The schema of some fields alone.

        Args:
            names: the names, in the order they are to have.

        Returns:
            The smaller schema.

        Raises:
            SchemaError: a field is not there.
        """
        return Schema(tuple(self.field(n) for n in names), internal=self.internal)

    def with_fields(self, fields: tuple[t.Field, ...]) -> Schema:
        """The schema with some fields replaced where the name is known, else added at the end.

        Args:
            fields: the fields.

        Returns:
            The new schema.
        """
        new = {f.name: f for f in fields}
        kept = tuple(new.pop(f.name, f) for f in self.fields)
        return Schema(kept + tuple(new.values()), internal=self.internal)

    def types_equal(self, other: Schema) -> bool:
        """Whether both have the same names and types in the same order; nullability may differ.

        Args:
            other: the other schema.

        Returns:
            True or False.
        """
        return [(f.name, str(f.type)) for f in self.fields] == [(f.name, str(f.type)) for f in other.fields]


Form: TypeAlias = Schema | str | Mapping[str, object] | type
"""A schema as the user writes it: DDL text, a dict of names to types, a dataclass, a NamedTuple, a TypedDict or a Schema."""


def form_of(given: Form | None) -> Schema | None:
    """A schema where the user gave one."""
    return None if given is None else schema_of(given)


def forms_of(given: Mapping[str, Form] | None) -> tuple[tuple[str, Schema], ...]:
    """Schemas by name, as side outputs have them."""
    return tuple((name, schema_of(form)) for name, form in (given or {}).items())


def schema_of(given: object) -> Schema:
    """A schema from DDL text, a dict of names to types, a dataclass, a NamedTuple, a TypedDict or a Schema."""
    if isinstance(given, Schema):
        return given
    if isinstance(given, str):
        return _from_ddl(given)
    if isinstance(given, dict):
        return Schema(tuple(_field(name, kind) for name, kind in given.items()))
    if isinstance(given, type) and given not in _PYTHON:
        return _from_class(given)
    raise SchemaError(
        f"a schema is DDL text ('word string, n bigint'), a dict of names to types, a dataclass, a NamedTuple or "
        f"a TypedDict, got {given!r}"
    )


def returned_schema(function: object, many: bool) -> Schema | None:
    """The schema that a function's return annotation tells, or None when it tells none.

    With `many` the annotation is of an iterable of records, as a flat_map returns.
    """
    try:
        hint = typing.get_type_hints(function).get("return")
    except Exception:  # an annotation that cannot be resolved tells nothing
        return None
    if many:
        parts = typing.get_args(hint)
        hint = parts[0] if parts else None
    return schema_of(hint) if isinstance(hint, type) and _is_record(hint) else None


def _is_record(hint: object) -> bool:
    return isinstance(hint, type) and (
        dataclasses.is_dataclass(hint) or typing.is_typeddict(hint) or hasattr(hint, "_fields")
    )


def _from_ddl(text: str) -> Schema:
    reader = t.DdlReader(text)
    if not reader.peek():
        raise SchemaError("a schema needs at least one field: 'name type, ...', got an empty text")
    return Schema(tuple(reader.fields()))


def _from_class(cls: type) -> Schema:
    if not _is_record(cls):
        raise SchemaError(
            f"class {cls.__qualname__} has no fields; a schema needs a dataclass, a NamedTuple or a TypedDict"
        )
    fields = tuple(_field(name, kind) for name, kind in typing.get_type_hints(cls).items())
    return Schema(fields, record=None if typing.is_typeddict(cls) else cls)


def _field(name: str, kind: object) -> t.Field:
    inner, nullable = optional_of(kind)
    try:
        return t.Field(name, type_of(inner), nullable)
    except SchemaError as error:
        raise SchemaError(f"field {name!r}: {error}") from None


def optional_of(kind: object) -> tuple[object, bool]:
    """The type without None, and whether None was there. Plain hints count as nullable: streams have gaps."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        parts = [p for p in typing.get_args(kind) if p is not type(None)]
        if len(parts) == 1:
            return parts[0], True
    return kind, True


def type_of(hint: object) -> t.DataType:
    """The type a Python annotation (or DDL text) stands for.

    >>> str(type_of(list[int])), str(type_of("map<string,int>"))
    ('array<bigint>', 'map<string,int>')
    """
    if isinstance(hint, t.DataType):
        return hint
    if isinstance(hint, str):
        return t.parse_type(hint)
    if hint in _PYTHON:
        return _PYTHON[hint]
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (list, tuple, set, frozenset) and parts:
        return t.Array(type_of(optional_of(parts[0])[0]))
    if origin is dict:
        return t.Map(type_of(parts[0]), type_of(optional_of(parts[1])[0]))
    if isinstance(hint, type) and _is_record(hint):
        return t.Struct(_from_class(hint).fields)
    known = ", ".join(k.__name__ for k in _PYTHON)
    raise SchemaError(
        f"no stream type for {hint!r}; take one of {known}, list[...], dict[...], a dataclass, or DDL text"
    )
