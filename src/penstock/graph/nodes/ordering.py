"""Steps that put records of a key in relation to each other: without doubles, in order, the best of them, their changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.errors import FlowError, SchemaError
from penstock.graph import types as t
from penstock.graph.duration import shown
from penstock.graph.ids import child
from penstock.graph.nodes.base import (
    COUNT,
    FOR_EVER,
    LATE,
    Changes,
    Inputs,
    Node,
    Output,
    Settings,
    TimeField,
    counted,
    is_plain,
)
from penstock.graph.nodes.keyed import Keyed, check_ttl, forgotten, kept_for
from penstock.graph.order import Term
from penstock.graph.schema import Schema

OP = "op"
"""The field of a changelog that says what happened to a row."""
INSERT, BEFORE, AFTER, DELETE = "insert", "update_before", "update_after", "delete"


def check_terms(terms: Iterable[Term], schema: Schema) -> None:
    """Refuses an order of fields that are not there, or that have parts."""
    for term in terms:
        kind = schema.field(term.column).type
        if isinstance(kind, t.Array | t.Map | t.Struct):
            raise SchemaError(
                f"an order is of plain values; {term.column!r} is {kind}. Take a part of it with with_columns first"
            )


def check_top(n: object, by: tuple[Term, ...], into: str, schema: Schema) -> None:
    """Refuses a top-n without a number or an order, and a rank that has the name of a field.

    Raises:
        FlowError: the number or the order is missing.
        SchemaError: the order is of fields that are not there or not plain, or the rank's name is taken.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise FlowError(f"top needs a whole number of records per key, at least 1, got {n!r}")
    if not by:
        raise FlowError("top needs an order, such as by='score desc'")
    check_terms(by, schema)
    if into in schema:
        raise SchemaError(f"top puts the rank into {into!r}, which is a field already; say into='another name'")


def time_of(node: Node, given: Inputs, what: str) -> TimeField:
    """Where the event time of the input is, which must have one."""
    if given[0].event_time is None:
        raise FlowError(
            f"{what} needs to know when the records of {str(node.inputs[0])!r} happened: say event_time='a field' at the source, or "
            f".event_time('name', 'a field') before it"
        )
    return given[0].event_time


def _with_late(given: Inputs) -> tuple[Output, ...]:
    """Records, and the late ones; what comes too late of a table is counted, for it may be a row that goes."""
    late = () if given[0].changes is not None else (Output(given[0].schema, LATE),)
    return (Output(given[0].schema, event_time=given[0].event_time), *late)


def _seen(within: int | None) -> str:
    """For how long a key that was seen is kept."""
    return FOR_EVER if within is None else f"until event time is {shown(within)} past it"


@dataclass(frozen=True)
class Distinct(Keyed):
    """The first record of each key to come; with `within`, again when so much event time lies between."""

    within: int | None = field(default=None, kw_only=True)
    timed_by: TimeField | None = field(default=None, kw_only=True)
    ttl: int | None = field(default=None, kw_only=True)
    """After how many microseconds of processing time a key that was seen is forgotten; None is never, and so it is with `within`."""
    kind: ClassVar[str] = "distinct"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True
    over_tables: ClassVar[bool] = True

    def resolve(self, given: Inputs) -> Self:
        """Where the event time is, if a span of it is asked for."""
        timed = None if self.within is None else time_of(self, given, "distinct within a time")
        stays = self.within is not None or given[0].changes is not None
        return replace(self, timed_by=timed, ttl=None if stays else self.ttl)

    def check(self, given: Inputs) -> None:
        """The key fits the input, and keys are kept for some time."""
        super().check(given)
        check_ttl(self.ttl)

    @property
    def approximate(self) -> str:
        """Keys that are forgotten come through again."""
        return forgotten(self.ttl)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The same stream, with fewer records; and the late ones, where records can be late. Of a table it is one row for each key.

        Within a time the rows of a table are looked at when event time has passed them: then they are records.
        """
        if given[0].changes is not None and self.within is None:
            return (Output(given[0].schema, changes=Changes(self.keys), event_time=given[0].event_time),)
        return _with_late(given)[: 1 if self.timed_by is None else 2]

    @property
    def keeps(self) -> str:
        """The keys that were seen."""
        until = _seen(self.within) if self.ttl is None else f"for {shown(self.ttl)}"
        return f"one time {self.per_key}, {until}"

    @property
    def stores(self) -> dict[str, str]:
        """The keys that were seen, each with the time of its kept record."""
        return {self.name: "rows"}

    def settings(self) -> Settings:
        """The key and the span."""
        spans = {"within": self.within, "ttl": self.ttl}
        return super().settings() | {name: shown(span) for name, span in spans.items() if span is not None}


@dataclass(frozen=True)
class BufferedStep(Keyed):
    """The base of steps that hold records until event time has passed them, then look at them in order of time."""

    timed_by: TimeField = field(default=TimeField(""), kw_only=True)
    python: ClassVar[bool] = True
    timed: ClassVar[bool] = True
    over_tables: ClassVar[bool] = True

    def resolve(self, given: Inputs) -> Self:
        """Where the event time is."""
        return replace(self, timed_by=time_of(self, given, self.needs_time))

    @property
    def needs_time(self) -> str:
        """What errors say needs event time."""
        return self.kind

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The records, and the late ones."""
        return _with_late(given)

    @property
    def keeps(self) -> str:
        """The records that wait."""
        return "the records that event time has not passed"

    @property
    def stores(self) -> dict[str, str]:
        """The records that wait."""
        return {self.name: "rows"}


