"""Steps over tables that change: rows with signed counts come in, rows with signed counts come out.

A change is a multiset of rows: the hidden field `__count` says how many of a row are added (above zero) or taken back (below zero).
The compiler puts these steps in where a step of the user's reads a table; a join of tables is the user's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.errors import FlowError
from penstock.graph import types as t
from penstock.graph.duration import shown
from penstock.graph.nodes.base import (
    COUNT,
    FOR_EVER,
    LATE,
    OUT,
    Changes,
    Inputs,
    Node,
    Output,
    Settings,
    TimeField,
    counted,
)
from penstock.graph.nodes.join import LEFT, RIGHT, Sourced, StreamJoin, without_computed
from penstock.graph.nodes.keyed import AggregateStep, Fold, Keyed, Reduce
from penstock.graph.nodes.ordering import BufferedStep
from penstock.graph.nodes.window import Window
from penstock.graph.order import Term
from penstock.graph.schema import Schema
from penstock.graph.windows import SessionWindow

JOINS = ("inner", "left", "right", "full", "semi", "anti")
"""The kinds of joins of tables; semi and anti keep the rows of the left that have a match, or have none."""
OPERATION = "__op"
"""The hidden field of rows on their way to a sink that can remove rows: `upsert` or `delete`."""
UPSERT, DELETE = "upsert", "delete"


def visible(schema: Schema) -> Schema:
    """A schema without the hidden count."""
    if COUNT not in schema:
        return schema
    fields = tuple(f for f in schema.fields if f.name != COUNT)
    return Schema(fields, schema.record, internal=any(f.name.startswith("__") for f in fields))


@dataclass(frozen=True)
class AggregateChanges(AggregateStep):
    """Aggregates over a table that changes: what a row added is taken back when the row goes. A group without rows goes too."""

    always: bool = field(default=False, kw_only=True)
    """Whether a total over no rows at all is a row too, when the input is over."""
    kind: ClassVar[str] = "aggregate"
    python: ClassVar[bool] = True

    @property
    def carried_key(self) -> tuple[str, ...]:
        """The key, which every result has."""
        return self.keys

    @property
    def keeps(self) -> str:
        """A row of sums, or the values of what cannot be subtracted."""
        ordered = [
            a.name
            for a in self.aggregates
            if (any(p.merge != "add" for p in a.recipe.parts) if a.own is None else not a.own.retracts)
        ]
        values = f" and all values for {', '.join(ordered)}" if ordered else ""
        return f"one row{values} {self.per_key}, while it has rows"

    def resolve(self, given: Inputs) -> Self:
        """The aggregates over the fields of the input."""
        return self.over(given)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The key and the results, as signed rows."""
        return (Output(counted(Schema((*self.key_fields(given), *self.aggregate_fields()), internal=True))),)

    def settings(self) -> Settings:
        """The key and the aggregates by name."""
        return {**super().settings(), **{a.name: str(a) for a in self.aggregates}}


@dataclass(frozen=True)
class TopChanges(Keyed):
    """The first `n` rows of each key of a table that changes; `into` is the field of the rank, empty when there is none."""

    n: int = field(kw_only=True)
    by: tuple[Term, ...] = field(kw_only=True)
    into: str = field(default="", kw_only=True)
    kind: ClassVar[str] = "top"
    python: ClassVar[bool] = True

    @property
    def carried_key(self) -> tuple[str, ...]:
        """The key, which every row has."""
        return self.keys

    @property
    def keeps(self) -> str:
        """All rows: any of them may be among the first when others go."""
        return f"all rows per {', '.join(self.keys)}, while they are there"

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The fields and the rank, as signed rows."""
        rank = (t.Field(self.into, t.INT),) if self.into else ()
        schema = Schema((*visible(given[0].schema).fields, *rank), internal=True)
        return (Output(counted(schema), event_time=given[0].event_time),)

    def settings(self) -> Settings:
        """The key, how many, and the order."""
        return {**super().settings(), "n": self.n, "by": ", ".join(map(str, self.by))}


@dataclass(frozen=True)
class FoldChanges(Keyed):
    """A reduce or a fold over a table: what its function makes of all rows of a key, in the order of their values."""

    of: Reduce | Fold = field(kw_only=True)
    python: ClassVar[bool] = True

    @property
    def kind(self) -> str:  # type: ignore[override]  # it is what the user's step is
        """What the step is."""
        return self.of.kind

    @property
    def keeps(self) -> str:
        """All rows, and what became of them: a function cannot take a row back."""
        return f"all rows per {', '.join(self.keys)} and the result, while they are there"

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """What the step emits, as signed rows."""
        (made,) = replace(self.of, outputs=()).bound((Output(visible(given[0].schema)),)).outputs
        return (Output(counted(made.schema)),)

    def settings(self) -> Settings:
        """The options of the step."""
        return self.of.settings()


@dataclass(frozen=True)
class WindowChanges(Keyed):
    """Windows over a table: a row that goes is taken out of the windows that are open; one of windows that are over is late.

    What comes out are records where a window is emitted once, and rows that replace those of their key and window elsewhere.
    """

    of: Window = field(kw_only=True)
    kind: ClassVar[str] = "window"
    python: ClassVar[bool] = True
    timed: ClassVar[bool] = True

    @property
    def counted(self) -> bool:
        """Whether each row has a count, below zero for a window that is gone."""
        return self.of.windows.changing

    @property
    def hold(self) -> int:
        """Corrections may come as late as late records may."""
        return self.of.lateness

    @property
    def keeps(self) -> str:
        """The rows of open windows, or what their aggregates need."""
        rows = "the rows of open windows" if self.keeps_rows else "what the aggregates of each open window need"
        return f"{rows}, per {', '.join(self.keys)}"

    @property
    def keeps_rows(self) -> bool:
        """Whether rows are kept: sessions fall apart when a row goes, and a function or a rank cannot take one back."""
        of = self.of
        return isinstance(of.spec, SessionWindow) or of.function is not None or of.ranked is not None

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The key, the bounds of the window and the results."""
        main = self.of.output()
        schema = counted(main.schema) if self.counted else main.schema
        return (Output(schema, OUT, None, main.event_time),)

    def settings(self) -> Settings:
        """The options of the step."""
        return self.of.settings()


