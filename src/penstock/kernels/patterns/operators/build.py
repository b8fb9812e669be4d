"""A tree of operators as running operators over the fields of a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.graph.expr import Expr, to_text
from penstock.graph.patterns import operators as o
from penstock.graph.patterns.calendar import MonthSpan
from penstock.graph.patterns.operator_conditions import FilterCondition, filter_condition, over_match
from penstock.graph.schema import Schema
from penstock.kernels.patterns.operators import atoms, guards, logic, repeating
from penstock.kernels.patterns.operators.base import AnyRunning
from penstock.kernels.patterns.operators.looks import compile_looks
from penstock.kernels.patterns.operators.match import Match
from penstock.kernels.records.json_values import Json, value_to_json


@dataclass(frozen=True)
class RunningPattern:
    """A pattern as it runs: the operator at its root, and the condition of each filter, in the order of their bits."""

    root: AnyRunning
    filters: tuple[FilterCondition, ...]
    consumes: bool


def running(pattern: o.OperatorPattern, schema: Schema) -> RunningPattern:
    """A pattern over the fields of a stream, ready to run."""
    builder = _Builder(pattern, schema)
    root = builder.made(pattern.root)
    return RunningPattern(root, tuple(builder.filters), any(f.consume is not None for f in o.filters_of(pattern.root)))


class _Builder:
    def __init__(self, pattern: o.OperatorPattern, schema: Schema) -> None:
        self.pattern, self.schema = pattern, schema
        self.filters: list[FilterCondition] = []
        self.nothing = (None,) * len(schema.fields)

    def made(self, each: o.Operator) -> AnyRunning:
        """The running form of an operator."""
        return _MAKERS[type(each)](self, each)

    def filter(self, each: o.Filter) -> AnyRunning:
        """A filter with the next bit."""
        condition = filter_condition(each, self.pattern, self.schema)
        bit = 1 << len(self.filters)
        self.filters.append(condition)
        rest = None if condition.rest is None else compile_looks(condition.rest, self.schema)
        return atoms.RunningFilter(each.tag, bit, rest, each.consume)

    def over(self, written: Expr) -> Callable[[Match], object]:
        """An expression over a match alone."""
        run = compile_looks(over_match(written, self.schema, self.pattern), self.schema)
        return lambda match: run(match, self.nothing)

    def span(self, span: o.Span) -> atoms.SpanRun:
        """A span of time, perhaps by what was tagged."""
        if isinstance(span, int):
            fixed = span
            return lambda match, time: time + fixed
        if isinstance(span, MonthSpan):
            months = span
            return lambda match, time: months.after(time)
        seconds, written = self.over(span), to_text(span)

        def run(match: Match, time: int) -> int:
            found = seconds(match)
            if found is None:
                raise ValueError(f"a span of time is a number of seconds, got null from {written}")
            return time + max(0, round(float(found) * 1_000_000))  # type: ignore[arg-type]  # checked when the flow was built

        return run

    def keys(self, written: tuple[Expr, ...]) -> repeating.KeyRun:
        """The keys of a match as JSON."""
        kinds = [over_match(each, self.schema, self.pattern).type for each in written]
        runs = [self.over(each) for each in written]

        def run(match: Match) -> list[Json]:
            return [value_to_json(each(match), kind) for each, kind in zip(runs, kinds, strict=True)]

        return run

    def while_(self, each: o.While) -> AnyRunning:
        """A guard with a condition."""
        holds = self.over(each.condition)
        return guards.RunningWhile(self.made(each.part), lambda match: holds(match) is True)

    def every(self, each: o.Every) -> AnyRunning:
        """What starts its part again; a schedule goes on by itself, so that it counts its moments from its start."""
        if isinstance(each.part, o.Schedule):
            return atoms.RunningSchedule(each.part.times)
        return repeating.RunningEvery(self.made(each.part))

    def repeat(self, each: o.Repeat) -> AnyRunning:
        """A repetition; its part is made before its end, as filters are numbered from the left."""
        part = self.made(each.part)
        until = None if each.until is None else self.made(each.until)
        return repeating.RunningRepeat(part, until, each.least, each.most, o.tags_of(each.part))

    def some(self, parts: tuple[o.Operator, ...]) -> list[AnyRunning]:
        """Several operators."""
        return [self.made(each) for each in parts]


_MAKERS: dict[type, Callable[..., AnyRunning]] = {
    o.Filter: _Builder.filter,
    o.Interval: lambda b, each: atoms.RunningInterval(b.span(each.span)),
    o.Crontab: lambda b, each: atoms.RunningCrontab(each.times),
    o.Schedule: lambda b, each: atoms.RunningMoment(each.times),
    o.Every: _Builder.every,
    o.EveryDistinct: lambda b, each: repeating.RunningEveryDistinct(b.made(each.part), b.keys(each.keys), each.expiry),
    o.Not: lambda b, each: logic.RunningNot(b.made(each.part)),
    o.Repeat: _Builder.repeat,
    o.And: lambda b, each: logic.RunningAnd(b.some(each.parts)),
    o.Or: lambda b, each: logic.RunningOr(b.some(each.parts)),
    o.FollowedBy: lambda b, each: logic.RunningFollowedBy(b.some(each.parts), each.limits),
    o.Within: lambda b, each: guards.RunningWithin(b.made(each.part), b.span(each.span), each.most),
    o.While: _Builder.while_,
}
