"""Joins of a stream with something else: a static table, or another stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, TypeAlias

from penstock.errors import FlowError, SchemaError
from penstock.graph import types as t
from penstock.graph.duration import shown
from penstock.graph.expr import Expr, Raw, to_text
from penstock.graph.ids import child
from penstock.graph.logic.broadcast import BroadcastProcess, check_broadcast
from penstock.graph.nodes.base import (
    FOR_EVER,
    LATE,
    ON,
    TOGETHER,
    Inputs,
    Node,
    Output,
    Settings,
    TimeField,
    check_key,
    label,
    need_boolean,
)
from penstock.graph.nodes.endpoint import Endpoint
from penstock.graph.nodes.keyed import Keyed
from penstock.graph.nodes.window import WINDOW_END, WINDOW_START
from penstock.graph.schema import Schema, returned_schema
from penstock.graph.windows import TimeWindow

LATE_RIGHT = "late_right"
"""The output of late records of the right stream; those of the left are on `late`."""
LEFT, RIGHT = 0, 1
CHANGED = "changed"
HOWS = ("inner", "left", "right", "full")
DIRECTIONS = ("backward", "forward", "nearest")
Refresh: TypeAlias = int | str | Callable[[], object] | None
"""When a table is read again: after so many microseconds (0: in every batch), when its files have CHANGED, or when what a function says has."""
_UNTIMED = (TimeField(""), TimeField(""))
Sourced: TypeAlias = tuple[t.Field, tuple[str, str]]
"""A field of a result, with the fields of the left and the right that it is taken from."""
_RULES = Schema((t.Field("__key", t.BINARY), t.Field("__rule", t.BINARY)), internal=True)


@dataclass(frozen=True)
class JoinStatic(Node):
    """Each record with the rows of a static table that share its key; native."""

    table: Endpoint
    on: tuple[str, ...]
    how: str
    refresh: Refresh = None
    kind: ClassVar[str] = "join"
    over_tables: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """Stream and table have the key in common, of the same types, and no other field."""
        if self.how not in ("inner", "left"):
            raise FlowError(f"how is 'inner' or 'left', got {self.how!r}")
        left, right = given[0].schema, self._table()
        for key in self.on:
            mine, theirs = left.field(key), right.field(key)
            if str(mine.type) != str(theirs.type):
                raise SchemaError(f"{key!r} is {mine.type} in the stream and {theirs.type} in the table; cast one")
        both = [f.name for f in right.fields if f.name not in self.on and f.name in left]
        if both:
            raise SchemaError(f"stream and table both have {both[0]!r}; rename one with select first")
        self._check_refresh()
        if given[0].changes is not None and self.refresh is not None and not given[0].updates:
            raise FlowError(
                "what a row found in a table that is re-read is remembered until the row goes, by the key of the row; here no key is "
                "proved. Keep the key fields of the rows, or leave out refresh"
            )

    def _table(self) -> Schema:
        if self.table.schema is None:
            raise SchemaError("the table has no schema of its own; give schema=...")
        return self.table.schema

    def _check_refresh(self) -> None:
        path = str(self.table.options.get("path", ""))
        if self.refresh == CHANGED and not self.table.capabilities.can_watch:
            raise FlowError(
                f"refresh='changed' watches files of this machine; for {self.table.kind} {path}".rstrip()
                + " give refresh a function that says which version is there, or a time such as '5m'"
            )

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The fields of the stream, then those of the table."""
        added = tuple(f for f in self._table().fields if f.name not in self.on)
        known = given[0].schema
        return (given[0].keyless(Schema(known.fields + added, internal=known.internal)),)

    def settings(self) -> Settings:
        """The table, the key, the kind of join and when the table is read again."""
        made: Settings = {"with": self.table.kind, **self.table.shown(), "on": ", ".join(self.on), "how": self.how}
        return made if self.refresh is None else {**made, "refresh": self._refresh()}

    def _refresh(self) -> str:
        if isinstance(self.refresh, int):
            return f"every {shown(self.refresh)}" if self.refresh else "every batch"
        return self.refresh if isinstance(self.refresh, str) else label(self.refresh)


