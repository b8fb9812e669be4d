"""Expression text cut into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import ExpressionError

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:BD|bd|[LlSsYyDdFf])?(?!\w))
  | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
  | (?P<bytes>[xX]'[0-9A-Fa-f]*')
  | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<quoted>`(?:[^`]|``)+`)
  | (?P<name>[^\W\d]\w*)
  | (?P<op><=>|<=|>=|<>|!=|==|\|\||::|[-+*/%<>=(),.\[\]!:])
    """,
    re.VERBOSE | re.DOTALL,
)

_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}

_ESCAPE = re.compile(r"""\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))|'{2}|"{2}""", re.DOTALL)


@dataclass(frozen=True)
class Token:
    """A piece of the text, with its kind, what it stands for, and where it begins."""

    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """The keyword or operator it may be; names in backticks are none."""
        return self.text.lower() if self.kind in ("name", "op") else ""


def tokenize(text: str) -> list[Token]:
    """The tokens of the text, with an `end` at the end."""
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            raise unreadable(text, at, _sign(text, at))
        kind = str(found.lastgroup)
        if kind != "space":
            tokens.append(Token(kind, _value(kind, found.group()), at))
        at = found.end()
    return [*tokens, Token("end", "", len(text))]


def pointed(text: str, at: int, message: str) -> str:
    """The message, then the text with a caret under the position.

    >>> print(pointed("n >> 3", 3, "a value is missing"))
    a value is missing
      n >> 3
         ^
    """
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[start : end if end >= 0 else len(text)]
    return f"{message}\n  {line}\n  {' ' * (at - start)}^"


def unescape(body: str, mark: str) -> str:
    r"""A text literal without its backslashes and doubled marks, as Spark reads it.

    >>> unescape(r"it''s\n", "'")
    "it's\n"
    """
    return _ESCAPE.sub(lambda found: _unescape_one(found, mark), body)


def _unescape_one(found: re.Match[str], mark: str) -> str:
    short, long, octal, other = found.groups()
    if not found.group().startswith("\\"):
        return mark if found.group() == mark * 2 else found.group()
    if short or long:
        return chr(int(short or long, 16))
    if octal:
        return chr(int(octal, 8))
    return _ESCAPES.get(other, other)


def _value(kind: str, text: str) -> str:
    if kind == "string":
        return unescape(text[1:-1], text[0])
    if kind in ("raw", "bytes"):
        return text[2:-1]
    return text[1:-1].replace("``", "`") if kind == "quoted" else text


def _sign(text: str, at: int) -> str:
    sign = text[at]
    if sign in "'\"`":
        return f"the text after {sign} has no end"
    return f"{text[at:].split(maxsplit=1)[0]!r} cannot be read here"


def unreadable(text: str, at: int, reason: str) -> ExpressionError:
    """What is wrong with an expression, and where."""
    made = ExpressionError(pointed(text, at, f"cannot read the expression: {reason}"))
    made.at, made.reason = at, reason
    return made
