"""The text of statements, and errors that point into it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from penstock.errors import SqlError

Place: TypeAlias = "int | exp.Expr | None"
"""Where an error points: an offset into the text, or a node of the syntax tree."""


@dataclass(frozen=True)
class Hint:
    """OPTIONS(...) after a table: where it stands, and its options, each with its place."""

    at: int
    options: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class SqlText:
    """A text of statements.

    Args:
        text: the text.
        origin: the file it was read from, if any.
    """

    text: str
    origin: str = ""
    hints: dict[int, Hint] = field(default_factory=dict, compare=False, repr=False)
    """The options after tables, by where the name of the table ends."""
    read_hints: set[int] = field(default_factory=set, compare=False, repr=False)

    def position(self, at: int) -> tuple[int, int]:
        r"""The line and the column of an offset, both from 1.

        >>> SqlText("select\n  1").position(9)
        (2, 3)
        """
        before = self.text[: max(at, 0)]
        return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1

    def line_of(self, place: Place) -> str:
        """A place as steps and errors name it: `flow.sql:3`."""
        return f"{self.origin or 'sql'}:{self.position(offset_of(place))[0]}"

    def error(self, place: Place, message: str) -> SqlError:
        """An error that points to a place.

        >>> print(SqlText("select 1 +").error(9, "expected a value, got the end"))
        sql:1:10: expected a value, got the end
          select 1 +
                   ^
        """
        at = offset_of(place)
        line, column = self.position(at)
        shown = without_secrets(self.text.split("\n")[line - 1].rstrip("\r"), is_aligned=True)
        cut = max(column - 1 - _BEFORE, 0)
        window = _printable(shown[cut : cut + _WIDTH])
        caret = " " * (column - 1 - cut) + "^"
        error = SqlError(f"{self.origin or 'sql'}:{line}:{column}: {message}\n  {window}\n  {caret}")
        error.line, error.column, error.reason = line, column, message
        return error


_SECRET = re.compile(
    r"(?P<before>'[^'\n]*(?:password|secret|token|credential|jaas)[^'\n]*'\s*=\s*')(?P<word>(?:[^']|'')*)"
    r"|(?P<user>://[^\s:/@']*:)(?P<pass>[^\s@']+)(?=@)",
    re.IGNORECASE,
)


def without_secrets(text: str, *, is_aligned: bool = False) -> str:
    """A text of statements as others may see it: passwords are stars, as many as they have characters where what follows is to stay in its column.

    >>> without_secrets("WITH ('url' = 'postgresql://ada:hush@db/shop', 'password' = 'hush')")
    "WITH ('url' = 'postgresql://ada:***@db/shop', 'password' = '***')"
    """

    def stars(found: re.Match[str]) -> str:
        before, word = found["before"] or found["user"], found["word"] if found["before"] else found["pass"]
        return before + "*" * (len(word) if is_aligned else 3)

    return _SECRET.sub(stars, text)


_BEFORE, _WIDTH = 80, 160
"""How much of a long line is shown: so much before the place, and so much in all."""


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def offset_of(place: Place) -> int:
    """The offset of a place: of a node the first of its parts that has one."""
    if isinstance(place, int):
        return place
    if place is None:
        return 0
    starts = [node.meta["start"] for node in place.walk() if "start" in node.meta]
    return min(starts, default=0)
