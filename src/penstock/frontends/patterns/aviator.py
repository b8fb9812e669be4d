"""Aviator expressions as expressions of Penstock: `&&`, `||`, `nil`, `=~` and calls of `string.` have another form there."""

from __future__ import annotations

import re

from penstock.errors import ExpressionError
from penstock.graph.expr import Expr, parse
from penstock.graph.expr.tokens import pointed

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<regex>=~\s*/(?:[^/\\\n]|\\.)*/)
      | (?P<nil>(?:==|!=)\s*nil\b)
      | (?P<call>string\.(?:contains|startsWith|endsWith|length|indexOf)\b|math\.(?:abs|round|sqrt|pow)\b)
      | (?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!().,?:\[\]])
      | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[MN]?)
      | (?P<name>[^\W\d]\w*)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_SIGNS = {"&&": " and ", "||": " or ", "==": "=", "!=": "<>", "!": " not "}
_CALLS = {
    "string.contains": "contains", "string.startsWith": "startswith", "string.endsWith": "endswith", "string.length": "length",
    "math.abs": "abs", "math.round": "round", "math.sqrt": "sqrt", "math.pow": "power",
}  # fmt: skip


def aviator(text: str) -> Expr:
    """An Aviator expression as one of Penstock.

    Raises:
        ExpressionError: it cannot be read; the message points at the position in the Aviator text.

    >>> from penstock.graph.expr import to_text
    >>> to_text(aviator("price > 10 && (kind == 'buy' || note != nil) && name =~ /A.*/"))
    "((price > 10) AND ((kind = 'buy') OR (note IS NOT NULL))) AND (name RLIKE '^(?:A.*)$')"
    """
    made, origins = "", list[tuple[int, int]]()
    for found in _TOKEN.finditer(text):
        origins.append((len(made), found.start()))
        made += _written(text, found)
    try:
        return parse(made)
    except ExpressionError as error:
        at = _origin(origins, error.at or 0, len(text), len(made))
        raise ExpressionError(
            pointed(text, at, f"cannot read the Aviator expression: {error.reason or error}")
        ) from None


def _origin(origins: list[tuple[int, int]], at: int, end: int, whole: int) -> int:
    """Where a position of the text that was made is in the text that was read."""
    if at >= whole:
        return end
    return max((origin for begin, origin in origins if begin <= at), default=0)


def _written(text: str, found: re.Match[str]) -> str:
    """One token as expressions here have it."""
    kind, word = found.lastgroup, found.group()
    if kind == "sign":
        if word in "?:":
            raise ExpressionError(
                pointed(text, found.start(), f"cannot read the Aviator expression: expected no {word!r}")
            )
        return _SIGNS.get(word, word)
    if kind == "nil":
        return " is null" if word.startswith("==") else " is not null"
    if kind == "regex":
        body = word[word.index("/") + 1 : -1].replace("\\/", "/")
        return f" rlike r'^(?:{body})$'" if "'" not in body else f' rlike r"^(?:{body})$"'
    if kind == "call":
        if word not in _CALLS:
            raise ExpressionError(
                pointed(text, found.start(), f"cannot read the Aviator expression: no function {word}")
            )
        return _CALLS[word]
    if kind == "string":
        return _quoted(word)
    if kind == "number":
        return word.rstrip("MN")
    if kind == "other":
        raise ExpressionError(pointed(text, found.start(), f"cannot read the Aviator expression: expected no {word!r}"))
    return word


def _quoted(word: str) -> str:
    """A text constant; Aviator knows no doubled quotes."""
    return word.replace("\\#", "#")
