"""Records that a server sends as texts, read as their types: one that cannot be read stops the source, or goes aside with what was sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import pyarrow as pa

from penstock.connectors.malformed import ARROW, MALFORMED
from penstock.connectors.texts import from_text
from penstock.errors import RunError
from penstock.graph.schema import Schema
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.unreadable import ESCAPES, Unreadable, reason

Sent = TypeVar("Sent")
"""A record as the server sends it."""


class TextRows(ABC, Generic[Sent]):
    """How records are read out of texts.

    Attributes:
        who: The source, for errors.
        fields: What a record has.
        keeps_malformed: Whether a record that cannot be read goes aside.
    """

    who: str
    fields: Schema
    keeps_malformed: bool = False

    @abstractmethod
    def column(self, sent: list[Sent], field: pa.Field) -> pa.Array:
        """A field of records; raises Unreadable where one has none."""

    @abstractmethod
    def blank(self, sent: Sent) -> Sent:
        """A record without the texts that cannot be read."""

    @abstractmethod
    def position(self, sent: Sent) -> str:
        """Where a record stands."""

    @abstractmethod
    def raw(self, sent: Sent) -> bytes:
        """A record as JSON, which a person can read and mend."""

    def batch(self, sent: list[Sent]) -> pa.RecordBatch:
        """Records as Arrow has them; where one of them cannot be read, they are read one by one.

        Raises:
            RunError: One cannot be read, and the source keeps no such records.
        """
        try:
            return self._made(sent, [None] * len(sent))
        except Unreadable:
            made = pa.Table.from_batches([self._one(each) for each in sent])
            return made.combine_chunks().to_batches()[0]

    def _one(self, sent: Sent) -> pa.RecordBatch:
        try:
            return self._made([sent], [None])
        except Unreadable as error:
            position = self.position(sent)
            if not self.keeps_malformed:
                raise RunError(f"{self.who}: {position}: {error}") from None
            return self._made([self.blank(sent)], [{"raw": self.raw(sent), "position": position, "cause": str(error)}])

    def _made(self, sent: list[Sent], malformed: list[Any]) -> pa.RecordBatch:
        shape = arrow_schema(self.fields)
        columns = [self.column(sent, field) for field in shape]
        if self.keeps_malformed:
            shape = shape.append(pa.field(MALFORMED, ARROW))
            columns.append(pa.array(malformed, ARROW))
        return pa.record_batch(columns, schema=shape)


def read_texts(texts: pa.Array, field: pa.Field) -> pa.Array:
    """A column of texts, or of bytes that should be texts, as the type of a field.

    Raises:
        Unreadable: One of them is no value of the type, or none that Python knows.

    >>> read_texts(pa.array(["1", None]), pa.field("n", pa.int64())).to_pylist()
    [1, None]
    >>> read_texts(pa.array(["x"]), pa.field("n", pa.int64()))
    Traceback (most recent call last):
    penstock.kernels.records.unreadable.Unreadable: field 'n' is no int64: Failed to parse string: 'x' as a scalar of type int64
    """
    try:
        made = from_text(texts.cast(pa.string()), field.type)
        if pa.types.is_temporal(field.type) or pa.types.is_nested(field.type):
            made.to_pylist()  # Arrow knows years that Python does not
        return made
    except (pa.ArrowException, *ESCAPES) as error:
        raise Unreadable(f"field {field.name!r} is no {field.type}: {reason(error)}") from None
