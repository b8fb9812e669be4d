"""Steps that are made of several: each function adds them to a builder and returns the port of the result.

What the user did not name is named after the user's step, by `penstock.graph.ids.child`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from penstock.errors import FlowError, SchemaError
from penstock.graph import types as t
from penstock.graph.aggregates.calls import AggregateCall
from penstock.graph.builder import GraphBuilder
from penstock.graph.capabilities import Capabilities
from penstock.graph.expr import Column, Expr, Literal, as_expr, col, lit, name_of
from penstock.graph.ids import child
from penstock.graph.logic.broadcast import BroadcastProcess
from penstock.graph.logic.topology.components import Spout, streams_of
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.nodes import (
    AggregateBy,
    AsRecords,
    Branch,
    DeadLetters,
    Distinct,
    DistinctInTime,
    Endpoint,
    EventTime,
    Node,
    OnError,
    OperatorMatch,
    Output,
    Port,
    Rules,
    Select,
    Sink,
    Source,
    StreamJoin,
    Where,
    WithBroadcast,
    WithColumns,
)
from penstock.graph.nodes.base import ALL, ON, TOGETHER, check_key, typed
from penstock.graph.nodes.stateless import Columns
from penstock.graph.nodes.topology import ROOTS, SEQUENCE, SOURCE, TASK, component_outputs, noted_source
from penstock.graph.patterns.operator_conditions import relevance
from penstock.graph.patterns.operators import OperatorPattern
from penstock.graph.schema import Schema

J = TypeVar("J", bound=StreamJoin)


@dataclass(frozen=True)
class KeyedInput:
    """A stream seen by key: fields, and keys that are computed of them.

    Args:
        port: the stream.
        keys: the names of the keys, in order.
        computed: the expressions of those that are not fields.
    """

    port: Port
    keys: tuple[str, ...]
    computed: Columns = ()

    def check(self, builder: GraphBuilder) -> None:
        """Refuses keys that are not there, or that are no plain values."""
        schema = builder.output(self.port).schema
        named = {name: builder.meant(expr) for name, expr in self.computed}
        for key in self.keys:
            check_key(typed(key, named[key], schema) if key in named else schema.field(key))

    def stream(self, builder: GraphBuilder, name: str) -> Port:
        """The stream with the computed keys as fields, by a native step that is made for the keyed one."""
        if not self.computed:
            return self.port
        hidden = ALL in self.keys
        return builder.add(WithColumns(child(name, "key"), (self.port,), self.computed, hidden=hidden))


def add_source(builder: GraphBuilder, source: Source, event_time: EventTime | None = None) -> Port:
    """A source, with the event time of its records if one is given; its name and inputs are filled in."""
    port = builder.add(source)
    if event_time is None:
        return port
    return builder.add(replace(event_time, name=child(source.name, "time"), inputs=(port,)))


def event_time_column(time: Expr, into: str) -> str:
    """The field in which an event time lands: `into`, or the field that it is read from."""
    return into or name_of(time)


def add_dead_letters(builder: GraphBuilder, sink: Sink) -> None:
    """A sink for the records that steps put aside."""
    dead_letters = builder.add(DeadLetters(child(sink.name, "dead_letters"), ()))
    builder.add(replace(sink, inputs=(dead_letters,)))


def add_aggregate(builder: GraphBuilder, name: str, keyed: KeyedInput, calls: tuple[AggregateCall, ...]) -> Port:
    """Aggregates per key: of records, or of a table, whose rows are taken back when they go."""
    return builder.add(AggregateBy(name, (keyed.stream(builder, name),), keyed.keys, calls=calls))


def add_total(
    builder: GraphBuilder, name: str, port: Port, calls: tuple[AggregateCall, ...], *, always: bool = False
) -> Port:
    """Aggregates over all records of a stream, or all rows of a table: a table of one row; with `always` of one also when nothing has come to the end."""
    whole = builder.add(WithColumns(child(name, "all"), (port,), ((ALL, lit(0)),), hidden=True))
    total = builder.add(AggregateBy(child(name, "total"), (whole,), (ALL,), calls=calls, always=always))
    fields = tuple((n, col(n)) for n in builder.output(total).schema.names if n != ALL)
    return builder.add(Select(name, (total,), fields))


def add_distinct(builder: GraphBuilder, name: str, keyed: KeyedInput, within: int | None, eager: bool | None) -> Port:
    """One record of each key: the first to come (eager), or the earliest by event time."""
    port = keyed.stream(builder, name)
    node = Distinct if (within is None if eager is None else eager) else DistinctInTime
    return builder.add(node(name, (port,), keyed.keys, within=within))


def add_operator_match(
    builder: GraphBuilder, name: str, keyed: KeyedInput, pattern: OperatorPattern, select: Columns | None
) -> Port:
    """Matches of a pattern of operators, by key; without a key all events belong together. Events that fit no filter are left out before they move."""
    if not keyed.keys:
        keyed = KeyedInput(keyed.port, (ALL,), ((ALL, lit(0)),))
    port = keyed.stream(builder, name)
    with suppress(FlowError):  # what is wrong with the pattern is said when its own step is added
        wanted = relevance(pattern, builder.output(port).schema)
        if wanted is not None:
            port = builder.add(Where(child(name, "relevant"), (port,), wanted))
    return builder.add(OperatorMatch(name, (port,), keyed.keys, pattern=pattern, select=select))


@dataclass(frozen=True)
class JoinKeys:
    """The keys of one side of a join, as they are written: fields, or expressions over the side's fields.

    Args:
        name: the name of the join.
        part: what the step is called that computes keys, where one must.
        port: the stream of the side.
        written: the keys.
    """

    name: str
    part: str
    port: Port
    written: tuple[str | Expr, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The fields of the keys."""
        return tuple(key if isinstance(key, str) else name_of(key) for key in self.written)

    def resolved(self, builder: GraphBuilder) -> JoinKeys:
        """The same keys as fields, by a native step where some are computed; their fields are hidden."""
        schema = builder.output(self.port).schema
        read = [key if isinstance(key, str) and key in schema.names else as_expr(key) for key in self.written]
        hidden = [TOGETHER if isinstance(e, Literal) else f"{ON}{at}" for at, e in enumerate(read)]
        made = zip(hidden, read, strict=True)
        computed = {name: e for name, e in made if isinstance(e, Expr) and not isinstance(e, Column)}
        names = tuple(name if name in computed else key for name, key in zip(hidden, read, strict=True))
        if not computed:
            return replace(self, written=names)
        step = WithColumns(child(self.name, self.part), (self.port,), tuple(computed.items()), hidden=True)
        return replace(self, port=builder.add(step), written=names)


