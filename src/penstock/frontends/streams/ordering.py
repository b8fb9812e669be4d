"""Steps that look at many records at once: deduplication, top-n, sorting, changelogs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from penstock.errors import FlowError, NotYet, SchemaError
from penstock.frontends.streams.naming import names_step
from penstock.graph import types as t
from penstock.graph.caller import user_line
from penstock.graph.duration import micros
from penstock.graph.nodes import LATE, AsTable, Changelog, Distinct, DistinctInTime, Net, Output, Sort, Term, Timed, Top
from penstock.graph.nodes.ordering import OP, REMOVED
from penstock.graph.schema import Schema

if TYPE_CHECKING:
    from penstock.frontends.streams.keyed import KeyedStream
    from penstock.frontends.streams.stream import Stream


class Ordering:
    """What a stream can do without a key."""

    @names_step
    def sort(self, name: str, by: str = "", *, within: Any = None) -> Stream:
        """The records in order of event time, as soon as event time has passed them; `by` decides among equal times.

        With `within`, a span such as "1m", the records of each span of event time are given together, ordered by `by`. All
        records go through one task; `key_by(...).sort(...)` sorts each key for itself, in many.
        """
        return _sorted(cast("Stream", self), name, (), by, within)

    @names_step
    def changelog(self, name: str, *, before: bool = True) -> Stream:
        """The changes of a running total as records: `op` (insert, update_before, update_after or delete), then the row.

        `before=False` leaves out the old rows.
        """
        stream = cast("Stream", self)
        if stream.updates is None:
            raise FlowError(
                f"changelog tells the changes of running totals (count, sum, aggregate, reduce, top ...); {stream.port} gives "
                f"records of their own"
            )
        if OP in stream.schema:
            raise SchemaError(f"changelog adds a field {OP!r}, which is there already; rename it with select first")
        removes = stream.flow.output(stream.port).removes
        fields = [f for f in stream.schema.fields if f.name != removes]
        output = Output(Schema((t.Field(OP, t.STRING), *fields)))
        node = Changelog(name, (stream.port,), (output,), stream.updates, before, removes, line=user_line())
        return stream.flow.add(node)

    @names_step
    def as_table(self, name: str, key: str | tuple[str, ...] | list[str], *, op: str = OP) -> Stream:
        """The table that a stream of changes makes: the field `op` says insert, update_before, update_after or delete.

        The result is by `key`, as running totals are; the field `removed` is true in a row whose key is gone.
        """
        stream = cast("Stream", self)
        stream._need_records(name, "as_table")
        keys = (key,) if isinstance(key, str) else tuple(key)
        if stream.schema.field(op).type != t.STRING:
            raise SchemaError(f"{op!r} says what happened, as a text; it is {stream.schema.field(op).type}")
        stream.key_by(*keys)
        fields = [f for f in stream.schema.fields if f.name != op]
        output = _table(Schema((*fields, t.Field(_removed(fields), t.BOOLEAN))), keys)
        return stream.flow.add(AsTable(name, (stream.port,), (output,), keys, op, line=user_line()))


class KeyedOrdering:
    """What a stream by key can do."""

    @names_step
    def distinct(self, name: str, *, within: Any = None, eager: bool | None = None) -> Stream:
        """One record of each key; with `within`, a span of event time, one for as long.

        Without event time that is the first to come. With it (`within`, or `eager=False`) it is the earliest, given when event
        time has passed it, so that the result does not depend on the order in which records come; `eager=True` takes the first to
        come here too, at once.
        """
        stream, keys = _by_key(self, name)
        eager = within is None if eager is None else eager
        span = None if within is None else _span(within, "within")
        schema = stream.schema
        if eager and span is None:
            output = Output(schema, event_time=stream.event_time_of)
            return stream.flow.add(Distinct(name, (stream.port,), (output,), keys, line=user_line()))
        timed = _timed(stream, "distinct within a time" if within is not None else "distinct with eager=False")
        node = Distinct if eager else DistinctInTime
        return stream.flow.add(node(name, (stream.port,), _outputs(stream), keys, timed, span, line=user_line()))

    @names_step
    def top(self, name: str, n: int, by: str, *, into: str = "rank") -> Stream:
        """The first `n` records of each key in the order of `by`, such as "score desc, name", with their rank.

        The result is a table by key and rank; rows are given again when they change.
        """
        stream, keys = _by_key(self, name)
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise FlowError(f"top needs a whole number of records per key, at least 1, got {n!r}")
        terms = terms_of(by, stream.schema)
        if not terms:
            raise FlowError("top needs an order, such as by='score desc'")
        if into in stream.schema:
            raise SchemaError(f"top puts the rank into {into!r}, which is a field already; say into='another name'")
        schema = Schema((*stream.schema.fields, t.Field(into, t.INT)))
        output = Output(schema, updates=(*keys, into))
        return stream.flow.add(Top(name, (stream.port,), (output,), keys, n, terms, line=user_line()))

    @names_step
    def sort(self, name: str, by: str = "", *, within: Any = None) -> Stream:
        """The records of each key in order of event time, as soon as event time has passed them; see `Stream.sort`."""
        stream, keys = _by_key(self, name)
        return _sorted(stream, name, keys, by, within)


def net(keyed: KeyedStream, name: str, aggregates: Mapping[str, Any]) -> Stream:
    """Aggregates over a table that changes: what a row gave is taken back when it is replaced or removed."""
    source = keyed.source
    changes = source.changelog(f"{name}.changes")
    if keyed.computed:
        changes = changes.with_columns(f"{name}.key", **dict(keyed.computed))
    known = changes.schema
    made = tuple(keyed._aggregate(name, known, field, given) for field, given in aggregates.items())
    for each in made:
        if each.own is not None or any(part.merge != "add" for part in each.recipe.parts):
            raise NotYet(
                f"step {name!r} ({user_line()}): {each} over the running totals of {source.port.step!r} cannot take old values back; "
                f"count, count_if, sum and avg can. To treat each update as a record of its own, say .as_records('name') before it"
            )
    fields = [*known.only(keyed.keys).fields, *(t.Field(a.name, a.type) for a in made)]
    output = _table(Schema((*fields, t.Field(_removed(fields), t.BOOLEAN))), keyed.keys)
    return source.flow.add(Net(name, (changes.port,), (output,), keyed.keys, made, line=user_line()))


def _table(schema: Schema, keys: tuple[str, ...]) -> Output:
    return Output(schema, updates=keys, removes=schema.names[-1])


def _removed(fields: Iterable[t.Field]) -> str:
    if REMOVED in {f.name for f in fields}:
        raise SchemaError(
            f"a field {REMOVED!r} is added, to say when a key is gone; yours of that name must have another"
        )
    return REMOVED


def terms_of(by: str, schema: Schema) -> tuple[Term, ...]:
    """The fields of an order such as `score desc, name`.

    >>> from penstock.graph.schema import schema_of
    >>> terms_of("n desc, s", schema_of("n int, s string"))
    (Term(column='n', descending=True), Term(column='s', descending=False))
    """
    return tuple(_term(text, schema) for text in by.split(",")) if by.strip() else ()


def _term(text: str, schema: Schema) -> Term:
    words = text.split()
    if not 1 <= len(words) <= 2 or words[1:] not in ([], ["asc"], ["desc"]):
        raise FlowError(f"an order is of fields, each with asc or desc behind it if you like, got {text.strip()!r}")
    kind = schema.field(words[0]).type
    if isinstance(kind, t.Array | t.Map | t.Struct):
        raise SchemaError(
            f"an order is of plain values; {words[0]!r} is {kind}. Take a part of it with with_columns first"
        )
    return Term(words[0], words[1:] == ["desc"])


def _sorted(stream: Stream, name: str, keys: tuple[str, ...], by: str, within: Any) -> Stream:
    stream._need_records(name, "sort")
    timed = _timed(stream, "sort")
    span = 0 if within is None else _span(within, "within")
    terms = terms_of(by, stream.schema)
    if span and not terms:
        raise FlowError("sort within a span needs an order, such as by='score desc'")
    node = Sort(name, (stream.port,), _outputs(stream), keys, timed, terms, span, line=user_line())
    return stream.flow.add(node if keys else _alone(node))


def _alone(node: Sort) -> Sort:
    from dataclasses import replace

    return replace(node, parallelism=1)


def _by_key(keyed: Any, name: str) -> tuple[Stream, tuple[str, ...]]:
    mine = cast("KeyedStream", keyed)
    return mine._keyed(name), mine.keys


def _outputs(stream: Stream) -> tuple[Output, ...]:
    return (Output(stream.schema, event_time=stream.event_time_of), Output(stream.schema, LATE))


def _timed(stream: Stream, what: str) -> Timed:
    timed = stream.event_time_of
    if timed is None:
        raise FlowError(
            f"{what} needs to know when the records of {str(stream.port)!r} happened: say event_time='a field' at the source, or "
            f".event_time('name', 'a field') before it"
        )
    return timed


def _span(given: Any, what: str) -> int:
    span = micros(given, what)
    if span <= 0:
        raise FlowError(f"{what} is a span of time above zero, such as '1h', got {given!r}")
    return span