@dataclass(frozen=True)
class StreamJoin(Keyed):
    """The base of joins of two streams by key and time; `keys` are fields of the left one, `right_keys` of the right.

    `prefix` is put before the right's fields. `timed_by` is where the event time of each side is. `columns` has, for each field of the
    result, the field of the left and of the right that it is taken from; empty where a side has none. A field of both is taken from
    whichever side is there. The last two follow from the inputs. `condition` is what a pair must meet beside its key.
    """

    right_keys: tuple[str, ...] = ()
    how: str = "inner"
    prefix: str = field(default="", kw_only=True)
    timed_by: tuple[TimeField, TimeField] = field(default=_UNTIMED, kw_only=True)
    columns: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    condition: Expr | None = field(default=None, kw_only=True)
    python: ClassVar[bool] = True
    timed: ClassVar[bool] = True
    over_tables: ClassVar[bool] = True
    takes_functions: ClassVar[bool] = True
    hows: ClassVar[tuple[str, ...]] = HOWS

    @property
    def per_key(self) -> str:
        """For whom something is kept: a key that is a field of one side at least, or the step that computes it."""
        if self.keys == (TOGETHER,):
            return "all together, as no equality of both sides finds them"
        pairs = zip(self.keys, self.right_keys or self.keys, strict=True)
        fields = (next((key for key in pair if not key.startswith(ON)), "") for pair in pairs)
        computed = f"computed key ({child(self.name, 'left-key')})"
        return f"per {', '.join(dict.fromkeys(field or computed for field in fields))}"

    def resolve(self, given: Inputs) -> Self:
        """Where the event times are, and from which side each field is taken."""
        self._check_keys(given)
        timed = (self._timed(given, LEFT), self._timed(given, RIGHT))
        return replace(self, timed_by=timed, columns=tuple(source for _, source in self._fields(given)))

    def check(self, given: Inputs) -> None:
        """The keys are plain values, and the condition is true or false."""
        super().check(given)
        if self.condition is not None:
            if _is_raw(self.condition):
                raise FlowError(
                    f"the condition of a join runs in Python, and ps.sql(...) on Spark alone; write {to_text(self.condition)} without it"
                )
            need_boolean("the condition of a join", self.condition, self.pair_schema(given))

    def _check_keys(self, given: Inputs) -> None:
        if self.how not in self.hows:
            raise FlowError(f"how is one of {', '.join(self.hows)}, got {self.how!r}")
        if not self.keys or len(self.keys) != len(self.right_keys):
            raise FlowError("a join of two streams is on at least one field of each")
        for one, other in zip(self.keys, self.right_keys, strict=True):
            mine, theirs = given[LEFT].schema.field(one), given[RIGHT].schema.field(other)
            check_key(mine)
            if str(mine.type) != str(theirs.type):
                raise SchemaError(
                    f"{_said(one)} is {mine.type} on the left and {_said(other)} is {theirs.type} on the right; cast one"
                )

    def _timed(self, given: Inputs, side: int) -> TimeField:
        found = given[side].event_time
        if found is None:
            port, name = self.inputs[side], ("left", "right")[side]
            raise FlowError(
                f"both streams of a join need event time; {port} on the {name} has none. Give it some before: "
                f".event_time('{port.step}.time', 'ts', lateness='10s')"
            )
        return found

    def _fields(self, given: Inputs) -> list[Sourced]:
        """The fields of the result."""
        return self.pair_fields(given)

    def pair_schema(self, given: Inputs) -> Schema:
        """The fields of both sides, which the condition sees."""
        return self._named_once([f for f, _ in self.pair_fields(given)])

    def pair_fields(self, given: Inputs) -> list[Sourced]:
        """The fields of both sides; one of both is there once."""
        shared = {other for one, other in zip(self.keys, self.right_keys, strict=True) if one == other}
        made = [
            (_maybe(f, self.outer(RIGHT) and f.name not in shared), (f.name, f.name if f.name in shared else ""))
            for f in without_computed(given[LEFT].schema).fields
        ]
        for f in without_computed(given[RIGHT].schema).fields:
            if f.name not in shared:
                named = replace(f, name=f"{self.prefix}{f.name}")
                made.append((_maybe(named, self.outer(LEFT)), ("", f.name)))
        return made

    def _schema(self, given: Inputs, before: Iterable[t.Field] = (), after: Iterable[t.Field] = ()) -> Schema:
        """The schema of the result, with fields of the join's own around it."""
        return self._named_once([*before, *(f for f, _ in self._fields(given)), *after])

    def _named_once(self, made: list[t.Field]) -> Schema:
        seen: set[str] = set()
        for each in made:
            if each.name.lower() in seen:
                raise SchemaError(
                    f"{each.name!r} would appear twice in the result; give prefix='right_', which is put before the fields "
                    f"of {self.inputs[RIGHT].step!r}, or rename one with select first"
                )
            seen.add(each.name.lower())
        return Schema(tuple(made))

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The result, and the late records of each side; what comes too late of a table is counted, for it may be a row that goes."""
        late = [
            Output(without_computed(stream.schema), name, event_time=timed)
            for stream, name, timed in zip(given, (LATE, LATE_RIGHT), self.timed_by, strict=True)
            if stream.changes is None
        ]
        return self.result(given), *late

    def result(self, given: Inputs) -> Output:
        """The main output of the join."""
        raise NotImplementedError

    @property
    def stores(self) -> dict[str, str]:
        """The rows of each side that may still be needed."""
        return {self.store(LEFT): "rows", self.store(RIGHT): "rows"}

    def store(self, side: int) -> str:
        """The store of the rows of a side."""
        return child(self.name, ("left", "right")[side])

    def keys_of(self, input: int) -> tuple[str, ...]:
        """The key fields of a side."""
        return self.right_keys if input == RIGHT else self.keys

    def outer(self, side: int) -> bool:
        """Whether records of a side that match nothing come out too."""
        return self.how in (("left", "full"), ("right", "full"))[side]

    def settings(self) -> Settings:
        """The keys and the kind of join."""
        pairs = zip(self.keys, self.right_keys, strict=True)
        on = ", ".join(one if one == other else f"{one} = {other}" for one, other in pairs)
        condition: Settings = {} if self.condition is None else {"condition": to_text(self.condition)}
        return {"on": on, "how": self.how, **condition}


@dataclass(frozen=True)
class IntervalJoin(StreamJoin):
    """Records of two streams whose times are close to each other.

    A pair matches when the right's time is between `low` and `high` microseconds after the left's, both included; below zero
    is before it. `into` names a field that gets the later time of the two; empty means that there is none.
    """

    low: int = field(kw_only=True)
    high: int = field(kw_only=True)
    into: str = field(default="", kw_only=True)
    kind: ClassVar[str] = "interval_join"

    def check(self, given: Inputs) -> None:
        """The interval begins before it ends."""
        super().check(given)
        if self.low > self.high:
            raise FlowError(f"within begins before it ends, got {signed(self.low)} to {signed(self.high)}")

    def result(self, given: Inputs) -> Output:
        """The fields of both; the event time is that of the side that is always there, or the later one in a field of its own."""
        into = [t.Field(self.into, t.TIMESTAMP)] if self.into else []
        return Output(self._schema(given, after=into), event_time=self._result_time(given))

    def _result_time(self, given: Inputs) -> TimeField | None:
        if self.into:
            return TimeField(self.into)
        if self.how != "right":
            return self.timed_by[LEFT] if self.how != "full" else None
        names = {source[RIGHT]: f.name for f, source in self._fields(given) if source[RIGHT]}
        return replace(self.timed_by[RIGHT], column=names[self.timed_by[RIGHT].column])

    @property
    def hold(self) -> int:
        """A pair comes out with its second record, and a record without a match when no match can come any more."""
        waits = (max(self.high, 0), max(-self.low, 0))
        if self.into:
            return max((waits[side] for side in (LEFT, RIGHT) if self.outer(side)), default=0)
        return waits[RIGHT] if self.how == "right" else waits[LEFT]

    @property
    def keeps(self) -> str:
        """The rows that may still find a match."""
        return (
            f"the rows of both sides {self.per_key}, until event time has passed the interval in which a match may come"
        )

    def settings(self) -> Settings:
        """The keys, the kind of join and the interval."""
        return {**super().settings(), "within": f"{signed(self.low)} to {signed(self.high)}"}


@dataclass(frozen=True)
class AsOfJoin(StreamJoin):
    """Each left record with the one right record that is nearest in time: before it, after it, or on either side.

    `tolerance` is how far away it may be at most; None means any distance, which only makes sense backward.
    """

    direction: str = field(default="backward", kw_only=True)
    tolerance: int | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "asof_join"
    hows: ClassVar[tuple[str, ...]] = ("left", "inner")

    def check(self, given: Inputs) -> None:
        """A record must not have to wait for ever."""
        super().check(given)
        if self.direction not in DIRECTIONS:
            raise FlowError(f"direction is one of {', '.join(DIRECTIONS)}, got {self.direction!r}")
        if self.tolerance is None and self.direction != "backward":
            raise FlowError(
                f"direction={self.direction!r} needs a tolerance such as '10s': without one a record might wait for ever"
            )

    def result(self, given: Inputs) -> Output:
        """The fields of both, with the event time of the left."""
        return Output(self._schema(given), event_time=self.timed_by[LEFT])

    @property
    def last(self) -> str:
        """The store of the newest right record of each key."""
        return child(self.name, "last")

    @property
    def reach(self) -> tuple[int | None, int]:
        """How far before and after a left record the right one may be."""
        before = None if self.tolerance is None else -self.tolerance
        after = self.tolerance or 0
        return (0 if self.direction == "forward" else before, 0 if self.direction == "backward" else after)

    @property
    def stores(self) -> dict[str, str]:
        """The rows that may still be needed; without a tolerance also the newest right record of each key."""
        return super().stores | ({self.last: "values"} if self.tolerance is None else {})

    @property
    def hold(self) -> int:
        """A left record comes out when the right one is sure."""
        return self.reach[1]

    @property
    def keeps(self) -> str:
        """The rows that wait, and those of the right that may still be the nearest."""
        rows = f"the rows of both sides {self.per_key}, until event time has passed those that may be the nearest"
        return rows if self.tolerance is not None else f"{rows}; and the newest right row {self.per_key}, {FOR_EVER}"

    def settings(self) -> Settings:
        """The keys, the direction and the tolerance."""
        tolerance = {} if self.tolerance is None else {"tolerance": shown(self.tolerance)}
        return {**super().settings(), "direction": self.direction, **tolerance}


@dataclass(frozen=True)
class WindowJoin(StreamJoin):
    """Records of two streams that fall into the same window, given when the window closes."""

    window: TimeWindow = field(kw_only=True)
    kind: ClassVar[str] = "window_join"

    def check(self, given: Inputs) -> None:
        """The windows are of a fixed size."""
        super().check(given)
        if not isinstance(self.window, TimeWindow):
            raise FlowError(
                f"the windows of a join are ps.tumbling('10s') or ps.sliding('60s', every='10s'), got {self.window!r}"
            )

    def result(self, given: Inputs) -> Output:
        """The bounds of the window, and the fields of both."""
        bounds = [t.Field(n, t.TIMESTAMP) for n in (WINDOW_START, WINDOW_END)]
        return Output(self._schema(given, before=bounds), event_time=TimeField(WINDOW_END, -1))

    @property
    def keeps(self) -> str:
        """The rows of open windows."""
        return f"the rows of both sides {self.per_key}, until event time passes {WINDOW_END}"

    def settings(self) -> Settings:
        """The keys, the kind of join and the windows."""
        return {**super().settings(), "window": str(self.window)}


@dataclass(frozen=True)
class Rules(Keyed):
    """Keeps the newest rule of each key, and emits all of them in every batch; the first half of a broadcast."""

    logic: BroadcastProcess = field(kw_only=True)
    kind: ClassVar[str] = "rules"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True
    over_tables: ClassVar[bool] = True

    def resolve(self, given: Inputs) -> Self:
        """An instance of the user's class."""
        return replace(self, logic=check_broadcast(self.name, self.logic))

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """Keys and rules, pickled."""
        return (Output(_RULES),)

    @property
    def keeps(self) -> str:
        """The newest rule of each key."""
        return f"one rule {self.per_key}, {FOR_EVER}"


