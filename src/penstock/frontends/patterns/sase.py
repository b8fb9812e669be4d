"""SASE's pattern text: `PATTERN SEQ(A a, !(B b), C+ c[]) WHERE skip_till_next_match(a, b, c) { [user] and c[i].x > c[i-1].x } WITHIN 10 minutes`.

It becomes the tree that `ps.pattern` makes. A condition belongs to the last stage that it names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast

from penstock.errors import FlowError, nearest
from penstock.frontends.patterns.events import Types, type_conditions
from penstock.frontends.patterns.reading import Piece, Rules, Text, parts_of, read
from penstock.frontends.patterns.times import read_fixed_span
from penstock.graph.aggregates.calls import is_aggregate
from penstock.graph.expr import Alias, Call, Column, Expr, GetField, GetItem, lit, name_of
from penstock.graph.expr.rewrite import each_of, rewritten
from penstock.graph.patterns.limits import limit_of
from penstock.graph.patterns.operator_conditions import together
from penstock.graph.patterns.pattern import Pattern, RunLimit
from penstock.graph.patterns.selected import SelectedPattern
from penstock.graph.patterns.tree import Absence, Contiguity, Part, Preference, Repeat, Sequence, Stage
from penstock.graph.spelling import spelled

NAMES = {
    "PATTERN": "'PATTERN'", "SEQ": "'SEQ'", "WHERE": "'WHERE'", "WITHIN": "'WITHIN'", "RETURN": "'RETURN'", "STRATEGY": "a selection strategy",
    "LOOP": "'+', '*' or '?'", "NOT": "'!'", "NAME": "a name", "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "LBRACE": "'{'",
    "RBRACE": "'}'", "COMMA": "','", "TEXT": "a condition", "STRING": "", "$END": "the end",
}  # fmt: skip
"""How errors call the terminals of the grammar."""
NEXT_MATCH, ANY_MATCH, PARTITION = "skip_till_next_match", "skip_till_any_match", "partition_contiguity"
_STRATEGIES = {
    NEXT_MATCH: Contiguity.RELAXED,
    ANY_MATCH: Contiguity.ANY,
    "strict_contiguity": Contiguity.STRICT,
    PARTITION: Contiguity.STRICT,
}


class _Component(NamedTuple):
    """A part of SEQ: a type and a variable, how often, and whether it must not happen."""

    type: str
    name: str
    at: int
    loop: str = ""
    is_absent: bool = False


class _Variable(NamedTuple):
    """A variable that a strategy names."""

    name: str
    at: int


class _Where(NamedTuple):
    """How events are selected, and what must hold for them."""

    conditions: Piece | None = None
    strategy: str = ANY_MATCH
    variables: tuple[_Variable, ...] = ()


@dataclass
class _Query:
    """All that a text says."""

    components: list[_Component] = field(default_factory=list)
    where: _Where = field(default_factory=_Where)
    within: Piece | None = None
    returned: Piece | None = None


@spelled
def sase_text(
    text: str, *, types: Types = None, name: str = "sase", limit: RunLimit | int | None = None
) -> SelectedPattern:
    """A pattern from SASE's text, for `match`.

    Args:
        text: the pattern, such as `PATTERN SEQ(A a, !(B b), C+ c[]) WHERE skip_till_next_match(a, b, c) { [user] and a.x > 3 } WITHIN 10 minutes
            RETURN a.x, count(c[])`. Without a strategy all combinations match.
        types: what makes a record an event of a type: the field that names it, or a condition for each type. May be left out where the pattern
            has but one type, which all records are of then.
        name: what errors and metrics call the pattern.
        limit: how many runs there may be at a time: a number for each key, above which the oldest are dropped, or `ps.run_limit(...)`.

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
    made = _Compiler(source, query, types).made(name)
    return replace(made, pattern=replace(made.pattern, limit=limit_of(limit)))


