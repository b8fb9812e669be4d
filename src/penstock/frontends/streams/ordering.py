"""Steps that look at many records at once: deduplication, top-n, sorting, changelogs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from penstock.frontends.streams.naming import names_step
from penstock.graph.caller import user_line
from penstock.graph.compose import add_distinct
from penstock.graph.duration import Span, checked_span
from penstock.graph.nodes import AsTable, Changelog, Port, Sort, Top
from penstock.graph.nodes.ordering import OP
from penstock.graph.order import terms_of

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

        Returns:
            The stream in order.

        Raises:
            FlowError: the stream has no event time, or a span has no order.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> late = [("b", "2026-01-01 10:00:02"), ("a", "2026-01-01 10:00:01")]
        >>> words = ps.Flow("demo").source("words", ps.items(late, "word string, at string"), event_time="at", lateness="5s")
        >>> words.sort("in-order").select("plain", "word").sink("out", ps.console())
        >>> run_local(words.flow)["out"]
        [Row(word='a'), Row(word='b')]
        """
        stream = cast("Stream", self)
        return stream._add(_sort(name, stream.port, (), by, within))

    @names_step
    def changelog(self, name: str, *, before: bool = True) -> Stream:
        """The changes of a running total as records: `op` (insert, update_before, update_after or delete), then the row.

        Args:
            name: the name of the step.
            before: False leaves out the old rows.

        Returns:
            The stream of the changes.

        Raises:
            FlowError: the stream holds no running totals.

        >>> import penstock as ps
        >>> from penstock.testing import BARRIER, run_local
        >>> words = ps.Flow("demo").source("words", ps.items([], "word string"))
        >>> words.key_by("word").count("n").changelog("changes").sink("out", ps.console())
        >>> run_local(words.flow, {"words": ["a", BARRIER, "a"]})["out"]
        [Row(op='insert', word='a', n=1), Row(op='update_before', word='a', n=1), Row(op='update_after', word='a', n=2)]
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

        Returns:
            The table.

        Raises:
            SchemaError: a field is not there, or is not what it must be.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> rows = [("insert", "a", 1), ("update_before", "a", 1), ("update_after", "a", 2)]
        >>> changes = ps.Flow("demo").source("changes", ps.items(rows, "op string, word string, n int"))
        >>> changes.as_table("words", "word").sink("out", ps.console())
        >>> run_local(changes.flow).table("out")["a"].n
        2
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

        Returns:
            The stream of the first records.

        Raises:
            FlowError: event time is needed, and the stream has none.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> words = ps.Flow("demo").source("words", ps.items(["a", "b", "a"], "word string"))
        >>> words.key_by("word").distinct("once").sink("out", ps.console())
        >>> run_local(words.flow)["out"]
        [Row(word='a'), Row(word='b')]
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

        Returns:
            A table by key and rank.

        Raises:
            FlowError: there is no number, or no order.
            SchemaError: a field of the order is not there, or `into` is a field already.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> rows = [("x", "ada", 3), ("x", "bob", 5), ("x", "eve", 4)]
        >>> scores = ps.Flow("demo").source("scores", ps.items(rows, "game string, user string, score int"))
        >>> scores.key_by("game").top("best", 1, "score desc").sink("out", ps.console())
        >>> run_local(scores.flow).table("out")["x", 1].user
        'bob'
        """
        keyed, terms = cast("KeyedStream", self), terms_of(by)
        return keyed._add(name, lambda port: Top(name, (port,), keyed.keys, n=n, by=terms, into=into, line=user_line()))

    @names_step
    def sort(self, name: str, by: str = "", *, within: Span | None = None) -> Stream:
        """The records of each key in order of event time, as soon as event time has passed them; see `Stream.sort`.

        Args:
            name: the name of the step.
            by: decides among equal times, such as "score desc, name".
            within: a span such as "1m": the records of each span of event time are emitted together, ordered by `by`.

        Returns:
            The stream, each key in order.

        Raises:
            FlowError: the stream has no event time, or a span has no order.

        >>> import penstock as ps
        >>> clicks = ps.items([], "user string, at timestamp")
        >>> ps.Flow("demo").source("clicks", clicks, event_time="at").key_by("user").sort("in-order")
        Stream('in-order': user string, at timestamp, event time at)
        """
        keyed = cast("KeyedStream", self)
        return keyed._add(name, lambda port: _sort(name, port, keyed.keys, by, within))


def _sort(name: str, port: Port, keys: tuple[str, ...], by: str, within: Span | None) -> Sort:
    span = 0 if within is None else checked_span(within, "within", least=1)
    return Sort(name, (port,), keys, by=terms_of(by), span=span, line=user_line())
