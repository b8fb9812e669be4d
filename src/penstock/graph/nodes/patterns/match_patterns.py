"""Many patterns over one stream, which may change while the flow runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.errors import FlowError
from penstock.graph import types as t
from penstock.graph.ids import child
from penstock.graph.nodes.base import ALL, LATE, OUT, Inputs, Output, Settings, TimeField, has_hidden
from penstock.graph.nodes.keyed import Keyed
from penstock.graph.nodes.patterns.match import MATCH_END, MATCH_START, TIMED_OUT, TIMED_OUT_AT
from penstock.graph.rules.pattern_changes import PatternSource
from penstock.graph.schema import Schema

STAGE = "stage"
"""The field of an event of a match that says which stage has taken it."""


@dataclass(frozen=True)
class MatchPatterns(Keyed):
    """Matches of several patterns among the events of each key. The second input, if there is one, has those that changed.

    Args:
        source: the patterns, and what reads changed ones.
        time: where the event time is; None means that events are taken as they arrive, by processing time.
    """

    source: PatternSource = field(kw_only=True)
    time: TimeField | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "match_patterns"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True
    timed: ClassVar[bool] = True
    takes_functions: ClassVar[bool] = True
    over_records: ClassVar[str] = "a match cannot be taken back when one of its rows goes"

    def resolve(self, given: Inputs) -> Self:
        """Where the event time is."""
        return replace(self, time=given[0].event_time)

    def check(self, given: Inputs) -> None:
        """Every pattern fits the events."""
        super().check(given)
        if STAGE in self.event_schema(given[0].schema):
            raise FlowError(
                f"events have a field {STAGE!r}, which says in a match which stage took an event; rename it"
            )
        for name, pattern in self.source.patterns:
            self.source.match_of(name, pattern)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The matches of all patterns, the runs whose time was up, and the late events where there is event time."""
        event = self.event_schema(given[0].schema)
        fields = self.fields(event)
        schema = Schema(fields, internal=has_hidden(fields))
        over = Schema((*fields, t.Field(TIMED_OUT_AT, t.TIMESTAMP)), internal=has_hidden(fields))
        made = (Output(schema, OUT), Output(over, TIMED_OUT))
        return made if self.time is None else (*made, Output(event, LATE, event_time=given[0].time_in(event)))

    def event_schema(self, schema: Schema) -> Schema:
        """The fields of an event, without hidden ones."""
        shown = tuple(f for f in schema.fields if not f.name.startswith("__"))
        return schema if len(shown) == len(schema.fields) else Schema(shown, record=schema.record)

    def fields(self, event: Schema) -> tuple[t.Field, ...]:
        """The fields of a match: the key, which pattern, from when to when it was, and its events with their stages."""
        keys = tuple(event.field(key) for key in self.keys if key != ALL)
        which = (t.Field("pattern", t.STRING), t.Field("version", t.BIGINT), t.Field("function", t.STRING))
        bounds = (t.Field(MATCH_START, t.TIMESTAMP), t.Field(MATCH_END, t.TIMESTAMP))
        taken = t.Struct((t.Field(STAGE, t.STRING), *event.fields))
        return (*keys, *which, *bounds, t.Field("events", t.Array(taken)))

    @property
    def waiting(self) -> str:
        """The store of the events that event time has not passed yet."""
        return child(self.name, "waiting")

    @property
    def stores(self) -> dict[str, str]:
        """The runs of each key with the events they hold, and the events that wait."""
        return {self.name: "values"} | ({} if self.time is None else {self.waiting: "rows"})

    def settings(self) -> Settings:
        """The key, and the patterns as they were written."""
        key: Settings = {} if ALL in self.keys else super().settings()
        return {**key, **{name: str(pattern) for name, pattern in self.source.patterns}}
