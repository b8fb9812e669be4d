"""Steps that keep something for each key: aggregates, reduce, and the user's own classes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.errors import FlowError, SchemaError
from penstock.graph import types as t
from penstock.graph.aggregates.aggregate import ROWS, Aggregate
from penstock.graph.aggregates.calls import SKETCHES, AggregateCall
from penstock.graph.aggregates.results import Results, check_results, split_calls
from penstock.graph.duration import shown
from penstock.graph.expr import Column
from penstock.graph.ids import child
from penstock.graph.logic.capture import check_function
from penstock.graph.logic.process import Process as ProcessLogic
from penstock.graph.logic.process import check_logic, minds_time
from penstock.graph.logic.topology.elements import element_of
from penstock.graph.nodes.base import (
    ALL,
    FOR_EVER,
    ON,
    Changes,
    Inputs,
    Node,
    Output,
    Port,
    Settings,
    TimeField,
    check_key,
    counted,
    has_hidden,
    label,
)
from penstock.graph.nodes.stateless import RowFunction, Select, Sides, outputs_with_sides
from penstock.graph.schema import Schema, returned_schema
from penstock.graph.state.key_groups import SLOTS

MOST_TASKS = SLOTS
"""As many tasks as a step may have: each owns at least one of the key groups, of which there are no more."""


@dataclass(frozen=True)
class Keyed(Node):
    """The base of the keyed steps: `keys` are fields of the input, in the input's order."""

    keys: tuple[str, ...] = ()
    stays: bool = field(default=False, kw_only=True)
    """Whether the rows of a key are in one task already, so that they need not be moved; the compiler says so."""
    keyed: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """The keys are fields with plain values, and the number of tasks is one."""
        for key in self.keys:
            check_key(given[0].schema.field(key))
        check_parallelism(self.parallelism)

    def settings(self) -> Settings:
        """The key."""
        return {"key": ", ".join(self.keys)}

    @property
    def carried_key(self) -> tuple[str, ...]:
        """The fields of what it emits that hold the key of the rows it was made of, as it was; empty where that is not sure."""
        return ()

    @property
    def per_key(self) -> str:
        """For whom something is kept: each key, or all records where there is none.

        >>> Keyed("n", (), ("user", "day")).per_key, Keyed("n", (), (ALL,)).per_key
        ('per user, day', 'for all records')
        """
        keys = [key.removeprefix(ON).removeprefix("__") for key in self.keys if key != ALL]
        return f"per {', '.join(keys)}" if keys else "for all records"

    def key_fields(self, given: Inputs) -> tuple[t.Field, ...]:
        """The fields of the key."""
        return given[0].schema.only(self.keys).fields if self.keys else ()


def check_ttl(ttl: int | None) -> None:
    """Refuses a time to live that is none."""
    if ttl is not None and ttl <= 0:
        raise FlowError(f"ttl is for how long a key is kept that does not change, such as '1h', got {shown(ttl)}")


def kept_for(ttl: int | None) -> str:
    """For how long something is kept of a key.

    >>> kept_for(3_600_000_000)
    'until none has come for 1h'
    """
    return FOR_EVER if ttl is None else f"until none has come for {shown(ttl)}"


def forgotten(ttl: int | None) -> str:
    """What a time to live makes of the answer; empty where there is none."""
    return "" if ttl is None else f"a key that comes again after {shown(ttl)} starts over (ttl)"


def check_parallelism(tasks: object) -> None:
    """Refuses what is no number of tasks."""
    if tasks is None:
        return
    if isinstance(tasks, bool) or not isinstance(tasks, int) or not 0 < tasks <= MOST_TASKS:
        raise FlowError(f"parallelism is a number from 1 to {MOST_TASKS:,}, got {tasks!r}")


