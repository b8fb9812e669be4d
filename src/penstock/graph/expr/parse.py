"""Expression text to nodes: a small Pratt parser for the part of Spark SQL that Penstock reads.

>>> parse("n + 1 as m").same(Alias(Call("+", (Column("n"), lit(1))), "m"))
True
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from dataclasses import replace

from penstock.errors import ExpressionError, SchemaError
from penstock.graph import types as t
from penstock.graph.expr.literals import MONTHS, interval_unit, read_date, read_number, read_timestamp
from penstock.graph.expr.model import (
    INTERVAL,
    INTERVAL_DAY,
    INTERVAL_MONTH,
    Alias,
    Call,
    Case,
    Cast,
    Column,
    Expr,
    GetField,
    GetItem,
    Literal,
    lit,
)
from penstock.graph.expr.tokens import Token, tokenize, unreadable

_KEYWORDS_TEXT = """
    and as between case cast div else end false from ilike in is like not null or rlike then true try_cast when
"""

KEYWORDS = frozenset(_KEYWORDS_TEXT.split())
"""Words that are never a column's name unless they stand in backticks."""

_OR, _AND, _NOT, _PREDICATE, _COMPARE, _ADD, _MULTIPLY, _UNARY, _POSTFIX = range(1, 10)

_BINARY = {
    "or": (_OR, "or"),
    "and": (_AND, "and"),
    "=": (_COMPARE, "="),
    "==": (_COMPARE, "="),
    "<>": (_COMPARE, "<>"),
    "!=": (_COMPARE, "<>"),
    "<": (_COMPARE, "<"),
    "<=": (_COMPARE, "<="),
    ">": (_COMPARE, ">"),
    ">=": (_COMPARE, ">="),
    "<=>": (_COMPARE, "<=>"),
    "+": (_ADD, "+"),
    "-": (_ADD, "-"),
    "||": (_ADD, "concat"),
    "*": (_MULTIPLY, "*"),
    "/": (_MULTIPLY, "/"),
    "%": (_MULTIPLY, "%"),
    "div": (_MULTIPLY, "div"),
}

_PREDICATES = frozenset({"is", "in", "between", "like", "rlike", "ilike", "not"})

_POSTFIXES = frozenset({".", "[", "::"})


def parse(text: str) -> Expr:
    """The expression that the text spells; a trailing `as name` names it."""
    if not isinstance(text, str):
        raise ExpressionError(f"an expression is text or is built with col(), lit() and fn, got {text!r}")
    reader = Reader(text)
    expr = reader.aliased()
    if reader.next.kind != "end":
        raise reader.error(f"{reader.next.text!r} is left over")
    return expr