@dataclass(frozen=True)
class DistinctInTime(BufferedStep):
    """The earliest record of each key, by event time; with `within`, again when so much event time lies between."""

    within: int | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "distinct"

    @property
    def needs_time(self) -> str:
        """What errors say needs event time."""
        return "distinct with eager=False" if self.within is None else "distinct within a time"

    @property
    def kept(self) -> str:
        """The store of the keys that were seen."""
        return child(self.name, "kept")

    @property
    def keeps(self) -> str:
        """The records that wait, and the keys that were seen."""
        return f"{super().keeps}, and one time {self.per_key}, {_seen(self.within)}"

    @property
    def stores(self) -> dict[str, str]:
        """The records that wait, and the keys that were seen with the time of their kept record."""
        return {self.name: "rows", self.kept: "rows"}

    def settings(self) -> Settings:
        """The key and the span."""
        return super().settings() | ({} if self.within is None else {"within": shown(self.within)})


@dataclass(frozen=True)
class Sort(BufferedStep):
    """The records of each key in order: of event time, or within spans of event time by `by` alone. Without a key, all in one task."""

    by: tuple[Term, ...] = field(default=(), kw_only=True)
    span: int = field(default=0, kw_only=True)
    kind: ClassVar[str] = "sort"

    def resolve(self, given: Inputs) -> Self:
        """Where the event time is; without a key there is one task."""
        made = super().resolve(given)
        return made if made.keys else replace(made, parallelism=1)

    def check(self, given: Inputs) -> None:
        """The order is of plain fields."""
        super().check(given)
        check_terms(self.by, given[0].schema)
        if self.span and not self.by:
            raise FlowError("sort within a span needs an order, such as by='score desc'")

    @property
    def hold(self) -> int:
        """Records of a span are emitted when all of it has passed."""
        return self.span

    def settings(self) -> Settings:
        """The key, the order and the span."""
        key = super().settings() if self.keys else {}
        by: Settings = {"by": ", ".join(map(str, self.by))} if self.by else {}
        return key | by | ({"within": shown(self.span)} if self.span else {})


