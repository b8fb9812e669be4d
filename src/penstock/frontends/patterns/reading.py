"""How texts are read by a grammar: the parser of a grammar file, pieces of a text with their position, and errors that point at one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import ExpressionError, PatternError
from penstock.graph.expr import Expr, parse

if TYPE_CHECKING:
    from lark import Lark, Token, Tree
    from lark.exceptions import UnexpectedInput

DEEPEST = 100
"""As many brackets may stand in each other; more is no pattern that a person reads."""
_OPENS, _CLOSES, _QUOTES = "([{", ")]}", "'\"`"


class Piece(NamedTuple):
    """A part of a text, and where it begins in it."""

    text: str
    at: int

    def stripped(self) -> Piece:
        """Without the space around it."""
        left = len(self.text) - len(self.text.lstrip())
        return Piece(self.text.strip(), self.at + left)


class Text:
    """A text that is read, with the errors it may lead to."""

    def __init__(self, text: str, noun: str = "pattern") -> None:
        self.text, self.noun = text, noun

    def error(self, at: int, reason: str) -> PatternError:
        """What is wrong, with the line, the column, and a caret."""
        at = max(0, min(at, len(self.text)))
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        row, column = self.text.count("\n", 0, at) + 1, at - start + 1
        shown, caret = _cut(self.text[start : len(self.text) if end < 0 else end], at - start)
        made = PatternError(
            f"cannot read the {self.noun}, line {row}, column {column}: {reason}\n  {shown}\n  {' ' * caret}^"
        )
        made.line, made.column = row, column
        return made

    def between(self, opens: Token, closes: Token) -> Piece:
        """What stands between two brackets."""
        begin, end = (opens.start_pos or 0) + 1, closes.start_pos or 0
        return Piece(self.text[begin:end], begin)

    def check_depth(self) -> None:
        """Refuses a text whose brackets stand in each other too deep for it to be read."""
        depth, quote = 0, ""
        for at, sign in enumerate(self.text):
            if quote:
                quote = "" if sign == quote else quote
            elif sign in _QUOTES:
                quote = sign
            elif sign in _OPENS:
                depth += 1
                if depth > DEEPEST:
                    raise self.error(at, f"expected at most {DEEPEST} brackets in each other")
            elif sign in _CLOSES:
                depth = max(0, depth - 1)

    def expression(self, piece: Piece) -> Expr:
        """A part of the text as an expression."""
        try:
            made = parse(piece.text)
        except ExpressionError as error:
            raise self.error(piece.at + (error.at or 0), error.reason or str(error)) from None
        except RecursionError:
            raise self.error(piece.at, _TOO_DEEP) from None
        if _depth(made) > 2 * DEEPEST:
            raise self.error(piece.at, _TOO_DEEP)
        return made


_TOO_DEEP = f"expected at most {2 * DEEPEST} operators in each other in an expression"


def _depth(expr: Expr) -> int:
    """How many expressions stand in each other."""
    deepest, waiting = 0, [(expr, 1)]
    while waiting:
        each, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting += [(child, depth + 1) for child in each.plain().children()]
    return deepest


_WIDEST = 120


def _cut(line: str, at: int) -> tuple[str, int]:
    """A line that is short enough to be shown, and where the position is in it."""
    if len(line) <= _WIDEST:
        return line, at
    begin = max(0, at - _WIDEST // 2)
    mark = "..." if begin else ""
    return f"{mark}{line[begin : begin + _WIDEST]}", at - begin + len(mark)


def parts_of(piece: Piece, sign: str = ",") -> list[Piece]:
    """A piece cut at commas, but not inside of brackets or quotes."""
    made, begin, depth, quote = [], 0, 0, ""
    for at, each in enumerate(piece.text):
        if quote:
            quote = "" if each == quote else quote
        elif each in _QUOTES:
            quote = each
        elif each in _OPENS or each in _CLOSES:
            depth += 1 if each in _OPENS else -1
        elif each == sign and not depth:
            made.append(Piece(piece.text[begin:at], piece.at + begin))
            begin = at + 1
    last = Piece(piece.text[begin:], piece.at + begin)
    return [each.stripped() for each in [*made, last]] if made or last.text.strip() else []


@lru_cache(maxsize=8)
def _parser(grammar: str) -> Lark:
    from lark import Lark

    rules = files("penstock.frontends.patterns").joinpath("grammar", f"{grammar}.lark").read_text("utf-8")
    return Lark(rules, parser="lalr", propagate_positions=True, maybe_placeholders=True)


class Rules:
    """What each rule of a grammar makes of its parts: a method with the name of the rule, which gets them as a list."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def same(self, parts: list[object]) -> object:
        """A rule that only stands for another."""
        return parts[0]


def read(grammar: str, text: Text, rules: Rules, names: Mapping[str, str]) -> object:
    """What a text spells by a grammar.

    Args:
        grammar: the name of the grammar file.
        text: the text.
        rules: makes the result of the parts.
        names: how errors call the terminals of the grammar.

    Raises:
        PatternError: it cannot be read; with the position and what was expected there.
    """
    from lark.exceptions import UnexpectedInput

    text.check_depth()
    try:
        tree = _parser(grammar).parse(text.text)
    except UnexpectedInput as error:
        raise _unexpected(text, error, names) from None
    return _made(tree, rules)


def _made(tree: Tree[Token], rules: Rules) -> object:
    """What the rules make of a tree, from the leaves on. It keeps a stack of its own, as a text may be nested deeper than Python calls."""
    from lark import Tree

    made: list[object] = []
    waiting: list[tuple[object, bool]] = [(tree, False)]
    while waiting:
        each, is_ready = waiting.pop()
        if not isinstance(each, Tree):
            made.append(each)
        elif is_ready:
            count = len(each.children)
            parts = made[len(made) - count :]
            made[len(made) - count :] = [getattr(rules, str(each.data))(parts)]
        else:
            waiting.append((each, True))
            waiting += [(child, False) for child in reversed(each.children)]
    return made[0]


def _unexpected(text: Text, error: UnexpectedInput, names: Mapping[str, str]) -> PatternError:
    """What stands where something else was expected."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    at = len(text.text)
    got, expected = "the end", set[str]()
    if isinstance(error, UnexpectedToken):
        expected = set(error.expected or ())
        if error.token.type != "$END":
            at, got = error.token.start_pos or 0, repr(str(error.token))
    elif isinstance(error, UnexpectedCharacters):
        expected, at = set(error.allowed or ()), error.pos_in_stream or 0
        got = repr(text.text[at]) if at < len(text.text) else "the end"
    return text.error(at, f"expected {_listed(expected, names)}, got {got}")


def _listed(expected: set[str], names: Mapping[str, str]) -> str:
    known = sorted({names.get(each, each.lower()) for each in expected if names.get(each, each)})
    return " or ".join(known) if known else "nothing more"
