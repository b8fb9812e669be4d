r"""Texts of others on a terminal: what it would obey instead of showing is spelled out.

A record that cannot be read may hold anything, also a sequence that renames the window or writes to the clipboard of whoever looks at it.

>>> print(on_screen("a\x1b]0;b\x07"), on_screen("line\n\x1b[2J", keep="\n").count("\n"))
a\x1b]0;b\x07 1
"""

from __future__ import annotations

import unicodedata


def on_screen(text: str, keep: str = "") -> str:
    """A text with its control characters spelled out, but for those of `keep`."""
    if text.isprintable():
        return text
    return "".join(c if c in keep or _is_shown(c) else repr(c)[1:-1] for c in text)


def block(text: str) -> str:
    """The same of a text of several lines."""
    return on_screen(text, keep="\n\t")


def _is_shown(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"
