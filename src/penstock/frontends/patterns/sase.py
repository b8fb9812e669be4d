"""SASE's pattern text: `PATTERN SEQ(A a, !(B b), C+ c[]) WHERE skip_till_next_match(a, b, c) { [user] and c[i].x > c[i-1].x } WITHIN 10 minutes`.

It becomes the tree that `ps.pattern` makes. A condition belongs to the last stage that it names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from penstock.errors import FlowError, nearest
from penstock.frontends.patterns.events import Types, type_conditions
from penstock.frontends.patterns.reading import Piece, Rules, Text, parts_of, read
from penstock.frontends.patterns.times import read_fixed_span
from penstock.graph.aggregates.calls import is_aggregate
from penstock.graph.expr import Alias, Call, Column, Expr, GetField, GetItem, lit, name_of
from penstock.graph.expr.rewrite import each_of, rewritten
from penstock.graph.patterns.operator_conditions import together
from penstock.graph.patterns.pattern import Pattern
from penstock.graph.patterns.selected import SelectedPattern
from penstock.graph.patterns.tree import Absence, Contiguity, Part, Preference, Repeat, Sequence, Stage
from penstock.graph.spelling import spelled

NAMES = {
    "PATTERN": "'PATTERN'", "SEQ": "'SEQ'", "WHERE": "'WHERE'", "WITHIN": "'WITHIN'", "RETURN": "'RETURN'", "STRATEGY": "a selection strategy",
    "LOOP": "'+', '*' or '?'", "NOT": "'!'", "NAME": "a name", "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "LBRACE": "'{'",
    "RBRACE": "'}'", "COMMA": "','", "TEXT": "a condition", "STRING": "", "$END": "the end",
}  # fmt: skip
"""How errors call the terminals of the grammar."""
_STRATEGIES = {
    "skip_till_next_match": Contiguity.RELAXED,
    "skip_till_any_match": Contiguity.ANY,
    "strict_contiguity": Contiguity.STRICT,
    "partition_contiguity": Contiguity.STRICT,
}


class _Component(NamedTuple):
    """A part of SEQ: a type and a variable, how often, and whether it must not happen."""

    type: str
    name: str
    at: int
    loop: str = ""
    is_absent: bool = False


@dataclass
class _Query:
    """All that a text says."""

    components: list[_Component] = field(default_factory=list)
    strategy: Contiguity = Contiguity.ANY
    conditions: Piece | None = None
    within: Piece | None = None
    returned: Piece | None = None


@spelled
def sase_text(text: str, *, types: Types = None, name: str = "sase") -> SelectedPattern:
    """A pattern from SASE's text, for `match`.

    Args:
        text: the pattern, such as `PATTERN SEQ(A a, !(B b), C+ c[]) WHERE skip_till_next_match(a, b, c) { [user] and a.x > 3 } WITHIN 10 minutes
            RETURN a.x, count(c[])`. Without a strategy all combinations match.
        types: what makes a record an event of a type: the field that names it, or a condition for each type. May be left out where the pattern
            has but one type, which all records are of then.
        name: what errors and metrics call the pattern.

    Returns:
        The pattern, and what RETURN selects of a match.

    Raises:
        PatternError: the text cannot be read; the message has the line, the column, and what was expected there.
        FlowError: the pattern is not sound, or `types` is nothing of the kind.

    >>> import penstock as ps
    >>> made = ps.sase_text("PATTERN SEQ(A a, !(B b), C+ c[]) WHERE skip_till_next_match(a, b, c) { [user] and c[i].n > c[i-1].n } WITHIN 10 minutes",
    ...     types="kind")
    >>> str(made.pattern)
    'a -> !(b) -> c+'
    """
    if not isinstance(text, str):
        raise FlowError(f"a pattern is a text such as 'PATTERN SEQ(A a, B b)', got {text!r}")
    source = Text(text)
    query = cast("_Query", read("sase", source, _Sase(source), NAMES))
    return _Compiler(source, query, types).made(name)


class _Sase(Rules):
    """Makes a query of the rules of the grammar."""

    def start(self, parts: list[object]) -> _Query:
        """The whole."""
        made = _Query()
        for part in parts:
            if isinstance(part, _Component):
                made.components.append(part)
            elif isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], str):
                self._clause(made, part[0], cast("object", part[1]))
        return made

    def _clause(self, made: _Query, name: str, given: object) -> None:
        if name == "where":
            made.strategy, made.conditions = cast("tuple[Contiguity, Piece | None]", given)
        else:
            setattr(made, name, given)

    def one(self, parts: list[object]) -> _Component:
        """A a"""
        return _Component(str(parts[0]), str(parts[1]), _at(parts[1]))

    def many(self, parts: list[object]) -> _Component:
        """C+ c[]"""
        return _Component(str(parts[0]), str(parts[2]), _at(parts[2]), str(parts[1]))

    def absent(self, parts: list[object]) -> _Component:
        """!(B b)"""
        return _Component(str(parts[2]), str(parts[3]), _at(parts[3]), is_absent=True)

    def chosen(self, parts: list[object]) -> tuple[str, tuple[Contiguity, object]]:
        """WHERE with a selection strategy."""
        return "where", (_STRATEGIES[str(parts[1]).lower()], parts[-2])

    def plain(self, parts: list[object]) -> tuple[str, tuple[Contiguity, object]]:
        """WHERE without one."""
        return "where", (Contiguity.ANY, parts[1])

    def variable(self, parts: list[object]) -> object:
        """A variable that a strategy names: all that SEQ has are meant."""
        return parts[0]

    def within(self, parts: list[object]) -> tuple[str, object]:
        """WITHIN 10 minutes"""
        return "within", parts[1]

    def returned(self, parts: list[object]) -> tuple[str, object]:
        """RETURN a.x, b.y"""
        return "returned", parts[1]

    def conditions(self, parts: list[object]) -> Piece:
        """The text from the first to the last of its parts."""
        begin = min(part.at if isinstance(part, Piece) else _at(part) for part in parts if part is not None)
        end = max(
            part.at + len(part.text) if isinstance(part, Piece) else _end(part) for part in parts if part is not None
        )
        return Piece(self.text.text[begin:end], begin)


@dataclass
class _Indexes:
    """The indexes that an expression has, by variable: `i`, `i-1`, `..i-1`, `1`, `len`, and nothing for all."""

    by_name: dict[str, list[str]] = field(default_factory=dict)

    def of(self, name: str) -> list[str]:
        """Those of a variable."""
        return self.by_name.setdefault(name, [])


class _Compiler:
    """Makes the tree of a query."""

    def __init__(self, text: Text, query: _Query, types: Types) -> None:
        self.text, self.query = text, query
        self.components = {each.name: each for each in query.components}
        self.names = list(self.components)
        self.types = dict(type_conditions(types, [each.type for each in query.components]))
        self.conditions: dict[str, list[Expr]] = {name: [] for name in self.names}

    def made(self, name: str) -> SelectedPattern:
        """The pattern, and what is selected of a match."""
        self._check()
        self._type()
        if self.query.conditions is not None:
            for piece in split_and(self.query.conditions):
                self._condition(piece)
        within = None if self.query.within is None else read_fixed_span(self.text, self.query.within.stripped())
        try:
            pattern = Pattern(name, self._root(), within)
        except FlowError as error:
            raise self.text.error(self.query.components[0].at, str(error)) from None
        return SelectedPattern(pattern, None if self.query.returned is None else self._selected(self.query.returned))

    def _check(self) -> None:
        seen: set[str] = set()
        for each in self.query.components:
            if each.name in seen:
                raise self.text.error(each.at, f"expected a variable of its own, got {each.name!r} again")
            seen.add(each.name)
        first = self.query.components[0]
        if first.is_absent:
            raise self.text.error(first.at, "expected an event first; what must not happen needs an event before it")

    def _type(self) -> None:
        names = {each.type for each in self.query.components}
        for each in self.query.components:
            if each.type in self.types:
                self.conditions[each.name].append(self.types[each.type])
            elif self.types or len(names) > 1:
                why = nearest(each.type, self.types) if self.types else "say types='kind' if a field names the type"
                raise self.text.error(each.at, f"nothing says which records are of the type {each.type!r}; {why}")

    def _condition(self, piece: Piece) -> None:
        """Gives a condition to the last stage that it names."""
        whole = piece.stripped()
        if whole.text.startswith("[") and whole.text.endswith("]"):
            self._equivalence(Piece(whole.text[1:-1], whole.at + 1))
            return
        made, indexes = self._expression(whole)
        own = self._owner(whole, made)
        made, of_all = _of_loop(made, own, indexes.of(own))
        self.conditions[self._after(whole, own) if of_all else own].append(made)

    def _owner(self, piece: Piece, made: Expr) -> str:
        named = [each.name for each in each_of(made) if isinstance(each, Column) and each.name in self.components]
        if not named:
            raise self.text.error(
                piece.at, f"expected a condition that names a variable, such as {self.names[0]}.x > 3"
            )
        absent = [name for name in named if self.components[name].is_absent]
        last = max(named, key=self.names.index)
        if absent and last not in absent:
            raise self.text.error(
                piece.at,
                f"{absent[0]!r} must not happen, so its condition may look only at events before it, got {last!r}",
            )
        return absent[0] if absent else last

    def _after(self, piece: Piece, loop: str) -> str:
        """The variable with whose event it is known what a loop has taken in all."""
        for each in self.query.components[self.names.index(loop) + 1 :]:
            if not each.is_absent and each.loop in ("", "+"):
                return each.name
        raise self.text.error(
            piece.at,
            f"expected a variable after {loop!r}, for only then it is known which event of {loop!r} is the last; "
            f"{loop}[..i-1] are those before the event at hand",
        )

    def _equivalence(self, piece: Piece) -> None:
        """The same value of a field in all events."""
        first = self.names[0]
        for each in parts_of(piece):
            if not re.fullmatch(r"[^\W\d]\w*", each.text):
                raise self.text.error(each.at, f"expected the name of a field, got {each.text!r}")
            for name in self.names[1:]:
                self.conditions[name].append(Call("=", (Column(each.text), GetField(Column(first), each.text))))

    def _expression(self, piece: Piece) -> tuple[Expr, _Indexes]:
        """An expression without SASE's indexes, and those that it had."""
        indexes = _Indexes()
        text = _INDEX.sub(lambda found: self._index(found, indexes), piece.text)
        return self.text.expression(Piece(text, piece.at)), indexes

    def _index(self, found: re.Match[str], indexes: _Indexes) -> str:
        """An index of a variable as expressions have it, as long as it was, so that positions stay."""
        name, inner = found.group(1), re.sub(r"\s+", "", found.group(2)).lower()
        if name not in self.components:
            return found.group()
        made = name
        if step := re.fullmatch(r"i-(\d{1,4})", inner):
            made = f"{name}[-{step.group(1)}]"
        elif inner.isdecimal() and inner != "0":
            made = f"{name}[{int(inner) - 1}]"
        elif inner == f"{name.lower()}.len":
            made, inner = f"{name}[-1]", "len"
        elif inner not in ("", "i", "..i", "..i-1"):
            return found.group()
        indexes.of(name).append(inner)
        return made.ljust(len(found.group()))

    def _root(self) -> Part:
        parts = [self._part(each) for each in self.query.components]
        if len(parts) == 1:
            return parts[0]
        links = []
        for each in parts[1:]:
            relaxed = isinstance(each, Absence) and not each.strict
            links.append(Contiguity.RELAXED if relaxed else self.query.strategy)
        return Sequence(tuple(parts), tuple(links))

    def _part(self, each: _Component) -> Part:
        stage = Stage(each.name, together(self.conditions[each.name]))
        if each.is_absent:
            return Absence(stage, strict=self.query.strategy is Contiguity.STRICT)
        if not each.loop:
            return stage
        least, most = {"+": (1, None), "*": (0, None), "?": (0, 1)}[each.loop]
        any_of = self.query.strategy is Contiguity.ANY
        return Repeat(
            stage, least, most, self.query.strategy, Preference.EVERY if any_of or most == 1 else Preference.GREEDY
        )

    def _selected(self, piece: Piece) -> tuple[tuple[str, Expr], ...]:
        """The fields of RETURN: `a.x`, `a.x as y`, `n = count(c[])`."""
        return tuple(self._returned(each) for each in parts_of(piece))

    def _returned(self, piece: Piece) -> tuple[str, Expr]:
        named = re.match(r"([^\W\d]\w*)\s*=(?!=)", piece.text)
        inner = Piece(piece.text[named.end() :], piece.at + named.end()) if named else piece
        made, _ = self._expression(inner.stripped())
        if isinstance(made, Alias):
            return made.name, made.expr
        name = named.group(1) if named else name_of(made)
        return name or f"field{piece.at}", made


