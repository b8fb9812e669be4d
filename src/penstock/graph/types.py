"""The types a field can have: Spark's, spelled as in its DDL, without Spark.

>>> print(parse_type("array<struct<a:int,b:string>>"))
array<struct<a:int,b:string>>
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import SchemaError, nearest

_ALIASES = {
    "boolean": "boolean",
    "bool": "boolean",
    "byte": "tinyint",
    "tinyint": "tinyint",
    "short": "smallint",
    "smallint": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "string": "string",
    "str": "string",
    "text": "string",
    "binary": "binary",
    "bytes": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}


class DataType:
    """The base of every type; `str()` of it is Spark's DDL."""

    def __str__(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class Simple(DataType):
    """A type without parts."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Decimal(DataType):
    """An exact number of `precision` digits, `scale` of them after the point."""

    precision: int = 10
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True)
class Array(DataType):
    """A list of one type."""

    item: DataType

    def __str__(self) -> str:
        return f"array<{self.item}>"


@dataclass(frozen=True)
class Map(DataType):
    """Keys of one type to values of another."""

    key: DataType
    value: DataType

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True)
class Field:
    """A named value of a record."""

    name: str
    type: DataType
    nullable: bool = True


@dataclass(frozen=True)
class Struct(DataType):
    """A record inside a record."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        inner = ",".join(f"{quote(f.name)}:{f.type}{'' if f.nullable else ' not null'}" for f in self.fields)
        return f"struct<{inner}>"


BOOLEAN = Simple("boolean")
TINYINT = Simple("tinyint")
SMALLINT = Simple("smallint")
INT = Simple("int")
BIGINT = Simple("bigint")
FLOAT = Simple("float")
DOUBLE = Simple("double")
STRING = Simple("string")
BINARY = Simple("binary")
DATE = Simple("date")
TIMESTAMP = Simple("timestamp")
TIMESTAMP_NTZ = Simple("timestamp_ntz")
NULL = Simple("void")

INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)


def quote(name: str) -> str:
    """A field name as DDL and SQL take it: plain when it can be, in backticks otherwise."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else "`" + name.replace("`", "``") + "`"


def is_numeric(kind: DataType) -> bool:
    """Whether arithmetic makes sense on it."""
    return kind in (*INTEGERS, FLOAT, DOUBLE) or isinstance(kind, Decimal)


def is_ordered(kind: DataType) -> bool:
    """Whether values of the type have an order; maps have none, nor what holds one.

    >>> is_ordered(Array(INT)), is_ordered(Struct((Field("m", Map(INT, INT)),)))
    (True, False)
    """
    if isinstance(kind, Array):
        return is_ordered(kind.item)
    if isinstance(kind, Struct):
        return all(is_ordered(field.type) for field in kind.fields)
    return not isinstance(kind, Map)


_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|([A-Za-z_]\w*)|(\d+)|([<>(),:]))")


class DdlReader:
    """A reader of DDL text, one token at a time."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._split(text)
        self.at = 0

    def _split(self, text: str) -> list[str]:
        tokens, at = [], 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if not found:
                raise SchemaError(f"cannot read the schema {text!r}: unexpected {text[at:].strip()[:1]!r}")
            tokens.append(found.group().strip())
            at = found.end()
        return tokens

    def peek(self) -> str:
        """The next token, or an empty string at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        """The next token, which must be `expected` when that is given."""
        token = self.peek()
        if not token or (expected and token != expected):
            wanted = repr(expected) if expected else "more"
            raise SchemaError(f"cannot read the schema {self.text!r}: expected {wanted}, got {token or 'its end'!r}")
        self.at += 1
        return token

    def name(self) -> str:
        """A field name, out of its backticks."""
        token = self.take()
        return token[1:-1].replace("``", "`") if token.startswith("`") else token

    def not_null(self) -> bool:
        """Whether NOT NULL stands here; takes it."""
        if self.peek().lower() != "not":
            return False
        self.take()
        if self.take().lower() != "null":
            raise SchemaError(f"cannot read the schema {self.text!r}: NOT must be followed by NULL")
        return True

    def type(self) -> DataType:
        """A type, with its parts."""
        word = self.take()
        kind = word.lower()
        if kind == "array":
            return self._array()
        if kind == "map":
            return self._map()
        if kind == "struct":
            return self._struct()
        if kind in ("decimal", "numeric", "dec"):
            return self._decimal()
        if kind in _ALIASES:
            return Simple(_ALIASES[kind])
        known = [*_ALIASES, "decimal", "array", "map", "struct"]
        raise SchemaError(f"unknown type {word!r} in the schema {self.text!r}; {nearest(kind, known)}")

    def _array(self) -> Array:
        self.take("<")
        item = self.type()
        self.take(">")
        return Array(item)

    def _map(self) -> Map:
        self.take("<")
        key = self.type()
        self.take(",")
        value = self.type()
        self.take(">")
        return Map(key, value)

    def _decimal(self) -> Decimal:
        if self.peek() != "(":
            return Decimal()
        self.take("(")
        precision, scale = int(self.take()), 0
        if self.peek() == ",":
            self.take(",")
            scale = int(self.take())
        self.take(")")
        return Decimal(precision, scale)

    def _struct(self) -> Struct:
        self.take("<")
        fields = [] if self.peek() == ">" else self.fields(until=">")
        self.take(">")
        return Struct(tuple(fields))

    def fields(self, until: str = "") -> list[Field]:
        """Fields with commas between them, up to the token `until` (or the end)."""
        fields = [self._field()]
        while self.peek() != until:
            self.take(",")
            fields.append(self._field())
        return fields

    def _field(self) -> Field:
        name = self.name()
        if self.peek() == ":":
            self.take(":")
        kind = self.type()
        return Field(name, kind, nullable=not self.not_null())


def parse_type(text: str) -> DataType:
    """The type that a DDL text names."""
    reader = DdlReader(text)
    kind = reader.type()
    if reader.peek():
        raise SchemaError(f"cannot read the type {text!r}: {reader.peek()!r} is left over")
    return kind
