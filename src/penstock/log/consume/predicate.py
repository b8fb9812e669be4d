r"""Content-based subscription: which records a subscriber wants, by what is in them.

A predicate is a function of the record, or a text over the fields of its JSON value:

    total > 100 and (user.country = 'CH' or user.country = 'LI') and not cancelled = true
    kind in ('order', 'refund')     name contains 'x'     coupon is not null     $key = 'a7'

Fields are reached with dots; `$key`, `$timestamp`, `$partition`, `$offset` and `$headers.name` are the record's own. A comparison
with a field that is missing, null or of another type is false (`!=` is true for another type); a value that is not JSON has no fields.

>>> wants = predicate("total > 100 and kind in ('order', 'refund')")
>>> wants(Record("t", 0, 0, 0, None, b'{"total": 101, "kind": "order"}'))
True
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from penstock.log.errors import BadPredicate
from penstock.log.record import Record

Predicate = Callable[[Record], bool]
_Test = Callable[["RecordFields"], bool]

_TOKEN = re.compile(
    r"""\s*(?: (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
             | (?P<string>'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.)*")
             | (?P<op><=|>=|!=|<>|==|=|<|>|\(|\)|,)
             | (?P<name>\$?[A-Za-z_][A-Za-z0-9_\-]*(?:\.[A-Za-z0-9_\-]+)*) )""",
    re.VERBOSE,
)
_WORDS = {"and", "or", "not", "in", "is", "null", "true", "false", "contains"}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_INDEXED = {"=": "=", "==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_CONSTANTS = {"true": True, "false": False, "null": None}
_OWN: dict[str, Callable[[Record], Any]] = {
    "$key": lambda r: None if r.key is None else r.key.decode(errors="replace"),
    "$timestamp": lambda r: r.timestamp,
    "$partition": lambda r: r.partition,
    "$offset": lambda r: r.offset,
}


class RecordFields:
    """The fields of a record; the value is read as JSON when the first of them is asked for."""

    __slots__ = ("_json", "_read", "_record")

    def __init__(self, record: Record) -> None:
        self._record = record
        self._read = False
        self._json: Any = None

    def get(self, name: str) -> object:
        """A field of the value, or one of the record's own; None where it is missing."""
        if name in _OWN:
            return _OWN[name](self._record)
        if name.startswith("$headers."):
            raw = dict(self._record.headers).get(name[9:])
            return None if raw is None else raw.decode(errors="replace")
        found = self._value()
        for part in name.split("."):
            if isinstance(found, list) and part.isdigit():
                found = found[int(part)] if int(part) < len(found) else None
            else:
                found = found.get(part) if isinstance(found, dict) else None
        return found

    def _value(self) -> object:
        if not self._read:
            self._read = True
            try:
                self._json = self._record.json()
            except (ValueError, RecursionError):
                self._json = None
        return self._json


def predicate(where: str | Predicate) -> Predicate:
    """A predicate from a text or a function."""
    if not isinstance(where, str):
        return where
    test = _Parser(where).parse()
    return lambda record: test(RecordFields(record))


@dataclass(frozen=True)
class Comparison:
    """A field against constants: equal to one of them (`=`), in an order with the only one, or missing (`null`)."""

    field: str
    op: str
    values: tuple[object, ...]


@dataclass(frozen=True)
class ParsedPredicate:
    """A predicate as a test, and its alternatives: for it to be true, the comparisons of one of them must all hold. By them many predicates can be indexed."""

    test: _Test
    alternatives: tuple[tuple[Comparison, ...], ...]


def parsed(where: str) -> ParsedPredicate:
    """A predicate from its text.

    Raises:
        BadPredicate: it cannot be read.

    >>> [[(c.field, c.op, c.values) for c in each] for each in parsed("total > 100 and not x = 1 or kind in ('a', 'b')").alternatives]
    [[('total', '>', (100,))], [('kind', '=', ('a', 'b'))]]
    """
    parser = _Parser(where)
    test = parser.parse()
    return ParsedPredicate(test, tuple(map(_comparisons, _alternatives(parser.tokens))))


_Tokens: TypeAlias = list[tuple[str, str]]


def _alternatives(tokens: _Tokens) -> list[_Tokens]:
    """What stands between the words `or` that are in no parentheses, or in parentheses around the whole."""
    made = _split_at("or", tokens)
    inside = tokens[1:-1]
    if len(made) == 1 and tokens[0] == ("op", "(") and tokens[-1] == ("op", ")") and _is_closed(inside):
        return _alternatives(inside)
    return made


def _is_closed(tokens: _Tokens) -> bool:
    """Whether no parenthesis is closed that was not opened here."""
    depth = 0
    for kind, text in tokens:
        depth += {"(": 1, ")": -1}.get(text, 0) if kind == "op" else 0
        if depth < 0:
            return False
    return True


def _comparisons(tokens: _Tokens) -> tuple[Comparison, ...]:
    """The comparisons between the words `and` that stand in no parentheses."""
    parts = _split_at("and", tokens)
    return tuple(made for part in parts if (made := _comparison(part)) is not None)


def _split_at(word: str, tokens: _Tokens) -> list[_Tokens]:
    """The parts between a word that stands in no parentheses."""
    parts: list[_Tokens] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token[1], 0) if token[0] == "op" else 0
        if depth == 0 and token == ("word", word):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _comparison(tokens: list[tuple[str, str]]) -> Comparison | None:
    """What a part says of one field; None where it says something else."""
    if len(tokens) < 3 or tokens[0][0] != "name":
        return None
    reader = _Parser("")
    reader.tokens, name = tokens, tokens[0][1]
    reader.at = 2
    if tokens[1:] == [("word", "is"), ("word", "null")]:
        return Comparison(name, "null", ())
    if tokens[1] == ("word", "in"):
        return Comparison(name, "=", tuple(reader._list()))
    kind, op = tokens[1]
    if kind != "op" or op not in _INDEXED or len(tokens) != 3:
        return None
    return Comparison(name, _INDEXED[op], (reader._literal(),))


class _Parser:
    """Reads the text, most loosely bound first: or, and, not, comparison."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._split()
        self.at = 0

    def _split(self) -> list[tuple[str, str]]:
        tokens: list[tuple[str, str]] = []
        at = 0
        while self.text[at:].strip():
            match = _TOKEN.match(self.text, at)
            if match is None:
                raise self._error(f"cannot read {self.text[at:].strip()[:20]!r}")
            kind, text = str(match.lastgroup), match.group(str(match.lastgroup))
            word = kind == "name" and text.lower() in _WORDS
            tokens.append(("word", text.lower()) if word else (kind, text))
            at = match.end()
        return tokens

    def _error(self, what: str) -> BadPredicate:
        return BadPredicate(
            f"predicate {self.text!r}: {what}; write comparisons like \"total > 100\", \"kind in ('a', 'b')\", "
            '"name contains \'x\'", "coupon is not null", joined by and, or, not and ( )'
        )

    def _peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "the end")

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self.at += 1
        return token

    def _take(self, text: str) -> bool:
        if self._peek() in (("word", text), ("op", text)):
            self.at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._error(f"{text!r} must come, not {self._peek()[1]!r}")

    def parse(self) -> _Test:
        test = self._either()
        if self._peek()[0] != "end":
            raise self._error(f"{self._peek()[1]!r} is not expected here")
        return test

    def _either(self) -> _Test:
        tests = [self._both()]
        while self._take("or"):
            tests.append(self._both())
        return tests[0] if len(tests) == 1 else lambda f: any(t(f) for t in tests)

    def _both(self) -> _Test:
        tests = [self._maybe_not()]
        while self._take("and"):
            tests.append(self._maybe_not())
        return tests[0] if len(tests) == 1 else lambda f: all(t(f) for t in tests)

    def _maybe_not(self) -> _Test:
        if self._take("not"):
            test = self._maybe_not()
            return lambda f: not test(f)
        if self._take("("):
            test = self._either()
            self._expect(")")
            return test
        return self._comparison()

    def _comparison(self) -> _Test:
        kind, name = self._next()
        if kind != "name":
            raise self._error(f"a field name must come, not {name!r}")
        if name.startswith("$") and name not in _OWN and not name.startswith("$headers."):
            raise self._error(f"{name!r} is not one of {sorted(_OWN)} or $headers.name")
        if self._take("is"):
            wanted = not self._take("not")
            self._expect("null")
            return lambda f: (f.get(name) is None) == wanted
        if self._take("in"):
            choices = self._list()
            return lambda f: any(_same(f.get(name), c) for c in choices)
        if self._take("contains"):
            part = self._literal()
            return lambda f: _contains(f.get(name), part)
        kind, op = self._next()
        if kind != "op" or op not in _COMPARE:
            raise self._error(f"a comparison must follow {name!r}, not {op!r}")
        return _comparing(name, op, self._literal())

    def _list(self) -> list[Any]:
        self._expect("(")
        found = [self._literal()]
        while self._take(","):
            found.append(self._literal())
        self._expect(")")
        return found

    def _literal(self) -> object:
        kind, text = self._next()
        if kind == "number":
            return json.loads(text) if not re.match(r"-?0\d", text) else float(text)
        if kind == "string":
            return re.sub(r"\\(.)|''", lambda m: m.group(1) or "'", text[1:-1])
        if kind == "word" and text in _CONSTANTS:
            return _CONSTANTS[text]
        raise self._error(f"a number, 'text', true, false or null must come, not {text!r}")


def _kind(value: object) -> type:
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def _same(found: object, wanted: object) -> bool:
    return found is not None and _kind(found) is _kind(wanted) and bool(found == wanted)


def _contains(found: object, part: object) -> bool:
    if isinstance(found, str):
        return isinstance(part, str) and part in found
    return isinstance(found, list) and any(_same(item, part) for item in found)


def _comparing(name: str, op: str, literal: object) -> _Test:
    compare = _COMPARE[op]
    kind = _kind(literal)
    other = op in ("!=", "<>")

    def test(fields: RecordFields) -> bool:
        found = fields.get(name)
        if found is None:
            return False
        if _kind(found) is not kind:
            return other
        return compare(found, literal)

    return test
