"""Rules over streams: every condition and action typed, and the streams that come out.

An event is a stream: the input of the set, or one that its own rules emit to. Streams are declared, or take the fields of the first rule that
emits to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from penstock.errors import ExpressionError, FlowError, SchemaError, UnknownName, nearest
from penstock.graph import types as t
from penstock.graph.expr import Cast, Column, Expr, Literal, to_text, type_of_expr
from penstock.graph.expr.coerce import common_type
from penstock.graph.rules.actions import ALERTS, OP, Action, Alert, Delete, Emit, Evaluate, Fields, Stop, Switch, Update
from penstock.graph.rules.interned import InternedValue
from penstock.graph.rules.rule import DEFERRED, Rule, RuleSet, has_functions
from penstock.graph.schema import Schema

ALERT_TIME = "time"
_ALERT = ("rule", "severity", "text", "event")


@dataclass(frozen=True)
class Events:
    """What a rule set is applied to.

    Args:
        input: the name of the event that its records are.
        schema: their fields.
        streams: the fields of streams that are declared.
        tables: the key of each stream that is a table.
        time: the field of their event time; empty where there is none.
        is_settled: no other streams may be made.
        others: further inputs of the set, each an event of its own.
    """

    input: str
    schema: Schema
    streams: tuple[tuple[str, Schema], ...] = ()
    tables: tuple[tuple[str, tuple[str, ...]], ...] = ()
    time: str = ""
    is_settled: bool = False
    others: tuple[tuple[str, Schema], ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """The events that come from outside."""
        return (self.input, *(name for name, _ in self.others))

    @cached_property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """The key of each table."""
        return dict(self.tables)

    @property
    def alerts(self) -> Schema:
        """The fields of an alert."""
        fields = tuple(t.Field(name, t.STRING) for name in _ALERT)
        return Schema((*fields, t.Field(ALERT_TIME, t.TIMESTAMP)) if self.time else fields)

    def known(self) -> dict[str, Schema]:
        """The fields of the streams that are known before any rule is looked at."""
        made = {self.input: self.schema, ALERTS: self.alerts}
        for name, schema in (*self.others, *self.streams):
            if name in made:
                raise SchemaError(f"the stream {name!r} is there already; give the other one another name")
            made[name] = _with_op(schema) if name in self.keys else schema
        return made


@dataclass(frozen=True)
class Emission:
    """A record that a rule makes: its stream, and an expression over the event for each field of the stream."""

    stream: str
    values: tuple[Expr, ...]


@dataclass(frozen=True)
class BoundRule:
    """A rule whose expressions fit the fields of its event."""

    name: str
    on: str
    condition: Expr | None
    emissions: tuple[Emission, ...]
    calls: tuple[Expr, ...]
    stops: bool
    switches: tuple[tuple[str, bool], ...]
    is_deferred: bool
    active: bool


@dataclass(frozen=True, eq=False)
class BoundRules(InternedValue):
    """A rule set over its events: the rules in the order in which they act, and the fields of every stream."""

    events: Events
    rules: tuple[BoundRule, ...]
    schemas: tuple[tuple[str, Schema], ...]
    digest: str
    """Equal for equal sets, so that what is made of one is made once in a process."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundRules) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def is_plain(self) -> bool:
        """Whether no rule calls a Python function."""
        return not any(map(has_functions, expressions_in(self.rules)))

    @cached_property
    def fields(self) -> dict[str, Schema]:
        """The fields of every stream by name."""
        return dict(self.schemas)

    @property
    def streams(self) -> dict[str, Schema]:
        """The fields of the streams that come out."""
        return {name: schema for name, schema in self.schemas if name not in self.events.inputs}

    def settled(self) -> Events:
        """The same events with all streams declared, for rules that come later."""
        own = (*self.events.inputs, ALERTS)
        return replace(self.events, streams=tuple(each for each in self.schemas if each[0] not in own), is_settled=True)

    @property
    def has_switches(self) -> bool:
        """Whether rules activate or deactivate others, or wait to be activated."""
        return any(rule.switches or not rule.active for rule in self.rules)


