"""From text to statements: tokens by sqlglot, statements by a reader of our own, queries and expressions by sqlglot's parser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import SqlError
from penstock.frontends.sql.text.dialect import Penstock
from penstock.frontends.sql.text.hints import note_hints, take_tables
from penstock.frontends.sql.text.source import SqlText, offset_of
from penstock.frontends.sql.text.types import type_of_tree
from penstock.graph import types as t

R = TypeVar("R")
_DIALECT = Penstock()
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
MOST_TOKENS = 200_000
"""As many tokens as a text may have."""


def tokens_of(text: SqlText) -> list[Token]:
    """The tokens of a text.

    Raises:
        SqlError: a quote or a comment has no end.
    """
    if "\0" in text.text:
        raise text.error(text.text.index("\0"), "expected text, got the character 0")
    try:
        found = list(_DIALECT.tokenize(text.text))
    except SqlglotError:
        raise text.error(
            _open_quote(text.text), "expected the end of a text, a name or a comment, got the end"
        ) from None
    note_hints(text, found)
    if len(found) > MOST_TOKENS:
        raise text.error(found[MOST_TOKENS].start, f"expected at most {MOST_TOKENS:,} words, got {len(found):,}")
    return found


def _open_quote(text: str) -> int:
    """Where the quote or comment begins that has no end."""
    at = 0
    for match in re.finditer(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`", text, re.DOTALL):
        gap = re.search(r"['\"`]|/\*", text[at : match.start()])
        if gap:
            return at + gap.start()
        at = match.end()
    gap = re.search(r"['\"`]|/\*", text[at:])
    return at + gap.start() if gap else max(len(text) - 1, 0)


def statements_in(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement, without the semicolons."""
    current: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            if current:
                yield current
            current = []
        else:
            current.append(token)
    if current:
        yield current