def _of_loop(made: Expr, own: str, indexes: list[str]) -> tuple[Expr, bool]:
    """What a condition says of one event of its own loop, and whether it speaks of the loop as a whole instead.

    `c[1].x > 3` is of the first event, `c[i].x > c[i-1].x` of each that has one before it, `c[c.LEN]` and `avg(c[].x)` of the whole.
    """
    looks_back = [_back(each) for each in indexes if each not in ("", "i", "..i", "len")]
    numbered = {each for each in indexes if each.isdecimal()}
    if "len" in indexes or ("" in indexes and any(map(is_aggregate, each_of(made)))):
        return made, True
    if not looks_back:
        return made, False
    count = Call("count", (Column(own),))
    if len(numbered) == 1 and set(indexes) == numbered:
        here = rewritten(made, lambda each: _at_hand(each, own))
        return Call("or", (Call("not", (Call("=", (count, lit(int(*numbered) - 1))),)), here)), False
    return Call("or", (Call("<", (count, lit(max(looks_back)))), made)), False


def _back(index: str) -> int:
    """How many events of the loop there must be before one that the index is looked up for."""
    return int(index.rsplit("-", 1)[-1])


def _at_hand(node: Expr, own: str) -> Expr | None:
    """A numbered event of a loop as the one at hand."""
    return node.expr if isinstance(node, GetItem) and isinstance(node.expr, Column) and node.expr.name == own else None


_INDEX = re.compile(r"\b([^\W\d]\w*)\s*\[([^\[\]]*)\]")


def split_and(piece: Piece) -> list[Piece]:
    """A piece cut at `and`, `∧` and commas, but not inside of brackets or quotes, nor at the `and` of a between."""
    made: list[Piece] = []
    for part in parts_of(piece):
        made += _cut_at_and(part)
    return made


_WORD = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`|[()\[\]]|\w+|∧|&&", re.DOTALL)


def _cut_at_and(piece: Piece) -> list[Piece]:
    made, begin, depth, between = [], 0, 0, False
    for found in _WORD.finditer(piece.text):
        word = found.group().lower()
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(word, 0)
        if depth or word not in ("between", "and", "∧", "&&"):
            continue
        if word == "between" or (between and word == "and"):
            between = word == "between"
            continue
        made.append(Piece(piece.text[begin : found.start()], piece.at + begin))
        begin = found.end()
    return [*made, Piece(piece.text[begin:], piece.at + begin)]


def _at(token: object) -> int:
    return int(getattr(token, "start_pos", 0) or 0)


def _end(token: object) -> int:
    return int(getattr(token, "end_pos", 0) or 0)
