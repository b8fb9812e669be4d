"""CREATE STANDING QUERY, from its tokens. Thousands of them that differ in constants are parsed once: the others are known by their tokens."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.frontends.sql.expr.intervals import micros_of
from penstock.frontends.sql.text.reading import TokenReader, parser, readable
from penstock.frontends.sql.text.source import SqlText
from penstock.frontends.sql.text.statements import CreateStandingQuery, StandingForm

_CLAUSES = ("EVERY", "WHEN", "UNTIL", "INTO")
_LITERALS = (TokenType.STRING, TokenType.NUMBER)
_NAME = 3
"""Which token of the statement is the name of the query."""


@dataclass(frozen=True)
class KnownForm:
    """A form that was parsed, and where its constants stand among the tokens.

    Args:
        made: the statement it was parsed from.
        constants: the tokens of its constants.
        until: the token of the moment at which it ends; -1 where there is none.
        fixed: the other literals, by their tokens, which are part of the form.
    """

    made: CreateStandingQuery
    constants: tuple[int, ...]
    until: int
    fixed: tuple[tuple[int, str], ...]


@dataclass
class StandingReader:
    """Reads the standing queries of a text.

    Args:
        text: the text.
    """

    text: SqlText
    known: dict[tuple[Any, ...], list[KnownForm]] = field(default_factory=dict)

    def read(self, tokens: Sequence[Token]) -> CreateStandingQuery:
        """One statement.

        Raises:
            SqlError: it is none.
        """
        likeness = tuple(map(_likeness, tokens))
        likeness = (*likeness[:_NAME], *likeness[_NAME + 1 :])
        for form in self.known.get(likeness, ()):
            if all(tokens[at].text == text for at, text in form.fixed):
                return self._of(form, tokens)
        made = _Statement(TokenReader(self.text, tokens)).read()
        new = _known(made, tokens)
        if new is not None:
            self.known.setdefault(likeness, []).append(new)
        return made

    def _of(self, form: KnownForm, tokens: Sequence[Token]) -> CreateStandingQuery:
        """A statement that differs from a known one in its name and its constants alone."""
        reader = TokenReader(self.text, tokens[_NAME : _NAME + 1])
        name, made = reader.name("the name of a standing query"), form.made
        constants = tuple(
            constant_of(tokens[at].text, tokens[at].token_type == TokenType.STRING) for at in form.constants
        )
        end = tokens[form.until] if form.until >= 0 else None
        until = moment(self.text, end.text, end.start) if end is not None else None
        return CreateStandingQuery(tokens[0].start, tokens[-1].end + 1, name, made.form, constants, made.every, until)


def _likeness(token: Token) -> tuple[Any, ...]:
    """What a token is, whatever the value of a constant."""
    if token.token_type in _LITERALS:
        return token.token_type, token.token_type == TokenType.NUMBER and token.text.isdigit()
    return token.token_type, token.text


def _known(made: CreateStandingQuery, tokens: Sequence[Token]) -> KnownForm | None:
    """Where the constants of a statement stand; None where a constant is not one token, so that others must be parsed too."""
    places = {token.start: at for at, token in enumerate(tokens) if token.token_type in _LITERALS}
    starts = [literal.meta.get("start") for literal in constants_in(made.form)]
    if any(start not in places for start in starts) or tokens[_NAME + 1].text.upper() != "AS":
        return None
    constants = tuple(places[start] for start in starts if start is not None)
    until = next(
        (at for at in places.values() if tokens[at - 1].text.upper() in ("UNTIL", "TIMESTAMP") and _is_end(tokens, at)),
        -1,
    )
    rest = [at for at in places.values() if at not in constants and (made.until is None or at != until)]
    fixed = tuple((at, tokens[at].text) for at in rest)
    return KnownForm(made, constants, until if made.until is not None else -1, fixed)


def _is_end(tokens: Sequence[Token], at: int) -> bool:
    before = tokens[at - 1].text.upper(), tokens[at - 2].text.upper()
    return before[0] == "UNTIL" or before == ("TIMESTAMP", "UNTIL")


def constants_in(form: StandingForm) -> list[exp.Literal]:
    """The literals of the conditions of a form, which differ from query to query, in order."""
    query = form.query
    parts = [query.args.get("where"), query.args.get("having")] if isinstance(query, exp.Select) else []
    return [literal for part in (*parts, form.when, form.until) for literal in _literals(part)]


def _literals(part: exp.Expr | None) -> Iterator[exp.Literal]:
    if part is not None:
        yield from (e for e in part.find_all(exp.Literal, bfs=False) if not e.find_ancestor(exp.Interval, exp.Cast))


def constant_of(text: str, is_string: bool) -> str:
    """A constant as a text with a letter for its kind: text, whole number, other number.

    >>> constant_of("x", True), constant_of("3", False), constant_of("1.5", False)
    ('sx', 'i3', 'f1.5')
    """
    return f"s{text}" if is_string else f"i{text}" if text.isdigit() else f"f{text}"


class _Statement:
    """A statement that is parsed."""

    def __init__(self, reader: TokenReader) -> None:
        self.reader, self.text = reader, reader.text
        self.parts: dict[str, Any] = {}

    def read(self) -> CreateStandingQuery:
        reader = self.reader
        span = (reader.tokens[0].start, reader.tokens[-1].end + 1)
        reader.expect("CREATE")
        reader.expect("STANDING", "QUERY")
        name = reader.path("the name of a standing query")
        reader.expect("AS")
        query = TokenReader(self.text, self._taken()).query()
        while reader.next is not None and reader.word != "INTO":
            self._clause()
        if not reader.found("INTO"):
            raise reader.error("INTO and the table for the results")
        sink = reader.path("the name of a table")
        reader.end()
        parts = self.parts
        form = StandingForm(
            query,
            sink,
            parts.get("WHEN"),
            parts.get("UNTIL"),
            repeats="EVERY" in parts,
            by_proctime="PROCTIME" in parts,
            snapshot="SNAPSHOT" in parts,
            has_moment="MOMENT" in parts,
        )
        constants = tuple(constant_of(str(e.this), e.is_string) for e in constants_in(form))
        return CreateStandingQuery(*span, name, form, constants, parts.get("EVERY"), parts.get("MOMENT"))

    def _clause(self) -> None:
        """EVERY, WHEN, WITH SNAPSHOT or UNTIL, each once."""
        reader, word = self.reader, self.reader.word
        kind = "SNAPSHOT" if word == "WITH" else word
        if kind not in ("EVERY", "WHEN", "UNTIL", "SNAPSHOT"):
            raise reader.error("EVERY, WHEN, WITH SNAPSHOT, UNTIL or INTO")
        if kind in self.parts or (kind == "UNTIL" and "MOMENT" in self.parts):
            raise reader.error(f"one {word}")
        if {kind, *self.parts} >= {"EVERY", "WHEN"}:
            raise reader.error("one trigger, EVERY or WHEN")
        {"EVERY": self._every, "WHEN": self._when, "UNTIL": self._until, "SNAPSHOT": self._snapshot}[kind]()

    def _snapshot(self) -> None:
        self.reader.expect("WITH", "SNAPSHOT")
        self.parts["SNAPSHOT"] = True

    def _every(self) -> None:
        """EVERY 5 MINUTES, EVERY INTERVAL '5' MINUTE; BY PROCTIME() goes by processing time."""
        at = self.reader.offset
        self.reader.expect("EVERY")
        taken = self._taken("BY")
        with readable(self.text, at):
            made = self._span(taken, at)
        micros = micros_of(self.text, made, "how often the query fires")
        if micros <= 0:
            raise self.text.error(at, "expected a span above zero after EVERY, such as 5 MINUTES")
        self.parts["EVERY"] = micros
        if self.reader.found("BY"):
            self.reader.expect("PROCTIME", "(", ")")
            self.parts["PROCTIME"] = True

    def _span(self, taken: list[Token], at: int) -> exp.Expr:
        if taken and taken[0].text.upper() == "INTERVAL":
            (made,) = parser().parse_into(exp.Condition, taken, self.text.text)
            return made if made is not None else exp.Null()
        if len(taken) != 2 or taken[0].token_type != TokenType.NUMBER:
            raise self.text.error(at, "expected a span of time after EVERY, such as 5 MINUTES")
        unit = exp.var(taken[1].text.upper().removesuffix("S"))
        made = exp.Interval(this=exp.Literal.string(taken[0].text), unit=unit)
        made.meta["start"] = taken[0].start
        return made

    def _when(self) -> None:
        self.reader.expect("WHEN")
        self.parts["WHEN"] = self._condition("WHEN")

    def _until(self) -> None:
        """UNTIL a moment, or a condition."""
        reader, at = self.reader, self.reader.offset
        reader.expect("UNTIL")
        ahead = 1 if reader.word == "TIMESTAMP" else 0
        token = reader.tokens[reader.at + ahead] if reader.at + ahead < len(reader.tokens) else None
        if token is not None and token.token_type == TokenType.STRING and _ends(reader.ahead(ahead + 1)):
            reader.found("TIMESTAMP")
            self.parts["MOMENT"] = moment(self.text, reader.string(), at)
        else:
            self.parts["UNTIL"] = self._condition("UNTIL")

    def _condition(self, word: str) -> Any:
        taken = self._taken()
        if not taken:
            raise self.reader.error(f"a condition after {word}")
        return TokenReader(self.text, taken).expression(lambda _: False)

    def _taken(self, *more: str) -> list[Token]:
        """The tokens up to the next clause; WHEN inside of CASE is none."""
        reader, cases = self.reader, 0

        def stops(word: str) -> bool:
            nonlocal cases
            cases += (word == "CASE") - (word == "END" and cases > 0)
            is_snapshot = word == "WITH" and reader.ahead(1) == "SNAPSHOT"
            return not cases and (word in (*_CLAUSES, *more) or is_snapshot)

        return reader.until(stops)


def _ends(word: str) -> bool:
    return word in ("", *_CLAUSES, "WITH")


def moment(text: SqlText, written: str, at: int) -> datetime.datetime:
    """The moment at which a query ends.

    Raises:
        SqlError: it is none.
    """
    try:
        made = datetime.datetime.fromisoformat(written)
    except ValueError:
        raise text.error(at, f"expected a moment such as '2026-05-01 12:00:00', got {written!r}") from None
    return made if made.tzinfo is not None else made.replace(tzinfo=datetime.UTC)
