"""Texts that Spark reads itself, as SQL: JSON and CSV, as strictly as the readers without a JVM (`kernels/records`).

Spark's parser stops at the end of the first value and does not look at what follows. So the last brace of a text gives way to one more field, with
a name that nobody can guess, and a brace: where Spark finds that field in the object, the text ends with this object. In a text that begins with an
opening brace, and whose only closing brace is its last character, nothing can follow the value; such a text is read as it is. What Spark reads and
Python cannot hold, or what Spark changes on the way, is found in the values afterwards.

`from_json` is no part of the code that Spark generates for a whole stage: rows are written out before and after it. So there is one, and all that is
looked at afterwards is one expression.
"""

from __future__ import annotations

import json
import re
import secrets
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from penstock.graph import types as t
from penstock.graph.schema import Schema
from penstock.graph.types import quote
from penstock.kernels.records.json_text import BLANKS, LARGE_EXPONENT, LONE_SURROGATE, MAX_DEPTH, has_decimal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHOLE, OBJECT, MARKED, PARSED = "__whole", "__object", "__marked", "__parsed"
"""Whether a text is sure to be one value, and needs no mark; the text from brace to brace; the same with a mark; what Spark has read of it."""
PLAIN, UNSURE = "__plain", "__unsure"
"""What was read of a text that is plain, and null where it is not; the text that is not, which Spark's parser gets."""
PLAIN_JSON, PLAIN_SETTING = "penstock_plain_json", "spark.penstock.json.plain"
"""The SQL function that reads plain JSON, and the setting of a session that has it."""
TEXT = "__text"
"""Where Spark puts a line of CSV that it could not read."""
_MARK = "m" + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(7))
"""A name that nobody can guess, and short: Spark reads it with each record."""
_REST = f"{_MARK}x"
"""Where Spark puts a text that it could not read as JSON."""
CSV = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": TEXT, "escape": '"'}
"""Quotes are doubled inside quotes (RFC 4180)."""
JSON = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _REST,
    "maxNestingDepth": str(MAX_DEPTH),
    "maxStringLen": str(2**31 - 1),
    "allowSingleQuotes": "false",
    "enableDateTimeParsingFallback": "false",
}
"""Strict JSON, except for NaN and infinity."""


@dataclass(frozen=True)
class TextReading:
    """How Spark reads a text, in SQL: columns, of which each may name those before it, the struct of fields in them, and whether the text is no record."""

    columns: tuple[str, ...]
    value: str
    is_bad: str
    plain: str = ""
    """The column of the same fields of a text that is sure to be a record; empty where none is."""

    def field(self, struct: str, name: str) -> str:
        """The SQL of a field, by the SQL of what stands for `value`."""
        found = f"{struct}.{quote(name)}"
        return f"coalesce({self.plain}.{quote(name)}, {found}) as {quote(name)}" if self.plain else found


def literal(text: str) -> str:
    r"""A text inside SQL.

    >>> print(literal("it's"))
    'it\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def json_reading(text: str, schema: Schema, *, plainly: bool = False) -> TextReading:
    """How a text, given as SQL, is read as one JSON object of a schema; `plainly`, where the session has the function for plain texts, by that first."""
    if plainly and _is_plain(schema):
        return _plain_first(text, schema)
    wide = _with(t.Struct(schema.fields), {t.TINYINT: t.SMALLINT})
    whole, handed_on = (f"{_is_whole(text)} as {WHOLE}",), f"if({WHOLE}, {text}, {_cut(OBJECT)})"
    if not _is_flat(schema):
        whole, handed_on = (f"false as {WHOLE}",), _cut(OBJECT)
    columns = (
        *whole,
        f"{_object(text)} as {OBJECT}",
        f"{_if_quick(text, handed_on, schema)} as {MARKED}",
        f"{_from_json(wide)} as {PARSED}",
    )
    bad = [
        f"not coalesce({PARSED} is not null and {PARSED}.{_REST} is null and ({PARSED}.{_MARK} or {WHOLE}), false)",
        *_changed(text),
        *unfit(PARSED, schema.fields),
        *_overflowed(text, schema, wide),
    ]
    return TextReading(columns, _narrow(PARSED, schema, wide), " or ".join(bad))


def reads_plainly(spark: SparkSession) -> bool:
    """Whether a session has the function for plain texts."""
    return spark.conf.get(PLAIN_SETTING, "") == "true"


def _plain_first(text: str, schema: Schema) -> TextReading:
    """A text read by the function; only where that returns nothing, Spark's parser gets the text, and what it has read is looked at."""
    ddl = ", ".join(f"{quote(f.name)} {f.type}" for f in schema.fields)
    plain = f"{PLAIN_JSON}({text}, {literal(ddl)}, current_timezone()) as {PLAIN}"
    rest = json_reading(UNSURE, schema)
    columns = (plain, f"if({PLAIN} is null, {text}, null) as {UNSURE}", *rest.columns)
    return TextReading(columns, rest.value, f"{PLAIN} is null and ({rest.is_bad})", PLAIN)


