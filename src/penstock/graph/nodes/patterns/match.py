"""Matches of a pattern: which events of a key make up what somebody looks for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import ClassVar, Self

from penstock.errors import FlowError, SchemaError
from penstock.graph import types as t
from penstock.graph.duration import shown
from penstock.graph.expr import Call, Column, Expr, Raw, columns_of, to_text
from penstock.graph.expr.rewrite import each_of
from penstock.graph.ids import child
from penstock.graph.logic.capture import check_function
from penstock.graph.nodes.base import ALL, FOR_EVER, LATE, OUT, Inputs, Output, Settings, TimeField, follow, has_hidden
from penstock.graph.nodes.keyed import Keyed
from penstock.graph.patterns.automaton import Automaton, Kind, Test
from penstock.graph.patterns.compiling import automaton_of
from penstock.graph.patterns.conditions import NavigationExpr, asks_for_number, navigated, need_condition
from penstock.graph.patterns.pattern import Overflow, Pattern, Skip
from penstock.graph.patterns.tree import (
    Absence,
    Choice,
    Contiguity,
    Permutation,
    Predicate,
    Repeat,
    Sequence,
    stages_of,
    walk,
)
from penstock.graph.schema import Schema

TIMED_OUT = "timed_out"
"""The output of runs whose time was up before they were a match."""
TIMED_OUT_AT = "timed_out_at"
DROPPED = "dropped"
"""The output of runs that were dropped because their key had too many."""
MATCH_START, MATCH_END = "match_start", "match_end"
MASK = "__mask"
"""The hidden field of an event that says which conditions it satisfies, a bit for each; the compiler has it computed natively."""
MOST_TESTS = 62
"""As many conditions as a mask has bits for."""

Selected = tuple[tuple[str, Expr], ...]


@dataclass(frozen=True)
class Match(Keyed):
    """Matches of a pattern among the events of each key.

    `select` are the fields of a match, by expressions over its stages; None is the key, from when to when it was, and the events of each stage.
    `time` is where the event time is; None means that events are taken as they arrive, by processing time.
    """

    pattern: Pattern = field(kw_only=True)
    select: Selected | None = field(default=None, kw_only=True)
    time: TimeField | None = field(default=None, kw_only=True)
    masked: tuple[int, ...] | None = field(default=None, kw_only=True)
    """The tests of which the masks that events come with say all, by number; None where events have none. The compiler says so."""
    reports: bool = field(default=True, kw_only=True)
    """Whether runs whose time was up are wanted; the compiler says when nobody reads them."""
    kind: ClassVar[str] = "match"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True
    takes_functions: ClassVar[bool] = True
    over_records: ClassVar[str] = "a match cannot be taken back when one of its rows goes"

    @cached_property
    def automaton(self) -> Automaton:
        """The compiled pattern."""
        return automaton_of(self.pattern)

    @cached_property
    def shape(self) -> tuple[str, str]:
        """The names of the stages and states: runs of two patterns with the same ones mean the same."""
        labels = [self.automaton.waits_for(at) for at in range(len(self.automaton.states))]
        return ", ".join(self.automaton.stages), ", ".join(labels)

    @property
    def timed(self) -> bool:  # type: ignore[override]  # the pattern decides
        """Whether it waits for event time, or runs end when time passes."""
        return self.time is not None or self.automaton.is_timed

    def resolve(self, given: Inputs) -> Self:
        """Where the event time is."""
        return replace(self, time=given[0].event_time)

    def check(self, given: Inputs) -> None:
        """Conditions and outputs fit the fields of the events."""
        super().check(given)
        self.pattern.check_key(tuple(key for key in self.keys if key != ALL))
        event = self.event_schema(given[0].schema)
        for term in self.pattern.order:
            event.field(term.column)
        for number, test in enumerate(self.automaton.tests):
            if self.masked is None or number not in self.masked:
                self._check_test(test, event)
        for name, written in self.select or ():
            self._check_selected(name, written, event)

    def _check_test(self, test: Test, event: Schema) -> None:
        what = (
            f"the condition of stage {test.own!r}" if not test.until else f"the end of the loop of stage {test.own!r}"
        )
        if isinstance(test.condition, Predicate):
            arguments = 2 if test.condition.sees_taken else 1
            check_function(self.name, test.condition.function, self.line, arguments)
        elif test.condition is not None:
            made = self._named(what, test.condition, event, test.own)
            _refuse(what, test.condition, made)

    def _named(self, what: str, written: Expr, event: Schema, own: str) -> NavigationExpr:
        try:
            return need_condition(what, written, event, self.pattern.stages, own)
        except FlowError as error:
            raise type(error)(f"{what}: {error}" if what not in str(error) else str(error)) from None

    def _check_selected(self, name: str, written: Expr, event: Schema) -> None:
        what = f"the output field {name!r}"
        bare = next((each.name for each in each_of(written) if isinstance(each, Column)), "")
        if isinstance(written, Column) and bare in self.pattern.stages and bare not in event:
            raise FlowError(
                f"{what}: {bare!r} is a stage, which may have several events; take a field, such as {bare}.{event.names[0]}"
            )
        try:
            made = navigated(written, event, self.pattern.stages)
        except FlowError as error:
            raise type(error)(f"{what}: {error}") from None
        _refuse(what, written, made)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The matches; the runs whose time was up, where time ends runs; the late events, where there is event time."""
        event = self.event_schema(given[0].schema)
        fields = self.selected_fields(event)
        schema = Schema(fields, internal=has_hidden(fields))
        made = [Output(schema, OUT, event_time=self._time_of_matches())]
        if self.automaton.is_timed:
            if TIMED_OUT_AT in schema:
                raise SchemaError(f"{TIMED_OUT_AT!r} is the field that says when time was up; name yours otherwise")
            late = TimeField(TIMED_OUT_AT, -1) if self.time is not None else None
            made.append(Output(Schema((*fields, t.Field(TIMED_OUT_AT, t.TIMESTAMP))), TIMED_OUT, event_time=late))
        if self.sets_aside:
            made.append(Output(schema, DROPPED))
        if self.time is not None:
            made.append(Output(event, LATE, event_time=given[0].time_in(event)))
        return tuple(made)

    def _time_of_matches(self) -> TimeField | None:
        """The event time of a match is that of its last event, where it is among the fields."""
        if self.time is None:
            return None
        if self.select is None:
            return TimeField(MATCH_END)
        name = follow(self.time.column, dict(self.select))
        return None if name is None else replace(self.time, column=name)

    @property
    def sets_aside(self) -> bool:
        """Whether runs that are dropped because there are too many are emitted."""
        limit = self.pattern.limit
        return limit is not None and limit.overflow is Overflow.ASIDE

    def event_schema(self, schema: Schema) -> Schema:
        """The fields of an event, without hidden ones."""
        fields = tuple(f for f in schema.fields if not f.name.startswith("__"))
        return schema if len(fields) == len(schema.fields) else Schema(fields, record=schema.record)

    def selected_fields(self, event: Schema) -> tuple[t.Field, ...]:
        """The fields of a match."""
        if self.select is not None:
            made = ((name, navigated(written, event, self.pattern.stages).type) for name, written in self.select)
            return tuple(t.Field(name, kind) for name, kind in made)
        keys = tuple(event.field(key) for key in self.keys if key != ALL)
        bounds = (t.Field(MATCH_START, t.TIMESTAMP), t.Field(MATCH_END, t.TIMESTAMP))
        taken = {f.name for f in (*keys, *bounds)}
        for stage in self.pattern.stages:
            if stage in taken:
                raise SchemaError(
                    f"stage {stage!r} has the name of a field of every match; say select={{...}}, or name the stage otherwise"
                )
        events = tuple(t.Field(stage, t.Array(t.Struct(event.fields))) for stage in self.pattern.stages)
        return (*keys, *bounds, *events)

    @property
    def waiting(self) -> str:
        """The store of the events that event time has not passed yet."""
        return child(self.name, "waiting")

    @property
    def stores(self) -> dict[str, str]:
        """The runs of each key with the events they hold, and the events that wait."""
        return {self.name: "values"} | ({} if self.time is None else {self.waiting: "rows"})

    @property
    def keeps(self) -> str:
        """The runs, until their time is up."""
        within = self.pattern.within
        until = (
            f"until they match, fail, or {shown(within)} are over"
            if within
            else f"until they match or fail, else {FOR_EVER}"
        )
        return f"the runs {self.per_key} with the events that they hold, {until}"

    @property
    def hold(self) -> int:
        """A match may be known long after its last event: when an absence is sure, or runs before it have ended."""
        late = self.pattern.after_match.skip is not Skip.NONE or any(
            s.kind is Kind.PENDING for s in self.automaton.states
        )
        return max((self.pattern.within or 0, *(gap for _, gap in self.pattern.gaps))) if late else 0

    @property
    def may_pass_by(self) -> bool:
        """Whether an event that satisfies no condition changes nothing, so that it need not even be moved.

        It makes two runs of one that is in a repetition, with the event passed over there and after it, or before alternatives. That shows where runs
        whose time is up are reported; and in groups, where several runs may come to the same match.
        """
        parts = list(walk(self.pattern.root))
        has_all = all(stage.condition is not None for stage in stages_of(self.pattern.root))
        has_groups = any(isinstance(part, Sequence) for part in parts[1:])
        may_split = (self.reports or has_groups) and not self.pattern.skip_till_next
        splits = may_split and any(isinstance(part, Repeat | Choice | Permutation) for part in parts)
        return has_all and not splits and not any(map(_is_strict, parts))

    def tested(self, number: int, event: Schema) -> NavigationExpr | None:
        """A test that is an expression, over the fields of events; None where it is a Python function."""
        test = self.automaton.tests[number]
        if not isinstance(test.condition, Expr):
            return None
        return navigated(test.condition, event, self.pattern.stages, test.own)

    def iterative(self, event: Schema) -> list[NavigationExpr]:
        """The tests that are expressions and look at what was taken before."""
        numbers = (at for at in range(len(self.automaton.tests)) if self.masked is None or at not in self.masked)
        made = (self.tested(at, event) for at in numbers)
        return [each for each in made if each is not None and not each.is_plain]

    def looks_at_runs(self, event: Schema) -> bool:
        """Whether a condition looks at what was taken before, or is a Python function: it is asked event by event, and may fail on one."""
        functions = any(isinstance(test.condition, Predicate) for test in self.automaton.tests)
        return functions or bool(self.iterative(event))

    def filter_of(self, number: int, event: Schema) -> Expr | None:
        """What an event alone must satisfy for a test: all of it, or the parts that look at nothing else; None where that is nothing."""
        made = self.tested(number, event)
        if made is None or made.is_plain:
            return None if made is None else made.expr
        looks = {f.name for f in made.schema.fields[len(event.fields) :]}
        plain = [part for part in _conjuncts(made.expr) if not columns_of(part) & looks]
        return reduce(lambda one, other: Call("and", (one, other)), plain) if plain else None

    def read_fields(self, event: Schema) -> tuple[str, ...]:
        """The fields that are read once the tests of an event alone are answered."""
        wanted = {*self.stored_fields(event), *self.keys, *(term.column for term in self.pattern.order)}
        wanted |= {self.time.column} if self.time is not None else set()
        if any(isinstance(test.condition, Predicate) for test in self.automaton.tests):
            return event.names
        for made in self.iterative(event):
            wanted |= columns_of(made.expr)
        return tuple(name for name in event.names if name in wanted)

    def stored_fields(self, event: Schema) -> tuple[str, ...]:
        """The fields of events that are looked at after they were taken."""
        if self.select is None or any(
            isinstance(t.condition, Predicate) and t.condition.sees_taken for t in self.automaton.tests
        ):
            return event.names
        wanted: set[str] = set()
        for _, written in self.select:
            made = navigated(written, event, self.pattern.stages)
            wanted |= columns_of(made.expr) | _looked_at(made)
        for made in self.iterative(event):
            wanted |= _looked_at(made)
        return tuple(name for name in event.names if name in wanted)

    @property
    def drawing(self) -> tuple[str, ...]:
        """The automaton, a line for each state."""
        return tuple(str(self.automaton).splitlines())

    def settings(self) -> Settings:
        """The key, the pattern, and what is selected."""
        key: Settings = {} if ALL in self.keys else super().settings()
        chosen: Settings = {name: to_text(written) for name, written in self.select or ()}
        clock: Settings = {} if self.time is not None or not self.automaton.is_timed else {"clock": "processing"}
        return {**key, **self.pattern.settings(), **clock, **chosen}


