"""Hints in comments: `/*+ OPTIONS('k' = 'v') */` after a table. Those after SELECT are read with the query; all others are refused where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.frontends.sql.text.source import Hint, SqlText

_HINT = re.compile(r"/\*\+(.*?)\*/", re.DOTALL)
_OPTIONS = re.compile(r"\s*OPTIONS\s*\((.*)\)\s*", re.DOTALL | re.IGNORECASE)
_TEXT = r"'((?:[^']|'')*)'"
_PAIR = re.compile(rf"\s*{_TEXT}\s*=\s*{_TEXT}\s*(,|$)", re.DOTALL)


def note_hints(text: SqlText, tokens: list[Token]) -> None:
    """Notes the hints after tables, by the token that they follow.

    Raises:
        SqlError: one stands where none is read, or is none that is known.
    """
    ends = [0, *(int(token.end) + 1 for token in tokens)]
    starts = [*(int(token.start) for token in tokens), len(text.text)]
    for at, (begin, end) in enumerate(zip(ends, starts, strict=True)):
        found = _HINT.search(text.text, begin, end)
        if found is None or (at and tokens[at - 1].token_type == TokenType.SELECT):
            continue
        options = _OPTIONS.fullmatch(found[1])
        if options is None or not at:
            raise text.error(
                found.start(),
                f"no hint is read at this place, got {found[1].strip()}; OPTIONS follows a table, others such as STATE_TTL follow SELECT",
            )
        pairs = tuple(_pairs(text, options[1], found.start(1) + options.start(1)))
        text.hints[int(tokens[at - 1].end)] = Hint(found.start(), pairs)


def _pairs(text: SqlText, inner: str, begin: int) -> Iterator[tuple[str, str, int]]:
    at, more = 0, True
    while more:
        found = _PAIR.match(inner, at)
        if found is None:
            raise text.error(
                begin + at, "expected OPTIONS('name' = 'value', ...), with names and values in single quotes"
            )
        yield found[1].replace("''", "'"), found[2].replace("''", "'"), begin + found.start(1) - 1
        at, more = found.end(), found[3] == ","


def place_in_hint(text: SqlText, word: str) -> int:
    """Where a word stands in a hint after SELECT: the parser reads what is in a comment by itself, and counts from its beginning."""
    for found in _HINT.finditer(text.text):
        at = found[1].upper().find(word.upper())
        if at >= 0:
            return found.start(1) + at
    return 0


def take_tables(text: SqlText, query: exp.Expr) -> None:
    """Marks the hints that follow tables of a query as read."""
    for table in query.find_all(exp.Table):
        take_hint(text, table)


def take_hint(text: SqlText, place: exp.Expr | int) -> Hint | None:
    """The options after a table, by its node or the end of its name."""
    end = place if isinstance(place, int) else _end(place)
    found = text.hints.get(end)
    if found is not None:
        text.read_hints.add(end)
    return found


def _end(table: exp.Expr) -> int:
    name = table.this if isinstance(table, exp.Table) else table
    return int(name.meta.get("end", -1)) if isinstance(name, exp.Expr) else -1


def check_all_read(text: SqlText) -> None:
    """Refuses options that follow something else than a table."""
    for end, hint in text.hints.items():
        if end not in text.read_hints:
            raise text.error(hint.at, "expected the name of a table before OPTIONS(...)")
