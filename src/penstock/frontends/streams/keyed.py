"""Streams by key: the steps that keep something for each key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import ExpressionError, FlowError, SchemaError
from penstock.frontends.streams.folding import Folding
from penstock.frontends.streams.naming import names_step
from penstock.frontends.streams.ordering import KeyedOrdering, net
from penstock.frontends.streams.totals import Totals
from penstock.frontends.streams.windows import Windowing
from penstock.graph import types as t
from penstock.graph.aggregates import Aggregate, aggregate_of
from penstock.graph.caller import user_line
from penstock.graph.expr import Expr, type_of_expr
from penstock.graph.logic.capture import check_function
from penstock.graph.logic.process import check_logic, minds_time
from penstock.graph.nodes import AggregateBy, Output, Process, Reduce, TimedProcess
from penstock.graph.schema import Schema, returned_schema, schema_of

if TYPE_CHECKING:
    from penstock.frontends.streams.stream import Stream


PER_KEY = (
    "aggregate", "count", "distinct", "fold", "process", "reduce", "sort", "sum", "top", "update_state", "window",
)  # fmt: skip
"""The steps of a stream by key, for hints."""
BEFORE_KEY = ("branch", "filter", "flat_map", "map", "select", "sink", "where")


@dataclass(frozen=True)
class KeyedStream(Totals, Windowing, KeyedOrdering, Folding):
    """A stream seen by key. Its aggregates are running totals: whenever a key's total changes, it is given again."""

    source: Stream
    keys: tuple[str, ...]
    computed: tuple[tuple[str, Expr], ...] = ()

    @names_step
    def aggregate(self, name: str, /, **aggregates: Any) -> Stream:
        """Several aggregates at once: `aggregate("stats", n="count(*)", top="max(score)")`, or your own Aggregator."""
        if not aggregates:
            raise FlowError(f"step {name!r} ({user_line()}): aggregate needs at least one, such as n='count(*)'")
        if self.source.updates is not None:
            return net(self, name, aggregates)
        known = self._schema()
        made = tuple(self._aggregate(name, known, field, given) for field, given in aggregates.items())
        schema = Schema(known.only(self.keys).fields + tuple(t.Field(a.name, a.type) for a in made))
        stream = self._keyed(name)
        node = AggregateBy(
            name, (stream.port,), (Output(schema, updates=self.keys),), self.keys, made, line=user_line()
        )
        return stream.flow.add(node)

    @names_step
    def reduce(self, name: str, function: Callable[[Any, Any], Any]) -> Stream:
        """Folds the records of a key into one, two at a time. The function must not mind how they are paired."""
        check_function(name, function, user_line(), arguments=2)
        stream = self._keyed(name)
        output = Output(stream.schema, updates=self.keys)
        return stream.flow.add(Reduce(name, (stream.port,), (output,), self.keys, function, line=user_line()))

    @names_step
    def process(self, name: str, logic: Any, schema: Any = None, *, side: Mapping[str, Any] | None = None) -> Stream:
        """A class of your own with state per key; see `penstock.Process`.

        `side` names further outputs, filled with `ps.to(name, record)`.
        """
        checked = check_logic(name, logic)
        made = schema_of(schema) if schema is not None else returned_schema(type(checked).on_event, many=True)
        if made is None:
            raise SchemaError(f"step {name!r} ({user_line()}) must say what it gives: schema='user string, n bigint'")
        stream = self._keyed(name)
        sides = {n: schema_of(s) for n, s in (side or {}).items()}
        outputs = tuple(Output(s, n, event_time=stream._time_in(s)) for n, s in {"out": made, **sides}.items())
        node = TimedProcess if minds_time(checked) else Process
        timed = stream.event_time_of
        return stream.flow.add(
            node(name, (stream.port,), outputs, self.keys, checked, event_time=timed, line=user_line())
        )

    def __getattr__(self, name: str) -> Any:
        hint = f"; {name} it before key_by" if name in BEFORE_KEY else ""
        raise AttributeError(f"a stream by key has no {name!r}{hint}; it has {', '.join(PER_KEY)}")

    def _schema(self) -> Schema:
        """The fields with the computed keys among them."""
        known = self.source.schema
        return known.with_fields(tuple(t.Field(n, type_of_expr(e, known)) for n, e in self.computed))

    def _keyed(self, name: str) -> Stream:
        """The stream with the computed keys as fields, by a native step that carries the keyed step's name."""
        self.source._need_records(name, "this step")
        if not self.computed:
            return self.source
        return self.source.with_columns(f"{name}.key", **dict(self.computed))

    def _aggregate(self, name: str, schema: Schema, field: str, given: Any) -> Aggregate:
        if field in self.keys:
            raise SchemaError(
                f"step {name!r} ({user_line()}): {field!r} is a key already; name the aggregate otherwise"
            )
        try:
            timed = self.source.event_time_of
            return aggregate_of(field, given, schema, timed.column if timed else "")
        except ExpressionError as error:
            raise ExpressionError(f"step {name!r} ({user_line()}): {error}") from None