@dataclass(frozen=True)
class Top(Keyed):
    """The first `n` records of each key in an order, as a table by key and rank whose changes are emitted."""

    n: int = field(kw_only=True)
    by: tuple[Term, ...] = field(kw_only=True)
    into: str = field(default="rank", kw_only=True)
    ttl: int | None = field(default=None, kw_only=True)
    """After how many microseconds of processing time without a change a key starts over; None is never."""
    kind: ClassVar[str] = "top"
    over_tables: ClassVar[bool] = True
    python: ClassVar[bool] = True

    def resolve(self, given: Inputs) -> Self:
        """The rows of a table that changes stay while they are there."""
        return self if given[0].changes is None else replace(self, ttl=None)

    def check(self, given: Inputs) -> None:
        """There is a number and an order, and the rank has a name of its own."""
        super().check(given)
        check_top(self.n, self.by, self.into, given[0].schema)
        check_ttl(self.ttl)

    @property
    def timed(self) -> bool:  # type: ignore[override]  # it depends on the time to live
        """Whether keys are forgotten when time moves."""
        return self.ttl is not None

    @property
    def approximate(self) -> str:
        """Keys that start over."""
        return forgotten(self.ttl)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The fields and the rank, a table by key and rank."""
        schema = Schema((*given[0].schema.fields, t.Field(self.into, t.INT)))
        return (Output(schema, changes=Changes((*self.keys, self.into), given[0].changes is not None)),)

    @property
    def keeps(self) -> str:
        """The rows that are shown; of records no other can come back."""
        return f"{self.n} {'row' if self.n == 1 else 'rows'} {self.per_key}, {kept_for(self.ttl)}"

    def settings(self) -> Settings:
        """The key, how many, and the order."""
        ttl: Settings = {} if self.ttl is None else {"ttl": shown(self.ttl)}
        return {**super().settings(), "n": self.n, "by": ", ".join(map(str, self.by)), **ttl}


@dataclass(frozen=True)
class Changelog(Keyed):
    """The changes of a table as records: each row with what happened to it. `before` says whether old rows are emitted too.

    The key is that of the table; without one a row comes or goes by itself.
    """

    before: bool = field(default=True, kw_only=True)
    by_row: bool = field(default=False, kw_only=True)
    """Whether the table has no proved key."""
    kind: ClassVar[str] = "changelog"
    python: ClassVar[bool] = True
    over_tables: ClassVar[bool] = True

    def resolve(self, given: Inputs) -> Self:
        """The key of the table; the plain ones of its fields where it has none."""
        changes = given[0].changes
        if changes is None:
            if COUNT in given[0].schema:
                return self
            raise FlowError(
                f"changelog emits the changes of a table (count, sum, aggregate, reduce, top ...); {self.inputs[0]} emits "
                f"records of their own"
            )
        if changes.key is not None:
            return replace(self, keys=changes.key, by_row=False)
        plain = tuple(f.name for f in given[0].schema.fields if is_plain(f))
        return replace(self, keys=plain, by_row=True, parallelism=self.parallelism if plain else 1)

    def check(self, given: Inputs) -> None:
        """Rows may have any fields."""

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """What happened, and the row."""
        if OP in given[0].schema:
            raise SchemaError(f"changelog adds a field {OP!r}, which is there already; rename it with select first")
        fields = [f for f in given[0].schema.fields if f.name != COUNT]
        return (Output(Schema((t.Field(OP, t.STRING), *fields))),)

    @property
    def stores(self) -> dict[str, str]:
        """Nothing: a batch brings the old rows too."""
        return {}

    def settings(self) -> Settings:
        """The key, and whether old rows are emitted."""
        key = {"key": "the whole row"} if self.by_row else super().settings()
        return {**key, "before": self.before}


@dataclass(frozen=True)
class AsTable(Keyed):
    """A table from the changes of one: the last of each key in a batch counts. `op` is the field that says what happened."""

    op: str = field(default=OP, kw_only=True)
    counted: bool = field(default=False, kw_only=True)
    """Whether each row has a count, below zero for a key that is gone; the compiler says so."""
    kind: ClassVar[str] = "as_table"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """What happened is a text."""
        super().check(given)
        kind = given[0].schema.field(self.op).type
        if kind != t.STRING:
            raise SchemaError(f"{self.op!r} says what happened, as a text; it is {kind}")

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The table by its key."""
        schema = Schema(tuple(f for f in given[0].schema.fields if f.name != self.op))
        timed = given[0].time_in(schema)
        if self.counted:
            return (Output(counted(schema), event_time=timed),)
        return (Output(schema, changes=Changes(self.keys), event_time=timed),)

    @property
    def stores(self) -> dict[str, str]:
        """Nothing: the table is what comes out."""
        return {}

    def settings(self) -> Settings:
        """The key, and the field that says what happened."""
        return {**super().settings(), "op": self.op}
