"""Texts with expressions in braces, as alerts have them."""

from __future__ import annotations

import re

from penstock.errors import ExpressionError
from penstock.graph import types as t
from penstock.graph.expr import Call, Cast, Expr, Literal, parse

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+")
_DOUBLED = {"{{": "{", "}}": "}"}


def template(text: str) -> Expr:
    """The expression that fills the braces of a text; `{{` and `}}` stand for the braces themselves, a missing value for `null`.

    Args:
        text: the text, such as "card {card} paid {amount * 2}".

    Raises:
        ExpressionError: a brace has no partner, or what stands in it is no expression.

    >>> from penstock.graph.expr import to_text
    >>> to_text(template("paid {n}"))
    "concat('paid ', coalesce(CAST(n AS string), 'null'))"
    """
    parts = [_part(text, found) for found in _PART.finditer(text)]
    if not parts:
        return Literal("", t.STRING)
    return parts[0] if len(parts) == 1 and isinstance(parts[0], Literal) else Call("concat", tuple(parts))


def _part(text: str, found: re.Match[str]) -> Expr:
    given = found.group()
    if given in ("{", "}"):
        raise ExpressionError(
            f"the text {text!r}: the brace at column {found.start() + 1} has no partner; write {given * 2} for the sign itself"
        )
    if found.group(1) is None:
        return Literal(_DOUBLED.get(given, given), t.STRING)
    return Call("coalesce", (Cast(parse(found.group(1)), t.STRING), Literal("null", t.STRING)))
