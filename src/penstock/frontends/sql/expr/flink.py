"""Functions of Flink's that are made of those of the graph: conditional, text, time, collection and JSON functions."""

from __future__ import annotations

import math
import re

from sqlglot import exp

from penstock.frontends.sql.expr.functions import SPECIAL, Builder, FunctionContext
from penstock.frontends.sql.expr.library import LIBRARY, formatting
from penstock.frontends.sql.expr.special import arguments_of
from penstock.frontends.sql.text.statements import CATALOG, DATABASE
from penstock.graph import types as t
from penstock.graph.expr import Call, Case, Cast, Expr, Literal, PythonCall, lit

DAY = 86_400_000_000


def constant_text(context: FunctionContext, given: Expr, what: str) -> str:
    """An argument that is a constant text."""
    if not isinstance(given, Literal) or not isinstance(given.value, str):
        raise context.error(f"expected {what} of {context.name.upper()} as a constant text")
    return given.value


# -- numbers ----------------------------------------------------------------------------------------------------------


def _log(context: FunctionContext) -> Expr:
    """LOG(x), or LOG(base, x)."""
    given = arguments_of(context, 1, 2)
    if len(given) == 1:
        return Call("ln", given)
    return Call("/", (Call("ln", given[1:]), Call("ln", given[:1])))


def _number(value: float) -> Builder:
    def made(context: FunctionContext) -> Expr:
        arguments_of(context, 0)
        return lit(value)

    return made


# -- text -------------------------------------------------------------------------------------------------------------


def _trim(ends: str) -> Builder:
    """BTRIM, LTRIM and RTRIM, perhaps of other characters than blanks."""
    plain = {"both": "trim", "left": "ltrim", "right": "rtrim"}[ends]

    def made(context: FunctionContext) -> Expr:
        given = arguments_of(context, 1, 2)
        if len(given) == 1:
            return Call(plain, given)
        signs = "".join(map(re.escape, constant_text(context, given[1], "the characters")))
        text: Expr = given[0]
        for side, pattern in (("right", f"^[{signs}]+"), ("left", f"[{signs}]+$")):
            if ends != side and signs:
                text = Call("regexp_replace", (text, lit(pattern), lit("")))
        return text

    return made


def _to_base64(context: FunctionContext) -> Expr:
    return Call("replace", (Call("base64", arguments_of(context, 1)), lit("\r\n"), lit("")))


def _from_base64(context: FunctionContext) -> Expr:
    return Cast(Call("unbase64", arguments_of(context, 1)), t.STRING)


def _coded(kind: t.DataType) -> Builder:
    """ENCODE and DECODE, in UTF-8."""

    def made(context: FunctionContext) -> Expr:
        given = arguments_of(context, 2)
        charset = constant_text(context, given[1], "the character set").upper()
        if charset not in ("UTF-8", "UTF8", "US-ASCII"):
            raise context.error(f"expected 'UTF-8' as the character set of {context.name.upper()}, got {charset!r}")
        return Cast(given[0], kind)

    return made


def _elt(context: FunctionContext) -> Expr:
    """ELT(n, a, b, ...): the n-th text; null where there is none."""
    index, *texts = arguments_of(context, 2, 256)
    return Case(tuple((Call("=", (index, lit(at))), text) for at, text in enumerate(texts, 1)))


def _regexp_count(context: FunctionContext) -> Expr:
    text, pattern = arguments_of(context, 2)
    return Call("size", (Call("regexp_extract_all", (text, pattern, lit(0))),))


def _regexp_substr(context: FunctionContext) -> Expr:
    """The first part that fits; null where none does."""
    given = arguments_of(context, 2)
    return Case(((Call("rlike", given), Call("regexp_extract", (*given, lit(0)))),))


def _regexp_instr(context: FunctionContext) -> Expr:
    """Where the first part that fits begins, from 1; 0 where none does."""
    text, pattern = arguments_of(context, 2)
    before = Call("element_at", (Call("split", (text, pattern, lit(2))), lit(1)))
    found = Call("+", (Call("length", (before,)), lit(1)))
    return Case(
        ((Call("rlike", (text, pattern)), found), (Call("isnotnull", (Call("rlike", (text, pattern)),)), lit(0)))
    )


def _regexp_all(context: FunctionContext) -> Expr:
    given = arguments_of(context, 2, 3)
    return Call("regexp_extract_all", given if len(given) == 3 else (*given, lit(1)))


# -- time -------------------------------------------------------------------------------------------------------------


def _part(name: str) -> Builder:
    return lambda context: Cast(Call(name, arguments_of(context, 1)), t.BIGINT)


# -- collections ------------------------------------------------------------------------------------------------------


def _with_item(last: bool) -> Builder:
    """ARRAY_APPEND and ARRAY_PREPEND."""

    def made(context: FunctionContext) -> Expr:
        items, item = arguments_of(context, 2)
        one = Call("array", (item,))
        return Call("concat", (items, one) if last else (one, items))

    return made


