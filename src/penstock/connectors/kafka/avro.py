"""Avro values in the wire format of schema registries."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.connectors.kafka.schema_registry import RegisteredSchema, Registry
from penstock.errors import RunError, SetupError

if TYPE_CHECKING:
    from types import ModuleType

FRONT = 5


def fastavro() -> ModuleType:
    """The package, or an error that says how to get it."""
    try:
        import fastavro
    except ImportError:
        raise SetupError("Avro needs the package fastavro: pip install 'penstock[kafka]'") from None
    made: ModuleType = fastavro
    return made


class AvroReader:
    """Reads values with the schema each was written with."""

    def __init__(self, registry: Registry) -> None:
        self.registry, self.avro = registry, fastavro()
        self._schemas: dict[int, Any] = {}

    def read(self, number: int, value: bytes) -> dict[str, Any]:
        """The record in a value."""
        if number not in self._schemas:
            self._schemas[number] = self._parsed(number)
        try:
            found = self.avro.schemaless_reader(io.BytesIO(value[FRONT:]), self._schemas[number], None)
        except (EOFError, ValueError, IndexError, TypeError, UnicodeDecodeError) as error:
            raise RunError(f"a value cannot be read as Avro with the schema of id {number}: {error}") from None
        if not isinstance(found, dict):
            raise RunError(f"the Avro schema of id {number} is no record but a {type(found).__name__}")
        return found

    def _parsed(self, number: int) -> object:
        found = self.registry.schema(number)
        if found.kind != "AVRO":
            raise RunError(f"the schema with the id {number} is {found.kind}, not AVRO")
        return parsed(found)


def parsed(found: RegisteredSchema, known: dict[str, Any] | None = None) -> object:
    """A schema ready for use; those it refers to are read first, so that their names are known."""
    known = {} if known is None else known
    for _, other in found.references:
        parsed(other, known)
    return fastavro().parse_schema(json.loads(found.text), named_schemas=known)


def validate(record: object, schema: Any) -> None:
    """Refuses what the writer would write without a word and no reader understands: a number that is too large for an int.

    Raises:
        Exception: fastavro's own, which names the field.
    """
    from fastavro.validation import validate as check

    check(record, schema)


def avro_writer(front: bytes, text: str) -> Callable[[Any], bytes]:
    """Makes bytes of records; the schema is read where they are made."""
    try:
        fastavro().parse_schema(json.loads(text))
    except (ValueError, fastavro().schema.SchemaParseException) as error:
        raise RunError(f"value_schema is not an Avro schema: {error}") from None
    ready: list[Any] = []
    has_ints = '"int"' in text

    def write(record: object) -> bytes:
        if not ready:
            ready.append(fastavro().parse_schema(json.loads(text)))
        out = io.BytesIO(front)
        out.seek(len(front))
        try:
            if has_ints:
                validate(record, ready[0])
            fastavro().schemaless_writer(out, ready[0], record)
        except Exception as error:  # whatever gets out of the writer makes a bad record
            raise RunError(f"a record does not fit its Avro schema: {' '.join(str(error).split())}") from None
        return out.getvalue()

    return write