def add_join_keys(builder: GraphBuilder, left: JoinKeys, right: JoinKeys) -> tuple[JoinKeys, JoinKeys]:
    """The keys of both sides of a join as fields."""
    return left.resolved(builder), right.resolved(builder)


def add_join(builder: GraphBuilder, join: J) -> Port:
    """A join of two streams; a stream that is joined with itself is read a second way."""
    left, right = join.inputs
    if left == right:
        right = builder.add(second_reader(join.name, right, builder.output(right)))
    return builder.add(replace(join, inputs=(left, right)))


def second_reader(name: str, port: Port, known: Output) -> Node:
    """A stream a second time."""
    if known.changes is not None:
        return Select(child(name, "again"), (port,), star(known.schema))
    return AsRecords(child(name, "again"), (port,), known.event_time)


def add_broadcast(
    builder: GraphBuilder,
    name: str,
    events: Port,
    rules: Port,
    keys: tuple[str, ...],
    logic: BroadcastProcess | type[BroadcastProcess],
    schema: Schema | None,
) -> Port:
    """The user's class over events, with the newest rule of each key at hand."""
    kept = builder.add(Rules(child(name, "rules"), (rules,), keys, logic=logic))  # type: ignore[arg-type]  # a class becomes an instance
    return builder.add(WithBroadcast(name, (events, kept), logic, schema))  # type: ignore[arg-type]  # a class becomes an instance


def spout_nodes(
    name: str,
    spout: Spout,
    tasks: int,
    limit: int | None,
    line: str,
    about: Mapping[str, Any] | None = None,
    on_error: OnError | None = None,
) -> list[Node]:
    """A spout: a source, and, where it has several streams, a step for each of them. `about` has its settings and the topology's layout."""
    outputs = {o.name: o for o in component_outputs(spout, spout.reliable, SEQUENCE, *noted_source(tasks, True))}
    streams = streams_of(spout)
    tagged = list(streams) != [DEFAULT]
    schema = _tagged(streams, [o.schema for o in outputs.values()]) if tagged else outputs["out"].schema
    options = {"spout": spout, "tasks": tasks, "limit": limit, **(about or {})}
    bounded = not spout.endless or limit is not None
    able = Capabilities(reads=True, runs_locally=True, emits_tuples=True, parses=("",))
    endpoint = Endpoint("spout", options, schema, bounded, capabilities=able)
    source = Source(name, (), endpoint, line=line, parallelism=tasks, on_error=on_error)
    if not tagged:
        return [source]
    conditions = tuple((s, col("__stream") == lit(s)) for s in streams)
    made: list[Node] = [source, Branch(child(name, "streams"), (Port(name),), conditions, line=line)]
    for stream, known in streams.items():
        fields = outputs["out" if stream == DEFAULT else stream].schema.names
        picked = {n: col(stream).field(n) if n in known.names else col(n) for n in fields}
        made.append(picked_fields(child(name, stream), Port(child(name, "streams"), stream), picked, line))
    return made


def _tagged(streams: Mapping[str, Schema], schemas: Iterable[Schema]) -> Schema:
    """The records of a spout with several streams: which stream, a struct for each, and what they carry beside."""
    structs = tuple(t.Field(s, t.Struct(schema.fields)) for s, schema in streams.items())
    beside = {f.name for schema in schemas for f in schema.fields if f.name.startswith("__")}
    ordered = [f for f in (SEQUENCE, SOURCE, TASK, ROOTS) if f.name in beside]
    return Schema((t.Field("__stream", t.STRING), *structs, *ordered), internal=True)


def picked_fields(name: str, port: Port, columns: Mapping[str, Expr], line: str) -> Select:
    """A step that picks fields of a stream."""
    return Select(name, (port,), tuple(columns.items()), line=line)


def dropped(schema: Schema, names: Iterable[str]) -> Columns:
    """The fields of a stream without some, which must be there.

    Raises:
        SchemaError: one is not there, or none is left.
    """
    gone = {schema.field(name).name for name in names}
    kept = tuple((n, col(n)) for n in schema.names if n not in gone)
    if not kept:
        raise SchemaError(f"drop leaves no field of ({schema})")
    return kept


def renamed(schema: Schema, names: Mapping[str, str]) -> Columns:
    """The fields of a stream in their order, some under another name.

    Args:
        schema: the fields.
        names: the new name of each field that gets one.

    Raises:
        SchemaError: a field is not there.
    """
    for name in names:
        schema.field(name)
    return tuple((names.get(n, n), col(n)) for n in schema.names)


def star(schema: Schema) -> Columns:
    """All fields of a stream, as `*` says."""
    return tuple((n, col(n)) for n in schema.names)