def _slice(context: FunctionContext) -> Expr:
    """ARRAY_SLICE(a, from [, to]): both ends count from 1, and are in it."""
    given = arguments_of(context, 2, 3)
    ends = [each.value for each in given[1:] if isinstance(each, Literal) and isinstance(each.value, int)]
    if len(ends) != len(given) - 1 or any(end < 1 for end in ends):
        raise context.error("expected constant positions from 1 on in ARRAY_SLICE")
    length: Expr = Call("size", given[:1]) if len(ends) == 1 else lit(max(ends[1] - ends[0] + 1, 0))
    return Call("slice", (given[0], lit(ends[0]), length))


def _renamed(name: str, least: int, most: int | None = None) -> Builder:
    return lambda context: Call(name, arguments_of(context, least, most))


# -- functions in Python ----------------------------------------------------------------------------------------------


def _in_python(name: str) -> Builder:
    return lambda context: PythonCall(LIBRARY[name], context.values())


def _instr(context: FunctionContext) -> Expr:
    """INSTR(text, part [, start [, which]])."""
    given = arguments_of(context, 2, 4)
    return Call("instr", given) if len(given) == 2 else PythonCall(LIBRARY["instr"], given)


_DIRECTIVE = re.compile(r"%([-+ 0]*\d*(?:\.\d+)?)([a-zA-Z%])")


def _printf(context: FunctionContext) -> Expr:
    """PRINTF(format, ...): %s, %d, %f, %e, %x, %o, %c and %%, as Java has them."""
    template, *given = arguments_of(context, 1, 64)
    written = constant_text(context, template, "the format")
    kinds = {"d": t.BIGINT, "x": t.BIGINT, "X": t.BIGINT, "o": t.BIGINT, "f": t.DOUBLE, "e": t.DOUBLE}
    wanted = [found[2] for found in _DIRECTIVE.finditer(written) if found[2] not in "%n"]
    odd = next((sign for sign in wanted if sign not in {*kinds, "s"}), "")
    if odd or len(wanted) != len(given) or "%" in _DIRECTIVE.sub("", written):
        raise context.error(
            f"expected a format of %s, %d, %f, %e, %x, %o and %% with {len(given)} values, got {written!r}"
        )
    takes = tuple(kinds.get(sign, t.STRING) for sign in wanted)
    values = tuple(Cast(each, kind) for each, kind in zip(given, takes, strict=True))
    python = _DIRECTIVE.sub(lambda found: "\n" if found[2] == "n" else found[0], written)
    return PythonCall(formatting(python, takes), values)


def _element(context: FunctionContext) -> Expr:
    """ELEMENT(a): the one item of an array; null where there is not one."""
    (items,) = arguments_of(context, 1)
    return Case(((Call("=", (Call("size", (items,)), lit(1))), Call("element_at", (items, lit(1)))),))


def _constant(value: str) -> Builder:
    def made(context: FunctionContext) -> Expr:
        arguments_of(context, 0)
        return lit(value)

    return made


REFUSED = {
    "typeof": "types are known before a flow runs; DESCRIBE shows them",
    "current_watermark": "a batch that runs again must answer the same",
    "map_union": "MAP[...] of all keys, or write a Python function",
    "raise_error": "write a condition in WHERE, or a Python function",
}
"""Functions of Flink's that there are not, and what to do instead."""


def _refused(name: str) -> Builder:
    def made(context: FunctionContext) -> Expr:
        raise context.error(f"{context.name.upper()} is not supported: {REFUSED[name]}")

    return made


def between(tree: exp.Between, value: Expr, low: Expr, high: Expr) -> Expr:
    """BETWEEN [SYMMETRIC] low AND high."""
    if not tree.args.get("symmetric"):
        return value.between(low, high)
    return Call("or", (value.between(low, high), value.between(high, low)))


SPECIAL.update(
    {
        "log": _log,
        "pi": _number(math.pi),
        "e": _number(math.e),
        "btrim": _trim("both"),
        "ltrim": _trim("left"),
        "rtrim": _trim("right"),
        "to_base64": _to_base64,
        "from_base64": _from_base64,
        "encode": _coded(t.BINARY),
        "decode": _coded(t.STRING),
        "elt": _elt,
        "regexp_count": _regexp_count,
        "regexp_substr": _regexp_substr,
        "regexp_instr": _regexp_instr,
        "regexp_extract_all": _regexp_all,
        "week": _part("weekofyear"),
        "array_append": _with_item(True),
        "array_prepend": _with_item(False),
        "array_slice": _slice,
        "array_sort": _renamed("sort_array", 1, 2),
        "array_reverse": _renamed("reverse", 1),
        "array_concat": _renamed("concat", 1, 64),
        **{name: _in_python(name) for name in ("parse_url", "str_to_map", "convert_tz", "json_quote", "json_unquote")},
        "instr": _instr,
        "printf": _printf,
        "element": _element,
        "current_database": _constant(DATABASE),
        "current_catalog": _constant(CATALOG),
        **{name: _refused(name) for name in REFUSED},
    }
)
