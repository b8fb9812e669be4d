"""Java's regular expressions, LIKE patterns and replacements, run by Python's `re`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from penstock.errors import NotYet

_NAMED_CLASSES = {
    "Alpha": "a-zA-Z",
    "Alnum": "a-zA-Z0-9",
    "Digit": "0-9",
    "Lower": "a-z",
    "Upper": "A-Z",
    "Space": r" \t\n\x0b\f\r",
    "XDigit": "0-9a-fA-F",
    "Punct": r"!-/:-@\[-`{-~",
    "ASCII": r"\x00-\x7f",
}
_ANY = "[^\n\r\u0085\u2028\u2029]"
_ESCAPES = {"z": r"\Z", "Z": r"(?=\n?\Z)", "h": r"[ \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000]", "e": r"\x1b"}
_PIECE = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)|\\[pP]\{(?P<class>\w+)\}|\\(?P<escape>.)|(?P<group>\(\?<(?=[A-Za-z]))|(?P<plain>.)",
    re.DOTALL,
)


@lru_cache(maxsize=512)
def java_pattern(pattern: str) -> re.Pattern[str]:
    """The compiled pattern; what Python's `re` cannot say is refused."""
    single_line = re.match(r"\(\?\w*s\w*\)", pattern) is not None
    parts, depth = [], 0
    for piece in _PIECE.finditer(pattern):
        depth = _depth(piece, depth, pattern)
        parts.append(_translated(piece, depth, single_line))
    try:
        return re.compile("".join(parts), re.ASCII)
    except re.error as error:
        raise ValueError(f"the regular expression {pattern!r} cannot be read: {error}") from None


def _depth(piece: re.Match[str], depth: int, pattern: str) -> int:
    sign = piece["plain"]
    if sign == "[" and depth:
        raise NotYet(f"a character class inside another, as in {pattern!r}, runs on Spark only")
    if depth and sign == "&" and pattern[piece.end() : piece.end() + 1] == "&":
        raise NotYet(f"an intersection of character classes, as in {pattern!r}, runs on Spark only")
    return 1 if sign == "[" else 0 if sign == "]" else depth


def _translated(piece: re.Match[str], depth: int, single_line: bool) -> str:
    if piece["quoted"] is not None:
        return re.escape(piece["quoted"])
    if piece["class"]:
        return _named(piece, depth)
    if piece["escape"]:
        return _ESCAPES.get(piece["escape"], piece[0]) if not depth else piece[0]
    if piece["group"]:
        return "(?P<"
    return _ANY if piece[0] == "." and not depth and not single_line else piece[0]


def _named(piece: re.Match[str], depth: int) -> str:
    inner = _NAMED_CLASSES.get(piece["class"])
    if inner is None or (depth and piece[0][1] == "P"):
        raise NotYet(f"the character class {piece[0]} runs on Spark only")
    return inner if depth else f"[{'^' if piece[0][1] == 'P' else ''}{inner}]"


@lru_cache(maxsize=512)
def like_pattern(pattern: str) -> re.Pattern[str]:
    """A LIKE pattern as a regular expression over the whole text."""
    parts, signs = [], iter(pattern)
    for sign in signs:
        if sign == "\\":
            following = next(signs, "")
            if following not in ("\\", "%", "_"):
                raise ValueError(f"the pattern {pattern!r} is invalid: only %, _ and \\ can follow a backslash")
            parts.append(re.escape(following))
        else:
            parts.append(".*" if sign == "%" else "." if sign == "_" else re.escape(sign))
    return re.compile("".join(parts), re.DOTALL)


@lru_cache(maxsize=512)
def java_replacement(text: str, groups: int) -> Callable[[re.Match[str]], str]:
    r"""A replacement in Java's spelling ($1, \$) as a function of the match."""
    parts = _replacement_parts(text, groups)
    return lambda found: "".join(part if isinstance(part, str) else found[part] or "" for part in parts)


def _replacement_parts(text: str, groups: int) -> list[str | int]:
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        sign = text[at]
        if sign == "\\":
            parts.append(text[at + 1 : at + 2])
            at += 2
        elif sign == "$":
            group, at = _group(text, at + 1, groups)
            parts.append(group)
        else:
            parts.append(sign)
            at += 1
    return parts


def _group(text: str, at: int, groups: int) -> tuple[int, int]:
    """The number of a group and where it ends; further digits count while such a group exists."""
    if not text[at : at + 1].isdigit():
        raise ValueError(f"the replacement {text!r} is invalid: a number must follow $; write \\$ for the sign itself")
    number, at = int(text[at]), at + 1
    while text[at : at + 1].isdigit() and number * 10 + int(text[at]) <= groups:
        number, at = number * 10 + int(text[at]), at + 1
    if number > groups:
        raise ValueError(f"the replacement {text!r} is invalid: there is no group {number}")
    return number, at


def java_split(text: str, pattern: str, limit: int) -> list[str]:
    """The pieces between the matches, as Java splits; a limit above 0 bounds their number."""
    parts: list[str] = []
    start = 0
    for found in java_pattern(pattern).finditer(text):
        if 0 < limit <= len(parts) + 1:
            break
        if found.end() == 0:
            continue
        parts.append(text[start : found.start()])
        start = found.end()
    return [*parts, text[start:]]
