"""Streams: what the user chains steps on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.errors import ExpressionError, FlowError, NotYet, SchemaError, UnknownName, nearest
from penstock.frontends.streams.joins import Joining
from penstock.frontends.streams.keyed import PER_KEY, KeyedStream
from penstock.frontends.streams.naming import names_step
from penstock.frontends.streams.ordering import Ordering
from penstock.frontends.streams.settings import Settable
from penstock.frontends.streams.timing import Timing
from penstock.graph import types as t
from penstock.graph.caller import user_line
from penstock.graph.endpoints.basic import ONLY_READ
from penstock.graph.endpoints.delivery import checked_delivery
from penstock.graph.endpoints.row_errors import sink_policy
from penstock.graph.expr import Alias, Column, Expr, as_expr, name_of, to_sql, type_of_expr
from penstock.graph.logic.capture import check_function
from penstock.graph.nodes import (
    AsRecords,
    Branch,
    Endpoint,
    Explode,
    Filter,
    FlatMap,
    Map,
    MapBatches,
    Node,
    Output,
    Port,
    Repartition,
    Select,
    Sink,
    Timed,
    Union,
    Where,
    WithColumns,
)
from penstock.graph.schema import Schema, returned_schema, schema_of

if TYPE_CHECKING:
    from penstock.frontends.streams.flow import Flow

OTHERWISE = "otherwise"


@dataclass(frozen=True)
class Stream(Timing, Joining, Ordering, Settable):
    """A stream of records between two steps. Each method adds a step and gives the stream that comes out of it."""

    flow: Flow
    port: Port

    @property
    def schema(self) -> Schema:
        """The fields of its records."""
        return self.flow.output(self.port).schema

    @property
    def _node(self) -> Node:
        return self.flow._nodes[self.port.step]

    @property
    def updates(self) -> tuple[str, ...] | None:
        """The key fields when each record replaces the last of its key (a running total); None otherwise."""
        return self.flow.output(self.port).updates

    @property
    def event_time_of(self) -> Timed | None:
        """Where the event time of its records is; None when nothing says so."""
        return self.flow.output(self.port).event_time

    @names_step
    def map(self, name: str, function: Callable[[Any], Any], schema: Any = None) -> Stream:
        """One record for each record, by a Python function.

        The schema comes from `schema`, from the function's return annotation (a dataclass or a NamedTuple), or stays
        what it is.
        """
        check_function(name, function, user_line())
        made = _schema(schema) or returned_schema(function, many=False) or self.schema
        self._need_keys(name, made)
        return self._add(Map, name, made, function)

    @names_step
    def flat_map(
        self, name: str, function: Callable[[Any], Any], schema: Any = None, *, side: Mapping[str, Any] | None = None
    ) -> Stream:
        """Any number of records for each record. `side` names further outputs, filled with `ps.to(name, record)`."""
        check_function(name, function, user_line())
        self._need_records(name, "flat_map")
        made = _schema(schema) or returned_schema(function, many=True)
        if made is None:
            raise SchemaError(
                f"step {name!r} ({user_line()}) must say what it gives: schema='word string', or a return annotation such as "
                f"Iterator[Post] with a dataclass"
            )
        if "out" in (side or {}):
            raise FlowError("'out' is the main output; give the side output another name")
        sides = tuple(self._side(n, schema_of(s)) for n, s in (side or {}).items())
        main = Output(made, event_time=self._time_in(made))
        return self.flow.add(FlatMap(name, (self.port,), (main, *sides), function, line=user_line()))

    @names_step
    def filter(self, name: str, function: Callable[[Any], Any]) -> Stream:
        """The records for which a Python function gives true. `where` does the same natively."""
        check_function(name, function, user_line())
        self._need_records(name, "filter")
        return self._add(Filter, name, self.schema, function)

    @names_step
    def map_batches(self, name: str, function: Callable[[Any], Any], schema: Any = None) -> Stream:
        """Arrow record batches in, Arrow record batches (one, or an iterable of them) out."""
        check_function(name, function, user_line())
        self._need_records(name, "map_batches")
        return self._add(MapBatches, name, _schema(schema) or self.schema, function)

    @names_step
    def select(self, name: str, /, *columns: str | Expr, **named: str | Expr) -> Stream:
        """New records of expressions: `select("pick", "word", n="count + 1")`. Stays native."""
        written = [(name_of(e), _bare(e)) for e in map(as_expr, columns)] + _named(named)
        if name in self.schema and name not in dict(written):
            raise FlowError(
                f"select takes the step's name first; {name!r} is a field. Write select('a-name', {name!r}, ...)"
            )
        made = Schema(tuple(self._typed(name, n, e) for n, e in written))
        self._need_keys(name, made)
        self._need_same_keys(name, written)
        return self._add(Select, name, made, tuple(written))

    @names_step
    def with_columns(self, name: str, /, **named: str | Expr) -> Stream:
        """The record with fields added or replaced by expressions. Stays native."""
        if not named:
            raise FlowError("with_columns needs at least one field, such as total='price * n'")
        made = self.schema.with_fields(tuple(self._typed(name, n, e) for n, e in _named(named)))
        self._need_same_keys(name, _named(named))
        return self._add(WithColumns, name, made, tuple(_named(named)))

    @names_step
    def where(self, name: str, condition: str | Expr | None = None) -> Stream:
        """The records for which an expression is true. Stays native."""
        if condition is None:
            raise FlowError(f"where ({user_line()}) takes a name and a condition: where('adults', 'age >= 18')")
        self._need_records(name, "where")
        written = as_expr(condition)
        if self._typed(name, "condition", written).type != t.BOOLEAN:
            raise ExpressionError(f"step {name!r} ({user_line()}): where needs a boolean; {to_sql(written)} is not")
        return self._add(Where, name, self.schema, written)

    @names_step
    def explode(self, name: str, into: str, items: str | Expr) -> Stream:
        """One record for each item of a list, in the field `into`; the other fields are repeated. Stays native."""
        self._need_records(name, "explode")
        written = as_expr(items)
        kind = self._typed(name, into, written).type
        if not isinstance(kind, t.Array):
            raise ExpressionError(f"step {name!r} ({user_line()}): explode needs a list; {to_sql(written)} is {kind}")
        return self._add(Explode, name, self.schema.with_fields((t.Field(into, kind.item),)), into, written)

    @names_step
    def union(self, name: str, *others: Stream) -> Stream:
        """The records of this stream and the others, which must have the same fields."""
        for stream in (self, *others):
            self._need_stream(stream)
            stream._need_records(name, "union")
            if not stream.schema.types_equal(self.schema):
                raise SchemaError(
                    f"step {name!r} ({user_line()}): all streams of a union have the same fields; "
                    f"{self.port} has ({self.schema}), {stream.port} has ({stream.schema}). Use select to bring them together"
                )
        ports = tuple(s.port for s in (self, *others))
        times = {s.event_time_of for s in (self, *others)}
        output = Output(self.schema, event_time=self.event_time_of if len(times) == 1 else None)
        return self.flow.add(Union(name, ports, (output,), line=user_line()))

    @names_step
    def branch(self, name: str, /, **conditions: str | Expr | Callable[[Any], Any]) -> Branches:
        """Splits the stream: each record goes to the first branch whose condition holds, else to `otherwise`."""
        if not conditions or OTHERWISE in conditions:
            raise FlowError(
                f"step {name!r} ({user_line()}): branch takes conditions by name, and {OTHERWISE!r} is always there"
            )
        self._need_records(name, "branch")
        written = tuple((n, self._condition(name, c)) for n, c in conditions.items())
        outputs = tuple(Output(self.schema, n, event_time=self.event_time_of) for n in (*conditions, OTHERWISE))
        self.flow.add(Branch(name, (self.port,), outputs, written, line=user_line()))
        return Branches({o.name: Stream(self.flow, Port(name, o.name)) for o in outputs})

    def side(self, name: str) -> Stream:
        """A further output of the step this stream comes from."""
        names = [o.name for o in self.flow._nodes[self.port.step].outputs]
        if name not in names:
            raise UnknownName(f"step {self.port.step!r} has no output {name!r}; {nearest(name, names)}")
        return Stream(self.flow, Port(self.port.step, name))

    def key_by(self, *fields: str, **named: str | Expr) -> KeyedStream:
        """The stream by key, for the steps that keep something per key. Keys are fields, or expressions by name."""
        if not fields and not named:
            raise FlowError(f"key_by ({user_line()}) needs at least one field, such as key_by('user')")
        try:
            computed = tuple(_named(named))
            found = [*map(self.schema.field, fields), *(t.Field(n, type_of_expr(e, self.schema)) for n, e in computed)]
        except (ExpressionError, SchemaError) as error:
            raise type(error)(f"key_by ({user_line()}): {error}") from None
        for field in found:
            _check_key(field)
        return KeyedStream(self, (*fields, *named), computed)

    @names_step
    def repartition(self, name: str, tasks: int, *fields: str) -> Stream:
        """Spreads the records over `tasks` tasks: evenly, or by fields so that equal values meet."""
        if tasks < 1:
            raise FlowError(f"step {name!r} ({user_line()}): at least one task is needed, got {tasks}")
        for field in fields:
            self.schema.field(field)
        made = replace(self.flow.output(self.port), name="out")
        return self.flow.add(Repartition(name, (self.port,), (made,), fields, parallelism=tasks, line=user_line()))

    @names_step
    def as_records(self, name: str) -> Stream:
        """Takes each update of a running total as a record of its own, so that any step may follow.

        How many updates there are depends on how the input falls into batches; so will the result.
        """
        return self.flow.add(AsRecords(name, (self.port,), (Output(self.schema),), line=user_line()))

    @names_step
    def sink(self, name: str, endpoint: Endpoint, *, delivery: str = "", on_error: Any = None) -> None:
        """Where the records go, and how surely: exactly_once, at_least_once or at_most_once; as surely as it can if not said.

        `on_error` says what happens to a row that the sink refuses: 'fail', 'dead_letter' or 'skip'.
        """
        if not isinstance(endpoint, Endpoint):
            raise FlowError(f"sink {name!r} ({user_line()}) needs an endpoint such as ps.console(), got {endpoint!r}")
        if endpoint.kind in ONLY_READ:
            raise FlowError(
                f"sink {name!r} ({user_line()}): {endpoint.kind} can only be read; to write, take ps.write_files(...), "
                f"ps.console() or ps.callback(...)"
            )
        wanted = checked_delivery(name, endpoint, delivery or self.flow.delivery)
        policy = sink_policy(f"sink {name!r} ({user_line()})", endpoint, on_error)
        self.flow.add(Sink(name, (self.port,), (), endpoint, wanted, line=user_line(), on_error=policy))

    def __getattr__(self, name: str) -> Any:
        hint = f"; it keeps something per key: stream.key_by('field').{name}(...)" if name in PER_KEY else ""
        raise AttributeError(f"a stream has no {name!r}{hint}")

    def _add(self, node: type[Node], name: str, schema: Schema, *settings: Any) -> Stream:
        removes = self.flow.output(self.port).removes
        made = Output(schema, updates=self.updates, event_time=self._time_in(schema, settings), removes=removes)
        return self.flow.add(node(name, (self.port,), (made,), *settings, line=user_line()))

    def _time_in(self, schema: Schema, settings: tuple[Any, ...] = ()) -> Timed | None:
        """The event time of a stream made of this one: kept while its column is there and nobody writes to it."""
        timed = self.event_time_of
        if timed is None or timed.column not in schema or schema.field(timed.column).type != t.TIMESTAMP:
            return None
        written = dict(settings[0]) if settings and isinstance(settings[0], tuple) else {}
        changed = timed.column in written and not _is_field(written[timed.column], timed.column)
        filled = bool(settings) and isinstance(settings[0], str) and settings[0] == timed.column
        return None if changed or filled else timed

    def _side(self, name: str, schema: Schema) -> Output:
        return Output(schema, name, event_time=self._time_in(schema))

    def _typed(self, step: str, name: str, written: Expr) -> t.Field:
        try:
            return t.Field(name, type_of_expr(written, self.schema))
        except (ExpressionError, SchemaError) as error:
            raise type(error)(f"step {step!r} ({user_line()}): {error}") from None

    def _condition(self, step: str, given: Any) -> Expr | Callable[[Any], Any]:
        if callable(given) and not isinstance(given, Expr):
            check_function(step, given, user_line())
            return given  # type: ignore[no-any-return]  # checked to be callable just above
        written = as_expr(given)
        if self._typed(step, "condition", written).type != t.BOOLEAN:
            raise ExpressionError(f"step {step!r} ({user_line()}): a branch needs a boolean; {to_sql(written)} is not")
        return written

    def _need_stream(self, given: Any) -> None:
        if not isinstance(given, Stream):
            raise FlowError(f"a union is of streams, got {given!r}")
        if given.flow is not self.flow:
            raise FlowError(
                f"{given.port} is a stream of another flow, {given.flow.name!r}; steps join streams of one flow"
            )

    def _need_records(self, name: str, what: str) -> None:
        if self.updates is not None:
            raise NotYet(
                f"step {name!r} ({user_line()}): {what} over the running totals of {self.port.step!r} would need their old "
                f"values taken back, which is not there yet. To treat each update as a record of its own, say "
                f".as_records('name') before it"
            )

    @property
    def _key_fields(self) -> tuple[str, ...]:
        """The fields that say which row an update replaces: the key, and the one that takes a row out."""
        removes = self.flow.output(self.port).removes
        return (*(self.updates or ()), *([removes] if removes else []))

    def _need_keys(self, name: str, made: Schema) -> None:
        lost = [k for k in self._key_fields if k not in made]
        if lost:
            raise self._of_key(name, f"the key field {lost[0]!r} must stay")

    def _need_same_keys(self, name: str, written: Iterable[tuple[str, Expr]]) -> None:
        for field, value in written:
            if field in self._key_fields and not _is_field(value, field):
                raise self._of_key(name, f"the key field {field!r} must stay as it is ({to_sql(value)} came)")

    def _of_key(self, name: str, wrong: str) -> SchemaError:
        return SchemaError(
            f"step {name!r} ({user_line()}): {self.port.step!r} gives running totals by {', '.join(self.updates or ())}; "
            f"{wrong}, or say .as_records('name') before it"
        )


def _is_field(written: Expr, name: str) -> bool:
    return isinstance(written, Column) and written.name == name


class Branches(Mapping[str, Stream]):
    """The streams of a branch, by name: `parts["errors"]`, `parts.errors`, or `errors, rest = parts.values()`."""

    def __init__(self, streams: dict[str, Stream]) -> None:
        self._streams = streams

    def __getitem__(self, name: str) -> Stream:
        if name not in self._streams:
            raise UnknownName(f"no branch {name!r}; {nearest(name, self._streams)}")
        return self._streams[name]

    def __getattr__(self, name: str) -> Stream:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._streams)

    def __len__(self) -> int:
        return len(self._streams)


def _schema(given: Any) -> Schema | None:
    return schema_of(given) if given is not None else None


def _named(named: Mapping[str, str | Expr]) -> list[tuple[str, Expr]]:
    return [(n, _bare(as_expr(e))) for n, e in named.items()]


def _bare(written: Expr) -> Expr:
    return written.expr if isinstance(written, Alias) else written


def _check_key(field: t.Field) -> None:
    if field.type in (t.FLOAT, t.DOUBLE) or isinstance(field.type, t.Map | t.Array | t.Struct):
        raise SchemaError(
            f"key_by ({user_line()}): a key is a plain value; {field.name!r} is {field.type}. "
            f"Pick a part of it or cast it, such as key_by(k='cast({field.name} as string)')"
        )
