"""Rules over a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast

from penstock.errors import FlowError
from penstock.frontends.streams.branches import Branches
from penstock.frontends.streams.naming import names_step
from penstock.graph.caller import user_line
from penstock.graph.composed.compose_rules import LookUpTable, RuleOptions, add_look_up, add_rules
from penstock.graph.ids import owner_of
from penstock.graph.nodes import Endpoint, Port
from penstock.graph.nodes.patterns.rules import ROUNDS, ApplyRules, KeyedRules
from penstock.graph.nodes.stateless import Sides
from penstock.graph.rules.rule import Rule, RuleSet, rule_set
from penstock.graph.schema import Form, forms_of

if TYPE_CHECKING:
    from penstock.frontends.streams.keyed import KeyedStream
    from penstock.frontends.streams.stream import Stream


LookUp: TypeAlias = "tuple[Endpoint | Stream, str | Iterable[str]]"
"""A table to look up in, and the fields of its key, which the stream has too."""


class Ruling:
    """What a stream does with rules."""

    @names_step
    def rules(  # noqa: PLR0913 - options by name
        self,
        name: str,
        rules: Iterable[Rule] | Rule | RuleSet,
        *,
        event: str = "",
        streams: Mapping[str, Form] | None = None,
        tables: Mapping[str, str | Iterable[str]] | None = None,
        posts: Mapping[str, Endpoint] | None = None,
        changes: Stream | None = None,
        events: Mapping[str, Stream] | None = None,
        lookups: Mapping[str, LookUp] | None = None,
        rounds: int = ROUNDS,
    ) -> Branches:
        """Applies rules to each record: on an event, if a condition holds, do actions.

        Rules of a higher priority act first. What a rule emits to a stream is an event for other rules, until nothing follows any more. Rules that
        activate others see all records in one task; `key_by(...).rules(...)` switches them for each key.

        Args:
            name: the name of the step.
            rules: rules of `ps.rule`, or a set of `ps.rules`.
            event: what its records are called as an event; else they are called as the stream is.
            streams: the fields of streams that rules emit to; others take the fields of the first rule that does.
            tables: the key of each table that rules update, by the name of the table.
            posts: the endpoint of each name that rules post to, such as `ps.write_http(...)`.
            changes: changes of the rules while the flow runs: a stream, or a table that changes, with `rule` and `text`, and perhaps `op` (add,
                change, remove, enable or disable), `enabled`, `by` and `at`. Those of a batch take effect before its records.
            events: further streams that rules are on, by the name of the event.
            lookups: tables that rules look up in, each with the fields of its key: `{"card": (ps.files(...), "number")}`. The event has the row that was found as
                a struct of that name, with nulls where there is none. A table of files is read again when they change; of a stream the newest row of each key counts.
            rounds: how often rules may follow from rules for one record.

        Returns:
            The streams that rules emit to, the tables, and `alerts`, by name.

        Raises:
            UnknownName: a rule is on an event that nothing emits.
            ExpressionError: an expression does not fit the fields of its event.
            SchemaError: two rules emit different fields to one stream.
            FlowError: an action or an option does not fit.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> payments = ps.Flow("demo").source("payments", ps.items([("a", 900), ("b", 3)], "card string, amount int"))
        >>> big = ps.rule("big", "amount > 500", ps.action.alert("high", "{card} paid {amount}"), ps.action.emit("suspicious"))
        >>> found = payments.rules("fraud", [big])
        >>> found.alerts.sink("alerts", ps.console())
        >>> found.suspicious.sink("suspicious", ps.console())
        >>> run_local(payments.flow)["suspicious"]
        [Row(card='a', amount=900)]
        """
        stream = cast("Stream", self)
        port = _looked_up(stream, name, lookups or {})
        step = ApplyRules(name, (port,), **_options(stream, rules, event, streams, tables, rounds))
        for given in (*([] if changes is None else [changes]), *(events or {}).values()):
            stream._need_stream(given, "the changes of rules and their events are streams")
        further = {each: other.port for each, other in (events or {}).items()}
        return branches_of(stream, step, RuleOptions(posts or {}, None if changes is None else changes.port, further))


class KeyedRuling:
    """What a stream by key does with rules."""

    @names_step
    def rules(  # noqa: PLR0913 - options by name
        self,
        name: str,
        rules: Iterable[Rule] | Rule | RuleSet,
        *,
        event: str = "",
        streams: Mapping[str, Form] | None = None,
        tables: Mapping[str, str | Iterable[str]] | None = None,
        posts: Mapping[str, Endpoint] | None = None,
        changes: Stream | None = None,
        lookups: Mapping[str, LookUp] | None = None,
        rounds: int = ROUNDS,
    ) -> Branches:
        """Applies rules to the records of each key in their order: rules may activate and deactivate others, for their key.

        Args:
            name: the name of the step.
            rules: rules of `ps.rule`, or a set of `ps.rules`.
            event: what its records are called as an event; else they are called as the stream is.
            streams: the fields of streams that rules emit to; others take the fields of the first rule that does.
            tables: the key of each table that rules update, by the name of the table.
            posts: the endpoint of each name that rules post to, such as `ps.write_http(...)`.
            changes: changes of the rules while the flow runs, as `Stream.rules` takes them; what was switched stays switched.
            lookups: tables that rules look up in, as `Stream.rules` takes them.
            rounds: how often rules may follow from rules for one record.

        Returns:
            The streams that rules emit to, the tables, and `alerts`, by name.

        Raises:
            UnknownName: a rule is on an event that nothing emits.
            ExpressionError: an expression does not fit the fields of its event.
            SchemaError: two rules emit different fields to one stream.
            FlowError: an action or an option does not fit.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> calls = ps.Flow("demo").source("calls", ps.items([("a", 1), ("a", 9), ("a", 9)], "caller string, n int"))
        >>> watch = ps.rule("watch", "n < 5", ps.action.activate("large"))
        >>> large = ps.rule("large", "n > 5", ps.action.emit("found"), ps.action.deactivate("large"), active=False)
        >>> calls.key_by("caller").rules("watched", [watch, large]).found.sink("out", ps.console())
        >>> run_local(calls.flow)["out"]
        [Row(caller='a', n=9)]
        """
        keyed = cast("KeyedStream", self)
        stream, options = keyed.source, _options(keyed.source, rules, event, streams, tables, rounds)
        found = replace(keyed._input, port=_looked_up(stream, name, lookups or {}))
        port = found.stream(stream.flow.builder, name)
        if changes is not None:
            stream._need_stream(changes, "the changes of rules are a stream")
        made = RuleOptions(posts or {}, None if changes is None else changes.port)
        return branches_of(stream, KeyedRules(name, (port,), keyed.keys, **options), made)


def _looked_up(stream: Stream, name: str, lookups: Mapping[str, LookUp]) -> Port:
    """The stream with what each record finds."""
    port = stream.port
    for each, given in lookups.items():
        if not isinstance(given, tuple) or len(given) != 2:
            raise FlowError(
                f"the look-up {each!r} is a table and its key, such as (ps.files(...), 'card'), got {given!r}"
            )
        table, on = given
        if not isinstance(table, Endpoint):
            stream._need_stream(table, f"the look-up {each!r} is in a table such as ps.files(...), or in a stream")
        keys = (on,) if isinstance(on, str) else tuple(on)
        found = LookUpTable(each, table if isinstance(table, Endpoint) else table.port, keys)
        port = add_look_up(stream.flow.builder, name, port, found)
    return port


class _Options(TypedDict):
    """What both kinds of rule steps have."""

    rules: RuleSet
    event: str
    streams: Sides
    tables: tuple[tuple[str, tuple[str, ...]], ...]
    rounds: int
    line: str


def _options(
    stream: Stream,
    rules: Iterable[Rule] | Rule | RuleSet,
    event: str,
    streams: Mapping[str, Form] | None,
    tables: Mapping[str, str | Iterable[str]] | None,
    rounds: int,
) -> _Options:
    keys = tuple((table, (key,) if isinstance(key, str) else tuple(key)) for table, key in (tables or {}).items())
    return _Options(
        rules=rule_set(rules), event=event or owner_of(stream.port.step), streams=forms_of(streams), tables=keys, rounds=rounds, line=user_line()
    )  # fmt: skip


def branches_of(stream: Stream, step: ApplyRules, options: RuleOptions) -> Branches:
    """The streams of a rule step by name."""
    ports = add_rules(stream.flow.builder, step, options)
    return Branches({each: stream._at(port) for each, port in ports.items()})