@dataclass(frozen=True)
class Settle(BufferedStep):
    """Rows of a table as records, when event time has passed them: none of them can come or go any more then.

    What comes or goes after that is late. `keys` are fields by which equal rows meet.
    """

    kind: ClassVar[str] = "settle"

    def resolve(self, given: Inputs) -> Self:
        """Where the event time is, the compiler says; without a key there is one task."""
        return self if self.keys else replace(self, parallelism=1)

    def check(self, given: Inputs) -> None:
        """Rows may have any fields."""

    @property
    def keeps(self) -> str:
        """What event time has not passed."""
        return "the changes of rows that event time has not passed"

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The rows, and the late changes."""
        return Output(visible(given[0].schema), event_time=self.timed_by), Output(given[0].schema, LATE)


@dataclass(frozen=True)
class TableJoin(StreamJoin):
    """The rows of two streams that share their key, whenever they come: each side is kept.

    Streams of records are tables that only grow. `single` says of each side whether it is proved to have at most one row for a key.
    """

    single: tuple[bool, bool] = field(default=(False, False), kw_only=True)
    counted: bool = field(default=False, kw_only=True)
    """Whether the result comes as signed rows; the compiler says so."""
    ttl: int | None = field(default=None, kw_only=True)
    """After how many microseconds of processing time without a change the rows of a key are forgotten; None is never."""
    kind: ClassVar[str] = "table_join"
    hows: ClassVar[tuple[str, ...]] = JOINS

    def resolve(self, given: Inputs) -> Self:
        """From which side each field is taken, and which side has one row for a key."""
        seen = self._visible(given)
        self._check_keys(seen)
        made = replace(self, columns=tuple(source for _, source in self._fields(seen)))
        if any(COUNT in stream.schema for stream in given):
            return made
        return replace(made, single=(_is_single(given[LEFT], self.keys), _is_single(given[RIGHT], self.right_keys)))

    def check(self, given: Inputs) -> None:
        """The keys and the condition fit both sides, and rows live for some time."""
        super().check(self._visible(given))
        if self.ttl is not None and self.ttl <= 0:
            raise FlowError(f"ttl is for how long rows are kept, such as '1h', got {shown(self.ttl)}")

    def _fields(self, given: Inputs) -> list[Sourced]:
        if self.how in ("semi", "anti"):
            return [(f, (f.name, "")) for f in without_computed(given[LEFT].schema).fields]
        return super()._fields(given)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The fields of both; of a semi or anti join those of the left."""
        schema = self._schema(self._visible(given))
        return (Output(counted(schema)) if self.counted else Output(schema, changes=self._changes(given)),)

    def _changes(self, given: Inputs) -> Changes | None:
        """Pairs of records are there for good; in every other case rows may go."""
        if self.how in ("inner", "semi") and not any(stream.changes for stream in given):
            return None
        return Changes(self._key(given))

    def _key(self, given: Inputs) -> tuple[str, ...] | None:
        """The key of the left, where a row of it has at most one match."""
        alone = self.how in ("semi", "anti") or (self.how in ("inner", "left") and self.single[RIGHT])
        return given[LEFT].updates if alone else None

    @staticmethod
    def _visible(given: Inputs) -> Inputs:
        return tuple(replace(stream, schema=visible(stream.schema)) for stream in given)

    @property
    def timed(self) -> bool:  # type: ignore[override]  # it depends on the time to live
        """Whether rows are forgotten when time moves."""
        return self.ttl is not None

    @property
    def carried_key(self) -> tuple[str, ...]:
        """The key of the left, where every row of the result has it."""
        return self.keys if self.keys == self.right_keys or not self.outer(RIGHT) else ()

    @property
    def approximate(self) -> str:
        """Rows that were forgotten find no match any more."""
        return "" if self.ttl is None else f"what comes after {shown(self.ttl)} without a change finds no match (ttl)"

    @property
    def keeps(self) -> str:
        """Both sides."""
        sides = f"the rows of both sides {self.per_key}"
        if self.ttl is None:
            return f"{sides}: of tables while they are there, records {FOR_EVER}"
        return f"{sides}, until none has come or gone for {shown(self.ttl)}"

    def settings(self) -> Settings:
        """The keys, the kind of join, the condition and the time to live."""
        return super().settings() | ({} if self.ttl is None else {"ttl": shown(self.ttl)})

    @property
    def stores(self) -> dict[str, str]:
        """The rows of both sides, by key."""
        return {self.name: "values"}