@contextmanager
def readable(text: SqlText, at: int) -> Iterator[None]:
    """Whatever the parser says inside becomes an error of ours, at its place."""
    try:
        yield
    except ParseError as error:
        raise _said(text, error, at) from None
    except SqlglotError as error:
        raise text.error(at, f"cannot read the statement: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise text.error(at, "expected a statement that is nested less deeply; put parts of it into views") from None
    except SqlError:
        raise
    except (KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
        raise text.error(at, f"cannot read the statement: {type(error).__name__} at this place") from error


def _said(text: SqlText, error: ParseError, at: int) -> SqlError:
    found = error.errors[0] if error.errors else {}
    line, column, mark = found.get("line"), found.get("col"), found.get("highlight") or ""
    offset = at
    if line and column:
        begins = _line_start(text.text, line)
        offset = max(begins + column - max(len(mark), 1), 0)
    description = str(found.get("description") or str(error).splitlines()[0])
    return text.error(offset, _plain(description, mark))


def _line_start(text: str, line: int) -> int:
    at = 0
    for _ in range(line - 1):
        at = text.find("\n", at) + 1
    return at


def _plain(description: str, mark: str) -> str:
    """What the parser says, in our words."""
    got = f", got {mark!r}" if mark else ", got the end"
    wanted = re.match(r"Expect(?:ing|ed) (.+?)(?: but got .*)?$", description.splitlines()[0])
    if wanted:
        return f"expected {wanted[1]}{got}"
    if description.startswith("expected "):
        return f"{description.splitlines()[0].removesuffix('.')}{got}"
    if description.startswith("Invalid expression"):
        return f"expected an operator, a comma or the end{got}"
    missing = re.match(r"Required (?:argument|keyword):? '(\w+)' missing for <class '.*\.(\w+)'>", description)
    if missing:
        return f"expected an expression after {mark!r}" if mark else "expected an expression, got the end"
    return f"cannot read this: {description.splitlines()[0]}"


class TokenReader:
    """Reads the tokens of one statement from left to right."""

    def __init__(self, text: SqlText, tokens: Sequence[Token]) -> None:
        self.text, self.tokens, self.at = text, list(tokens), 0

    @property
    def next(self) -> Token | None:
        """The token to be read; None at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def offset(self) -> int:
        """Where the next token stands; at the end, where the last one ends."""
        token = self.next
        if token is not None:
            return int(token.start)
        return int(self.tokens[-1].end) if self.tokens else 0

    @property
    def word(self) -> str:
        """The next token in capitals, if it is not quoted; empty at the end."""
        token = self.next
        quoted = (TokenType.IDENTIFIER, TokenType.STRING)
        return "" if token is None or token.token_type in quoted else str(token.text).upper()

    def ahead(self, number: int) -> str:
        """The token so many after the next, in capitals."""
        return str(self.tokens[self.at + number].text).upper() if self.at + number < len(self.tokens) else ""

    def error(self, wanted: str) -> SqlError:
        """An error at the next token."""
        got = repr(self.text.text[self.next.start : self.next.end + 1]) if self.next is not None else "the end"
        return self.text.error(self.offset, f"expected {wanted}, got {got}")

    def found(self, *words: str) -> bool:
        """Whether the next tokens are these words; takes them."""
        flat = [piece for word in words for piece in word.split()]
        at, left = self.at, list(flat)
        while left and at < len(self.tokens):
            pieces = str(self.tokens[at].text).upper().split()
            quoted = self.tokens[at].token_type in (TokenType.IDENTIFIER, TokenType.STRING)
            if quoted or pieces != left[: len(pieces)]:
                return False
            left, at = left[len(pieces) :], at + 1
        if left:
            return False
        self.at = at
        return True

    def expect(self, *words: str) -> None:
        """Take these words; an error when something else stands here."""
        if not self.found(*words):
            raise self.error(" ".join(words))

    def name(self, what: str = "a name") -> str:
        """A name, plain or quoted; of a path its last part."""
        token = self.next
        plain = token is not None and re.fullmatch(r"\w+", token.text) and token.token_type != TokenType.STRING
        if token is None or not (plain or token.token_type == TokenType.IDENTIFIER) or token.text[:1].isdigit():
            raise self.error(what)
        self.at += 1
        return str(token.text)

    def path(self, what: str = "a name") -> str:
        """A name with a catalog and a database before it, which are left out."""
        made = self.name(what)
        while self.next is not None and self.next.token_type == TokenType.DOT:
            self.at += 1
            made = self.name(what)
        return made

    def string(self, what: str = "a text in single quotes") -> str:
        """A text in single quotes."""
        token = self.next
        if token is None or token.token_type != TokenType.STRING:
            raise self.error(what)
        self.at += 1
        return str(token.text)

    def names(self) -> tuple[str, ...]:
        """Names in parentheses."""
        self.expect("(")
        made = [self.name()]
        while self.found(","):
            made.append(self.name())
        self.expect(")")
        return tuple(made)

    def end(self) -> None:
        """Nothing is left over."""
        if self.next is not None:
            raise self.error("the end of the statement")

    def until(self, stops: Callable[[str], bool]) -> list[Token]:
        """The tokens up to one that stops, outside of all parentheses."""
        taken: list[Token] = []
        depth = 0
        while (token := self.next) is not None:
            word = str(token.text).upper() if token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) else ""
            if depth == 0 and (token.token_type in _CLOSING or stops(word)):
                break
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            taken.append(token)
            self.at += 1
        return taken

    def rest(self) -> list[Token]:
        """All tokens that are left."""
        taken = self.tokens[self.at :]
        self.at = len(self.tokens)
        return taken

    def expression(self, stops: Callable[[str], bool]) -> Any:
        """An expression up to a token that stops."""
        at, taken = self.offset, self.until(stops)
        if not taken:
            raise self.error("an expression")
        with readable(self.text, at):
            (made,) = parser().parse_into(exp.Condition, taken, self.text.text)
        return made

    def query(self) -> Any:
        """A query: all that is left."""
        at, taken = self.offset, self.rest()
        if not taken:
            raise self.error("a query")
        made = parsed_query(self.text, taken, at)
        if not isinstance(made, exp.Query | exp.Values):
            raise self.text.error(at, f"expected a query, got {taken[0].text.upper()}")
        take_tables(self.text, made)
        return made

    def type(self, stops: Callable[[str], bool]) -> t.DataType:
        """A type up to a token that stops."""
        at = self.offset
        taken = self.until_type(stops)
        if not taken:
            raise self.error("a type")
        with readable(self.text, at):
            (made,) = parser().parse_into(exp.DataType, taken, self.text.text)
        return type_of_tree(self.text, made, at)

    def until_type(self, stops: Callable[[str], bool]) -> list[Token]:
        """The tokens of a type: what is between `<` and `>` belongs to it."""
        taken: list[Token] = []
        depth = 0
        while (token := self.next) is not None:
            kind, word = token.token_type, str(token.text).upper()
            if depth == 0 and (kind in _CLOSING or stops(word)):
                break
            depth += kind in _OPENING or kind == TokenType.LT
            depth -= kind in _CLOSING or kind == TokenType.GT
            taken.append(token)
            self.at += 1
        return taken


def parser() -> Penstock.Parser:
    """A new parser of the dialect; it stops at the first error."""
    made = _DIALECT.parser(error_level=ErrorLevel.IMMEDIATE)
    assert isinstance(made, Penstock.Parser)
    return made


def parsed_query(text: SqlText, tokens: list[Token], at: int) -> Any:
    """The syntax tree of a query."""
    with readable(text, at):
        (made,) = parser().parse(tokens, text.text)
    return made


__all__ = ["TokenReader", "offset_of", "parsed_query", "statements_in", "tokens_of"]
