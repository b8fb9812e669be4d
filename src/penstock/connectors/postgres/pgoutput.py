"""The messages of PostgreSQL's logical decoding (plugin pgoutput, protocol 1) as changes.

Only what a table's changes need is read: relations, inserts, updates, deletes, the begin and commit around them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.errors import RunError

Values = dict[str, "str | None"]
_MICROS_TO_2000 = 946_684_800_000_000
_KEPT_AS_IT_WAS = "u"


@dataclass(frozen=True)
class Change:
    """A row that was inserted, updated or deleted; values are PostgreSQL's texts. `row` of a delete is what is known of the old one."""

    op: str
    row: Values
    old: Values | None
    lsn: int
    committed_at: int


@dataclass(frozen=True)
class Relation:
    """A table as the server describes it before its first change."""

    schema: str
    name: str
    columns: tuple[str, ...]


class Reader:
    """A message, read from left to right.

    >>> Reader(bytes([0, 7]) + b"shop" + bytes(1)).text(skip=2)
    'shop'
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, form: str) -> int:
        """A number."""
        value: int = struct.unpack_from(f">{form}", self.data, self.at)[0]
        self.at += struct.calcsize(f">{form}")
        return value

    def letter(self) -> str:
        """A byte, as a letter."""
        return chr(self.take("B"))

    def text(self, skip: int = 0) -> str:
        """A text that ends with a null byte."""
        self.at += skip
        end = self.data.index(b"\0", self.at)
        found = self.data[self.at : end].decode()
        self.at = end + 1
        return found

    def values(self, columns: tuple[str, ...]) -> tuple[Values, set[str]]:
        """A row, and the names of those columns which the server left out because they are large and did not change."""
        row: Values = {}
        same: set[str] = set()
        for name in columns[: self.take("H")]:
            kind = self.letter()
            if kind == "t":
                size = self.take("I")
                row[name] = self.data[self.at : self.at + size].decode()
                self.at += size
            else:
                row[name] = None
                same |= {name} if kind == _KEPT_AS_IT_WAS else set()
        return row, same


class ChangeDecoder:
    """Turns messages into changes of the transactions whose commit lies in a range of the server's log.

    It knows the relations that were described so far, also by transactions before the range.
    """

    def __init__(self, table: tuple[str, str], low: int, high: int) -> None:
        self.table, self.low, self.high = table, low, high
        self.relations: dict[int, Relation] = {}
        self.lsn = self.committed_at = 0

    def changes(self, messages: Iterable[bytes]) -> Iterator[Change]:
        """The changes of the table among the messages."""
        for message in messages:
            reader = Reader(message)
            kind = reader.letter()
            if kind == "B":
                self.lsn, micros = reader.take("Q"), reader.take("q")
                self.committed_at = micros + _MICROS_TO_2000
            elif kind == "R":
                self._relation(reader)
            elif kind in "IUDT" and self.low <= self.lsn < self.high:
                yield from self._change(kind, reader)

    def _relation(self, reader: Reader) -> None:
        number, schema, name = reader.take("I"), reader.text(), reader.text()
        reader.letter()
        columns = []
        for _ in range(reader.take("H")):
            columns.append(reader.text(skip=1))
            reader.at += 8
        self.relations[number] = Relation(schema, name, tuple(columns))

    def _is_ours(self, relation: Relation) -> bool:
        return (relation.schema, relation.name) == self.table

    def _change(self, kind: str, reader: Reader) -> Iterator[Change]:
        if kind == "T":
            self._truncate(reader)
            return
        relation = self.relations[reader.take("I")]
        if not self._is_ours(relation):
            return
        before: Values | None = None
        part = reader.letter()
        if part in "KO":
            values, _ = reader.values(relation.columns)
            before = values if part == "O" else {k: v for k, v in values.items() if v is not None}
            part = reader.letter() if kind == "U" else ""
        if kind == "D":
            yield Change("delete", before or {}, before, self.lsn, self.committed_at)
            return
        row, same = reader.values(relation.columns)
        yield Change(
            "insert" if kind == "I" else "update", self._filled(row, same, before), before, self.lsn, self.committed_at
        )

    def _filled(self, row: Values, same: set[str], before: Values | None) -> Values:
        """The row with what did not change, out of the old one."""
        for name in same:
            if before is None or name not in before:
                raise RunError(
                    f"an update of {'.'.join(self.table)} did not touch the large column {name!r}, and the server does not tell what is in "
                    f"it. Say: alter table {'.'.join(self.table)} replica identity full"
                )
            row[name] = before[name]
        return row

    def _truncate(self, reader: Reader) -> None:
        many = reader.take("I")
        reader.take("B")
        if any(
            self._is_ours(self.relations[n]) for n in (reader.take("I") for _ in range(many)) if n in self.relations
        ):
            raise RunError(
                f"{'.'.join(self.table)} was truncated, which tells nobody which rows went. Delete rows instead, or start afresh with "
                f"--fresh and a new slot"
            )
