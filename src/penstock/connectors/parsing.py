"""Texts that Spark reads itself, as SQL: JSON and CSV, as strictly as the readers without a JVM (`kernels/records`).

Spark's parser stops at the end of the first value and does not look at what follows. So a text is read as the first of two elements of an
array, and the second is a mark that nobody can guess: unless exactly the text and the mark are in it, the text is more or less than one value.
What Spark reads and Python cannot hold, or what Spark changes on the way, is found in the values afterwards.

To read the mark with each record costs a quarter more than to read the record. Most records need none: in a text that begins with an opening
brace, and whose only closing brace is its last character, nothing can follow the value. Such a text is read as it is.
"""

from __future__ import annotations

import json
import re
import secrets
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from penstock.graph import types as t
from penstock.graph.schema import Schema
from penstock.graph.types import quote
from penstock.kernels.records.json_text import LARGE_EXPONENT, LONE_SURROGATE, MAX_DEPTH, has_decimal

PARSED, STRICT, SURE = "__parsed", "__strict", "__sure"
"""What Spark has read; what it has read of a text with a mark behind it; whether a text is sure to be one value, and needs no mark."""
TEXT = "__text"
"""Where Spark puts a text that it could not read."""
_MARK = "m" + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(7))
"""A name that nobody can guess, and short: Spark reads it twice with each record."""
_BEFORE, _AFTER = f'{{"{_MARK}":[', f',{{"{_MARK}":true}}]}}'
_ADDED_DEPTH = 2
CSV = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": TEXT, "escape": '"'}
"""Quotes are doubled inside quotes (RFC 4180)."""
JSON = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": TEXT,
    "maxNestingDepth": str(MAX_DEPTH + _ADDED_DEPTH),
    "maxStringLen": str(2**31 - 1),
    "allowSingleQuotes": "false",
    "enableDateTimeParsingFallback": "false",
}
"""Strict JSON, except for NaN and infinity."""
_DEPTH = {"maxNestingDepth": str(MAX_DEPTH)}
"""For a text that is read as it is."""


@dataclass(frozen=True)
class TextReading:
    """How Spark reads a text, in SQL: columns that are added one after the other, the struct of fields in them, and whether the text is no record."""

    columns: tuple[str, ...]
    value: str
    is_bad: str


def literal(text: str) -> str:
    r"""A text inside SQL.

    >>> print(literal("it's"))
    'it\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def json_reading(text: str, schema: Schema) -> TextReading:
    """How a text, given as SQL, is read as one JSON object of a schema."""
    wide = _with(t.Struct(schema.fields), {t.TINYINT: t.SMALLINT})
    read = _read_flat(text, schema, wide) if _is_flat(schema) else _read_marked(_marked(text, schema, wide), PARSED)
    again = f"get({_marked(text, schema, _with(wide, {t.TIMESTAMP: t.STRING}))}.{_MARK}, 0)"
    bad = [
        read.is_bad,
        *_changed(text),
        *unfit(read.value, schema.fields),
        *_overflowed(read.value, again, text, schema.fields),
    ]
    return replace(read, value=_narrow(read.value, schema, wide), is_bad=" or ".join(bad))


def _read_marked(parse: str, column: str) -> TextReading:
    """The reading of a text with a mark behind it: both must be there, and nothing else."""
    items = f"{column}.{_MARK}"
    value = f"get({items}, 0)"
    whole = f"coalesce(size({items}) = 2 and get({items}, 1).{_MARK}, false)"
    bad = f"({column}.{TEXT} is not null or not {whole} or {value} is null)"
    return TextReading((f"{parse} as {column}",), value, bad)


def _read_flat(text: str, schema: Schema, wide: t.Struct) -> TextReading:
    """The reading of a text without objects in the object: as it is where it is sure to be one value, and with a mark elsewhere."""
    marked = _read_marked(f"if({SURE}, null, {_marked(text, schema, wide)})", STRICT)
    ddl = ", ".join([*(f"{quote(f.name)} {f.type}" for f in wide.fields), f"{TEXT} string"])
    plain = f"from_json({text}, {literal(ddl)}, {_options(JSON | _DEPTH)})"
    fields = [f"{literal(f.name)}, {_part(marked.value, f)}" for f in wide.fields]
    same = f"named_struct({', '.join(fields)}, {literal(TEXT)}, cast(null as string))"
    return TextReading(
        (f"{_sure(text, schema)} as {SURE}", f"if({SURE}, {plain}, null) as {PARSED}", *marked.columns),
        f"if({SURE}, {PARSED}, {same})",
        f"if({SURE}, {PARSED} is null or {PARSED}.{TEXT} is not null, {marked.is_bad})",
    )


def _is_flat(schema: Schema) -> bool:
    """Whether records have no objects in them; where they have, most have more than one closing brace."""
    return TEXT not in {n.lower() for n in schema.names} and not any(_has_object(f.type) for f in schema.fields)


def _has_object(kind: t.DataType) -> bool:
    return _has_object(kind.item) if isinstance(kind, t.Array) else isinstance(kind, t.Struct | t.Map)


def _sure(text: str, schema: Schema) -> str:
    """Whether a text begins with an opening brace and has its first closing one at its end. Spark finds that by bytes, without a regular expression."""
    ends = f"octet_length(substring_index({text}, '}}', 1)) = octet_length({text}) - 1"
    readable = f" and not {text} rlike {literal(LARGE_EXPONENT)}" if has_decimal(schema) else ""
    return f"coalesce(startswith({text}, '{{') and {ends}{readable}, false)"


def _marked(text: str, schema: Schema, kind: t.Struct) -> str:
    """A text read as the first of two elements, of which the other is the mark."""
    ddl = f"{_MARK} array<{_struct((*kind.fields, t.Field(_MARK, t.BOOLEAN)))}>, {TEXT} string"
    safe = f"if({text} rlike {literal(LARGE_EXPONENT)}, '', {text})" if has_decimal(schema) else text
    return f"from_json(concat({literal(_BEFORE)}, {safe}, {literal(_AFTER)}), {literal(ddl)}, {_options(JSON)})"


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


def _struct(fields: Iterable[t.Field]) -> str:
    return f"struct<{', '.join(f'{quote(f.name)}: {f.type}' for f in fields)}>"


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


def _overflowed(value: str, again: str, text: str, fields: Iterable[t.Field]) -> list[str]:
    """Seconds times a million that no longer fit in 64 bits, for which Spark returns any time: it multiplies without a look.

    The product is a multiple of 64. Where a time is one, and the JSON has a number of that size in a field of that name, the JSON is read once
    more, `again`, with times as texts, of which none must be such a number.
    """
    made: list[str] = []
    for f in fields:
        first, second = _part(value, f), _part(again, f)
        if isinstance(f.type, t.Struct):
            made += _overflowed(first, second, text, f.type.fields)
        elif found := _is_large(second, f.type, (f"w{number}" for number in count())):
            within = "" if f.type == t.TIMESTAMP else r"[^\]}]{0,2000}[:,\[]"
            named = re.escape(json.dumps(f.name, ensure_ascii=False)) + r"\s*:" + within + _LARGE
            aligned = f"unix_micros({first}) % 64 = 0 and " if f.type == t.TIMESTAMP else ""
            made.append(f"coalesce({aligned}{text} rlike {literal(named)} and {found}, false)")
    return made


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