class _Sase(Rules):
    """Makes a query of the rules of the grammar."""

    def start(self, parts: list[object]) -> _Query:
        """The whole."""
        made = _Query()
        for part in parts:
            if isinstance(part, _Component):
                made.components.append(part)
            elif isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], str):
                setattr(made, part[0], part[1])
        return made

    def one(self, parts: list[object]) -> _Component:
        """A a"""
        return _Component(str(parts[0]), str(parts[1]), _at(parts[1]))

    def many(self, parts: list[object]) -> _Component:
        """C+ c[]"""
        return _Component(str(parts[0]), str(parts[2]), _at(parts[2]), str(parts[1]))

    def absent(self, parts: list[object]) -> _Component:
        """!(B b)"""
        return _Component(str(parts[2]), str(parts[3]), _at(parts[3]), is_absent=True)

    def chosen(self, parts: list[object]) -> tuple[str, _Where]:
        """WHERE with a selection strategy."""
        variables = tuple(each for each in parts if isinstance(each, _Variable))
        return "where", _Where(cast("Piece | None", parts[-2]), str(parts[1]).lower(), variables)

    def plain(self, parts: list[object]) -> tuple[str, _Where]:
        """WHERE without one."""
        return "where", _Where(cast("Piece", parts[1]))

    def variable(self, parts: list[object]) -> _Variable:
        """A variable that a strategy names: all that SEQ has are meant."""
        return _Variable(str(parts[0]), _at(parts[0]))

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


class _Index(NamedTuple):
    """The index of a variable: `i`, `i-1`, `..i-1`, `1`, `len`, or nothing for all; and where it stands."""

    name: str
    inner: str
    at: int

    @property
    def is_relative(self) -> bool:
        """Whether it is of the event at hand, or of those before it."""
        return "i" in self.inner


class _Compiler:
    """Makes the tree of a query."""

    def __init__(self, text: Text, query: _Query, types: Types) -> None:
        self.text, self.query = text, query
        self.components = {each.name: each for each in query.components}
        self.names = list(self.components)
        self.types = dict(type_conditions(types, [each.type for each in query.components]))
        self.conditions: dict[str, list[Expr]] = {name: [] for name in self.names}
        self.equal: list[str] = []

    def made(self, name: str) -> SelectedPattern:
        """The pattern, and what is selected of a match."""
        self._check()
        self._type()
        where = self.query.where
        if where.conditions is not None:
            for piece in split_and(where.conditions):
                self._condition(piece)
        within = None if self.query.within is None else read_fixed_span(self.text, self.query.within.stripped())
        try:
            pattern = Pattern(
                name, self._root(), within, skip_till_next=where.strategy == NEXT_MATCH, partition=self._partition()
            )
        except FlowError as error:
            raise self.text.error(self.query.components[0].at, str(error)) from None
        return SelectedPattern(pattern, None if self.query.returned is None else self._selected(self.query.returned))

    def _partition(self) -> tuple[str, ...]:
        return tuple(self.equal) if self.query.where.strategy == PARTITION else ()

    def _check(self) -> None:
        seen: set[str] = set()
        for each in self.query.components:
            if each.name in seen:
                raise self.text.error(each.at, f"expected a variable of its own, got {each.name!r} again")
            seen.add(each.name)
        for named in self.query.where.variables:
            if named.name not in self.components:
                raise self.text.error(
                    named.at, f"SEQ has no variable {named.name!r}; {nearest(named.name, self.names)}"
                )
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
        self._check_relative(indexes, own)
        made, of_all = _of_loop(made, own, [each.inner for each in indexes if each.name == own])
        self.conditions[self._after(whole, own) if of_all else own].append(made)

    def _check_relative(self, indexes: list[_Index], own: str) -> None:
        """Refuses `c[i]` where no event of the loop is at hand."""
        for each in indexes:
            if each.is_relative and (each.name != own or not self.components[own].loop):
                raise self.text.error(
                    each.at,
                    f"{each.name}[{each.inner}] is of the event at hand of a loop, so it stands in a condition on {each.name!r} alone, which is a loop; "
                    f"elsewhere write {each.name}[1], {each.name}[{each.name}.LEN] or an aggregate of {each.name}[]",
                )

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
            self.equal.append(each.text)
            for name in self.names[1:]:
                self.conditions[name].append(Call("=", (Column(each.text), GetField(Column(first), each.text))))

    def _expression(self, piece: Piece) -> tuple[Expr, list[_Index]]:
        """An expression without SASE's indexes, and those that it had."""
        indexes: list[_Index] = []
        text = _INDEX.sub(lambda found: self._index(found, piece.at, indexes), piece.text)
        return self.text.expression(Piece(text, piece.at)), indexes

    def _index(self, found: re.Match[str], at: int, indexes: list[_Index]) -> str:
        """An index of a variable as expressions have it, as long as it was, so that positions stay."""
        name, inner = found.group(1), re.sub(r"\s+", "", found.group(2) or "").lower()
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
            raise self.text.error(
                at + found.start(2),
                f"expected an index such as {name}[1] for the first, {name}[i], {name}[i-1], {name}[..i-1], {name}[{name}.LEN] or {name}[], "
                f"got {found.group(2)!r}",
            )
        indexes.append(_Index(name, inner, at + found.start()))
        return made.ljust(len(found.group()))

    def _root(self) -> Part:
        parts = [self._part(each) for each in self.query.components]
        if len(parts) == 1:
            return parts[0]
        links = []
        for each in parts[1:]:
            relaxed = isinstance(each, Absence) and not each.strict
            links.append(Contiguity.RELAXED if relaxed else self._contiguity)
        return Sequence(tuple(parts), tuple(links))

    @property
    def _contiguity(self) -> Contiguity:
        return _STRATEGIES[self.query.where.strategy]

    def _part(self, each: _Component) -> Part:
        stage, contiguity = Stage(each.name, together(self.conditions[each.name])), self._contiguity
        if each.is_absent:
            return Absence(stage, strict=contiguity is Contiguity.STRICT)
        if not each.loop:
            return stage
        least, most = {"+": (1, None), "*": (0, None), "?": (0, 1)}[each.loop]
        return Repeat(stage, least, most, contiguity, self._preference(each))

    def _preference(self, loop: _Component) -> Preference:
        """A loop takes what fits it, and what fits what follows it may go there too; before an absence at the end it is the longest that counts."""
        after = self.query.components[self.names.index(loop.name) + 1 :]
        is_last = bool(after) and all(each.is_absent for each in after)
        return (
            Preference.GREEDY
            if is_last and loop.loop == "+" and self._contiguity is not Contiguity.ANY
            else Preference.EVERY
        )

    def _selected(self, piece: Piece) -> tuple[tuple[str, Expr], ...]:
        """The fields of RETURN: `a.x`, `a.x as y`, `n = count(c[])`."""
        return tuple(self._returned(each) for each in parts_of(piece))

    def _returned(self, piece: Piece) -> tuple[str, Expr]:
        named = re.match(r"([^\W\d]\w*)\s*=(?!=)", piece.text)
        inner = Piece(piece.text[named.end() :], piece.at + named.end()) if named else piece
        made, indexes = self._expression(inner.stripped())
        self._check_relative(indexes, "")
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