def _is_plain(schema: Schema) -> bool:
    """Whether the function knows the types of all fields, and how to tell the fields apart."""
    return len(schema.fields) <= MAX_PLAIN_FIELDS and all(_is_plain_type(f.type) for f in schema.fields)


def _is_plain_type(kind: t.DataType) -> bool:
    if isinstance(kind, t.Struct):
        return _is_plain(Schema(kind.fields))
    return _is_plain_type(kind.item) if isinstance(kind, t.Array) else isinstance(kind, t.Decimal) or kind in _PLAIN


MAX_PLAIN_FIELDS = 64
_PLAIN = (
    *(t.STRING, t.BIGINT, t.INT, t.SMALLINT, t.DOUBLE, t.BOOLEAN),
    *(t.TIMESTAMP, t.TIMESTAMP_NTZ, t.DATE),
)


def _from_json(kind: t.Struct) -> str:
    """The text with its mark, read as an object."""
    fields = (*kind.fields, t.Field(_MARK, t.BOOLEAN), t.Field(_REST, t.STRING))
    ddl = ", ".join(f"{quote(f.name)} {f.type}" for f in fields)
    return f"from_json({MARKED}, {literal(ddl)}, {_options(JSON)})"


def _object(text: str) -> str:
    """A text in braces, without blanks around it; null where it is none."""
    trimmed = f"trim(both {literal(BLANKS)} from {text})"
    return f"if({_is_braced(text)}, {text}, if({_is_braced(trimmed)}, {trimmed}, null))"


def _is_braced(text: str) -> str:
    return f"(startswith({text}, '{{') and endswith({text}, '}}'))"


def _cut(text: str) -> str:
    """A text with a mark in place of its last brace. It is cut by bytes, since Spark would count characters; in an empty object no comma stands before the mark."""
    maybe = " or ".join(f"startswith({text}, {literal('{' + second)})" for second in ("}", *BLANKS))
    empty = f"({maybe}) and {text} rlike {literal('^[{][' + BLANKS + ']*[}]$')}"
    before = f"substring(cast({text} as binary), 1, octet_length({text}) - 1)"
    return f"cast(concat({before}, if({empty}, {_field('')}, {_field(',')})) as string)"


def _field(comma: str) -> str:
    mark = f'{comma}"{_MARK}":true}}'
    return f"cast({literal(mark)} as binary)"


def _if_quick(text: str, handed_on: str, schema: Schema) -> str:
    """What Spark is given to read: nothing, where a number would take it minutes."""
    return f"if({text} rlike {literal(LARGE_EXPONENT)}, null, {handed_on})" if has_decimal(schema) else handed_on


def _is_flat(schema: Schema) -> bool:
    """Whether records have no objects in them; where they have, most have more than one closing brace."""
    return not any(_has_object(f.type) for f in schema.fields)


def _has_object(kind: t.DataType) -> bool:
    return _has_object(kind.item) if isinstance(kind, t.Array) else isinstance(kind, t.Struct | t.Map)


def _is_whole(text: str) -> str:
    """Whether a text begins with an opening brace and has its first closing one at its end. Spark finds that by bytes, without a regular expression."""
    ends = f"octet_length(substring_index({text}, '}}', 1)) = octet_length({text}) - 1"
    return f"coalesce(startswith({text}, '{{') and {ends}, false)"