@dataclass(frozen=True)
class AggregateStep(Keyed):
    """The base of steps with aggregates: `calls` as they are written, `aggregates` as they are over the input."""

    calls: tuple[AggregateCall, ...] = field(default=(), kw_only=True)
    aggregates: tuple[Aggregate, ...] = field(default=(), kw_only=True)
    results: Results = field(default=(), kw_only=True)
    """What is computed of the aggregates at last; empty where they are the results."""
    is_kept: bool = field(default=False, kw_only=True)
    """Whether the aggregates are emitted as they are kept; the compiler says so, and adds the steps that finish them."""

    def over(self, given: Inputs) -> Self:
        """The step with its aggregates over the fields of its input."""
        stream = given[0]
        time = stream.event_time.column if stream.event_time else ""
        split = split_calls(self.calls)
        made = tuple(call.over(stream.schema, time) for call in split.kept)
        return replace(self, aggregates=made, results=() if self.is_kept else split.results)

    @property
    def group(self) -> tuple[str, ...]:
        """The fields that all records of a group share, which stand before the results."""
        return self.keys

    def kept(self) -> Self:
        """The step that emits its aggregates as they are kept; `finishing` makes the results of them."""
        return replace(self, calls=split_calls(self.calls).kept, results=(), is_kept=True, outputs=())

    def finishing(self) -> tuple[Node, ...]:
        """The steps after `kept` that make the results of the aggregates; none where they are the results."""
        if not self.results:
            return ()
        columns = (*((name, Column(name)) for name in self.group), *self.results)
        step = child(self.name, "results")
        return (Select(step, (Port(self.name),), columns, line=self.line, on_error=self.on_error),)

    def finished(self, stream: Output) -> Output:
        """What comes of the aggregates as they are kept."""
        for node in self.finishing():
            stream = node.bound((stream,)).outputs[0]
        return stream

    @property
    def approximate(self) -> str:
        """The sketches among the aggregates."""
        found = [f"{a.name}={a}" for a in self.aggregates if a.call in SKETCHES]
        return f"a sketch: {', '.join(found)}" if found else ""

    @property
    def kept_values(self) -> str:
        """What is kept for each group: a row of sums, and the values of what cannot be put together otherwise."""
        lists = [a.name for a in self.aggregates if a.own is None and _keeps_values(a)]
        return f"one row, and in it all values for {', '.join(lists)}," if lists else "one row"

    def written_aggregates(self) -> Settings:
        """The aggregates by name, as the user wrote them."""
        if self.results:
            return {call.name: str(call) for call in self.calls}
        return {a.name: str(a) for a in self.aggregates}

    def aggregate_fields(self) -> tuple[t.Field, ...]:
        """The fields that the aggregates fill."""
        return tuple(t.Field(a.name, a.type) for a in self.aggregates)

    def check_aggregates(self) -> None:
        """There is an aggregate, and none has the name of a key."""
        if not self.aggregates:
            raise FlowError("aggregate needs at least one, such as n='count(*)'")
        names = [name for name, _ in self.results] or [a.name for a in self.aggregates]
        check_names(self.keys, names, "aggregate")
        check_results(self.results, (a.name for a in self.aggregates), self.group)


def _keeps_values(aggregate: Aggregate) -> bool:
    """Whether what an aggregate keeps grows with the values of its group."""
    return any(part.merge in ("unite", "sorted", "sorted_pairs") for part in aggregate.recipe.parts)


def check_names(keys: tuple[str, ...], names: Iterable[str], what: str) -> None:
    """Refuses a result that has the name of a key."""
    for name in names:
        if name in keys:
            raise SchemaError(f"{name!r} is a key already; name the {what} otherwise")


@dataclass(frozen=True)
class AggregateBy(AggregateStep):
    """Running aggregates per key: native before the shuffle, merged with what was there before.

    `combined` says in which form parts of the aggregates come in, where the compiler has put a step before this one that makes them.
    """

    combined: str = ""
    counted: bool = field(default=False, kw_only=True)
    """Whether its changes are emitted as signed rows; the compiler says so."""
    always: bool = field(default=False, kw_only=True)
    """Whether a total over no rows at all is a row too, when the input is over, as in a bounded run."""
    ttl: int | None = field(default=None, kw_only=True)
    """After how many microseconds of processing time without a record a key starts over; None is never. Groups of tables that change stay while they have rows."""
    kind: ClassVar[str] = "aggregate"
    over_tables: ClassVar[bool] = True
    takes_functions: ClassVar[bool] = True

    def resolve(self, given: Inputs) -> Self:
        """The aggregates over the fields of the input."""
        if self.combined:
            return self
        return replace(self.over(given), ttl=None if given[0].changes is not None else self.ttl)

    def check(self, given: Inputs) -> None:
        """Key and aggregates fit the input."""
        super().check(given)
        self.check_aggregates()
        check_ttl(self.ttl)

    @property
    def timed(self) -> bool:  # type: ignore[override]  # it depends on the time to live
        """Whether keys are forgotten when time moves."""
        return self.ttl is not None

    @property
    def approximate(self) -> str:
        """The sketches among the aggregates, and keys that start over."""
        return "; ".join(filter(None, (super().approximate, forgotten(self.ttl))))

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The key and the totals, a table by key. A key goes when the last row of a table that made it goes; records never do."""
        fields = self.key_fields(given) + self.aggregate_fields()
        schema = Schema(fields, internal=given[0].schema.internal or has_hidden(fields))
        if self.counted:
            return (Output(counted(schema)),)
        return (self.finished(Output(schema, changes=Changes(self.keys, given[0].changes is not None))),)

    @property
    def carried_key(self) -> tuple[str, ...]:
        """The key, which every total has."""
        return self.keys

    @property
    def keeps(self) -> str:
        """The totals; without anything that ends them they stay."""
        return f"{self.kept_values} {self.per_key}, {kept_for(self.ttl)}"

    @property
    def runs_python(self) -> bool:
        """Python when one of the aggregates is the user's own, or when parts are merged with kept state."""
        return bool(self.combined) or any(a.own is not None for a in self.aggregates)

    def settings(self) -> Settings:
        """The key and the aggregates by name."""
        ttl: Settings = {} if self.ttl is None else {"ttl": shown(self.ttl)}
        return {**super().settings(), **self.written_aggregates(), **ttl}