class Reader:
    """Reads the tokens from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0

    @property
    def next(self) -> Token:
        """The token to be read."""
        return self.tokens[self.at]

    @property
    def after(self) -> Token:
        """The token after the next."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def error(self, message: str, at: int | None = None) -> ExpressionError:
        """An error that points to a position, by default the next token."""
        return unreadable(self.text, self.next.at if at is None else at, message)

    def take(self) -> Token:
        """The next token, and go on."""
        token = self.next
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def found(self, *words: str) -> bool:
        """Whether the next tokens are these words; takes them."""
        ahead = self.tokens[self.at : self.at + len(words)]
        if [token.word for token in ahead] != list(words):
            return False
        self.at += len(words)
        return True

    def expect(self, word: str) -> None:
        """Take this word; an error when something else stands here."""
        if not self.found(word):
            raise self.error(f"expected {word.upper()!r}, got {self.next.text or 'the end'!r}")

    def aliased(self) -> Expr:
        """An expression and perhaps its name."""
        expr = self.expr()
        return Alias(expr, self.name()) if self.found("as") else expr

    def name(self) -> str:
        """A plain or quoted name."""
        if self.next.kind not in ("name", "quoted"):
            raise self.error(f"expected a name, got {self.next.text or 'the end'!r}")
        return self.take().text

    def expr(self, power: int = 0) -> Expr:
        """An expression whose operators all bind stronger than `power`."""
        left = self.prefix()
        while (step := self.infix(power)) is not None:
            left = step(left)
        return left

    def infix(self, power: int) -> Callable[[Expr], Expr] | None:
        """What continues the expression to the left, if it binds stronger than `power`."""
        word = self.next.word
        if word in _BINARY and _BINARY[word][0] > power:
            return self.binary
        if word in _PREDICATES and power < _PREDICATE:
            return self.predicate
        return self.postfix if word in _POSTFIXES else None

    def binary(self, left: Expr) -> Expr:
        """An operator and its right side."""
        power, name = _BINARY[self.take().word]
        return Call(name, (left, self.expr(power)))

    def predicate(self, left: Expr) -> Expr:
        """IS, IN, BETWEEN, LIKE, RLIKE and ILIKE, each perhaps with NOT before it."""
        if self.found("is"):
            return self.is_(left)
        negated = self.found("not")
        if self.found("in"):
            made: Expr = Call("in", (left, *self.some()))
        elif self.found("between"):
            made = self.between(left)
        elif self.next.word in ("like", "rlike", "ilike"):
            made = Call(self.take().word, (left, self.expr(_PREDICATE)))
        else:
            raise self.error("IN, BETWEEN, LIKE, ILIKE or RLIKE expected after NOT")
        return Call("not", (made,)) if negated else made

    def is_(self, left: Expr) -> Expr:
        """What follows IS."""
        negated = self.found("not")
        if self.found("null"):
            return Call("isnotnull" if negated else "isnull", (left,))
        if self.found("distinct", "from"):
            equal = Call("<=>", (left, self.expr(_PREDICATE)))
            return equal if negated else Call("not", (equal,))
        if self.next.word not in ("true", "false"):
            raise self.error("NULL, TRUE, FALSE or DISTINCT FROM expected after IS")
        equal = Call("<=>", (left, lit(self.take().word == "true")))
        return Call("not", (equal,)) if negated else equal

    def between(self, left: Expr) -> Expr:
        """The two ends after BETWEEN."""
        low = self.expr(_PREDICATE)
        self.expect("and")
        return left.between(low, self.expr(_PREDICATE))

    def some(self) -> tuple[Expr, ...]:
        """One or more expressions in parentheses."""
        self.expect("(")
        found = [self.expr()]
        while self.found(","):
            found.append(self.expr())
        self.expect(")")
        return tuple(found)

    def postfix(self, left: Expr) -> Expr:
        """A field, an item or a cast after a value."""
        mark = self.take().word
        if mark == ".":
            return GetField(left, "*" if self.found("*") else self.name())
        if mark == "::":
            return Cast(left, self.type())
        key = self.expr()
        self.expect("]")
        return GetItem(left, key)

    def prefix(self) -> Expr:
        """What can begin an expression."""
        token = self.next
        if token.kind == "end":
            raise self.error("expected a value, got the end")
        if token.kind in ("number", "string", "raw", "bytes"):
            return self.constant()
        if token.kind == "quoted":
            return Column(self.take().text)
        if token.kind == "op":
            return self.signed()
        return self.word()

    def constant(self, sign: str = "") -> Expr:
        """A number, a text or bytes."""
        token = self.take()
        if token.kind == "bytes":
            return lit(bytes.fromhex(token.text))
        if token.kind != "number":
            return lit(token.text)
        try:
            return read_number(sign + token.text)
        except ExpressionError as error:
            raise self.error(str(error), token.at) from None

    def signed(self) -> Expr:
        """A sign, NOT as `!`, or parentheses."""
        token = self.take()
        if token.word == "(":
            expr = self.expr()
            self.expect(")")
            return expr
        if token.word == "-":
            return self.constant("-") if self.next.kind == "number" else Call("negative", (self.expr(_UNARY),))
        if token.word == "+":
            return self.expr(_UNARY)
        if token.word == "!":
            return Call("not", (self.expr(_NOT),))
        raise self.error(f"expected a value, got {token.text!r}", token.at)

    def word(self) -> Expr:
        """What begins with a plain word: a keyword, a call or a column."""
        word = self.next.word
        special = _SPECIAL.get(word)
        if special is not None:
            return special(self)
        if word in ("like", "rlike", "ilike") and self.after.word == "(":
            return self.call(self.take())
        if word in KEYWORDS:
            raise self.error(f"expected a value, got the keyword {self.next.text!r}; a column of that name needs `...`")
        if word in _TYPED and self.after.kind in ("string", "raw"):
            return self.typed()
        if word == "interval" and (self.after.kind in ("number", "string") or self.after.word == "-"):
            return self.interval()
        if word in ("running", "final") and self.after.kind == "name":
            return Call(self.take().word, (self.word(),))
        name = self.take()
        return self.call(name) if self.next.word == "(" else Column(name.text)

    def call(self, name: Token) -> Expr:
        """The arguments of a function."""
        made = self.called(name)
        return replace(made, condition=self.filter()) if self._filtered() else made

    def _filtered(self) -> bool:
        return self.next.word == "filter" and self.after.word == "("

    def filter(self) -> Expr:
        """FILTER (WHERE condition), after an aggregate."""
        self.take()
        self.expect("(")
        self.expect("where")
        condition = self.expr()
        self.expect(")")
        return condition

    def called(self, name: Token) -> Call:
        """A name and its arguments in parentheses."""
        self.expect("(")
        if self.found("*"):
            self.expect(")")
            return Call(name.word, (), star=True)
        if self.found(")"):
            return Call(name.word, ())
        distinct = self.next.word == "distinct" and self.after.word not in (",", ")") and self.found("distinct")
        args = [self.aliased()]
        while self.found(","):
            args.append(self.aliased())
        self.expect(")")
        return Call(name.word, tuple(args), distinct=distinct)

    def not_(self) -> Expr:
        """NOT and what it turns round."""
        self.take()
        return Call("not", (self.expr(_NOT),))

    def fixed(self) -> Expr:
        """NULL, TRUE or FALSE."""
        return lit({"null": None, "true": True, "false": False}[self.take().word])

    def cast(self) -> Expr:
        """CAST and TRY_CAST."""
        try_ = self.take().word == "try_cast"
        self.expect("(")
        inner = self.expr()
        self.expect("as")
        kind = self.type()
        self.expect(")")
        return Cast(inner, kind, try_)

    def case(self) -> Expr:
        """CASE WHEN, or CASE value WHEN."""
        self.expect("case")
        subject = None if self.next.word == "when" else self.expr()
        whens = []
        while self.found("when"):
            given = self.expr()
            self.expect("then")
            whens.append((given if subject is None else Call("=", (subject, given)), self.expr()))
        otherwise = self.expr() if self.found("else") else None
        if not whens:
            raise self.error(f"expected 'WHEN', got {self.next.text or 'the end'!r}")
        self.expect("end")
        return Case(tuple(whens), otherwise)

    def typed(self) -> Expr:
        """A date or a timestamp constant."""
        kind, token = self.take().word, self.take()
        try:
            return _TYPED[kind](token.text)
        except ExpressionError as error:
            raise self.error(str(error), token.at) from None

    def interval(self) -> Expr:
        """INTERVAL and its amounts: 10 seconds, 1 hour 30 minutes, '10' second, '10 seconds'."""
        at = self.take().at
        total, whole_days = datetime.timedelta(), True
        months = self.months()
        if months is not None:
            return Literal(months, INTERVAL_MONTH)
        while self.next.kind in ("number", "string") or self.next.word == "-":
            part, days = self.amount(at)
            total, whole_days = total + part, whole_days and days
        return Literal(total, INTERVAL_DAY if whole_days else INTERVAL)

    def months(self) -> int | None:
        """The months of an interval of years and months; None where it is of other units."""
        total, start = None, self.at
        while self.next.kind in ("number", "string") or self.next.word == "-":
            sign = -1 if self.found("-") else 1
            number, _, unit = self.take().text.strip().partition(" ")
            step = MONTHS.get((unit or self.name()).strip().lower().removesuffix("s"))
            if step is None or not number.lstrip("-").isdigit():
                self.at = start
                return None
            total = (total or 0) + sign * int(number) * step
        return total

    def amount(self, at: int) -> tuple[datetime.timedelta, bool]:
        """A number and its unit, as a span and whether the unit is a day or longer."""
        sign = -1 if self.found("-") else 1
        number, _, unit = self.take().text.strip().partition(" ")
        if not unit:
            unit = self.name()
        try:
            step, days = interval_unit(unit.strip())
            micros = decimal.Decimal(number) * (step // datetime.timedelta(microseconds=1)) * sign
        except decimal.InvalidOperation:
            raise self.error(f"an interval is a number and a unit; {number!r} is no number", at) from None
        except ExpressionError as error:
            raise self.error(str(error), at) from None
        return datetime.timedelta(microseconds=int(micros)), days

    def type(self) -> t.DataType:
        """A type, spelled as in a schema."""
        start = self.next.at
        if self.next.kind != "name":
            raise self.error(f"expected a type, got {self.next.text or 'the end'!r}")
        self.take()
        if self.next.word in ("(", "<"):
            self.skip_group()
        try:
            return t.parse_type(self.text[start : self.tokens[self.at - 1].at + len(self.tokens[self.at - 1].text)])
        except SchemaError as error:
            raise self.error(str(error), start) from None

    def skip_group(self) -> None:
        """Go past the brackets that open here."""
        depth = 0
        while self.next.kind != "end":
            word = self.take().word
            depth += {"(": 1, "<": 1, ")": -1, ">": -1, "<>": 0}.get(word, 0)
            if depth == 0:
                return
        raise self.error("the type has no end")


_SPECIAL: dict[str, Callable[[Reader], Expr]] = {
    "not": Reader.not_,
    "null": Reader.fixed,
    "true": Reader.fixed,
    "false": Reader.fixed,
    "cast": Reader.cast,
    "try_cast": Reader.cast,
    "case": Reader.case,
}

_TYPED: dict[str, Callable[[str], Expr]] = {"date": read_date, "timestamp": read_timestamp}
