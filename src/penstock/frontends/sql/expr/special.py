"""Functions whose meaning is made of others: those that Flink has under other names or with other rules."""

from __future__ import annotations

import re

from penstock.errors import nearest
from penstock.frontends.sql.expr.functions import SPECIAL, Builder, FunctionContext
from penstock.graph import types as t
from penstock.graph.expr import Call, Case, Cast, Expr, Literal, lit

_UNITS = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
_CLOCKS = [
    "current_timestamp",
    "current_date",
    "current_time",
    "localtimestamp",
    "localtime",
    "now",
    "current_row_timestamp",
    "rand",
    "random",
    "rand_integer",
    "uuid",
]


def _arguments(context: FunctionContext, least: int, most: int | None = None) -> tuple[Expr, ...]:
    given = len(context.arguments)
    most = least if most is None else most
    if not least <= given <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise context.error(f"{context.name.upper()} takes {wanted} arguments, got {given}")
    return context.values()


def _unit(context: FunctionContext) -> int:
    unit = context.word(0).removesuffix("S").removeprefix("SQL_TSI_")
    if unit not in _UNITS:
        raise context.error(
            f"expected a unit of a fixed length as the first argument, got {unit}; {nearest(unit, _UNITS)}"
        )
    return _UNITS[unit]


def _difference(context: FunctionContext) -> Expr:
    """TIMESTAMPDIFF(unit, from, to): whole units."""
    if len(context.arguments) != 3:
        raise context.error("TIMESTAMPDIFF is written TIMESTAMPDIFF(unit, from, to)")
    size = _unit(context)
    first, last = (Call("unix_micros", (Cast(context.translator.expr(a), t.TIMESTAMP),)) for a in context.arguments[1:])
    return Cast(Call("div", (Call("-", (last, first)), lit(size))), t.INT)


def _moved(context: FunctionContext) -> Expr:
    """TIMESTAMPADD(unit, count, time)."""
    if len(context.arguments) != 3:
        raise context.error("TIMESTAMPADD is written TIMESTAMPADD(unit, count, time)")
    size = _unit(context)
    count, time = (context.translator.expr(a) for a in context.arguments[1:])
    micros = Call("+", (Call("unix_micros", (Cast(time, t.TIMESTAMP),)), Call("*", (Cast(count, t.BIGINT), lit(size)))))
    return Call("timestamp_micros", (micros,))


def _extract(context: FunctionContext) -> Expr:
    """REGEXP_EXTRACT: null where nothing is found, as Flink has it."""
    given = _arguments(context, 2, 3)
    return Case(
        ((Call("rlike", given[:2]), Call("regexp_extract", (*given[:2], given[2] if len(given) > 2 else lit(0)))),)
    )


def _split_index(context: FunctionContext) -> Expr:
    """SPLIT_INDEX(text, separator, index), from 0; null where there is no such part."""
    text, separator, index = _arguments(context, 3)
    if not isinstance(separator, Literal) or not isinstance(separator.value, str):
        raise context.error("expected a constant text as the separator of SPLIT_INDEX")
    parts = Call("split", (text, lit(re.escape(separator.value))))
    inside = Call("and", (Call(">=", (index, lit(0))), Call(">", (Call("size", (parts,)), index))))
    return Case(((inside, Call("split_part", (text, separator, Call("+", (Cast(index, t.INT), lit(1)))))),))


def _to_timestamp_ltz(context: FunctionContext) -> Expr:
    """TO_TIMESTAMP_LTZ(number, precision): seconds with 0, milliseconds with 3."""
    given = _arguments(context, 1, 2)
    precision = given[1].value if len(given) > 1 and isinstance(given[1], Literal) else 3
    names = {0: "timestamp_seconds", 3: "timestamp_millis", 6: "timestamp_micros"}
    if precision not in names:
        raise context.error("expected 0, 3 or 6 as the precision of TO_TIMESTAMP_LTZ")
    return Call(names[int(precision)], (Cast(given[0], t.BIGINT),))


def _from_unixtime(context: FunctionContext) -> Expr:
    given = _arguments(context, 1, 2)
    pattern = given[1] if len(given) > 1 else lit("yyyy-MM-dd HH:mm:ss")
    return Call("date_format", (Call("timestamp_seconds", (Cast(given[0], t.BIGINT),)), pattern))


def _listed(context: FunctionContext) -> Expr:
    """LISTAGG(x, separator): the texts of a group, joined."""
    arguments = context.arguments
    values = tuple(context.translator.expr(a) for a in arguments)
    if not 1 <= len(values) <= 2:
        raise context.error("LISTAGG is written LISTAGG(text, ',')")
    return Call("array_join", (Call("collect_list", (values[0],)), values[1] if len(values) > 1 else lit(",")))


def _row(context: FunctionContext) -> Expr:
    """ROW(a, b): a struct."""
    values = context.values()
    return Call("named_struct", tuple(part for at, value in enumerate(values) for part in (lit(f"f{at}"), value)))


def _sha(bits: int) -> Builder:
    return lambda context: Call("sha2", (*_arguments(context, 1), lit(bits)))


def _clock(context: FunctionContext) -> Expr:
    raise context.error(
        f"{context.name.upper()} does not answer the same twice, and a batch that runs again must: take the time from the rows"
    )


def _proctime(context: FunctionContext) -> Expr:
    raise context.error(
        "PROCTIME() stands alone as a column; windows and look-ups by that column go by processing time"
    )


def _if(context: FunctionContext) -> Expr:
    return Call("if", _arguments(context, 3))


def _is_type(name: str) -> Builder:
    patterns = {"is_digit": r"^\d+$", "is_alpha": r"^[A-Za-z]+$", "is_decimal": r"^[-+]?\d+(\.\d+)?$"}
    return lambda context: Call("rlike", (*_arguments(context, 1), lit(patterns[name])))


def _truncate(context: FunctionContext) -> Expr:
    """TRUNCATE(x, n): digits after the n-th are cut off."""
    given = _arguments(context, 1, 2)
    digits = given[1].value if len(given) > 1 and isinstance(given[1], Literal) else 0
    if not isinstance(digits, int) or not 0 <= digits <= 15:
        raise context.error("expected a constant number of digits from 0 to 15 in TRUNCATE")
    scaled = Call("*", (Cast(given[0], t.DOUBLE), lit(float(10**digits))))
    whole = Case(((Call(">=", (scaled, lit(0.0))), Call("floor", (scaled,))),), Call("ceil", (scaled,)))
    return Call("/", (Cast(whole, t.DOUBLE), lit(float(10**digits))))


def _json_value(context: FunctionContext) -> Expr:
    return Call("get_json_object", _arguments(context, 2))


SPECIAL.update(
    {
        "timestampdiff": _difference,
        "timestampadd": _moved,
        "regexp_extract": _extract,
        "split_index": _split_index,
        "to_timestamp_ltz": _to_timestamp_ltz,
        "from_unixtime": _from_unixtime,
        "listagg": _listed,
        "string_agg": _listed,
        "row": _row,
        "sha224": _sha(224),
        "sha256": _sha(256),
        "sha384": _sha(384),
        "sha512": _sha(512),
        "proctime": _proctime,
        "if": _if,
        "is_digit": _is_type("is_digit"),
        "is_alpha": _is_type("is_alpha"),
        "is_decimal": _is_type("is_decimal"),
        "truncate": _truncate,
        "json_value": _json_value,
        **dict.fromkeys(_CLOCKS, _clock),
    }
)