@dataclass(frozen=True)
class Reduce(Keyed):
    """A Python function that folds two records of a key into one."""

    function: RowFunction = field(kw_only=True)
    kind: ClassVar[str] = "reduce"
    python: ClassVar[bool] = True
    over_tables: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """The key fits the input, and the function takes two records."""
        super().check(given)
        check_function(self.name, self.function, self.line, arguments=2)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The record of each key, emitted again whenever it changes. A key of a table goes with its last row."""
        return (Output(given[0].schema, changes=Changes(self.keys, given[0].changes is not None)),)

    @property
    def keeps(self) -> str:
        """The record that the function made last."""
        return f"one row {self.per_key}, {FOR_EVER}"

    def settings(self) -> Settings:
        """The key and the function."""
        return {**super().settings(), "function": label(self.function)}


@dataclass(frozen=True)
class Fold(Keyed):
    """A Python function that takes a record into the running value of its key; `schema` is that of the value."""

    init: object = field(kw_only=True)
    function: RowFunction = field(kw_only=True)
    schema: Schema = field(kw_only=True)
    kind: ClassVar[str] = "fold"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True
    over_tables: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """The key fits the input, the function takes two arguments, and the value's fields are not keys."""
        super().check(given)
        check_function(self.name, self.function, self.line, arguments=2)
        check_names(self.keys, self.schema.names, "value")

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The key and the value, emitted again whenever it changes. A key of a table goes with its last row."""
        changes = Changes(self.keys, given[0].changes is not None)
        return (Output(Schema(self.key_fields(given) + self.schema.fields), changes=changes),)

    @property
    def keeps(self) -> str:
        """The running value."""
        return f"one value {self.per_key}, {FOR_EVER}"

    def settings(self) -> Settings:
        """The key and the function."""
        return {**super().settings(), "init": repr(self.init), "function": label(self.function)}


@dataclass(frozen=True)
class Process(Keyed):
    """The user's own class, with state per key. `event_time` says where that of its records is."""

    logic: ProcessLogic = field(kw_only=True)
    schema: Schema | None = field(default=None, kw_only=True)
    sides: Sides = field(default=(), kw_only=True)
    event_time: TimeField | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "process"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True
    over_records: ClassVar[str] = "a class with state of its own cannot take back what it did with a row"

    @property
    def timed(self) -> bool:  # type: ignore[override]  # a process's class decides
        """Whether its class sets timers, or forgets state after a time."""
        return minds_time(self.logic)

    def resolve(self, given: Inputs) -> Self:
        """An instance of the user's class, and where the event time is."""
        return replace(
            self, logic=check_logic(self.name, element_of(self.name, self.logic)), event_time=given[0].event_time
        )

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """What `schema` says or the return annotation of `on_event`, and the side outputs."""
        made = self.schema or returned_schema(type(self.logic).on_event, many=True)
        if made is None:
            raise SchemaError(f"{self.where} must say what it emits: schema='user string, n bigint'")
        return outputs_with_sides(given[0], made, self.sides)

    @property
    def keeps(self) -> str:
        """The cells of the class, and for how long."""
        cells = self.logic.cells()
        if not cells:
            return ""
        spans = [
            f"{name} for {shown(cell.ttl)} after it was written" for name, cell in cells.items() if cell.ttl is not None
        ]
        others = [name for name, cell in cells.items() if cell.ttl is None]
        kept = [*spans, *([f"{', '.join(others)} until the class clears it, else {FOR_EVER}"] if others else [])]
        return f"{self.per_key} {'; '.join(kept)}"

    def settings(self) -> Settings:
        """The key and the class."""
        return {**super().settings(), "class": label(self.logic)}


@dataclass(frozen=True)
class Combine(Node):
    """The half of a Python aggregate or reduce that runs before the shuffle; the compiler puts it in."""

    of: AggregateBy | Reduce
    kind: ClassVar[str] = "combine"
    python: ClassVar[bool] = True

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """Records of a reduce; of aggregates the key and the parts."""
        if isinstance(self.of, Reduce):
            return (Output(given[0].schema),)
        parts = (*self.of.key_fields(given), t.Field("__parts", t.BINARY))
        return (Output(Schema(parts, internal=True)),)


@dataclass(frozen=True)
class Parts(Keyed):
    """The native half of a live aggregate: a `groupBy` over one batch; the compiler puts it in."""

    of: AggregateBy = field(kw_only=True)
    kind: ClassVar[str] = "parts"
    keyed: ClassVar[bool] = False

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The key, the parts of each aggregate, and how many records they were made of."""
        parts = (f for a in self.of.aggregates for f in a.part_fields)
        return (Output(Schema((*self.key_fields(given), *parts, t.Field(ROWS, t.BIGINT)), internal=True)),)
