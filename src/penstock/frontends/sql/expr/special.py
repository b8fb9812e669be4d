"""Functions whose meaning is made of others: those that Flink has under other names or with other rules."""

from __future__ import annotations

import re

from sqlglot import exp

from penstock.errors import nearest
from penstock.frontends.sql.expr.functions import SPECIAL, Builder, FunctionContext
from penstock.graph import types as t
from penstock.graph.expr import Call, Case, Cast, Expr, Literal, lit
from penstock.graph.expr.literals import MONTHS

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
    "current_time",
    "localtime",
    "rand",
    "random",
    "rand_integer",
    "uuid",
]


def arguments_of(context: FunctionContext, least: int, most: int | None = None) -> tuple[Expr, ...]:
    """The arguments, as expressions; refuses more or fewer than there may be."""
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


def _months(context: FunctionContext) -> int | None:
    """The months of a unit that has no fixed length; None where it has one."""
    return MONTHS.get(context.word(0).removesuffix("S").removeprefix("SQL_TSI_").lower())


def _months_between(first: Expr, last: Expr, size: int) -> Expr:
    """Whole months, or several of them, from one moment to another."""
    first, last = (Cast(each, t.TIMESTAMP) for each in (first, last))

    def month(moment: Expr) -> Expr:
        return Call(
            "+", (Call("*", (Call("year", (Cast(moment, t.DATE),)), lit(12))), Call("month", (Cast(moment, t.DATE),)))
        )

    def within(moment: Expr) -> Expr:
        return Call(
            "-", (Call("unix_micros", (moment,)), Call("unix_micros", (Call("date_trunc", (lit("month"), moment)),)))
        )

    apart = Call("-", (month(last), month(first)))
    less = Call("and", (Call(">", (apart, lit(0))), Call("<", (within(last), within(first)))))
    more = Call("and", (Call("<", (apart, lit(0))), Call(">", (within(last), within(first)))))
    whole = Case(((less, Call("-", (apart, lit(1)))), (more, Call("+", (apart, lit(1))))), apart)
    return Cast(Call("div", (whole, lit(size))), t.INT)


def _months_later(time: Expr, count: Expr, size: int) -> Expr:
    """A moment so many months later; the time of the day stays."""
    time = Cast(time, t.TIMESTAMP)
    day = Call("add_months", (Cast(time, t.DATE), Cast(Call("*", (count, lit(size))), t.INT)))
    micros = Call("pmod", (Call("unix_micros", (time,)), lit(_UNITS["DAY"])))
    return Call("timestamp_micros", (Call("+", (Call("unix_micros", (Cast(day, t.TIMESTAMP),)), micros)),))


def _difference(context: FunctionContext) -> Expr:
    """TIMESTAMPDIFF(unit, from, to): whole units."""
    if len(context.arguments) != 3:
        raise context.error("TIMESTAMPDIFF is written TIMESTAMPDIFF(unit, from, to)")
    months = _months(context)
    if months is not None:
        return _months_between(
            context.translator.expr(context.arguments[1]), context.translator.expr(context.arguments[2]), months
        )
    size = _unit(context)
    first, last = (Call("unix_micros", (Cast(context.translator.expr(a), t.TIMESTAMP),)) for a in context.arguments[1:])
    return Cast(Call("div", (Call("-", (last, first)), lit(size))), t.INT)


def _moved(context: FunctionContext) -> Expr:
    """TIMESTAMPADD(unit, count, time)."""
    if len(context.arguments) != 3:
        raise context.error("TIMESTAMPADD is written TIMESTAMPADD(unit, count, time)")
    count, time = (context.translator.expr(a) for a in context.arguments[1:])
    months = _months(context)
    if months is not None:
        return _months_later(time, count, months)
    size = _unit(context)
    micros = Call("+", (Call("unix_micros", (Cast(time, t.TIMESTAMP),)), Call("*", (Cast(count, t.BIGINT), lit(size)))))
    return Call("timestamp_micros", (micros,))


def _extract(context: FunctionContext) -> Expr:
    """REGEXP_EXTRACT: null where nothing is found, as Flink has it."""
    given = arguments_of(context, 2, 3)
    return Case(
        ((Call("rlike", given[:2]), Call("regexp_extract", (*given[:2], given[2] if len(given) > 2 else lit(0)))),)
    )


