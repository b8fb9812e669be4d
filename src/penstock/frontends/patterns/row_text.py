"""The text of a row pattern, as SQL writes it after PATTERN, to its tree.

>>> str(read_rows("A (B | C)+? {- D -} $"))
'A, (B | C)+?, {- D -}, $'
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from penstock.errors import FlowError
from penstock.graph.expr.tokens import pointed
from penstock.graph.patterns.tree import (
    Anchor,
    Choice,
    Contiguity,
    Edge,
    Empty,
    Exclusion,
    Part,
    Permutation,
    Preference,
    Repeat,
    Sequence,
    Stage,
    children,
)

DEEPEST = 200
"""So deep repetitions, choices and exclusions may stand inside each other; brackets alone may be deeper."""
_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<name>[^\W\d]\w*)
  | (?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
  | (?P<number>\d+)
  | (?P<sign>\{-|-\}|[(){}|,*+?^$])
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENS = {"(": ")", "{-": "-}", "permute": ")"}
_TIMES: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass(frozen=True)
class Token:
    """A piece of the text, and where it begins."""

    kind: str
    text: str
    at: int

    @property
    def sign(self) -> str:
        """The sign that it is, if it is one."""
        return self.text if self.kind == "sign" else ""


@dataclass
class Frame:
    """A bracket that is open: what stands in it so far."""

    opened: str
    at: int
    items: list[Part] = field(default_factory=list)
    choices: list[Part] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)


def read_rows(text: str) -> Part:
    """The tree of a row pattern.

    Raises:
        FlowError: it is not written as one. The message has the line, the column, and what was expected.
    """
    if not isinstance(text, str):
        raise FlowError(f"a row pattern is a text such as 'A B+ C', got {text!r}")
    return _Reader(text).read()


class _Reader:
    """Reads the text from left to right; brackets are on a stack, so that they may be as deep as they like."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokens()
        self.at = 0
        self.frames = [Frame("", 0)]

    def _tokens(self) -> list[Token]:
        made, at = [], 0
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if found is None:
                raise self.error(f"expected a variable or one of ( ) | * + ? {{ }} ^ $, got {self.text[at]!r}", at)
            kind = str(found.lastgroup)
            if kind != "space":
                made.append(Token(kind, found.group(), at))
            at = found.end()
        return [*made, Token("end", "", len(self.text))]

    def error(self, message: str, at: int | None = None) -> FlowError:
        """An error that says where it is; by default at the next token."""
        place = self.next.at if at is None else at
        line = self.text.count("\n", 0, place) + 1
        column = place - (self.text.rfind("\n", 0, place) + 1) + 1
        return FlowError(pointed(self.text, place, f"the row pattern, line {line}, column {column}: {message}"))

    @property
    def next(self) -> Token:
        """The token to be read."""
        return self.tokens[self.at]

    def take(self) -> Token:
        """The next token, and go on."""
        token = self.next
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    @property
    def frame(self) -> Frame:
        """The innermost bracket."""
        return self.frames[-1]

    def read(self) -> Part:
        """The tree."""
        while self.next.kind != "end":
            self.step()
        if len(self.frames) > 1:
            opened = "(" if self.frame.opened == "permute" else self.frame.opened
            raise self.error(
                f"expected {_OPENS[self.frame.opened]!r} for the {opened!r} at column {self.frame.at + 1}, got the end"
            )
        return self._checked(self._choice())

    def step(self) -> None:
        """Reads a token, and what belongs to it."""
        token = self.next
        if token.kind in ("name", "quoted"):
            self._name()
        elif token.sign in ("(", "{-"):
            self._open(self.take())
        elif token.sign == "|":
            self._end_of_choice()
            self.take()
        elif token.sign in (")", "-}"):
            self._close()
        elif token.sign == "," and self.frame.opened == "permute":
            self._end_of_item()
            self.take()
        elif token.sign in ("^", "$"):
            self.take()
            self._add(Anchor(Edge.START if token.sign == "^" else Edge.END))
        else:
            raise self.error(self._expected())

    def _expected(self) -> str:
        got = self._got()
        if self.next.sign in ("*", "+", "?", "{"):
            return f"expected a variable or '(' before {got}; what is repeated already is repeated again in brackets, as in (A+)*"
        return f"expected a variable, '(', '^', '$' or '{{-', got {got}"

    def _got(self) -> str:
        return repr(self.next.text) if self.next.text else "the end"

    def _name(self) -> None:
        token = self.take()
        if token.kind == "name" and token.text.lower() == "permute" and self.next.sign == "(":
            self.take()
            self.frames.append(Frame("permute", token.at))
            return
        mark = token.text[0]
        name = token.text if token.kind == "name" else token.text[1:-1].replace(mark * 2, mark)
        self._add(Stage(name))

    def _open(self, token: Token) -> None:
        if token.sign == "(" and self.next.sign == ")":
            self.take()
            self._add(Empty())
            return
        self.frames.append(Frame(token.sign, token.at))

    def _close(self) -> None:
        token = self.next
        if not self.frame.opened:
            raise self.error(f"expected a variable or the end, got {token.text!r}, which closes no bracket")
        if _OPENS[self.frame.opened] != token.sign:
            raise self.error(f"expected {_OPENS[self.frame.opened]!r}, got {token.text!r}")
        made = self._closed()
        self.take()
        self.frames.pop()
        self._add(made)

    def _closed(self) -> Part:
        if self.frame.opened != "permute":
            inner = self._choice()
            return Exclusion(inner) if self.frame.opened == "{-" else inner
        self._end_of_item()
        return Permutation(tuple(self.frame.items)) if len(self.frame.items) > 1 else self.frame.items[0]

    def _end_of_choice(self) -> None:
        if not self.frame.parts:
            raise self.error(self._expected() + "; nothing is written ()")
        self.frame.choices.append(_sequence(self.frame.parts))
        self.frame.parts = []

    def _choice(self) -> Part:
        self._end_of_choice()
        made = self.frame.choices
        self.frame.choices = []
        return made[0] if len(made) == 1 else Choice(tuple(made))

    def _end_of_item(self) -> None:
        self.frame.items.append(self._choice())

    def _add(self, part: Part) -> None:
        """A part, with how often it stands."""
        times = self._times()
        if times is not None:
            reluctant = self.next.sign == "?"
            if reluctant:
                self.take()
            kind = Preference.RELUCTANT if reluctant else Preference.GREEDY
            part = Repeat(part, *times, inner=Contiguity.STRICT, preference=kind)
        self.frame.parts.append(part)

    def _times(self) -> tuple[int, int | None] | None:
        sign = self.next.sign
        if sign in _TIMES:
            self.take()
            return _TIMES[sign]
        return self._bounds() if sign == "{" else None

    def _bounds(self) -> tuple[int, int | None]:
        begin = self.take().at
        least = self._number()
        if self.next.sign != ",":
            if least is None:
                raise self.error(f"expected a number or ',' after '{{', got {self._got()}")
            bounds: tuple[int, int | None] = (least, least)
        else:
            self.take()
            bounds = (least or 0, self._number())
        if self.next.sign != "}":
            raise self.error(f"expected '}}', got {self._got()}")
        self.take()
        if bounds[1] is not None and (bounds[1] < bounds[0] or bounds[1] == 0):
            raise self.error(
                f"expected an upper bound above zero and not below the lower one, got {self.text[begin : self.next.at].strip()}",
                begin,
            )
        return bounds

    def _number(self) -> int | None:
        return int(self.take().text) if self.next.kind == "number" else None

    def _checked(self, root: Part) -> Part:
        """The tree, unless it is deeper than its readers can follow."""
        level: list[Part] = [root]
        for _ in range(DEEPEST):
            level = [each for part in level for each in _inside(part)]
            if not level:
                return root
        raise self.error(
            f"repetitions, choices and exclusions stand more than {DEEPEST} deep inside each other; write them flatter",
            0,
        )


def _sequence(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    return Sequence(tuple(parts), (Contiguity.STRICT,) * (len(parts) - 1))


def _inside(part: Part) -> tuple[Part, ...]:
    return children(part)
