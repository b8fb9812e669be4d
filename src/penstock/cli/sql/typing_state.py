"""How far a statement is typed: whether Enter ends it, or the next line goes on with it."""

from __future__ import annotations

import re

_PARTS = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|;|['\"`]|/\*|[^'\"`;/-]+|.", re.DOTALL)

COMMANDS = {
    "\\?": "this list",
    "\\d": "tables and views; with a name its columns",
    "\\dt": "tables and views",
    "\\q": "leave; so does Ctrl-D",
}
"""The commands of the shell itself."""


def is_complete(text: str) -> bool:
    r"""Whether a text is a command of the shell, nothing at all, or ends in a semicolon that is in no string, name or comment.

    >>> [is_complete(t) for t in ("select 1", "select 1;", "select ';", "select 1; -- done", "\\dt", "", "select 1 /* ; ")]
    [False, True, False, True, True, True, False]
    """
    plain = text.strip()
    if not plain or plain.startswith("\\"):
        return True
    last = ""
    for part in _PARTS.findall(plain):
        if part in ("'", '"', "`", "/*"):
            return False
        if part.strip() and not part.startswith("--") and not (part.startswith("/*") and part.endswith("*/")):
            last = part
    return last == ";"