def _split_index(context: FunctionContext) -> Expr:
    """SPLIT_INDEX(text, separator, index), from 0; null where there is no such part."""
    text, separator, index = arguments_of(context, 3)
    if not isinstance(separator, Literal) or not isinstance(separator.value, str):
        raise context.error("expected a constant text as the separator of SPLIT_INDEX")
    parts = Call("split", (text, lit(re.escape(separator.value))))
    inside = Call("and", (Call(">=", (index, lit(0))), Call(">", (Call("size", (parts,)), index))))
    return Case(((inside, Call("split_part", (text, separator, Call("+", (Cast(index, t.INT), lit(1)))))),))


def _to_timestamp_ltz(context: FunctionContext) -> Expr:
    """TO_TIMESTAMP_LTZ(number, precision): seconds with 0, milliseconds with 3."""
    given = arguments_of(context, 1, 2)
    precision = given[1].value if len(given) > 1 and isinstance(given[1], Literal) else 3
    names = {0: "timestamp_seconds", 3: "timestamp_millis", 6: "timestamp_micros"}
    if precision not in names:
        raise context.error("expected 0, 3 or 6 as the precision of TO_TIMESTAMP_LTZ")
    return Call(names[int(precision)], (Cast(given[0], t.BIGINT),))


def _from_unixtime(context: FunctionContext) -> Expr:
    given = arguments_of(context, 1, 2)
    pattern = given[1] if len(given) > 1 else lit("yyyy-MM-dd HH:mm:ss")
    return Call("date_format", (Call("timestamp_seconds", (Cast(given[0], t.BIGINT),)), pattern))


def _listed(context: FunctionContext) -> Expr:
    """LISTAGG(x, separator): the texts of a group, joined."""
    arguments = context.arguments
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    values = tuple(context.translator.expr(a) for a in (arguments[0].expressions if distinct else arguments))
    if not 1 <= len(values) <= 2:
        raise context.error("LISTAGG is written LISTAGG(text, ',')")
    listed = Call("collect_list", (values[0],), distinct=distinct)
    return Call("array_join", (listed, values[1] if len(values) > 1 else lit(",")))


def _row(context: FunctionContext) -> Expr:
    """ROW(a, b): a struct."""
    values = context.values()
    return Call("named_struct", tuple(part for at, value in enumerate(values) for part in (lit(f"f{at}"), value)))


def _sha(bits: int) -> Builder:
    return lambda context: Call("sha2", (*arguments_of(context, 1), lit(bits)))


def _clock(context: FunctionContext) -> Expr:
    raise context.error(
        f"{context.name.upper()} does not answer the same twice, and a batch that runs again must: take the value from the rows, such as MD5(a)"
    )


def _proctime(context: FunctionContext) -> Expr:
    raise context.error(
        "PROCTIME() must be a column of its own; windows and look-ups by that column go by processing time"
    )


def _if(context: FunctionContext) -> Expr:
    return Call("if", arguments_of(context, 3))


def _is_type(name: str) -> Builder:
    patterns = {"is_digit": r"^\d+$", "is_alpha": r"^[A-Za-z]+$", "is_decimal": r"^[-+]?\d+(\.\d+)?$"}
    return lambda context: Call("rlike", (*arguments_of(context, 1), lit(patterns[name])))


def _truncate(context: FunctionContext) -> Expr:
    """TRUNCATE(x, n): digits after the n-th are cut off."""
    given = arguments_of(context, 1, 2)
    digits = given[1].value if len(given) > 1 and isinstance(given[1], Literal) else 0
    if not isinstance(digits, int) or not 0 <= digits <= 15:
        raise context.error("expected a constant number of digits from 0 to 15 in TRUNCATE")
    scaled = Call("*", (Cast(given[0], t.DOUBLE), lit(float(10**digits))))
    whole = Case(((Call(">=", (scaled, lit(0.0))), Call("floor", (scaled,))),), Call("ceil", (scaled,)))
    return Call("/", (Cast(whole, t.DOUBLE), lit(float(10**digits))))


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
        **dict.fromkeys(_CLOCKS, _clock),
    }
)
