"""Steps over tables that change: rows with signed counts come in, rows with signed counts come out.

A change is a multiset of rows: the hidden field `__count` says how many of a row are added (above zero) or taken back (below zero).
The compiler puts these steps in where a step of the user's reads a table; a join of tables is the user's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.graph import types as t
from penstock.graph.nodes.base import COUNT, OUT, Changes, Inputs, Node, Output, Settings, Timed, counted
from penstock.graph.nodes.join import LEFT, RIGHT, StreamJoin
from penstock.graph.nodes.keyed import Aggregating, Keyed
from penstock.graph.order import Term
from penstock.graph.schema import Schema

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
class AggregateChanges(Aggregating):
    """Aggregates over a table that changes: what a row added is taken back when the row goes. A group without rows goes too."""

    kind: ClassVar[str] = "aggregate"
    python: ClassVar[bool] = True

    @property
    def keeps(self) -> str:
        """A row of sums, or the values of what cannot be subtracted."""
        ordered = [
            a.name for a in self.aggregates if a.own is not None or any(p.merge != "add" for p in a.recipe.parts)
        ]
        values = f" and all values for {', '.join(ordered)}" if ordered else ""
        return f"one row{values} per {', '.join(self.keys)}, while it has rows"

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
    def keeps(self) -> str:
        """All rows: any of them may be among the first when others go."""
        return f"all rows per {', '.join(self.keys)}, while they are there"

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The fields and the rank, as signed rows."""
        rank = (t.Field(self.into, t.INT),) if self.into else ()
        return (Output(counted(Schema((*visible(given[0].schema).fields, *rank), internal=True))),)

    def settings(self) -> Settings:
        """The key, how many, and the order."""
        return {**super().settings(), "n": self.n, "by": ", ".join(map(str, self.by))}


@dataclass(frozen=True)
class TableJoin(StreamJoin):
    """The rows of two streams that share their key, whenever they come: each side is kept.

    Streams of records are tables that only grow. `single` says of each side whether it is proved to have at most one row for a key.
    """

    single: tuple[bool, bool] = field(default=(False, False), kw_only=True)
    counted: bool = field(default=False, kw_only=True)
    """Whether the result comes as signed rows; the compiler says so."""
    kind: ClassVar[str] = "table_join"
    timed: ClassVar[bool] = False
    over_tables: ClassVar[bool] = True
    hows: ClassVar[tuple[str, ...]] = JOINS

    def resolve(self, given: Inputs) -> Self:
        """From which side each field is taken, and which side has one row for a key."""
        seen = self._visible(given)
        self._check_keys(seen)
        made = replace(self, columns=tuple(source for _, source in self._fields(seen)))
        if any(COUNT in stream.schema for stream in given):
            return made
        return replace(made, single=(_is_single(given[LEFT], self.keys), _is_single(given[RIGHT], self.right_keys)))

    def _fields(self, given: Inputs) -> list[tuple[t.Field, tuple[str, str]]]:
        if self.how in ("semi", "anti"):
            return [(f, (f.name, "")) for f in given[LEFT].schema.fields]
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
    def keeps(self) -> str:
        """Both sides."""
        return f"the rows of both sides per {', '.join(self.keys)}: of tables while they are there, records for ever"

    @property
    def stores(self) -> dict[str, str]:
        """The rows of both sides, by key."""
        return {self.name: "values"}


def _is_single(stream: Output, keys: tuple[str, ...]) -> bool:
    """Whether a table has at most one row for a join key: its own key is part of that."""
    return stream.updates is not None and set(stream.updates) <= set(keys)


@dataclass(frozen=True)
class Retract(Keyed):
    """Turns rows that replace those of their key into signed rows: the row that goes, and the row that comes.

    `timed_by` is where the event time is of rows that do not change any more when event time has passed them, such as those of windows;
    they are forgotten then.
    """

    timed_by: Timed | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "retract"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True
    over_tables: ClassVar[bool] = True

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """Signed rows."""
        return (Output(counted(visible(given[0].schema)), event_time=given[0].event_time),)

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
class Signed(Node):
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
        return tuple(Output(counted(o.schema), o.name) for o in made.outputs)

    def settings(self) -> Settings:
        """The options of the step."""
        return self.of.settings()