def _with(struct: t.Struct, types: Mapping[t.DataType, t.DataType]) -> t.Struct:
    """A struct with other types for some: a byte may be 255 to Spark's parser, which it then takes for -1, so it reads a larger number."""

    def of(kind: t.DataType) -> t.DataType:
        if isinstance(kind, t.Array):
            return t.Array(of(kind.item))
        if isinstance(kind, t.Map):
            return t.Map(kind.key, of(kind.value))
        return _with(kind, types) if isinstance(kind, t.Struct) else types.get(kind, kind)

    return t.Struct(tuple(replace(f, type=of(f.type)) for f in struct.fields))


def _narrow(value: str, schema: Schema, wide: t.Struct) -> str:
    if wide.fields == schema.fields:
        return value
    parts = [f"cast({value}.{quote(f.name)} as {f.type}) as {quote(f.name)}" for f in schema.fields]
    return f"struct({', '.join(parts)})"


def csv_reading(text: str, schema: Schema) -> TextReading:
    """How a text, given as SQL, is read as a line of CSV."""
    ddl = csv_ddl(schema)
    parse = f"from_csv({text}, {literal(ddl)}, {_options(CSV)})"
    cells = ", ".join(f"{sql} as {quote(name)}" for name, sql in csv_cells(PARSED, schema).items())
    bad = [f"{PARSED} is null", f"{PARSED}.{TEXT} is not null", *csv_unfit(PARSED, schema)]
    return TextReading((f"{parse} as {PARSED}",), f"struct({cells})", " or ".join(bad))


def csv_ddl(schema: Schema) -> str:
    """As what Spark reads the cells of a line. Decimals are texts first: its CSV takes minutes for a large exponent, its cast does not."""
    kinds = ((f.name, t.STRING if isinstance(f.type, t.Decimal) else f.type) for f in schema.fields)
    return ", ".join([*(f"{quote(name)} {kind}" for name, kind in kinds), f"{TEXT} string"])


def csv_cells(struct: str, schema: Schema) -> dict[str, str]:
    """The SQL of each field of what Spark has read by `csv_ddl`; `struct` is what they are fields of, empty for columns."""
    made = {f.name: _part(struct, f) for f in schema.fields}
    decimals = [f for f in schema.fields if isinstance(f.type, t.Decimal)]
    return made | {f.name: f"try_cast({made[f.name]} as {f.type})" for f in decimals}


def csv_unfit(struct: str, schema: Schema) -> list[str]:
    """What is wrong with fields that Spark has read by `csv_ddl`, as SQL that is true where it is."""
    decimals = [f.name for f in schema.fields if isinstance(f.type, t.Decimal)]
    cells = csv_cells(struct, schema)
    lost = [f"({_part(struct, schema.field(n))} is not null and {cells[n]} is null)" for n in decimals]
    return [*lost, *unfit(struct, schema.fields)]


def _options(given: dict[str, str]) -> str:
    return f"map({', '.join(f'{literal(k)}, {literal(v)}' for k, v in given.items())})"


def _changed(text: str) -> list[str]:
    """Half a surrogate pair in an escape, for which Spark puts a question mark."""
    escape, lower, upper = (f"contains({text}, {literal(start)})" for start in ("\\u", "\\ud", "\\uD"))
    return [f"({escape} and ({lower} or {upper}) and {text} rlike {literal(LONE_SURROGATE)})"]


def unfit(struct: str, fields: Iterable[t.Field]) -> list[str]:
    """What is wrong with fields that Spark has read, as SQL that is true where it is: times that Python lacks, keys of maps that occur twice.

    `struct` is the SQL of what they are fields of, empty for columns.
    """
    names = (f"v{number}" for number in count())
    made = [_unfit(_part(struct, f), f.type, names) for f in fields]
    return [f"coalesce({sql}, false)" for sql in made if sql]


def _part(struct: str, field: t.Field) -> str:
    return f"{struct}.{quote(field.name)}" if struct else quote(field.name)


def _unfit(sql: str, kind: t.DataType, names: Iterator[str]) -> str:
    if kind in _RANGES:
        return outside(sql, kind)
    if isinstance(kind, t.Array):
        return _any(sql, kind.item, _unfit, names)
    if isinstance(kind, t.Map):
        twice = f"size({sql}) <> size(array_distinct(map_keys({sql})))"
        return _either(twice, _any(f"map_values({sql})", kind.value, _unfit, names))
    if isinstance(kind, t.Struct):
        return _either(*(_unfit(_part(sql, f), f.type, names) for f in kind.fields))
    return ""