_QUOTED = r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`"
_INDEX = re.compile(rf"{_QUOTED}|\b([^\W\d]\w*)\s*\[([^\[\]]*)\]", re.DOTALL)


def split_and(piece: Piece) -> list[Piece]:
    """A piece cut at `and`, `∧` and commas, but not inside of brackets, quotes or a case, nor at the `and` of a between or beside an `or`."""
    made: list[Piece] = []
    for part in parts_of(piece):
        made += _cut_at_and(part)
    return made


_WORD = re.compile(rf"{_QUOTED}|[()\[\]]|\w+|∧|&&", re.DOTALL)
_DEPTHS = {"(": 1, "[": 1, "case": 1, ")": -1, "]": -1, "end": -1}


def _cut_at_and(piece: Piece) -> list[Piece]:
    made, begin, depth, between = [], 0, 0, False
    for found in _WORD.finditer(piece.text):
        word = found.group().lower()
        depth += _DEPTHS.get(word, 0)
        if depth:
            continue
        if word == "or":
            return [piece]
        if word == "between" or (between and word == "and"):
            between = word == "between"
        elif word in ("and", "∧", "&&"):
            made.append(Piece(piece.text[begin : found.start()], piece.at + begin))
            begin = found.end()
    return [*made, Piece(piece.text[begin:], piece.at + begin)]


def _at(token: object) -> int:
    return int(getattr(token, "start_pos", 0) or 0)


def _end(token: object) -> int:
    return int(getattr(token, "end_pos", 0) or 0)