def bind_rules(rules: RuleSet, events: Events) -> BoundRules:
    """The rules over the streams of their events.

    Raises:
        UnknownName: a rule listens to a stream that nothing emits to, or switches a rule that is not there.
        ExpressionError: an expression does not fit the fields of its event.
        SchemaError: two rules emit different fields to one stream.
        FlowError: an action does not fit.
    """
    binder = _Binder(rules, events)
    made = tuple(binder.bound(rule) for rule in binder.ordered())
    in_rank = {rule.name: at for at, rule in enumerate(rules.ranked)}
    ranked = tuple(sorted((rule for rule in made if rule.name in in_rank), key=lambda rule: in_rank[rule.name]))
    schemas = tuple(binder.schemas.items())
    return BoundRules(events, ranked, schemas, _digest(events, ranked, schemas))


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def expressions_in(rules: Iterable[BoundRule]) -> Iterator[Expr]:
    """The expressions of rules."""
    for rule in rules:
        yield from (rule.condition,) if rule.condition is not None else ()
        yield from rule.calls
        yield from (value for emission in rule.emissions for value in emission.values)


class _Binder:
    """Binds rules one after the other; the fields of the streams fill as it goes."""

    def __init__(self, rules: RuleSet, events: Events) -> None:
        self.rules, self.events = rules, events
        self.schemas = events.known()
        self.origin: dict[str, Rule] = {}

    def ordered(self) -> Iterable[Rule]:
        """The rules, each when the fields of its event are known."""
        waiting = list(self.rules)
        while waiting:
            known = set(self.schemas)
            ready = [rule for rule in waiting if self._event(rule) in known]
            if not ready:
                raise self._unknown(waiting[0])
            waiting = [rule for rule in waiting if self._event(rule) not in known]
            yield from ready

    def _event(self, rule: Rule) -> str:
        return rule.on or self.events.input

    def _unknown(self, rule: Rule) -> UnknownName:
        return UnknownName(
            f"{rule.where} is on {rule.on!r}, which is no event here: it is neither the input nor a stream that a rule emits to; "
            f"{nearest(rule.on, self.schemas)}"
        )

    def bound(self, rule: Rule) -> BoundRule:
        """One rule; whatever is wrong, the error names it."""
        try:
            return self._bound(rule)
        except FlowError as error:
            if str(error).startswith("rule "):
                raise
            raise type(error)(f"{rule.where}: {error}") from None

    def _bound(self, rule: Rule) -> BoundRule:
        on = self._event(rule)
        schema = self.schemas[on]
        if rule.condition is not None and type_of_expr(rule.condition, schema) != t.BOOLEAN:
            raise ExpressionError(f"its condition must be true or false; {to_text(rule.condition)} is not")
        if not rule.actions:
            raise FlowError("it does nothing; give it an action, such as ps.action.alert('high', 'text')")
        emissions = [self._emission(rule, action, on, schema) for action in rule.actions if action.target]
        calls = tuple(action.value for action in rule.actions if isinstance(action, Evaluate))
        for call in calls:
            type_of_expr(call, schema)
        return BoundRule(
            rule.name, on, rule.condition, tuple(emissions), calls,
            any(isinstance(action, Stop) for action in rule.actions), tuple(map(self._switch, _switches(rule))),
            rule.coupling == DEFERRED, rule.active,
        )  # fmt: skip

    def _switch(self, action: Switch) -> tuple[str, bool]:
        if action.rule not in self.rules.by_name and not self.events.is_settled:
            raise UnknownName(f"it switches {action.rule!r}; {nearest(action.rule, self.rules.by_name)}")
        return action.rule, action.active

    def _emission(self, rule: Rule, action: Action, on: str, schema: Schema) -> Emission:
        fields = self._fields(rule, action, on, schema)
        target = action.target
        if target not in self.schemas:
            if self.events.is_settled:
                raise UnknownName(
                    f"it emits to {target!r}, which is no stream of the step; {nearest(target, self.schemas)}"
                )
            self.schemas[target] = Schema(tuple(t.Field(n, type_of_expr(e, schema)) for n, e in fields))
            self.origin[target] = rule
        return Emission(target, self._fitted(rule, target, fields, schema))

    def _fields(self, rule: Rule, action: Action, on: str, schema: Schema) -> Fields:
        if isinstance(action, Alert):
            return self._alert(rule, action, on, schema)
        assert isinstance(action, Emit)
        fields = action.fields or tuple((name, Column(name)) for name in schema.names)
        if isinstance(action, Update | Delete):
            return self._row(action, fields)
        if action.stream in self.events.keys:
            raise FlowError(f"{action.stream!r} is a table; say update or delete, not emit")
        return fields

    def _alert(self, rule: Rule, action: Alert, on: str, schema: Schema) -> Fields:
        made: list[tuple[str, Expr]] = [
            (n, Literal(v, t.STRING)) for n, v in (("rule", rule.name), ("severity", action.severity))
        ]
        made += [("text", action.text), ("event", Literal(on, t.STRING))]
        if self.events.time:
            timed = self.events.time in schema and schema.field(self.events.time).type == t.TIMESTAMP
            made.append((ALERT_TIME, Column(self.events.time) if timed else Literal(None, t.NULL)))
        return tuple(made)

    def _row(self, action: Update | Delete, fields: Fields) -> Fields:
        """A change of a table: what happened, and the row; of one that goes the key alone."""
        keys = self.events.keys.get(action.stream)
        if keys is None:
            raise UnknownName(
                f"{action.stream!r} is no table of this set; name its key: tables={{'{action.stream}': 'field'}}"
            )
        named = dict(fields)
        missing = [key for key in keys if key not in named]
        if missing:
            raise SchemaError(f"a row of {action.stream!r} needs its key {missing[0]!r}; got {', '.join(named)}")
        if isinstance(action, Update):
            return (*((n, e) for n, e in fields if n != OP), (OP, Literal("update_after", t.STRING)))
        if action.stream not in self.schemas:
            raise SchemaError(
                f"the fields of the table {action.stream!r} are not known where its rows are deleted; declare them: "
                f"streams={{'{action.stream}': 'card string, n bigint'}}"
            )
        rest = [n for n in self.schemas[action.stream].names if n not in keys and n != OP]
        gone = {
            **{n: named[n] for n in keys},
            **{n: Literal(None, t.NULL) for n in rest},
            OP: Literal("delete", t.STRING),
        }
        return tuple(gone.items())

    def _fitted(self, rule: Rule, target: str, fields: Fields, schema: Schema) -> tuple[Expr, ...]:
        """The values in the order of the stream's fields, as its types."""
        wanted, named = self.schemas[target], dict(fields)
        if set(named) != set(wanted.names):
            raise SchemaError(
                f"the stream {target!r} has ({wanted}){self._by(target)}; expected the same fields, got {', '.join(named)}"
            )
        return tuple(self._cast(target, f, named[f.name], schema) for f in wanted.fields)

    def _by(self, target: str) -> str:
        return f", from {self.origin[target].where}" if target in self.origin else ""

    def _cast(self, target: str, wanted: t.Field, value: Expr, schema: Schema) -> Expr:
        kind = type_of_expr(value, schema)
        if kind == wanted.type:
            return value
        if kind == t.NULL and isinstance(value, Literal):
            return Literal(None, wanted.type)
        if kind != t.NULL and common_type(kind, wanted.type) != wanted.type:
            raise SchemaError(
                f"the field {wanted.name!r} of the stream {target!r} is {wanted.type}{self._by(target)}; expected that, got {kind}. Cast it"
            )
        return Cast(value, wanted.type)


def _switches(rule: Rule) -> list[Switch]:
    return [action for action in rule.actions if isinstance(action, Switch)]


def _with_op(schema: Schema) -> Schema:
    return schema if OP in schema else Schema((*schema.fields, t.Field(OP, t.STRING)))