def _either(*conditions: str) -> str:
    return " or ".join(filter(None, conditions))


Judge = Callable[[str, t.DataType, Iterator[str]], str]
"""What is wrong with a value, as SQL, by its own SQL and its type; the names are for the values inside it."""


def _any(sql: str, item: t.DataType, judge: Judge, names: Iterator[str]) -> str:
    each = next(names)
    found = judge(each, item, names)
    return f"exists({sql}, {each} -> coalesce({found}, false))" if found else ""


def outside(sql: str, kind: t.DataType) -> str:
    """SQL that is true where a time lies outside the years 1 to 9999, which Python does not know."""
    return _RANGES[kind](sql)


def _between(first: str, last: str) -> Callable[[str], str]:
    return lambda sql: f"{sql} not between {first} and {last}"


_RANGES: dict[t.DataType, Callable[[str], str]] = {
    t.TINYINT: _between("-128", "127"),
    t.DATE: _between("date'0001-01-01'", "date'9999-12-31'"),
    t.TIMESTAMP: _between("timestamp'0001-01-01 00:00:00Z'", "timestamp'9999-12-31 23:59:59.999999Z'"),
    t.TIMESTAMP_NTZ: _between("timestamp_ntz'0001-01-01 00:00:00'", "timestamp_ntz'9999-12-31 23:59:59.999999'"),
}


_LARGE = r"\s*-?(?:[0-9]{14}|9[2-9][0-9]{11})"


def _overflowed(text: str, schema: Schema, wide: t.Struct) -> list[str]:
    """Seconds times a million that no longer fit in 64 bits, for which Spark returns any time: it multiplies without a look.

    The product is a multiple of 64. Where a time is one, and the JSON has a number of that size in a field of that name, the JSON is read once
    more, with times as texts, of which none must be such a number.
    """
    times = list(_times(PARSED, "r", schema.fields, (f"w{number}" for number in count())))
    if not times:
        return []
    aligned, large = (
        " or ".join(f"coalesce({sql}, false)" for sql in each)
        for each in ([x.aligned for x in times], [x.large for x in times])
    )
    named = "|".join(dict.fromkeys(each.named for each in times))
    again = _from_json(_with(wide, {t.TIMESTAMP: t.STRING}))
    return [f"(({aligned}) and {text} rlike {literal(named)} and exists(array({again}), r -> {large}))"]


@dataclass(frozen=True)
class _Time:
    """A field with times, as SQL: whether one may be too large, and whether it is; and the pattern of its name and such a number in the JSON."""

    aligned: str
    named: str
    large: str


def _times(value: str, again: str, fields: Iterable[t.Field], names: Iterator[str]) -> Iterator[_Time]:
    """The fields that hold times, those of structs too. Of times inside arrays and maps nobody asks whether one is a multiple of 64."""
    for f in fields:
        first, second = _part(value, f), _part(again, f)
        if isinstance(f.type, t.Struct):
            yield from _times(first, second, f.type.fields, names)
        elif found := _is_large(second, f.type, names):
            within = "" if f.type == t.TIMESTAMP else r"[^\]}]{0,2000}[:,\[]"
            named = re.escape(json.dumps(f.name, ensure_ascii=False)) + r"\s*:" + within + _LARGE
            yield _Time(f"unix_micros({first}) % 64 = 0" if f.type == t.TIMESTAMP else "true", named, found)


def _is_large(sql: str, kind: t.DataType, names: Iterator[str]) -> str:
    if kind == t.TIMESTAMP:
        return f"{sql} rlike {literal(f'^{_LARGE}')}"
    if isinstance(kind, t.Array):
        return _any(sql, kind.item, _is_large, names)
    if isinstance(kind, t.Map):
        return _any(f"map_values({sql})", kind.value, _is_large, names)
    if isinstance(kind, t.Struct):
        return _either(*(_is_large(_part(sql, f), f.type, names) for f in kind.fields))
    return ""
