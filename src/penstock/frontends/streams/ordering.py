"""Steps that look at many records at once: deduplication, top-n, sorting, changelogs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from penstock.frontends.streams.naming import names_step
from penstock.graph.caller import user_line
from penstock.graph.compose import add_distinct
from penstock.graph.duration import Span, checked_span
from penstock.graph.nodes import AsTable, Changelog, Port, Sort, Top
from penstock.graph.nodes.ordering import OP, terms_of

if TYPE_CHECKING:
    from penstock.frontends.streams.keyed import KeyedStream
    from penstock.frontends.streams.stream import Stream


class Ordering:
    """What a stream can do without a key."""

    @names_step
    def sort(self, name: str, by: str = "", *, within: Span | None = None) -> Stream:
        """The records in order of event time, as soon as event time has passed them.

        All records go through one task; `key_by(...).sort(...)` sorts each key for itself, in many.

        Args:
            name: the name of the step.
            by: decides among equal times, such as "score desc, name".
            within: a span such as "1m": the records of each span of event time are emitted together, ordered by `by`.

        Raises:
            FlowError: the stream has no event time, or a span has no order.
        """
        stream = cast("Stream", self)
        return stream._add(_sort(name, stream.port, (), by, within))

    @names_step
    def changelog(self, name: str, *, before: bool = True) -> Stream:
        """The changes of a running total as records: `op` (insert, update_before, update_after or delete), then the row.

        Args:
            name: the name of the step.
            before: False leaves out the old rows.

        Raises:
            FlowError: the stream holds no running totals.
        """
        stream = cast("Stream", self)
        return stream._add(Changelog(name, (stream.port,), before=before, line=user_line()))

    @names_step
    def as_table(self, name: str, key: str | tuple[str, ...] | list[str], *, op: str = OP) -> Stream:
        """The table that a stream of changes makes.

        The result is by `key`, as running totals are; the field `removed` is true in a row whose key is gone.

        Args:
            name: the name of the step.
            key: the field, or fields, of the key.
            op: the field that says insert, update_before, update_after or delete.

        Raises:
            SchemaError: a field is not there, or is not what it must be.
        """
        stream = cast("Stream", self)
        keys = (key,) if isinstance(key, str) else tuple(key)
        return stream._add(AsTable(name, (stream.port,), keys, op=op, line=user_line()))


class KeyedOrdering:
    """What a stream by key can do."""

    @names_step
    def distinct(self, name: str, *, within: Span | None = None, eager: bool | None = None) -> Stream:
        """One record of each key; with `within`, a span of event time, one for as long.

        Without event time that is the first to come. With it (`within`, or `eager=False`) it is the earliest, emitted when event
        time has passed it, so that the result does not depend on the order in which records come.

        Args:
            name: the name of the step.
            within: a span of event time, such as "1h".
            eager: True takes the first to come, at once; False the earliest.

        Raises:
            FlowError: event time is needed, and the stream has none.
        """
        keyed = cast("KeyedStream", self)
        span = None if within is None else checked_span(within, "within", least=1)
        return keyed._stream(add_distinct(keyed._builder, name, keyed._input, span, eager))

    @names_step
    def top(self, name: str, n: int, by: str, *, into: str = "rank") -> Stream:
        """The first `n` records of each key in an order, with their rank: a table by key and rank, whose rows are emitted again when they change.

        Args:
            name: the name of the step.
            n: how many.
            by: the order, such as "score desc, name".
            into: the field of the rank.

        Raises:
            FlowError: there is no number, or no order.
            SchemaError: a field of the order is not there, or `into` is a field already.
        """
        keyed, terms = cast("KeyedStream", self), terms_of(by)
        return keyed._add(name, lambda port: Top(name, (port,), keyed.keys, n=n, by=terms, into=into, line=user_line()))

    @names_step
    def sort(self, name: str, by: str = "", *, within: Span | None = None) -> Stream:
        """The records of each key in order of event time, as soon as event time has passed them; see `Stream.sort`."""
        keyed = cast("KeyedStream", self)
        return keyed._add(name, lambda port: _sort(name, port, keyed.keys, by, within))


def _sort(name: str, port: Port, keys: tuple[str, ...], by: str, within: Span | None) -> Sort:
    span = 0 if within is None else checked_span(within, "within", least=1)
    return Sort(name, (port,), keys, by=terms_of(by), span=span, line=user_line())
