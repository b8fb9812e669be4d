"""Folders named by values, as Hive and Spark name them: `day=2026-05-01/city=K%C3%B6ln`, and back.

>>> from penstock.graph.schema import schema_of
>>> folders = Folders.of(schema_of("n bigint, city string"), ["city"])
>>> folders.path_of((1, "a/b")), folders.path_of((1, None))
('city=a%2Fb', 'city=__HIVE_DEFAULT_PARTITION__')
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from penstock.errors import RunError
from penstock.graph import types as t
from penstock.graph.endpoints.hive import folder_of, unnameable, values_of
from penstock.graph.schema import Schema
from penstock.kernels.expr.cast import cast_value
from penstock.kernels.expr.text import text_of

Texts = tuple[Callable[[object], str], ...]


@dataclass(frozen=True)
class Folders:
    """The fields of a schema that name folders, and those that are in the files."""

    schema: Schema
    names: tuple[str, ...]
    at: tuple[int, ...]
    texts: Texts

    @classmethod
    def of(cls, schema: Schema, names: Iterable[str]) -> Folders:
        """The folders of some fields, in this order."""
        chosen = tuple(names)
        kinds = (schema.field(name).type for name in chosen)
        return cls(schema, chosen, tuple(schema.names.index(n) for n in chosen), tuple(text_of(k) for k in kinds))

    @property
    def inside(self) -> Schema:
        """The fields that are in the files."""
        return self.schema.only(tuple(n for n in self.schema.names if n not in self.names))

    def path_of(self, row: Sequence[object]) -> str:
        """The folder of a record; raises RunError where a value cannot name one."""
        parts = zip(self.names, self.at, self.texts, strict=True)
        return "/".join(_folder(name, row[at], text) for name, at, text in parts)

    def row_inside(self, row: Sequence[object]) -> tuple[object, ...]:
        """The values of a record that are in its file."""
        return tuple(value for at, value in enumerate(row) if at not in self.at)

    def row_of(self, inside: Sequence[object], values: dict[str, object]) -> tuple[object, ...]:
        """A record from the values in its file and those of its folders."""
        rest = iter(inside)
        return tuple(values[n] if n in values else next(rest) for n in self.schema.names)


def _folder(name: str, value: object, text: Callable[[object], str]) -> str:
    folder = folder_of(name, None if value is None else text(value))
    if why := unnameable(name, folder, value):
        raise RunError(why)
    return folder


def typed_values(path: str, schema: Schema) -> dict[str, object]:
    """The values of those fields of a schema that the folders of a path name.

    Raises:
        RunError: A value is none of the type of its field.
    """
    found = {name: text for name, text in values_of(path).items() if name in schema}
    try:
        return {name: _typed(text, schema.field(name).type) for name, text in found.items()}
    except (ValueError, ArithmeticError) as error:
        raise RunError(f"the folders of {path} name a value that does not fit the schema ({schema}): {error}") from None


def _typed(text: str | None, kind: t.DataType) -> object:
    return None if text is None else cast_value(t.STRING, kind)(text)
