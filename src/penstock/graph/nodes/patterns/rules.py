"""The step that applies a set of rules to a stream."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.errors import FlowError
from penstock.graph.nodes.base import ALL, Inputs, Node, Output, Settings, TimeField
from penstock.graph.nodes.keyed import Keyed
from penstock.graph.nodes.policy import DEAD_LETTER, OnError
from penstock.graph.nodes.stateless import Sides
from penstock.graph.rules import BoundRules, Events, RuleSet, bind_rules
from penstock.graph.rules.actions import ALERTS
from penstock.graph.rules.binding import ALERT_TIME
from penstock.graph.rules.changes import KEPT, ChangeSource, RuleSource
from penstock.graph.schema import Schema

ROUNDS = 100
"""How often rules may follow from rules, where nothing else is said."""


def without_hidden(schema: Schema) -> Schema:
    """The fields of an event without those that are Penstock's own."""
    shown = tuple(field for field in schema.fields if not field.name.startswith("__"))
    return schema if len(shown) == len(schema.fields) else Schema(shown, record=schema.record)


@dataclass(frozen=True)
class ApplyRules(Node):
    """Applies rules to each record, and to the events that they make; an output for each stream that they emit to, and one for alerts.

    Args:
        rules: the rules.
        event: what its records are called as an event.
        streams: the fields of streams that are declared.
        tables: the key of each stream that is a table.
        rounds: how often rules may follow from rules.
        program: the rules over the stream; they follow from it.
        source: the rules as changes are made over them, where the second input has changes.
        together: all events of a set over several streams, with their fields; each stream has a step of its own.
        time: the field of the event time that all of them share.
    """

    rules: RuleSet = field(default=RuleSet(()), kw_only=True)
    event: str = field(default="", kw_only=True)
    streams: Sides = field(default=(), kw_only=True)
    tables: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), kw_only=True)
    rounds: int = field(default=ROUNDS, kw_only=True)
    program: BoundRules | None = field(default=None, kw_only=True)
    source: RuleSource | None = field(default=None, kw_only=True)
    together: Sides = field(default=(), kw_only=True)
    time: str = field(default="", kw_only=True)
    kind: ClassVar[str] = "apply_rules"
    python: ClassVar[bool] = True

    def resolve(self, given: Inputs) -> Self:
        """The rules over the fields of the stream."""
        events = self.events(given)
        if self.program is not None and self.program.events == events:
            return self
        return replace(self, program=bind_rules(self.rules, events))

    def events(self, given: Inputs) -> Events:
        """What the rules are applied to."""
        if self.together:
            (name, schema), *others = self.together
            return Events(name, schema, self.streams, self.tables, self.time, others=tuple(others))
        timed = given[0].event_time
        return Events(
            self.event, without_hidden(given[0].schema), self.streams, self.tables, timed.column if timed else ""
        )

    def check(self, given: Inputs) -> None:
        """Rules end."""
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or self.rounds < 1:
            raise FlowError(f"rounds is a number from 1 on, got {self.rounds!r}")
        if not self.keyed and self.program is not None and self.program.has_switches:
            raise FlowError("rules that activate others need a step that keeps which are active, such as KeyedRules")

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The streams that rules emit to, and the alerts."""
        assert self.program is not None, "resolve has bound the rules"
        made = {name: given[0].keyless(schema, name) for name, schema in self.program.streams.items()}
        alerts = made[ALERTS]
        time = TimeField(ALERT_TIME) if ALERT_TIME in alerts.schema else None
        return tuple((made | {ALERTS: replace(alerts, event_time=time)}).values())

    def settings(self) -> Settings:
        """How many rules there are, and the first of them."""
        shown = {rule.name: str(rule) for rule in self.rules.rules[:20]}
        return {"event": self.event, "rules": len(self.rules), **shown}


@dataclass(frozen=True)
class RuleTable(Keyed):
    """Keeps the last change of each rule, and emits all that changed in every batch; the first half of rules that change."""

    source: ChangeSource = field(kw_only=True)
    kind: ClassVar[str] = "rule_table"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True
    usual_policy: ClassVar[OnError | None] = OnError(DEAD_LETTER)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The rules that changed."""
        return (Output(KEPT),)


@dataclass(frozen=True)
class KeyedRules(ApplyRules, Keyed):
    """Applies rules to the records of each key, one after the other; which of them are active is kept by key."""

    kind: ClassVar[str] = "keyed_rules"
    ordered: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """The keys are plain values, and rules end."""
        Keyed.check(self, given)
        ApplyRules.check(self, given)

    def settings(self) -> Settings:
        """The key, and the rules."""
        key: Settings = {} if ALL in self.keys else Keyed.settings(self)
        return {**key, **ApplyRules.settings(self)}
