"""Matches of a pattern of operators: `every a=Login(ok=false) -> b=Login(ok=true) where timer:within(10 min)`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.errors import FlowError, SchemaError
from penstock.graph import types as t
from penstock.graph.expr import Expr, to_text
from penstock.graph.ids import child
from penstock.graph.nodes.base import ALL, FOR_EVER, LATE, OUT, Inputs, Output, Settings, TimeField, has_hidden
from penstock.graph.nodes.keyed import Keyed
from penstock.graph.patterns.operator_conditions import check_conditions, over_match
from penstock.graph.patterns.operators import OperatorPattern, Timer, Within, parts_of, walk
from penstock.graph.patterns.pattern import Overflow
from penstock.graph.schema import Schema

MATCH_START, MATCH_END = "match_start", "match_end"
"""The fields of a match that nothing is selected of: the times of its first event, and of the moment it was complete."""


@dataclass(frozen=True)
class OperatorMatch(Keyed):
    """Matches of a pattern of operators among the events of each key.

    `select` are the fields of a match, by expressions over its tags; None is the key, from when to when it was, and the events of each tag.
    `time` is where the event time is; None means that events are taken as they arrive, by processing time.
    """

    pattern: OperatorPattern = field(kw_only=True)
    select: tuple[tuple[str, Expr], ...] | None = field(default=None, kw_only=True)
    time: TimeField | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "operator_match"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True
    over_records: ClassVar[str] = "a match cannot be taken back when one of its rows goes"

    @property
    def shape(self) -> tuple[str, str]:
        """The tags, and the operators in their order: what runs of two patterns with the same ones means the same."""
        operators = (f"{type(each).__name__} {len(parts_of(each))}" for each in walk(self.pattern.root))
        return ", ".join(self.pattern.tags), ", ".join(operators)

    @property
    def timed(self) -> bool:  # type: ignore[override]  # the pattern decides
        """Whether it waits for event time, or has timers."""
        return self.time is not None or any(isinstance(each, Timer | Within) for each in walk(self.pattern.root))

    def resolve(self, given: Inputs) -> Self:
        """Where the event time is."""
        return replace(self, time=given[0].event_time)

    def check(self, given: Inputs) -> None:
        """Conditions and outputs fit the fields of the events."""
        super().check(given)
        event = event_schema(given[0].schema)
        limit = self.pattern.limit
        if limit is not None and (limit.is_shared or limit.overflow is Overflow.ASIDE):
            raise FlowError(f"pattern text: expected a limit per key that drops or fails, got {limit}")
        for term in self.pattern.order:
            event.field(term.column)
        try:
            check_conditions(self.pattern, event)
        except RecursionError:
            raise FlowError("a condition of the pattern is nested too deep") from None
        for name, written in self.select or ():
            self._selected(name, written, event)

    def _selected(self, name: str, written: Expr, event: Schema) -> t.Field:
        try:
            return t.Field(name, over_match(written, event, self.pattern, self.keys).type)
        except FlowError as error:
            raise type(error)(f"the output field {name!r}: {error}") from None

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The matches; and the late events, where there is event time."""
        event = event_schema(given[0].schema)
        fields = self.selected_fields(event)
        timed = TimeField(MATCH_END) if self.select is None and self.time is not None else None
        made = (Output(Schema(fields, internal=has_hidden(fields)), OUT, event_time=timed),)
        return made if self.time is None else (*made, Output(event, LATE, event_time=given[0].time_in(event)))

    def selected_fields(self, event: Schema) -> tuple[t.Field, ...]:
        """The fields of a match."""
        if self.select is not None:
            return tuple(self._selected(name, written, event) for name, written in self.select)
        keys = tuple(event.field(key) for key in self.keys if key != ALL)
        bounds = (t.Field(MATCH_START, t.TIMESTAMP), t.Field(MATCH_END, t.TIMESTAMP))
        taken = {f.name for f in (*keys, *bounds)}
        for tag in self.pattern.tags:
            if tag in taken:
                raise SchemaError(
                    f"tag {tag!r} has the name of a field of every match; say select={{...}}, or name the tag otherwise"
                )
        events = tuple(t.Field(tag, t.Array(t.Struct(event.fields))) for tag in self.pattern.tags)
        return (*keys, *bounds, *events)

    @property
    def waiting(self) -> str:
        """The store of the events that event time has not passed yet."""
        return child(self.name, "waiting")

    @property
    def keeps(self) -> str:
        """What the pattern waits for."""
        return f"what runs {self.per_key} with the events that it holds, until it matches or fails, else {FOR_EVER}"

    @property
    def stores(self) -> dict[str, str]:
        """What runs for each key, with the events it holds; and the events that wait."""
        return {self.name: "values"} | ({} if self.time is None else {self.waiting: "rows"})

    def settings(self) -> Settings:
        """The key, the pattern, and what is selected."""
        key: Settings = {} if ALL in self.keys else super().settings()
        chosen: Settings = {name: to_text(written) for name, written in self.select or ()}
        limit: Settings = {} if self.pattern.limit is None else {"limit": str(self.pattern.limit)}
        return {**key, "pattern": str(self.pattern), **limit, **chosen}


def event_schema(schema: Schema) -> Schema:
    """The fields of an event, without hidden ones."""
    shown = tuple(f for f in schema.fields if not f.name.startswith("__"))
    return schema if len(shown) == len(schema.fields) else Schema(shown, record=schema.record)
