"""Functions with words between their arguments: EXTRACT(day FROM ts), SUBSTRING(x FROM 2 FOR 3), TRIM(BOTH 'x' FROM y) and the like."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import ExpressionError, nearest
from penstock.graph import types as t
from penstock.graph.expr import Call, Case, Cast, Expr, Literal, lit
from penstock.graph.expr.literals import MONTHS, interval_unit
from penstock.graph.expr.model import INTERVAL, INTERVAL_MONTH

if TYPE_CHECKING:
    from penstock.frontends.sql.expr.translate import Translator

PARTS = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "WEEK": "weekofyear",
    "DAY": "day",
    "DAYOFMONTH": "day",
    "DOW": "dayofweek",
    "DAYOFWEEK": "dayofweek",
    "DOY": "dayofyear",
    "DAYOFYEAR": "dayofyear",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
}
"""The parts of a time, and the function that takes each."""


def extracted(translator: Translator, tree: exp.Extract) -> Expr:
    """EXTRACT(part FROM time)."""
    part, time = tree.this.name.upper(), translator.expr(tree.expression)
    if part == "EPOCH":
        return Call("unix_seconds", (time,))
    if part in ("MILLISECOND", "MICROSECOND"):
        unit = 1_000 if part == "MILLISECOND" else 1
        within = Call("pmod", (Call("unix_micros", (time,)), lit(60_000_000)))
        return Call("div", (within, lit(unit)))
    if part == "ISODOW":
        return Cast(Call("+", (Call("weekday", (time,)), lit(1))), t.BIGINT)
    if part not in PARTS:
        raise translator.text.error(tree, f"no part {part} of a time; {nearest(part, PARTS)}")
    made: Expr = Call(PARTS[part], (time,))
    return Cast(made, t.BIGINT)


def substring(translator: Translator, tree: exp.Substring) -> Expr:
    """SUBSTRING(x FROM a FOR n), and SUBSTRING(x, a, n)."""
    given = [tree.this, tree.args.get("start"), tree.args.get("length")]
    if given[1] is None:
        raise translator.text.error(tree, "expected a position in SUBSTRING(x FROM 1 FOR 2)")
    return Call("substring", tuple(translator.expr(each) for each in given if each is not None))


def trimmed(translator: Translator, tree: exp.Trim) -> Expr:
    """TRIM([BOTH | LEADING | TRAILING] 'x' FROM y)."""
    text, position = translator.expr(tree.this), str(tree.args.get("position") or "BOTH").upper()
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(position, "trim")
    signs = tree.args.get("expression")
    if signs is None:
        return Call(name, (text,))
    if not isinstance(signs, exp.Literal) or not signs.is_string or not signs.this:
        raise translator.text.error(tree, "expected the characters of TRIM as a text, such as TRIM(BOTH 'x' FROM y)")
    some = "[" + "".join(re.escape(sign) for sign in str(signs.this)) + "]+"
    for end, pattern in (("rtrim", f"^{some}"), ("ltrim", f"{some}$")):
        if name != end:
            text = Call("regexp_replace", (text, lit(pattern), lit("")))
    return text


def rounded(translator: Translator, tree: exp.Expr, name: str) -> Expr:
    """CEIL(x), FLOOR(x), and FLOOR(ts TO unit)."""
    unit, value = tree.args.get("to"), translator.expr(tree.this)
    if unit is None:
        return Call(name, (value,))
    begin = Call("date_trunc", (lit(unit.name.lower()), value))
    if name == "floor":
        return begin
    return Case(
        ((Call("=", (begin, Cast(value, t.TIMESTAMP))), begin),), Call("+", (begin, _one(translator, tree, unit.name)))
    )


def _one(translator: Translator, tree: exp.Expr, unit: str) -> Expr:
    """An interval of one unit."""
    if unit.lower() in MONTHS:
        return Literal(MONTHS[unit.lower()], INTERVAL_MONTH)
    try:
        return Literal(interval_unit(unit)[0], INTERVAL)
    except ExpressionError as error:
        raise translator.text.error(tree, str(error)) from None


def overlaid(translator: Translator, tree: exp.Overlay) -> Expr:
    """OVERLAY(x PLACING y FROM a [FOR n])."""
    text, other, start = (translator.expr(tree.args[name]) for name in ("this", "expression", "from_"))
    length = tree.args.get("for_")
    many = Call("length", (other,)) if length is None else translator.expr(length)
    before = Call("substring", (text, lit(1), Call("-", (start, lit(1)))))
    return Call("concat", (before, other, Call("substring", (text, Call("+", (start, many))))))


def overlapping(translator: Translator, tree: exp.Expr) -> Expr:
    """(a, b) OVERLAPS (c, d): spans of time of which each begins before the other ends."""
    sides = [each.expressions for each in (tree.this, tree.expression) if isinstance(each, exp.Tuple)]
    if len(sides) != 2 or any(len(side) != 2 for side in sides):
        raise translator.text.error(tree, "expected (start, end) OVERLAPS (start, end)")
    (a, b), (c, d) = (_span_of(translator, *side) for side in sides)
    return Call("and", (Call("<", (a, d)), Call("<", (c, b))))


def _span_of(translator: Translator, start: exp.Expr, end: exp.Expr) -> tuple[Expr, Expr]:
    """A span by its start and its end, or by its start and how long it is."""
    first, last = translator.expr(start), translator.expr(end)
    if not isinstance(end, exp.Interval):
        return first, last
    first = Cast(first, t.TIMESTAMP)
    return first, Call("+", (first, last))


def similar(translator: Translator, tree: exp.SimilarTo) -> Expr:
    """SIMILAR TO: a pattern that must fit the whole text, with % and _ as in LIKE."""
    pattern = tree.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise translator.text.error(tree, "expected a constant pattern after SIMILAR TO")
    made = "".join({"%": ".*", "_": "."}.get(sign, sign) for sign in str(pattern.this))
    return Call("rlike", (translator.expr(tree.this), lit(f"^(?:{made})$")))


def escaped(translator: Translator, tree: exp.Escape) -> Expr:
    """LIKE with an escape character of its own: the pattern is written with the usual one."""
    like, sign = tree.this, tree.expression
    pattern = like.expression if isinstance(like, exp.Like | exp.ILike) else None
    if not isinstance(pattern, exp.Literal) or not isinstance(sign, exp.Literal) or len(str(sign.this)) != 1:
        raise translator.text.error(tree, "expected LIKE 'pattern' ESCAPE 'a character', with constants")
    made, rest = "", iter(str(pattern.this))
    for each in rest:
        if each == str(sign.this):
            made += "\\" + next(rest, "\\")
        else:
            made += "\\\\" if each == "\\" else each
    name = "ilike" if isinstance(like, exp.ILike) else "like"
    return negated(like, Call(name, (translator.expr(like.this), lit(made))))


def negated(tree: exp.Expr, made: Expr) -> Expr:
    """A predicate, or its opposite where NOT stands inside of it."""
    return Call("not", (made,)) if tree.args.get("negate") else made


def mapped(translator: Translator, tree: exp.Map) -> Expr:
    """MAP['a', 1, 'b', 2]."""
    keys, values = tree.args.get("keys"), tree.args.get("values")
    pairs = zip(keys.expressions if keys else (), values.expressions if values else (), strict=True)
    return Call("map", tuple(translator.expr(part) for pair in pairs for part in pair))