@dataclass(frozen=True)
class Answers(Keyed):
    """What the rows of a table found in a static table that is re-read: a row that goes takes back what it found when it was added.

    Its inputs are the added rows with what they have found, and the changes of the table.
    """

    kind: ClassVar[str] = "answers"
    python: ClassVar[bool] = True

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The rows with what they found, as signed rows."""
        return (Output(counted(visible(given[0].schema)), event_time=given[0].event_time),)

    @property
    def keeps(self) -> str:
        """What rows found."""
        return f"what the row of each {', '.join(self.keys)} has found, while it is there"


def _is_single(stream: Output, keys: tuple[str, ...]) -> bool:
    """Whether a table has at most one row for a join key: its own key is part of that."""
    return stream.updates is not None and set(stream.updates) <= set(keys)


@dataclass(frozen=True)
class Retract(Keyed):
    """Turns rows that replace those of their key into signed rows: the row that goes, and the row that comes.

    `timed_by` is where the event time is of rows that do not change any more when event time has passed them, such as those of windows;
    they are forgotten then.
    """

    timed_by: TimeField | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "retract"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True
    over_tables: ClassVar[bool] = True

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """Signed rows."""
        return (Output(counted(visible(given[0].schema)), event_time=given[0].event_time),)

    @property
    def carried_key(self) -> tuple[str, ...]:
        """The key, which every row has."""
        return self.keys

    @property
    def keeps(self) -> str:
        """The last row of each key."""
        until = "while it is there" if self.timed_by is None else "until event time has passed it"
        return f"the last row per {', '.join(self.keys)}, {until}"

    @property
    def timed(self) -> bool:  # type: ignore[override]  # it depends on the rows
        """Whether rows are forgotten when time moves."""
        return self.timed_by is not None


@dataclass(frozen=True)
class Upserts(Keyed):
    """Turns signed rows into one row for each key that changed: the row that stands, or the one that is gone."""

    kind: ClassVar[str] = "upserts"
    python: ClassVar[bool] = True

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The row, and what happened to its key."""
        fields = (*visible(given[0].schema).fields, t.Field(OPERATION, t.STRING))
        return (Output(Schema(fields, internal=True)),)

    @property
    def stores(self) -> dict[str, str]:
        """Nothing: a batch brings all that there is to know."""
        return {}


@dataclass(frozen=True)
class Consolidate(Upserts):
    """Signed rows with equal ones added up; `keys` are the fields by which equal rows meet."""

    kind: ClassVar[str] = "consolidate"

    def check(self, given: Inputs) -> None:
        """Rows may have any fields."""

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """Signed rows."""
        return (Output(counted(visible(given[0].schema))),)


@dataclass(frozen=True)
class ConsolidateEarly(Node):
    """Signed rows of which equal ones may be added up before they move: in a Python pass they are, natively they go on as they are."""

    kind: ClassVar[str] = "consolidate"

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The rows of the input."""
        return (given[0],)


@dataclass(frozen=True)
class SignedStep(Node):
    """A step of the user's that looks at one row at a time, over signed rows: what it makes of a row has the row's count."""

    of: Node
    python: ClassVar[bool] = True

    @property
    def kind(self) -> str:  # type: ignore[override]  # it is what the user's step is
        """What the step is."""
        return self.of.kind

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The outputs of the step, with the count."""
        seen = (Output(visible(given[0].schema), OUT, None, given[0].event_time),)
        made = replace(self.of, outputs=()).bound(seen)
        return tuple(Output(counted(o.schema), o.name, None, o.event_time) for o in made.outputs)

    def settings(self) -> Settings:
        """The options of the step."""
        return self.of.settings()
