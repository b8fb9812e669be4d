"""Rows seen over their neighbours, as SQL's OVER has it: aggregates over a frame of rows around each row, ranks, earlier and later rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.errors import ExpressionError, FlowError, SchemaError
from penstock.graph import types as t
from penstock.graph.aggregates.aggregate import Aggregate
from penstock.graph.aggregates.calls import AggregateCall
from penstock.graph.duration import shown
from penstock.graph.expr import Call, Expr, Literal, to_text, type_of_expr
from penstock.graph.ids import child
from penstock.graph.nodes.base import FOR_EVER, LATE, Changes, Inputs, Output, Settings, TimeField, counted
from penstock.graph.nodes.changes import visible
from penstock.graph.nodes.keyed import Keyed
from penstock.graph.nodes.ordering import check_terms, time_of
from penstock.graph.order import Term
from penstock.graph.schema import Schema

ROWS, RANGE = "rows", "range"
RANKS = ("row_number", "rank", "dense_rank")
ENDS = {"first": "first_value", "first_value": "first_value", "last": "last_value", "last_value": "last_value"}
"""Functions that pick a row of the frame, by the names that users write."""
STEPS = ("lag", "lead")
SHARES = {"ntile": t.BIGINT, "percent_rank": t.DOUBLE, "cume_dist": t.DOUBLE}
"""Functions that need to know how many rows a partition has, and their types."""
NTH = "nth_value"


@dataclass(frozen=True)
class Frame:
    """Which rows around a row are seen: so many rows, or those whose order is so near. Rows of the same order are near to each other.

    Args:
        unit: "rows" or "range".
        before: how many rows, or how far, before the row; None means all. Below zero it begins so far after the row.
        after: the same after it; None means all. Below zero it ends so far before the row.
    """

    unit: str = RANGE
    before: int | None = None
    after: int | None = 0

    def __post_init__(self) -> None:
        if self.unit not in (ROWS, RANGE):
            raise FlowError(f"expected a frame of 'rows' or of a 'range', got {self.unit!r}")
        if self.before is not None and self.after is not None and self.before + self.after < 0:
            raise FlowError(f"expected a frame that ends after it begins, got {self}")

    def __str__(self) -> str:
        return self.text(str)

    def text(self, shown: Callable[[int], str]) -> str:
        """The frame, with distances as a function writes them."""
        low, high = _bound(self.before, PRECEDING, shown), _bound(self.after, FOLLOWING, shown)
        return f"{self.unit} between {low} and {high}"

    @property
    def is_running(self) -> bool:
        """Whether it is all rows up to the current one."""
        return self.before is None and self.after == 0

    @property
    def has_distance(self) -> bool:
        """Whether it is a range that ends a distance away."""
        return self.unit == RANGE and bool(self.before or self.after)


PRECEDING, FOLLOWING = "preceding", "following"


def _bound(distance: int | None, side: str, shown: Callable[[int], str]) -> str:
    if distance is None:
        return f"unbounded {side}"
    if distance < 0:
        return f"{shown(-distance)} {FOLLOWING if side == PRECEDING else PRECEDING}"
    return "current row" if not distance else f"{shown(distance)} {side}"


@dataclass(frozen=True)
class OverCall:
    """A function over the frame of a row, for a field of the result.

    Args:
        name: the field.
        function: "aggregate", one of `RANKS` or `SHARES`, "first_value", "last_value", "nth_value", "lag" or "lead".
        type: the type of the field.
        argument: what is picked of a row.
        offset: how many rows back or on; which row of the frame; how many parts.
        default: what stands where there is no such row.
        aggregate: the aggregate, if it is one.
    """

    name: str
    function: str
    type: t.DataType
    argument: Expr | None = None
    offset: int = 0
    default: Expr | None = None
    aggregate: Aggregate | None = None


def over_call(given: AggregateCall, schema: Schema, time: str) -> OverCall:
    """The function over the fields of a stream.

    Raises:
        ExpressionError: there is no such function, or its arguments do not fit it.
    """
    call = given.call
    written = call.name.lower() if isinstance(call, Call) else ""
    if not isinstance(call, Call) or written not in (*RANKS, *ENDS, *STEPS, *SHARES, NTH):
        made = given.over(schema, time)
        return OverCall(given.name, "aggregate", made.type, aggregate=made)
    if call.condition is not None or call.distinct:
        raise ExpressionError(f"{given.name!r}: expected {written} without DISTINCT and FILTER, got {to_text(call)}")
    if written in RANKS:
        _check_arguments(given.name, call, 0, 0)
        return OverCall(given.name, written, t.BIGINT)
    if written in SHARES:
        _check_arguments(given.name, call, *((1, 1) if written == "ntile" else (0, 0)))
        parts = _number(given.name, written, call.args[0]) if call.args else 0
        return OverCall(given.name, written, SHARES[written], offset=parts)
    least, most = (2, 2) if written == NTH else (1, 3 if written in STEPS else 1)
    _check_arguments(given.name, call, least, most)
    kind = type_of_expr(call.args[0], schema)
    if written in ENDS:
        return OverCall(given.name, ENDS[written], kind, call.args[0])
    if written == NTH:
        return OverCall(given.name, NTH, kind, call.args[0], _number(given.name, written, call.args[1]))
    return _step(given.name, written, call, kind, schema)


def _number(name: str, function: str, given: Expr) -> int:
    """How many parts, or which row: 1 or more."""
    if not isinstance(given, Literal) or not isinstance(given.value, int) or given.value < 1:
        raise ExpressionError(f"{name!r}: {function} expects a whole number, 1 or more, got {to_text(given)}")
    return given.value


def needs_all(calls: Iterable[AggregateCall], frame: Frame | None) -> bool:
    """Whether a row can be answered only when all rows of its partition are known, or kept."""
    names = {call.call.name.lower() for call in calls if isinstance(call.call, Call)}
    return bool(names & {*SHARES}) or (NTH in names and (frame is None or frame.before is None))


def _step(name: str, function: str, call: Call, kind: t.DataType, schema: Schema) -> OverCall:
    """Lag or lead: what is picked, how many rows away, and what else."""
    offset = call.args[1] if len(call.args) > 1 else Literal(1, t.INT)
    if not isinstance(offset, Literal) or not isinstance(offset.value, int) or offset.value < 0:
        raise ExpressionError(f"{name!r}: {function} expects a number of rows, 0 or more, got {to_text(offset)}")
    default = call.args[2] if len(call.args) > 2 else None
    if default is not None and type_of_expr(default, schema) not in (kind, t.NULL):
        found = type_of_expr(default, schema)
        raise ExpressionError(
            f"{name!r}: the default of {function} is {found}, and {to_text(call.args[0])} is {kind}; cast one"
        )
    return OverCall(name, function, kind, call.args[0], offset.value, default)


def _check_arguments(name: str, call: Call, least: int, most: int) -> None:
    if call.star or not least <= len(call.args) <= most:
        wanted = str(most) if least == most else f"{least} to {most}"
        raise ExpressionError(f"{name!r}: {call.name.lower()} expects {wanted} arguments, got {to_text(call)}")


@dataclass(frozen=True)
class OverStep(Keyed):
    """What both kinds have: the functions, the frame, and the order; without a key all rows are one partition, in one task."""

    calls: tuple[AggregateCall, ...] = field(kw_only=True)
    frame: Frame = field(default=Frame(), kw_only=True)
    by: tuple[Term, ...] = field(default=(), kw_only=True)
    kind: ClassVar[str] = "over"
    python: ClassVar[bool] = True

    def resolve(self, given: Inputs) -> Self:
        """Without a key there is one task."""
        return self if self.keys else replace(self, parallelism=1)

    def functions(self, given: Schema) -> tuple[OverCall, ...]:
        """The functions over the fields of the input."""
        schema = visible(given)
        return tuple(over_call(call, schema, self.time_column) for call in self.calls)

    @property
    def time_column(self) -> str:
        """The field of the event time, by which aggregates such as collect_list go; empty where there is none."""
        return ""

    def check(self, given: Inputs) -> None:
        """The order is of plain fields, and the functions have names of their own."""
        super().check(given)
        check_terms(self.by, given[0].schema)
        if not self.calls:
            raise FlowError("over expects functions by name, such as total='sum(amount)'")
        taken = next((call.name for call in self.calls if call.name in given[0].schema), None)
        if taken:
            raise SchemaError(f"over adds a field {taken!r}, which is there already; name it otherwise")

    def with_results(self, given: Schema) -> Schema:
        """The fields of a row, and the results."""
        made = visible(given)
        return Schema((*made.fields, *(t.Field(c.name, c.type) for c in self.functions(given))), internal=made.internal)

    def settings(self) -> Settings:
        """The key, the order, the frame and the functions."""
        key = super().settings() if self.keys else {}
        by: Settings = {"by": ", ".join(map(str, self.by))} if self.by else {}
        return {**key, **by, "frame": self._frame, **{call.name: str(call) for call in self.calls}}

    @property
    def _frame(self) -> str:
        return str(self.frame)


@dataclass(frozen=True)
class Over(OverStep):
    """Rows over their neighbours in the order of event time, each emitted once: when event time has passed its frame. Or in the order of arrival."""

    arrival: bool = field(default=False, kw_only=True)
    """Whether rows go in the order in which they come, and are emitted at once."""
    timed_by: TimeField | None = field(default=None, kw_only=True)
    timed: ClassVar[bool] = True
    over_records: ClassVar[str] = "each of its rows is emitted once"

    def resolve(self, given: Inputs) -> Self:
        """Where the event time is."""
        made = super().resolve(given)
        return replace(made, timed_by=None if self.arrival else time_of(self, given, "over"))

    def check(self, given: Inputs) -> None:
        """A row's frame is complete some time."""
        super().check(given)
        if needs_all(self.calls, self.frame):
            raise FlowError(
                "ntile, percent_rank, cume_dist, and nth_value from the first row on, need all rows of a partition; "
                "order by another field, so that the answer changes with later rows"
            )
        if self.frame.after is None or (self.frame.before is None and self.frame.after):
            raise FlowError(
                f"expected a frame that ends with the current row, or one with an end on both sides, got {self.frame}: a row would wait for all "
                f"later ones. Over a table (order by another field) its answer changes with them instead"
            )
        if self.arrival and self.by:
            raise FlowError("rows in the order of arrival have no further order; leave out by")

    @property
    def time_column(self) -> str:
        """The field of the event time."""
        return "" if self.timed_by is None else self.timed_by.column

    def ahead(self, schema: Schema) -> int:
        """How many later rows a row waits for."""
        leads = (c.offset for c in self.functions(schema) if c.function == "lead")
        return max((self.frame.after or 0) if self.frame.unit == ROWS else 0, *leads, 0)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The rows with the results, and the late ones. A row that waits for a number of later ones may come at any time, and has no event time."""
        schema = given[0].schema
        timed = None if self.arrival and given[0].event_time is None else given[0].event_time
        main = Output(self.with_results(schema), event_time=None if self.ahead(schema) else timed)
        return (main,) if self.arrival else (main, Output(schema, LATE))

    @property
    def hold(self) -> int:
        """A row waits for those of its range."""
        return max(self.frame.after or 0, 0) if self.frame.unit == RANGE and not self.arrival else 0

    @property
    def ordered(self) -> bool:  # type: ignore[override]  # it depends on the order
        """Whether the order of arrival counts."""
        return self.arrival

    @property
    def waiting(self) -> str:
        """The store of the rows that event time has not passed yet."""
        return child(self.name, "waiting")

    @property
    def stores(self) -> dict[str, str]:
        """Of each key what later rows see; and the rows that event time has not passed yet."""
        return {self.name: "values"} | ({} if self.arrival else {self.waiting: "rows"})

    @property
    def keeps(self) -> str:
        """The rows of open frames: those of a span of event time go with it, a number of rows stays."""
        per = f" per {', '.join(self.keys)}" if self.keys else ""
        what = "one row of sums" if self.frame.before is None else "the rows of open frames"
        return f"{what}{per}, {self._kept_for}"

    @property
    def _kept_for(self) -> str:
        names = {c.call.name.lower() for c in self.calls if isinstance(c.call, Call)}
        if (
            names & {"row_number", "rank", "dense_rank"}
            or not self.frame.before
            or self.frame.unit == ROWS
            or self.arrival
        ):
            return FOR_EVER
        return f"until event time is {shown(int(self.frame.before))} past them"

    @property
    def _frame(self) -> str:
        return str(self.frame) if self.frame.unit == ROWS else self.frame.text(shown)

    def settings(self) -> Settings:
        """The key, the order, the frame and the functions."""
        return {**super().settings(), **({"order": "of arrival"} if self.arrival else {})}


@dataclass(frozen=True)
class OverTable(OverStep):
    """Rows over their neighbours in any order, as a table: when rows come or go, those whose frame changed change too."""

    counted: bool = field(default=False, kw_only=True)
    """Whether the result comes as signed rows; the compiler says so."""
    over_tables: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """A range is of one number or time."""
        super().check(given)
        is_measured = len(self.by) == 1 and _measured(given[0].schema.field(self.by[0].column).type)
        if self.frame.has_distance and not is_measured:
            raise FlowError(
                f"expected an order by one number or time for {self.frame}, got {', '.join(map(str, self.by)) or 'no order'}; or say so many rows"
            )

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The rows with the results: a table, by the key of the input where that is proved."""
        schema = self.with_results(given[0].schema)
        if self.counted:
            return (Output(counted(schema)),)
        return (Output(schema, changes=Changes(given[0].updates), event_time=given[0].event_time),)

    @property
    def carried_key(self) -> tuple[str, ...]:
        """The key, which every row has."""
        return self.keys

    @property
    def keeps(self) -> str:
        """All rows."""
        per = f" per {', '.join(self.keys)}" if self.keys else ""
        return f"all rows{per}, while they are there"


def _measured(kind: t.DataType) -> bool:
    return t.is_numeric(kind) or kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ, t.DATE)
