"""Event patterns as text: `every a=Login(ok=false) -> b=Login(user=a.user and ok=true) where timer:within(10 min)`.

The grammar is in `grammar/events.lark`; conditions are expressions as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias, cast

from penstock.errors import FlowError, nearest
from penstock.frontends.patterns.reading import DEEPEST, Piece, Rules, Text, parts_of, read
from penstock.frontends.patterns.times import read_crontab, read_fixed_span, read_schedule, read_span
from penstock.graph.expr import Call, Expr, as_expr, col, columns_of, lit
from penstock.graph.order import terms_of
from penstock.graph.patterns import operators as o
from penstock.graph.patterns.limits import limit_of
from penstock.graph.patterns.operator_conditions import together
from penstock.graph.patterns.pattern import RunLimit
from penstock.graph.spelling import spelled

Types: TypeAlias = str | Mapping[str, str | Expr] | None
"""What makes a record an event of a type: the field that names it, or a condition for each."""
NAMES = {
    "ARROW": "'->'", "LIMIT_OPEN": "'-[n]>'", "LIMIT_CLOSE": "']>'", "AND": "'and'", "OR": "'or'", "NOT": "'not'", "EVERY": "'every'",
    "EVERY_DISTINCT": "'every-distinct'", "UNTIL": "'until'", "WHERE": "'where'", "WHILE": "'while'", "NAME": "a name", "INT": "a number",
    "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "COLON": "':'", "DOTS": "", "COMMA": "','", "EQUAL": "'='", "DOT": "'.'",
    "AT": "'@'", "CONSUME": "consume", "TEXT": "a value", "STRING": "", "$END": "the end",
}  # fmt: skip
"""How errors call the terminals of the grammar; what is empty is not worth a word."""
_TIMERS = ("interval", "at", "schedule")
_GUARDS = ("within", "withinmax")
_MARKS = {"suppressoverlappingmatches": "suppress_overlapping", "discardpartialsonmatch": "discard_partials"}


class _Bounds(NamedTuple):
    least: int
    most: int | None
    at: int


class _GuardText(NamedTuple):
    """A guard as it was read: its name, and what stands in its parentheses."""

    name: str
    inner: Piece


@spelled
def pattern_text(
    text: str, *, types: Types = None, order: str = "", limit: RunLimit | int | None = None
) -> o.OperatorPattern:
    """An event pattern from its text, for `match`.

    Args:
        text: the pattern, such as `every a=Login(ok=false) -> b=Login(user=a.user and ok=true) where timer:within(10 min)`.
        types: what makes a record an event of a type: the field that names it, or a condition for each type. May be left out where the pattern
            has but one type, which all records are of then.
        order: decides among events of the same time, such as "seq"; else they are taken as they arrive.
        limit: how many matches a key may have begun at a time: a number, above which the oldest are dropped and counted, or `ps.run_limit(...)`.

    Returns:
        The pattern.

    Raises:
        PatternError: the text cannot be read; the message has the line, the column, and what was expected there.
        FlowError: `text` or `types` is nothing of the kind.

    >>> import penstock as ps
    >>> print(ps.pattern_text("every a=A -> (b=B(n > a.n) and not C) where timer:within(10 min)", types="kind"))
    every a=A -> (b=B(n > a.n) and not C) where timer:within(10m)
    >>> ps.pattern_text("every a=A -> -> b=B")
    Traceback (most recent call last):
    penstock.errors.PatternError: cannot read the pattern, line 1, column 14: expected '(' or '[' or 'every' or 'every-distinct' or 'not' or a name, got '->'
      every a=A -> -> b=B
                   ^
    """
    if not isinstance(text, str):
        raise FlowError(f"a pattern is a text such as 'every a=A -> b=B', got {text!r}")
    source = Text(text)
    made = cast("o.OperatorPattern", read("events", source, _Events(source), NAMES))
    return replace(
        made,
        types=type_conditions(types, (each.type for each in o.filters_of(made.root))),
        order=terms_of(order),
        text=text,
        limit=limit_of(limit),
    )


def type_conditions(given: Types, types: Iterable[str]) -> tuple[tuple[str, Expr], ...]:
    """What makes a record an event of each type.

    Raises:
        FlowError: `given` is neither a field nor conditions by type.
    """
    if given is None:
        return ()
    if isinstance(given, str):
        return tuple((name, Call("=", (col(given), lit(name)))) for name in dict.fromkeys(types))
    if not isinstance(given, Mapping):
        raise FlowError(f"types is the field that names the type, or a condition for each, got {given!r}")
    return tuple((name, as_expr(condition)) for name, condition in given.items())


class _Events(Rules):
    """Makes operators of the rules of the grammar."""

    def start(self, parts: list[object]) -> o.OperatorPattern:
        """The whole: marks, and the pattern after them."""
        root = cast("o.Operator", parts[-1])
        self._check(root)
        marks = dict.fromkeys(cast("list[str]", parts[:-1]), True)
        return o.OperatorPattern(root, **marks)  # type: ignore[arg-type]  # each is a flag

    def _check(self, root: o.Operator) -> None:
        waiting = [(root, 1)]
        while waiting:
            each, depth = waiting.pop()
            if depth > DEEPEST:
                raise self.text.error(0, f"expected at most {DEEPEST} operators in each other")
            waiting += [(part, depth + 1) for part in o.parts_of(each)]
        try:
            o.check_operators(root)
        except FlowError as error:
            raise self.text.error(0, str(error)) from None

    def annotation(self, parts: list[object]) -> str:
        """A mark before the pattern."""
        name = _token(parts[0])
        if name.lower() not in _MARKS:
            known = ("SuppressOverlappingMatches", "DiscardPartialsOnMatch")
            raise self.text.error(_at(parts[0]), f"no annotation @{name}; {nearest(name, known)}")
        return _MARKS[name.lower()]

    def pattern(self, parts: list[object]) -> o.Operator:
        """One thing followed by another."""
        if len(parts) == 1:
            return cast("o.Operator", parts[0])
        limits = cast("list[int | None]", parts[1::2])
        return o.FollowedBy(
            tuple(cast("list[o.Operator]", parts[::2])),
            tuple(limits) if any(each is not None for each in limits) else (),
        )

    def arrow(self, parts: list[object]) -> int | None:
        """The limit of a link, if it has one."""
        if len(parts) == 1:
            return None
        if int(_token(parts[1])) < 1:
            raise self.text.error(_at(parts[1]), "expected a limit of at least 1, got 0")
        return int(_token(parts[1]))

    def either(self, parts: list[object]) -> o.Operator:
        """One of several."""
        return self._of(o.Or, parts)

    def both(self, parts: list[object]) -> o.Operator:
        """All of several."""
        return self._of(o.And, parts)

    def _of(self, made: type[o.And] | type[o.Or], parts: list[object]) -> o.Operator:
        some = tuple(cast("list[o.Operator]", parts[::2]))
        return some[0] if len(some) == 1 else made(some)

    def ranged(self, parts: list[object]) -> o.Operator:
        """So many times, and perhaps until."""
        bounds, part, _, until = parts
        return self._repeat(cast("_Bounds", bounds), part, until)

    def _repeat(self, bounds: _Bounds, part: object, until: object) -> o.Operator:
        if until is None and bounds.least != bounds.most:
            raise self.text.error(
                bounds.at, "a repetition with a range needs an end: expected 'until' after what is repeated, or [n]"
            )
        if bounds.most is not None and not 0 < bounds.most >= bounds.least:
            raise self.text.error(
                bounds.at, f"expected bounds that rise and end above zero, got [{bounds.least}:{bounds.most}]"
            )
        return o.Repeat(cast("o.Operator", part), bounds.least, bounds.most, cast("o.Operator | None", until))

    def open(self, parts: list[object]) -> o.Operator:
        """Any number of times until something else; or plainly what stands here."""
        part, _, until = parts
        return (
            cast("o.Operator", part)
            if until is None
            else o.Repeat(cast("o.Operator", part), until=cast("o.Operator", until))
        )

    def exact(self, parts: list[object]) -> _Bounds:
        """[3]"""
        many = int(_token(parts[1]))
        return _Bounds(many, many, _at(parts[0]))

    def bounds(self, parts: list[object]) -> _Bounds:
        """[2:5], [2:], [:5], and the same with two dots."""
        opens, low, _, high, _ = parts
        return _Bounds(0 if low is None else int(_token(low)), None if high is None else int(_token(high)), _at(opens))

    def counted(self, parts: list[object]) -> o.Operator:
        """Every [3] A"""
        return self._repeat(cast("_Bounds", parts[0]), parts[1], None)

    def every(self, parts: list[object]) -> o.Operator:
        """Starts again."""
        part = cast("o.Operator", parts[1])
        if isinstance(part, o.Interval) and isinstance(part.span, int) and part.span == 0:
            raise self.text.error(
                _at(parts[0]), "every timer:interval(0) turns true without end; expected a span above zero"
            )
        return o.Every(part)

    def negated(self, parts: list[object]) -> o.Operator:
        """The absence of something."""
        return o.Not(cast("o.Operator", parts[1]))

    def distinct(self, parts: list[object]) -> o.Operator:
        """Starts again, once for each key."""
        _, opens, _, closes, part = parts
        given = parts_of(self.text.between(opens, closes))  # type: ignore[arg-type]  # brackets are tokens
        expiry = None
        if len(given) > 1 and given[-1].text[:1].isdigit():
            expiry = read_fixed_span(self.text, given.pop())
        if not given:
            raise self.text.error(_at(opens), "expected what must be distinct, such as every-distinct(a.user)")
        keys = tuple(map(self.text.expression, given))
        for key, piece in zip(keys, given, strict=True):
            if not columns_of(key):
                raise self.text.error(
                    piece.at, f"expected something of what was tagged, such as a.user, got the constant {piece.text}"
                )
        return o.EveryDistinct(cast("o.Operator", part), keys, expiry)

    def guarded(self, parts: list[object]) -> o.Operator:
        """A part and its guards, the first of them the tightest."""
        made = cast("o.Operator", parts[0])
        for guard in cast("list[_GuardText]", parts[1:]):
            made = self._guard(made, guard)
        return made

    def _guard(self, part: o.Operator, guard: _GuardText) -> o.Operator:
        if guard.name == "while":
            if not guard.inner.text.strip():
                raise self.text.error(guard.inner.at, "expected a condition, such as while(a.n > 0)")
            return o.While(part, self.text.expression(guard.inner))
        given = parts_of(guard.inner)
        wanted = 1 if guard.name == "within" else 2
        if len(given) != wanted:
            example = "timer:within(10 sec)" if wanted == 1 else "timer:withinmax(10 sec, 5)"
            raise self.text.error(
                guard.inner.at,
                f"expected {wanted} value{'s' if wanted > 1 else ''}, such as {example}, got {len(given)}",
            )
        return o.Within(part, read_span(self.text, given[0]), self._most(given[1]) if wanted == 2 else None)

    def _most(self, piece: Piece) -> int:
        if not piece.text.isdecimal() or len(piece.text) > 9:
            raise self.text.error(piece.at, f"expected a number of matches, got {piece.text!r}")
        return int(piece.text)

    def timed(self, parts: list[object]) -> _GuardText:
        """Where timer:within(...)"""
        _, space, _, name, opens, _, closes = parts
        self._named(space, name, _GUARDS, "guard")
        return _GuardText(_token(name).lower(), self.text.between(opens, closes))  # type: ignore[arg-type]  # brackets are tokens

    def condition(self, parts: list[object]) -> _GuardText:
        """while(...)"""
        _, opens, _, closes = parts
        return _GuardText("while", self.text.between(opens, closes))  # type: ignore[arg-type]  # brackets are tokens

    def _named(self, space: object, name: object, known: tuple[str, ...], noun: str) -> None:
        names = [f"timer:{each}" for each in known]
        full = f"{_token(space)}:{_token(name)}".lower()
        if full not in names:
            raise self.text.error(_at(space), f"no {noun} {full}; {nearest(full, names)}")

    def group(self, parts: list[object]) -> object:
        """What stands in parentheses."""
        return parts[1]

    def tagged(self, parts: list[object]) -> o.Operator:
        """An event with a name."""
        return replace(cast("o.Filter", parts[1]), tag=_name(parts[0]))

    def untagged(self, parts: list[object]) -> object:
        """An event without one."""
        return parts[0]

    def event(self, parts: list[object]) -> o.Operator:
        """An event of a type, perhaps with conditions, of which all must hold."""
        name, opens, _, closes, level = parts
        given = [] if opens is None else parts_of(self.text.between(opens, closes))  # type: ignore[arg-type]  # brackets are tokens
        empty = next((each for each in given if not each.text), None)
        if empty is not None:
            raise self.text.error(empty.at, "expected a condition between the commas")
        whole = together([self.text.expression(each) for each in given])
        return o.Filter(cast("str", name), "", whole, cast("int | None", level))

    def type(self, parts: list[object]) -> str:
        """The name of an event type, perhaps with dots in it."""
        return ".".join(map(_name, parts))

    def consume(self, parts: list[object]) -> int | None:
        """@consume and @consume(2); level 0 is none."""
        level = 1 if parts[2] is None else int(_token(parts[2]))
        return level or None

    def timer(self, parts: list[object]) -> o.Operator:
        """timer:interval, timer:at and timer:schedule."""
        space, _, name, opens, _, closes = parts
        self._named(space, name, _TIMERS, "timer")
        inner = self.text.between(opens, closes)  # type: ignore[arg-type]  # brackets are tokens
        kind = _token(name).lower()
        if kind == "interval":
            return o.Interval(read_span(self.text, inner.stripped()))
        return (
            o.Crontab(read_crontab(self.text, inner)) if kind == "at" else o.Schedule(read_schedule(self.text, inner))
        )

    def arguments(self, parts: list[object]) -> None:
        """Read by what they belong to."""


def _token(token: object) -> str:
    return str(token)


def _name(token: object) -> str:
    written = str(token)
    return written[1:-1].replace("``", "`") if written.startswith("`") else written


def _at(token: object) -> int:
    return int(getattr(token, "start_pos", 0) or 0)