@dataclass(frozen=True)
class WithBroadcast(Node):
    """The user's own class, called for each event with all rules at hand; its second input is the rules."""

    logic: BroadcastProcess
    schema: Schema | None = None
    kind: ClassVar[str] = "with_broadcast"
    python: ClassVar[bool] = True

    def resolve(self, given: Inputs) -> Self:
        """An instance of the user's class."""
        return replace(self, logic=check_broadcast(self.name, self.logic))

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """What `schema` says, or the return annotation of `on_event`."""
        made = self.schema or returned_schema(type(self.logic).on_event, many=True)
        if made is None:
            raise SchemaError(f"{self.where} must say what it emits: schema='user string, n bigint'")
        return (Output(made, event_time=given[0].time_in(made)),)

    def settings(self) -> Settings:
        """The class."""
        return {"class": label(self.logic)}


def without_computed(schema: Schema) -> Schema:
    """A schema without the hidden fields of computed keys."""
    fields = tuple(f for f in schema.fields if not f.name.startswith(ON))
    if len(fields) == len(schema.fields):
        return schema
    return Schema(fields, schema.record, internal=any(f.name.startswith("__") for f in fields))


def _said(key: str) -> str:
    """A key as errors call it."""
    return "the computed key" if key.startswith(ON) else repr(key)


def _is_raw(written: Expr) -> bool:
    return isinstance(written, Raw) or any(map(_is_raw, written.children()))


def _maybe(field: t.Field, missing: bool) -> t.Field:
    return replace(field, nullable=True) if missing else field


def signed(span: int) -> str:
    """A span of time that may be below zero, as people write it.

    >>> signed(-5_000_000), signed(0)
    ('-5s', '0s')
    """
    return f"-{shown(-span)}" if span < 0 else shown(span)
