"""Event patterns as a tree of operators: `every a=Login(ok=false) -> b=Login(ok=true) where timer:within(10 min)`.

An expression is *started*, then watches events and time until it ends. On the way it may *turn true* any number of times, each time with the events
it has tagged. It ends when it has turned true for the last time, or when it has become false for ever. What each operator does with that:

| Operator | Turns true | Ends |
|---|---|---|
| `Filter` | at the first event that fits | then |
| `Interval`, `Crontab`, `Schedule` | at its time; of a schedule at the first that is to come | then |
| `Every` | whenever a copy of its part does, and starts another copy then; a copy that becomes false is started again | never |
| `Every` of a `Schedule` | at all of its times that are to come | after the last of them |
| `EveryDistinct` | as `Every`, once for each value of its keys | never |
| `Not` | at its start | becomes false when its part turns true for the last time |
| `Repeat` | when its part has turned true often enough, or at `until` | then |
| `And` | for every combination of what its parts turned true with | false when one of them is |
| `Or` | when a part does | when a part ends true; false when all are |
| `FollowedBy` | when its last part does, which is started whenever the one before it turns true | with the last copy of its parts |
| `Within`, `While` | with its part | with its part; false when time is up, or the condition does not hold |

>>> str(FollowedBy((Every(Filter("A", "a")), Filter("B", "b"))))
'every a=A -> b=B'
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from penstock.errors import FlowError
from penstock.graph.duration import shown
from penstock.graph.expr import Expr, to_text
from penstock.graph.order import Term
from penstock.graph.patterns.calendar import CrontabTimes, MonthSpan, ScheduleTimes
from penstock.graph.patterns.pattern import RunLimit

Span: TypeAlias = int | MonthSpan | Expr
"""A span of time: microseconds, months, or an expression of seconds over the events tagged so far."""


def _shown_span(span: Span) -> str:
    if isinstance(span, MonthSpan):
        return str(span)
    return shown(span) if isinstance(span, int) else to_text(span)


@dataclass(frozen=True, eq=False)
class Filter:
    """An event of a type for which a condition holds.

    Args:
        type: the name of the event type.
        tag: the name by which the event is known further on; empty for none.
        condition: what must hold, over the fields of the event and of those that were tagged before.
        consume: the level at which it consumes the event, so that filters of a lower level, or of none, do not see it.
    """

    type: str
    tag: str = ""
    condition: Expr | None = None
    consume: int | None = None

    def __str__(self) -> str:
        inner = f"({to_text(self.condition)})" if self.condition is not None else ""
        level = "" if self.consume is None else f"@consume({self.consume})"
        return f"{f'{self.tag}=' if self.tag else ''}{self.type}{inner}{level}"


@dataclass(frozen=True, eq=False)
class Interval:
    """A span of time from the start on."""

    span: Span

    def __str__(self) -> str:
        return f"timer:interval({_shown_span(self.span)})"


@dataclass(frozen=True, eq=False)
class Crontab:
    """The next moment that a crontab names."""

    times: CrontabTimes

    def __str__(self) -> str:
        return f"timer:at({self.times})"


@dataclass(frozen=True, eq=False)
class Schedule:
    """The next moment of a schedule; under `Every` all that are still to come."""

    times: ScheduleTimes

    def __str__(self) -> str:
        return f"timer:schedule({self.times})"


@dataclass(frozen=True, eq=False)
class Every:
    """Starts its part again whenever that turns true or becomes false."""

    part: Operator

    def __str__(self) -> str:
        return f"every {_tight(self.part)}"


@dataclass(frozen=True, eq=False)
class EveryDistinct:
    """As `Every`, but only the first of each value of its keys counts; with `expiry`, the first in as much time."""

    part: Operator
    keys: tuple[Expr, ...]
    expiry: int | None = None

    def __str__(self) -> str:
        inner = [*map(to_text, self.keys), *(() if self.expiry is None else (shown(self.expiry),))]
        return f"every-distinct({', '.join(inner)}) {_tight(self.part)}"


@dataclass(frozen=True, eq=False)
class Not:
    """True until its part has turned true."""

    part: Operator

    def __str__(self) -> str:
        return f"not {_tight(self.part)}"


@dataclass(frozen=True, eq=False)
class Repeat:
    """Its part one time after the other: `least` to `most` times, and until another expression turns true."""

    part: Operator
    least: int = 0
    most: int | None = None
    until: Operator | None = None

    def __str__(self) -> str:
        most = "" if self.most is None else self.most
        exact = self.least == self.most
        bounds = (
            f"[{self.least}] " if exact else "" if (self.least, self.most) == (0, None) else f"[{self.least}:{most}] "
        )
        return f"{bounds}{_tight(self.part)}{'' if self.until is None else f' until {_tight(self.until)}'}"


@dataclass(frozen=True, eq=False)
class And:
    """All of its parts, in any order."""

    parts: tuple[Operator, ...]

    def __str__(self) -> str:
        return " and ".join(map(_grouped, self.parts))


@dataclass(frozen=True, eq=False)
class Or:
    """One of its parts."""

    parts: tuple[Operator, ...]

    def __str__(self) -> str:
        return " or ".join(map(_grouped, self.parts))


@dataclass(frozen=True, eq=False)
class FollowedBy:
    """Its parts one after the other. A limit says how many copies of the part after a link may wait at once; None is any number."""

    parts: tuple[Operator, ...]
    limits: tuple[int | None, ...] = ()

    def limit(self, link: int) -> int | None:
        """How many copies of the part after a link may wait at once."""
        return self.limits[link] if self.limits else None

    def __str__(self) -> str:
        made = _grouped(self.parts[0])
        for link, part in enumerate(self.parts[1:]):
            limit = self.limit(link)
            made += f" {'->' if limit is None else f'-[{limit}]>'} {_grouped(part)}"
        return made


@dataclass(frozen=True, eq=False)
class Within:
    """Its part for less than a span of time, and at most so many times."""

    part: Operator
    span: Span
    most: int | None = None

    def __str__(self) -> str:
        name, more = ("within", "") if self.most is None else ("withinmax", f", {self.most}")
        return f"{_guarded(self.part)} where timer:{name}({_shown_span(self.span)}{more})"


@dataclass(frozen=True, eq=False)
class While:
    """Its part for as long as a condition over what was tagged holds when it turns true."""

    part: Operator
    condition: Expr

    def __str__(self) -> str:
        return f"{_guarded(self.part)} while ({to_text(self.condition)})"


Guard: TypeAlias = Within | While
Timer: TypeAlias = Interval | Crontab | Schedule
Operator: TypeAlias = Filter | Timer | Every | EveryDistinct | Not | Repeat | And | Or | FollowedBy | Guard

_ATOMS = (Filter, Interval, Crontab, Schedule)


def _guarded(part: Operator) -> str:
    return str(part) if isinstance(part, _ATOMS) else f"({part})"


def _tight(part: Operator) -> str:
    return str(part) if isinstance(part, (*_ATOMS, Within, While)) else f"({part})"


def _grouped(part: Operator) -> str:
    return f"({part})" if isinstance(part, And | Or | FollowedBy) else str(part)


def parts_of(operator: Operator) -> tuple[Operator, ...]:
    """What an operator stands over, from the left."""
    if isinstance(operator, And | Or | FollowedBy):
        return operator.parts
    if isinstance(operator, Repeat):
        return (operator.part,) if operator.until is None else (operator.part, operator.until)
    if isinstance(operator, Every | EveryDistinct | Not | Within | While):
        return (operator.part,)
    return ()


def walk(operator: Operator) -> Iterator[Operator]:
    """An operator and all below it, from the left."""
    waiting = [operator]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += reversed(parts_of(each))


def filters_of(operator: Operator) -> list[Filter]:
    """The filters of a tree, from the left."""
    return [each for each in walk(operator) if isinstance(each, Filter)]


def tags_of(operator: Operator) -> tuple[str, ...]:
    """The tags of a tree, from the left."""
    return tuple(dict.fromkeys(each.tag for each in filters_of(operator) if each.tag))


def is_true_at_start(operator: Operator) -> bool:
    """Whether an expression turns true when it is started, before any event.

    >>> is_true_at_start(Not(Filter("A"))), is_true_at_start(And((Filter("B"), Not(Filter("A")))))
    (True, False)
    """
    if isinstance(operator, Not):
        return not is_true_at_start(operator.part)
    if isinstance(operator, And | FollowedBy):
        return all(map(is_true_at_start, operator.parts))
    if isinstance(operator, Or):
        return any(map(is_true_at_start, operator.parts))
    if isinstance(operator, Repeat):
        return any(map(is_true_at_start, parts_of(operator)))
    return isinstance(operator, Within | While) and is_true_at_start(operator.part)


def has_timer_at_start(operator: Operator) -> bool:
    """Whether time counts from the start of an expression on.

    >>> has_timer_at_start(Interval(5)), has_timer_at_start(FollowedBy((Filter("A"), Interval(5))))
    (True, False)
    """
    if isinstance(operator, Timer | Within):
        return True
    if isinstance(operator, FollowedBy):
        first, *rest = operator.parts
        return has_timer_at_start(first) or (is_true_at_start(first) and any(map(has_timer_at_start, rest)))
    return any(map(has_timer_at_start, parts_of(operator)))


def waits_for_events(root: Operator) -> bool:
    """Whether a pattern that has just started is as it was whenever it started, so that nothing need be kept of it."""
    return not is_true_at_start(root) and not has_timer_at_start(root)


def has_recurring_timer(root: Operator) -> bool:
    """Whether a timer comes again and again: how often it has come tells how much time has passed, whatever happened in it.

    >>> has_recurring_timer(Every(Interval(5))), has_recurring_timer(FollowedBy((Filter("A"), Interval(5))))
    (True, False)
    """
    again = (each for each in walk(root) if isinstance(each, Every | EveryDistinct | Repeat))
    return any(isinstance(below, Timer) for each in again for below in walk(each))


@dataclass(frozen=True, eq=False)
class OperatorPattern:
    """A pattern of operators over the events of a key.

    Args:
        root: the tree.
        types: what makes a record an event of a type, by the name of the type; conditions over the fields of a record.
        suppress_overlapping: of the matches that one event or moment completes, those that share an event with an earlier one are left out.
        discard_partials: a match ends all that hold one of its events.
        order: fields by which events of the same time are ordered; else they are taken as they arrive.
        text: the pattern as it was written.
        limit: how many matches a key may have begun.
    """

    root: Operator
    types: tuple[tuple[str, Expr], ...] = ()
    suppress_overlapping: bool = False
    discard_partials: bool = False
    order: tuple[Term, ...] = ()
    text: str = field(default="")
    limit: RunLimit | None = None

    def __str__(self) -> str:
        marks = "@SuppressOverlappingMatches " if self.suppress_overlapping else ""
        marks += "@DiscardPartialsOnMatch " if self.discard_partials else ""
        return f"{marks}{self.root}"

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """The tags, from the left; every condition asks for them."""
        return tags_of(self.root)

    @property
    def stages(self) -> tuple[str, ...]:
        """The tags, as other patterns name their stages."""
        return self.tags


def check_operators(root: Operator) -> None:
    """Refuses trees that mean nothing.

    Raises:
        FlowError: a repetition has no end, or bounds that fall; a limit or a span is out of range.
    """
    for each in walk(root):
        if isinstance(each, Repeat):
            _check_repeat(each)
        elif isinstance(each, FollowedBy) and any(limit is not None and limit < 1 for limit in each.limits):
            raise FlowError(f"the limit in -[n]> is at least 1, got {each}")
        elif (
            isinstance(each, Every)
            and isinstance(each.part, Interval)
            and isinstance(each.part.span, int)
            and not each.part.span
        ):
            raise FlowError(f"{each} would turn true without end; give the interval a span above zero")


def _check_repeat(part: Repeat) -> None:
    if part.most is not None and (part.most < part.least or part.most == 0):
        raise FlowError(f"the bounds of a repetition rise and end above zero, got [{part.least}:{part.most}]")
    if part.until is None and part.least != part.most:
        raise FlowError(
            f"a repetition with an open or a wide range needs an end: write [{part.least}:] {part.part} until ..., or [n] for exactly n"
        )
