"""Joins: a stream with a static table, and with other streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast

from penstock.errors import FlowError
from penstock.frontends.streams.naming import names_step
from penstock.graph.caller import user_line
from penstock.graph.compose import JoinKeys, add_broadcast, add_join, add_join_keys
from penstock.graph.duration import Span, checked_span, micros
from penstock.graph.expr import Expr, as_expr
from penstock.graph.logic.broadcast import BroadcastProcess
from penstock.graph.nodes import AsOfJoin, Endpoint, IntervalJoin, JoinStatic, Port, TableJoin, WindowJoin
from penstock.graph.nodes.join import CHANGED, Refresh
from penstock.graph.relational.versions import add_versioned_join
from penstock.graph.schema import Form, form_of
from penstock.graph.windows import TimeWindow

if TYPE_CHECKING:
    from penstock.frontends.streams.stream import Stream

Within: TypeAlias = Span | tuple[Span, Span] | list[Span]
"""How far apart in time the records of a join may be: one span for both sides, or two."""
Key: TypeAlias = str | Expr
"""A key of one side of a join: a field, or an expression over its fields."""
On: TypeAlias = Key | Iterable[Key | tuple[Key, Key]] | Mapping[str, Key]
"""The keys of a join: one, several, or pairs of them."""


class JoinSettings(TypedDict):
    """What every join of two streams has."""

    name: str
    inputs: tuple[Port, Port]

    keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    how: str
    prefix: str
    line: str


class Joining:
    """The joins of a stream."""

    @names_step
    def join(  # noqa: PLR0913 - a join has this many options
        self,
        name: str,
        other: Endpoint | Stream,
        on: On,
        *,
        how: str = "inner",
        within: Within | None = None,
        into: str = "",
        prefix: str = "",
        schema: Form | None = None,
        refresh: Span | Callable[[], object] | None = None,
        condition: str | Expr | None = None,
        ttl: Span | None = None,
    ) -> Stream:
        """Each record with what shares its key: rows of a static table, or records of another stream.

        Args:
            name: the name of the step.
            other: a static table, such as `ps.files(...)`, with which the join stays native; or a stream.
            on: a field, several, or pairs of fields; of streams also expressions, such as `{"lower(name)": "key"}`.
            how: inner or left; with a stream also right or full; without `within` also semi (records that have a match) or anti (those
                that have none).
            within: how far the other stream's record may be in time: `("-5s", "10s")` for up to 5 s before this one and up to 10 s
                after it, `"10s"` for up to 10 s to either side. Without it records match whenever they come: both sides are kept for
                ever, and tables that change may be joined; the result of any but an inner or a semi join of records is a table.
            into: a field for the later of the two times, which is the event time of the result then.
            prefix: is put before the other stream's fields.
            schema: the fields of a table that does not say.
            refresh: re-reads a table: `"5m"` when so much time has passed, `"changed"` when its files have, or a function when what it
                returns has.
            condition: what a pair must meet beside its keys, an expression over the fields of both streams, such as
                `"amount > limit"`. A record of an outer join without a pair that meets it comes out alone.
            ttl: the time to live of a join without `within`: the rows of a join key are forgotten when none has come or gone for so
                long, by processing time. What comes after that finds no match, so the result is approximate.

        Returns:
            The stream of the pairs: the fields of this stream, then the others of the table or stream.

        Raises:
            FlowError: an option is missing, or is of the other kind of join.
            SchemaError: the fields do not fit together.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> orders = ps.Flow("demo").source("orders", ps.items([("ada", 7)], "user string, n int"))
        >>> cities = ps.items([("ada", "London")], "user string, city string")
        >>> orders.join("where", cities, on="user").sink("out", ps.console())
        >>> run_local(orders.flow)["out"]
        [Row(user='ada', n=7, city='London')]
        """
        stream = cast("Stream", self)
        if isinstance(other, Endpoint):
            _refuse(within=within, into=into, prefix=prefix, ttl=ttl, condition=condition)
            keys = (on,) if isinstance(on, str) else cast("tuple[str, ...]", tuple(on))
            table = replace(other, schema=form_of(schema) or other.schema, bounded=True)
            return stream._add(JoinStatic(name, (stream.port,), table, keys, how, _refresh(refresh), line=user_line()))
        _only_tables(schema=schema, refresh=refresh)
        stream._need_stream(other, "a join is with a stream, or with a static table such as ps.files(...)")
        settings = settings_of(name, stream, other, on, how, prefix)
        met = None if condition is None else as_expr(condition)
        if within is None:
            _refuse(into=into)
            life = None if ttl is None else checked_span(ttl, "ttl")
            return stream._at(add_join(stream.flow.builder, TableJoin(**settings, condition=met, ttl=life)))
        if ttl is not None:
            raise FlowError("ttl is for joins without within, which says already for how long records are kept")
        low, high = _interval(within)
        join = IntervalJoin(**settings, condition=met, low=low, high=high, into=into)
        return stream._at(add_join(stream.flow.builder, join))

    @names_step
    def asof_join(
        self,
        name: str,
        other: Stream,
        on: On,
        *,
        direction: str = "backward",
        tolerance: Span | None = None,
        how: str = "left",
        prefix: str = "",
        op: str = "",
    ) -> Stream:
        """Each record with the one of the other stream that is nearest in time: the newest at or before it.

        A record comes out when event time has passed far enough that its answer is final.

        Args:
            name: the name of the step.
            other: the other stream.
            on: a field, several, or pairs of fields or expressions.
            direction: backward, forward (the first at or after it) or nearest; the latter two need a `tolerance`.
            tolerance: how far away the other may be.
            how: left (records without any come out with nulls) or inner.
            prefix: is put before the other's fields.
            op: the field of the other stream that says insert, update_before, update_after or delete, where its records are the versions of a table: a
                version ends with a delete. It is no part of the result.

        Returns:
            The stream of the records with what was found.

        Raises:
            FlowError: an option is not one, or a stream has no event time.
            SchemaError: the fields do not fit together.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> flow = ps.Flow("demo")
        >>> trades = flow.source("trades", ps.items([("a", "2026-01-01 10:00:05")], "s string, at string"), event_time="at")
        >>> quotes = flow.source("quotes", ps.items([("a", 1.5, "2026-01-01 10:00:00")], "s string, bid double, at string"), event_time="at")
        >>> trades.asof_join("bids", quotes, on="s", prefix="q_").select("plain", "s", "q_bid").sink("out", ps.console())
        >>> run_local(flow)["out"]
        [Row(s='a', q_bid=1.5)]
        """
        stream = cast("Stream", self)
        stream._need_stream(other, "a join is with a stream")
        span = None if tolerance is None else checked_span(tolerance, "tolerance")
        settings = settings_of(name, stream, other, on, how, prefix)
        join = AsOfJoin(**settings, direction=direction, tolerance=span)
        return stream._at(
            add_versioned_join(stream.flow.builder, join, op) if op else add_join(stream.flow.builder, join)
        )

    @names_step
    def window_join(
        self, name: str, other: Stream, on: On, window: TimeWindow, *, how: str = "inner", prefix: str = ""
    ) -> Stream:
        """The records of both streams that fall into the same window and share their key, emitted when the window closes.

        The result begins with `window_start` and `window_end`.

        Args:
            name: the name of the step.
            other: the other stream.
            on: a field, several, or pairs of fields or expressions.
            window: `ps.tumbling("10s")` or `ps.sliding("60s", every="10s")`.
            how: inner, left, right or full.
            prefix: is put before the other's fields.

        Returns:
            The stream of the pairs, with their window.

        Raises:
            FlowError: an option is not one, or a stream has no event time.
            SchemaError: the fields do not fit together.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> flow = ps.Flow("demo")
        >>> timed = "user string, at string"
        >>> views = flow.source("views", ps.items([("ada", "2026-01-01 10:00:01")], timed), event_time="at")
        >>> clicks = flow.source("clicks", ps.items([("ada", "2026-01-01 10:00:09")], timed), event_time="at")
        >>> both = views.window_join("both", clicks, "user", ps.tumbling("10s"), prefix="click_")
        >>> both.key_by("user").count("n").sink("out", ps.console())
        >>> run_local(flow)["out"]
        [Row(user='ada', n=1)]
        """
        stream = cast("Stream", self)
        stream._need_stream(other, "a join is with a stream")
        join = WindowJoin(**settings_of(name, stream, other, on, how, prefix), window=window)
        return stream._at(add_join(stream.flow.builder, join))

    @names_step
    def with_broadcast(
        self,
        name: str,
        rules: Stream,
        logic: BroadcastProcess | type[BroadcastProcess],
        schema: Form | None = None,
        *,
        key: str | Iterable[str],
    ) -> Stream:
        """A class of your own, called for each record with all rules at hand; see `penstock.BroadcastProcess`.

        The rules of a batch take effect before its records.

        Args:
            name: the name of the step.
            rules: a stream, of which the newest record of each `key` is kept.
            logic: the class, or an instance.
            schema: the fields of the records it emits; else the return annotation of `on_event` says.
            key: a field of the rules, or several.

        Returns:
            The stream of the records that the class emits.

        Raises:
            SchemaError: nothing says what it emits, or a key is not there.
            FlowError: the class lacks `on_event`, or cannot be made without arguments.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> class Limits(ps.BroadcastProcess):
        ...     def on_event(self, row, rules):
        ...         if row.value > rules[row.sensor].most:
        ...             yield row.sensor
        >>> flow = ps.Flow("demo")
        >>> rules = flow.source("rules", ps.items([("a", 5)], "sensor string, most int"))
        >>> readings = flow.source("readings", ps.items([("a", 4), ("a", 6)], "sensor string, value int"))
        >>> readings.with_broadcast("high", rules, Limits, "sensor string", key="sensor").sink("out", ps.console())
        >>> run_local(flow)["out"]
        [Row(sensor='a')]
        """
        stream = cast("Stream", self)
        stream._need_stream(rules, "the rules of a broadcast are a stream")
        keys = (key,) if isinstance(key, str) else tuple(key)
        made = add_broadcast(stream.flow.builder, name, stream.port, rules.port, keys, logic, form_of(schema))
        return stream._at(made)


def pairs_of(on: On) -> tuple[tuple[Key, Key], ...]:
    """The keys of the left and the right that must be equal.

    >>> pairs_of("user"), pairs_of(["user", ("id", "order_id")]), pairs_of({"id": "order_id"})
    ((('user', 'user'),), (('user', 'user'), ('id', 'order_id')), (('id', 'order_id'),))
    """
    listed = [on] if isinstance(on, Key) else list(on.items() if isinstance(on, Mapping) else on)
    made = tuple((each, each) if isinstance(each, Key) else tuple(each) for each in listed)
    if not made or any(len(pair) != 2 for pair in made):
        raise FlowError(f"on is a field, a list of fields, or pairs of them such as {{'id': 'order_id'}}, got {on!r}")
    return cast("tuple[tuple[Key, Key], ...]", made)


def settings_of(name: str, left: Stream, right: Stream, on: On, how: str, prefix: str) -> JoinSettings:
    """What every join of two streams has, from what the user wrote."""
    ours, theirs = zip(*pairs_of(on), strict=True)
    sides = (JoinKeys(name, "left-key", left.port, ours), JoinKeys(name, "right-key", right.port, theirs))
    mine, other = add_join_keys(left.flow.builder, *sides)
    keys = {"keys": mine.names, "right_keys": other.names, "inputs": (mine.port, other.port)}
    return {"name": name, **keys, "how": how, "prefix": prefix, "line": user_line()}  # type: ignore[typeddict-item]


def _refuse(**options: object) -> None:
    for what, value in options.items():
        if value:
            raise FlowError(
                f"{what} is for joins of two streams; a static table has no times and no fields of the same name"
            )


def _only_tables(**options: object) -> None:
    for what, value in options.items():
        if value is not None:
            raise FlowError(
                f"{what} is for joins with a static table; a stream has a schema of its own, and is never stale"
            )


def _refresh(given: Span | Callable[[], object] | None) -> Refresh:
    """When a table is read again."""
    if given is None or given == CHANGED or callable(given):
        return cast("Refresh", given)
    return checked_span(given, "refresh")


def _interval(within: Within) -> tuple[int, int]:
    """How far before and after this stream's record the other's may be.

    >>> _interval("10s"), _interval(("-5s", "1m")), _interval((0, 2.5))
    ((-10000000, 10000000), (-5000000, 60000000), (0, 2500000))
    """
    if isinstance(within, tuple | list):
        if len(within) != 2:
            raise FlowError(f"within is two spans, such as ('-5s', '10s'), or one for both sides, got {within!r}")
        low, high = map(_signed, within)
    else:
        high = _signed(within)
        low = -high
    if low > high:
        raise FlowError(f"within begins before it ends, such as ('-5s', '10s'), got {within!r}")
    return low, high


def _signed(span: Span) -> int:
    if isinstance(span, str) and span.strip()[:1] in ("-", "+"):
        size = micros(span.strip()[1:], "within")
        return -size if span.strip()[0] == "-" else size
    return micros(span, "within")
