"""Joins: a stream with a static table, and with other streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from penstock.errors import FlowError, SchemaError
from penstock.frontends.streams.naming import names_step
from penstock.frontends.streams.sides import Both, check_key
from penstock.graph import types as t
from penstock.graph.caller import user_line
from penstock.graph.duration import micros
from penstock.graph.logic.broadcast import check_broadcast
from penstock.graph.nodes import (
    AsOfJoin,
    Endpoint,
    IntervalJoin,
    JoinStatic,
    Output,
    Rules,
    Timed,
    WindowJoin,
    WithBroadcast,
)
from penstock.graph.nodes.join import CHANGED
from penstock.graph.nodes.window import WINDOW_END, WINDOW_START
from penstock.graph.schema import Schema, returned_schema, schema_of
from penstock.graph.windows import TimeWindow

if TYPE_CHECKING:
    from penstock.frontends.streams.stream import Stream

DIRECTIONS = ("backward", "forward", "nearest")


class Joining:
    """The joins of a stream."""

    @names_step
    def join(  # noqa: PLR0913 - a join has this much to be told
        self,
        name: str,
        other: Endpoint | Stream,
        on: Any,
        *,
        how: str = "inner",
        within: Any = None,
        into: str = "",
        prefix: str = "",
        schema: Any = None,
        refresh: Any = None,
    ) -> Stream:
        """Each record with what shares its key: rows of a static table, or records of another stream.

        Of a table `how` is inner or left, and the join stays native; `refresh` reads it again: `"5m"` when so much time has passed,
        `"changed"` when its files have, or a function when what it says has. Of a stream it is inner, left, right or full, and `within` says
        how far the other record may be in time: `("-5s", "10s")` for up to 5 s before this one and up to 10 s behind it, `"10s"`
        for up to 10 s to either side. `on` is a field, several, or pairs of fields. `prefix` is put before the other's fields, and `into`
        names a field for the later of the two times, which is the event time of the result then.
        """
        stream = cast("Stream", self)
        if isinstance(other, Endpoint):
            _refuse(within=within, into=into, prefix=prefix)
            return _static(stream, name, other, on, how, schema, refresh)
        _only_tables(schema=schema, refresh=refresh)
        both = Both(name, stream, other, on, how, prefix)
        if within is None:
            raise FlowError(
                "a join of two streams needs within=('-5s', '10s'): how far apart in time their records may be"
            )
        low, high = _interval(within)
        output = Output(both.schema(after=_time_field(into)), event_time=both.time(into))
        settings = (*both.settings(), low, high, into)
        return stream.flow.add(IntervalJoin(name, both.ports(), both.outputs(output), *settings, line=user_line()))

    @names_step
    def asof_join(
        self,
        name: str,
        other: Stream,
        on: Any,
        *,
        direction: str = "backward",
        tolerance: Any = None,
        how: str = "left",
        prefix: str = "",
    ) -> Stream:
        """Each record with the one of the other stream that is nearest in time: the newest at or before it.

        `direction` is backward, forward (the first at or behind it) or nearest; the latter two need a `tolerance`, which is how far away
        the other may be. `how` is left (records without any come out with nulls) or inner. A record comes out when event time has passed
        far enough that its answer is final.
        """
        stream = cast("Stream", self)
        if how not in ("left", "inner"):
            raise FlowError(f"how is 'left' or 'inner', got {how!r}")
        span = _tolerance(direction, tolerance)
        both = Both(name, stream, other, on, how, prefix)
        output = Output(both.schema(), event_time=both.timed[0])
        settings = (*both.settings(), direction, span)
        return stream.flow.add(AsOfJoin(name, both.ports(), both.outputs(output), *settings, line=user_line()))

    @names_step
    def window_join(
        self, name: str, other: Stream, on: Any, window: Any, *, how: str = "inner", prefix: str = ""
    ) -> Stream:
        """The records of both streams that fall into the same window and share their key, given when the window closes.

        `window` is `ps.tumbling("10s")` or `ps.sliding("60s", every="10s")`; `how` is inner, left, right or full. The result begins with
        `window_start` and `window_end`.
        """
        stream = cast("Stream", self)
        if not isinstance(window, TimeWindow):
            raise FlowError(
                f"the windows of a join are ps.tumbling('10s') or ps.sliding('60s', every='10s'), got {window!r}"
            )
        both = Both(name, stream, other, on, how, prefix)
        bounds = [t.Field(n, t.TIMESTAMP) for n in (WINDOW_START, WINDOW_END)]
        output = Output(both.schema(before=bounds), event_time=Timed(WINDOW_END, -1))
        settings = (*both.settings(), window)
        return stream.flow.add(WindowJoin(name, both.ports(), both.outputs(output), *settings, line=user_line()))

    @names_step
    def with_broadcast(self, name: str, rules: Stream, logic: Any, schema: Any = None, *, key: Any) -> Stream:
        """A class of your own, called for each record with all rules at hand; see `penstock.BroadcastProcess`.

        `rules` is a stream, of which the newest record of each `key` (a field, or several) is kept. The rules of a batch take effect before
        its records.
        """
        stream = cast("Stream", self)
        stream._need_stream(rules)
        stream._need_records(name, "with_broadcast")
        checked = check_broadcast(name, logic)
        made = schema_of(schema) if schema is not None else returned_schema(type(checked).on_event, many=True)
        if made is None:
            raise SchemaError("it must say what it gives: schema='user string, n bigint'")
        keys = (key,) if isinstance(key, str) else tuple(key)
        for each in keys:
            check_key(rules.schema.field(each))
        shape = Schema((t.Field("__key", t.BINARY), t.Field("__rule", t.BINARY)), internal=True)
        kept = Rules(f"{name}.rules", (rules.port,), (Output(shape),), keys, checked, line=user_line())
        ports = (stream.port, stream.flow.add(kept).port)
        output = Output(made, event_time=stream._time_in(made))
        return stream.flow.add(WithBroadcast(name, ports, (output,), checked, line=user_line()))


def _tolerance(direction: str, tolerance: Any) -> int | None:
    if direction not in DIRECTIONS:
        raise FlowError(f"direction is one of {', '.join(DIRECTIONS)}, got {direction!r}")
    if tolerance is None and direction != "backward":
        raise FlowError(
            f"direction={direction!r} needs a tolerance such as '10s': without one a record might wait for ever"
        )
    return None if tolerance is None else _span(tolerance, "tolerance")


def _refuse(**given: Any) -> None:
    for what, value in given.items():
        if value:
            raise FlowError(
                f"{what} is for joins of two streams; a static table has no times and no fields of the same name"
            )


def _only_tables(**given: Any) -> None:
    for what, value in given.items():
        if value is not None:
            raise FlowError(
                f"{what} is for joins with a static table; a stream has a schema of its own, and is never stale"
            )


def _static(stream: Stream, name: str, table: Endpoint, on: Any, how: str, schema: Any, refresh: Any) -> Stream:
    """A join with a static table."""
    keys = (on,) if isinstance(on, str) else tuple(on)
    given = schema_of(schema) if schema else table.schema
    made = _table_schema(name, stream.schema, given, keys, how)
    stream._need_records(name, "join")
    read = Endpoint(table.kind, table.options, given, True, table.connector)
    return stream._add(JoinStatic, name, made, read, keys, how, _refresh(table, refresh))


def _refresh(table: Endpoint, refresh: Any) -> Any:
    """When a table is read again."""
    if refresh is None or callable(refresh):
        return refresh
    if refresh != CHANGED:
        return _span(refresh, "refresh")
    path = str(table.options.get("path", ""))
    if table.kind != "files" or "://" in path:
        raise FlowError(
            f"refresh='changed' watches files of this machine; for {table.kind} {path}".rstrip()
            + " give refresh a function that says which version is there, or a time such as '5m'"
        )
    return CHANGED


def _span(given: Any, what: str) -> int:
    span = micros(given, what)
    if span < 0:
        raise FlowError(f"{what} is a span of time; {given!r} is below zero")
    return span


def _table_schema(name: str, left: Schema, right: Schema | None, keys: tuple[str, ...], how: str) -> Schema:
    where = f"step {name!r} ({user_line()})"
    if how not in ("inner", "left"):
        raise FlowError(f"{where}: how is 'inner' or 'left', got {how!r}")
    if right is None:
        raise SchemaError(f"{where}: the table has no schema of its own; give schema=...")
    for key in keys:
        mine, theirs = left.field(key), right.field(key)
        if str(mine.type) != str(theirs.type):
            raise SchemaError(f"{where}: {key!r} is {mine.type} in the stream and {theirs.type} in the table; cast one")
    added = tuple(f for f in right.fields if f.name not in keys)
    both = [f.name for f in added if f.name in left]
    if both:
        raise SchemaError(f"{where}: stream and table both have {both[0]!r}; rename one with select first")
    return Schema(left.fields + added)


def _interval(within: Any) -> tuple[int, int]:
    """How far before and behind this stream's record the other's may be.

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


def _signed(span: Any) -> int:
    if isinstance(span, str) and span.strip()[:1] in ("-", "+"):
        size = micros(span.strip()[1:], "within")
        return -size if span.strip()[0] == "-" else size
    return micros(span, "within")


def _time_field(into: str) -> list[t.Field]:
    return [t.Field(into, t.TIMESTAMP)] if into else []
