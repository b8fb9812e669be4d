"""A Redis stream as a source: offsets are the ids of its entries, so a replay returns the same ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.base import SourceConnector, SourceContext
from penstock.connectors.malformed import raw_rows, with_malformed
from penstock.connectors.ranges import Offset, Ranges, Stretch, bounded_of, stream_of
from penstock.connectors.redis.wire import Address, driver
from penstock.connectors.text_rows import TextRows, read_texts
from penstock.errors import RunError
from penstock.graph.schema import Schema
from penstock.kernels.records.unreadable import ESCAPES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 10_000
Entry = tuple[bytes, dict[bytes, bytes]]
"""The id of an entry, and its fields."""
_NTH = """
local found = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])
if #found == 0 then return {0, ARGV[1]} end
return {#found, found[#found][1]}
"""


class RedisStreamSource(SourceConnector):
    """The entries of a stream."""

    def stream(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """The entries that are there, then those that come."""
        return stream_of(spark, _entries(context), context, with_malformed(context))

    def bounded(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """The entries that are there."""
        return bounded_of(spark, _entries(context), context, with_malformed(context))

    def reread(self, spark: SparkSession, context: SourceContext, dead_letters: list[dict[str, Any]]) -> DataFrame:
        """Reads the entries of dead letters."""
        found = _entries(context)
        entries = [found.entry(bytes(value)) for (value,) in raw_rows(dead_letters, ("value",))]
        return spark.createDataFrame(
            pa.Table.from_batches([found.batch(entries)]), with_malformed(context) or str(context.schema)
        )


def _entries(context: SourceContext) -> Entries:
    return Entries(context.options, context.schema, context.step, keeps_malformed=context.keeps_malformed)


class Entries(TextRows[Entry], Ranges):
    """Offsets are the last id, and how many entries were ever added up to it: so entries that were trimmed unread are noticed."""

    def __init__(self, options: dict[str, Any], fields: Schema, step: str, *, keeps_malformed: bool = False) -> None:
        self.keeps_malformed = keeps_malformed
        self.address, self.who = Address.of(options), f"source {step!r}"
        self.name, self.id_field = options["stream"], options.get("id_field") or ""
        self.accept_loss = bool(options.get("accept_loss"))
        self.most, self.fields = options.get("rows_per_batch"), fields

    def first(self) -> Offset:
        """Before the first entry that is there."""
        about = self._about()
        return {"id": "0-0", "added": about["entries-added"] - about["length"] if about else 0}

    def target(self) -> Offset:
        """The last entry there is."""
        about = self._about()
        return {"id": _text(about["last-generated-id"]), "added": about["entries-added"]} if about else self.first()

    def within(self, offset: Offset, target: Offset) -> Offset:
        """The lesser."""
        return min(offset, target, key=lambda o: _parts(o["id"]))

    def latest(self, start: Offset, most: int | None) -> Offset:
        """The last entry, or the one with which there are enough."""
        about = self._about()
        if not about or _parts(_text(about["last-generated-id"])) <= _parts(start["id"]):
            return start
        if most is None or about["entries-added"] - start["added"] <= most:
            return {"id": _text(about["last-generated-id"]), "added": about["entries-added"]}
        found: Any = self.address.client().eval(_NTH, 1, self.name, start["id"], str(most))
        return {"id": _text(found[1]), "added": start["added"] + int(found[0])}

    def read(self, part: Stretch) -> Iterator[Any]:
        """The entries of a stretch, in order."""
        at, found = str(part.low["id"]), 0
        client = self.address.client()
        while True:
            entries: Any = client.xrange(self.name, f"({at}", part.high["id"], count=ROWS)
            if not entries:
                break
            yield self.batch(entries)
            at, found = _text(entries[-1][0]), found + len(entries)
        wanted = part.high["added"] - part.low["added"]
        if found != wanted and not self.accept_loss:
            raise RunError(
                f"{self.who}: of the {wanted} entries of {self.name!r} between {part.low['id']} and {part.high['id']} only {found} are there: the "
                f"rest was trimmed or deleted before it was read. Keep more of the stream, or say accept_loss=True"
            )

    def column(self, sent: list[Entry], field: pa.Field) -> pa.Array:
        """A field of entries, or their ids."""
        if field.name == self.id_field:
            return pa.array([_text(e[0]) for e in sent], pa.string()).cast(field.type)
        name = field.name.encode()
        raw = pa.array([e[1].get(name) for e in sent], pa.binary())
        return raw if pa.types.is_binary(field.type) else read_texts(raw, field)

    def blank(self, sent: Entry) -> Entry:
        """An entry without fields."""
        return sent[0], {}

    def position(self, sent: Entry) -> str:
        """The stream, and the id."""
        return f"{self.name}, entry {_text(sent[0])}"

    def raw(self, sent: Entry) -> bytes:
        """An entry as JSON: its fields, and its id where a field takes it."""
        texts = {k.decode(errors="backslashreplace"): v.decode(errors="backslashreplace") for k, v in sent[1].items()}
        named = {self.id_field: _text(sent[0])} if self.id_field else {}
        return json.dumps({**texts, **named}, ensure_ascii=False).encode()

    def entry(self, raw: bytes) -> Entry:
        """The entry of what `raw` has written, or what a person has made of it; what is no object of JSON has no fields."""
        try:
            found = json.loads(raw)
            fields = {k: v if isinstance(v, str) else json.dumps(v) for k, v in found.items() if v is not None}
        except (AttributeError, *ESCAPES):
            fields = {}
        return fields.pop(self.id_field, "").encode(), {k.encode(): v.encode() for k, v in fields.items()}

    def _about(self) -> dict[str, Any]:
        """What the server tells of the stream; nothing when there is none yet."""
        try:
            made: Any = self.address.client().xinfo_stream(self.name)
        except driver().ResponseError as error:
            if "no such key" in str(error):
                return {}
            raise RunError(f"{self.who}: {self.address.clean(error)}") from None
        return dict(made)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _parts(entry: str) -> tuple[int, int]:
    """An id as numbers that can be compared.

    >>> _parts("12-0") < _parts("12-3") < _parts("100-0")
    True
    """
    at, _, number = entry.partition("-")
    return int(at), int(number or 0)
