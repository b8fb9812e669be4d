"""Records that a source cannot read, as Spark sees them: a column beside the others holds what was read instead, and where.

A source that must stop at such a record (`SourceContext.keeps_malformed` is false) raises there; the failure travels to the driver as one word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.base import SourceContext
from penstock.connectors.parsing import UNSURE, TextReading, literal
from penstock.errors import Failure
from penstock.graph import types as t
from penstock.graph.schema import Schema
from penstock.graph.types import quote
from penstock.kernels.errors.marks import MARK, encode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MALFORMED = "__malformed"
TYPE = "struct<raw: binary, position: string, cause: string>"
ARROW = pa.struct([("raw", pa.binary()), ("position", pa.string()), ("cause", pa.string())])
"""The same for Arrow."""
NOTHING = f"cast(null as {TYPE}) as {MALFORMED}"
REPLAYED = "replayed"
"""The position of a record that is read again from the dead letters."""
UNREADABLE = "the record cannot be read"
SHOWN = 2000
"""Characters of a record that a failure carries."""


def with_malformed(context: SourceContext) -> str:
    """The columns of a source that goes on when it cannot read a record, as Spark reads them; empty for one that stops."""
    return f"{context.schema}, {MALFORMED} {TYPE}" if context.keeps_malformed else ""


def kept_schema(schema: Schema, *, keeps_malformed: bool) -> Schema:
    """The schema of the records of a source, with the description of those that could not be read where they are kept."""
    described = t.Struct((t.Field("raw", t.BINARY), t.Field("position", t.STRING), t.Field("cause", t.STRING)))
    return Schema((*schema.fields, t.Field(MALFORMED, described)), internal=True) if keeps_malformed else schema


class Unreadable(Exception):
    """Stops a worker at a record that it cannot read."""

    def __init__(self, context: SourceContext, raw: bytes, position: str, cause: str) -> None:
        shown = raw[:SHOWN].decode(errors="backslashreplace")
        super().__init__(MARK + encode(Failure(context.step, cause, shown, position, "").as_dict()))


def position_in(topic: str, partition: str = "partition", offset: str = "offset") -> str:
    """The SQL text of where a record of a topic stands; `topic` is SQL text too."""
    return f"concat({topic}, ', partition ', {partition}, ', offset ', {offset})"


def read_values(
    frame: DataFrame,
    context: SourceContext,
    schema: Schema,
    reading: TextReading,
    position: str,
    beside: Sequence[str] = (),
    *wrong: str,
) -> DataFrame:
    """The fields that a reading finds, and what stands beside them.

    The frame has the record in `value`. A value that is there and is no record is malformed; so is one for which a SQL text of `wrong` returns a
    cause. Of a text that is sure to be a record nothing is asked.
    """
    cause, raw, plain = f"coalesce({', '.join([*wrong, 'cast(null as string)'])})", "value", list[str]()
    if reading.plain:
        cause, raw, plain = f"if({reading.plain} is null, {cause}, null)", UNSURE, [reading.plain]
    bad = f"(({raw} is not null and ({reading.is_bad})) or {cause} is not null)"
    found = frame.selectExpr("*", *reading.columns)
    fields = [reading.field("__value", n) for n in schema.names]
    names = [n.rsplit(" as ", 1)[-1] for n in beside]
    if not context.keeps_malformed:
        checked = f"if({bad}, {raised(context, position, cause, raw)}, {reading.value}) as __value"
        return found.selectExpr(checked, *plain, *beside).selectExpr(*fields, *names)
    value, description = f"if(__bad, null, {reading.value}) as __value", described("__bad", position, cause, raw)
    judged = found.selectExpr("*", f"{bad} as __bad")
    return judged.selectExpr(value, *plain, *beside, description).selectExpr(*fields, *names, MALFORMED)


def read_texts(frame: DataFrame, context: SourceContext, names: Sequence[str], position: str) -> DataFrame:
    """Keys and values as text, which they must be: bytes that are not stop the flow, or go aside, rather than change on the way."""
    cause = f"coalesce({', '.join(not_text(n) for n in names if n in TEXTS)})"
    malformed = f"{cause} is not null"
    columns = [as_text(n) if n in TEXTS else quote(n) for n in names]
    if context.keeps_malformed:
        return frame.selectExpr(*columns, described(malformed, position, cause))
    stop = f"if({malformed}, {raised(context, position, cause)}, true) as __text"
    checked = frame.selectExpr(*columns, stop).where("__text")
    return checked.drop("__text")


TEXTS = ("key", "value")


def as_text(name: str) -> str:
    """Bytes as text; null when they are none."""
    return f"try_validate_utf8(cast({name} as string)) as {name}"


def not_text(name: str) -> str:
    """The SQL text of why bytes are no text; null when they are one."""
    return invalid(f"cast({name} as string)", name)


def invalid(text: str, name: str) -> str:
    """The same for SQL that returns a text."""
    return f"if(coalesce(is_valid_utf8({text}), true), cast(null as string), 'the {name} is not UTF-8')"


def beside(also: Sequence[str]) -> tuple[list[str], *tuple[str, ...]]:
    """What stands beside the value, and the SQL text of what may be wrong with it: a key must be text."""
    return [as_text(n) if n in TEXTS else quote(n) for n in also], *(not_text(n) for n in also if n in TEXTS)


def described(malformed: str, position: str, cause: str = "cast(null as string)", raw: str = "value") -> str:
    """The column that tells of a record what could not be read, if it could not; `raw` is the column of what was read."""
    there = f"coalesce({position}, '{REPLAYED}')"
    return f"if({malformed}, struct(cast({raw} as binary) as raw, {there} as position, {cause} as cause), null) as {MALFORMED}"


def raised(context: SourceContext, position: str, cause: str, raw: str = "value") -> str:
    """The SQL text that stops the flow at a record."""
    shown = f"make_valid_utf8(left(cast({raw} as string), {SHOWN}))"
    parts = {
        "step": literal(context.step),
        "error": f"coalesce({cause}, {literal(UNREADABLE)})",
        "record": f"coalesce({shown}, '')",
        "position": f"coalesce({position}, '{REPLAYED}')",
        "traceback": "''",
    }
    failure = f"to_json(struct({', '.join(f'{sql} as {name}' for name, sql in parts.items())}))"
    return f"raise_error(concat('{MARK}', regexp_replace(base64({failure}), '[^A-Za-z0-9+/=]', '')))"


def in_order(context: SourceContext, frame: DataFrame) -> DataFrame:
    """The fields in the order of the step, and the column of what could not be read where it is kept."""
    return frame.select(*map(quote, context.schema.names), *([MALFORMED] if context.keeps_malformed else []))


def raw_rows(dead_letters: Iterable[dict[str, Any]], names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Records that come back from the dead letters, as rows of a source before it has read them."""
    return [
        tuple(_bytes(dead_letter.get(n)) if n in ("key", "value") else dead_letter.get(n) for n in names)
        for dead_letter in dead_letters
    ]


def _bytes(value: object) -> object:
    return value.encode() if isinstance(value, str) else value