def _is_strict(part: object) -> bool:
    """Whether an event that satisfies nothing may end a run here."""
    if isinstance(part, Sequence):
        return Contiguity.STRICT in part.links
    if isinstance(part, Absence):
        return part.strict
    return isinstance(part, Repeat) and part.inner is Contiguity.STRICT and part.most != 1


def _conjuncts(expr: Expr) -> list[Expr]:
    """The parts of a condition that must all hold."""
    if isinstance(expr, Call) and expr.name == "and":
        return [part for each in expr.args for part in _conjuncts(each)]
    return [expr]


def _looked_at(made: NavigationExpr) -> set[str]:
    """The fields of other events that an expression looks at."""
    found: set[str] = set()
    for look in made.inputs:
        values = look.aggregate.arguments if look.aggregate is not None else (look.value,)
        found |= {name for value in values if value is not None for name in columns_of(value)}
    return found


def _refuse(what: str, written: Expr, made: NavigationExpr) -> None:
    """Refuses what has no meaning where every run is a match of its own."""
    for look in made.inputs:
        if asks_for_number(look):
            raise FlowError(f"{what}: matches have numbers in row patterns alone; {to_text(written)} asks for one")
        if look.step > 0:
            raise FlowError(
                f"{what}: next(...) looks at events that are not taken yet; {to_text(written)} needs ps.row_pattern"
            )
    if any(isinstance(each, Raw) for each in each_of(written)):
        raise FlowError(
            f"{what}: ps.sql runs on Spark alone; compute it before, with with_columns, and name its field here"
        )
