"""What every step of a flow is: a frozen record of its name, its inputs and its own settings, which knows what comes out of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self, TypeAlias

from penstock.errors import ExpressionError, FlowError, SchemaError
from penstock.graph import types as t
from penstock.graph.expr import Column, Expr, to_text, type_of_expr
from penstock.graph.ids import owner_of
from penstock.graph.node_expressions import calls_in, expressions_of, varying_in
from penstock.graph.nodes.policy import FAIL, OnError
from penstock.graph.schema import Schema

LATE = "late"
"""The output of late records; where nobody reads it, they are counted."""
OUT = "out"
"""The main output."""

Shown: TypeAlias = str | int | float | bool | None
Settings: TypeAlias = dict[str, Shown]
"""The settings of a step as people and tools read them."""


@dataclass(frozen=True)
class Port:
    """The address of a stream: the step that emits it, and which of its outputs."""

    step: str
    name: str = OUT

    def __str__(self) -> str:
        return self.step if self.name == OUT else f"{self.step}.{self.name}"


@dataclass(frozen=True)
class TimeField:
    """Where the event time of a stream's records is: a timestamp column, and microseconds to add to it."""

    column: str
    shift: int = 0


@dataclass(frozen=True)
class Changes:
    """How a table changes.

    `key` names fields of which no two rows have the same values, where that is proved; it is None where it is not. `deletes` says whether
    a row may go without another of its key after it.
    """

    key: tuple[str, ...] | None = None
    deletes: bool = True

    def with_deletes(self) -> Changes:
        """The same table, with rows that may go."""
        return replace(self, deletes=True)


@dataclass(frozen=True)
class Output:
    """A stream as a step emits it: a log of records, or a table that changes.

    `changes` says how the table changes, and is None for a log of records, which only ever grows. `event_time` says when its
    records happened, if anything does.
    """

    schema: Schema
    name: str = OUT
    changes: Changes | None = None
    event_time: TimeField | None = None

    @property
    def updates(self) -> tuple[str, ...] | None:
        """The proved key of a table that changes; None for records, and where no key is proved."""
        return None if self.changes is None else self.changes.key

    def time_in(self, schema: Schema) -> TimeField | None:
        """The event time of a stream that is made of this one: kept while its column is there."""
        timed = self.event_time
        if timed is None or timed.column not in schema or schema.field(timed.column).type != t.TIMESTAMP:
            return None
        return timed

    def with_schema(self, schema: Schema) -> Output:
        """The same stream with other fields, by a step that makes one record of each. A table keeps its key while its fields are there."""
        changes = self.changes
        if changes is not None and any(key not in schema for key in changes.key or ()):
            changes = Changes(None, deletes=True)
        return Output(schema, changes=changes, event_time=self.time_in(schema))

    def filtered(self, name: str = OUT) -> Output:
        """The same stream with fewer rows: a row of a table may go while its key is still there."""
        changes = None if self.changes is None else self.changes.with_deletes()
        return Output(self.schema, name, changes, self.event_time)

    def keyless(self, schema: Schema, name: str = OUT) -> Output:
        """A stream that is made of this one by a step after which no key is proved."""
        changes = None if self.changes is None else Changes(None)
        return Output(schema, name, changes, self.time_in(schema))

    def selected(self, schema: Schema, written: Mapping[str, Expr]) -> Output:
        """The same stream with fields filled by expressions. Event time and keys are followed where their fields are renamed."""
        column = follow(self.event_time.column, written) if self.event_time else None
        timed = replace(self.event_time, column=column) if self.event_time and column else None
        return Output(schema, changes=self._followed(written), event_time=timed)

    def _followed(self, written: Mapping[str, Expr]) -> Changes | None:
        """The changes with the key under its new names; without one where a field of it is left out or changed."""
        if self.changes is None or self.changes.key is None:
            return self.changes
        names = [follow(k, written) for k in self.changes.key if k != ALL]
        if any(name is None for name in names):
            return Changes(None, deletes=True)
        return replace(self.changes, key=tuple(name for name in names if name is not None))


def follow(field: str, written: Mapping[str, Expr]) -> str | None:
    """The name under which a field goes on among expressions: its own, else the first that is nothing but the field.

    >>> from penstock.graph.expr import as_expr
    >>> follow("a", {"b": as_expr("a"), "c": as_expr("a + 1")}), follow("a", {"a": as_expr("a + 1")})
    ('b', None)
    """
    same = [name for name, value in written.items() if isinstance(value, Column) and value.name == field]
    return field if field in same else next(iter(same), None)


COUNT = "__count"
"""The hidden field of a stream of changes: how many of the row are added, or taken back when it is below zero."""


FOR_EVER = "for ever"
"""How the text ends that says what a step keeps, where neither time nor rows that go bound it."""


ON = "__on"
"""How the hidden fields begin that hold computed keys; they are no part of a result."""
TOGETHER = f"{ON}one"
"""The hidden key that is the same in all rows of both sides of a join, where no equality finds them."""
ALL = "__all"
"""The hidden key of totals over all records; it has one value, so it is no part of any key."""


def has_hidden(fields: Iterable[t.Field]) -> bool:
    """Whether a field is Penstock's own."""
    return any(field.name.startswith("__") for field in fields)


def counted(schema: Schema) -> Schema:
    """A schema with the hidden count after its fields."""
    return Schema((*schema.fields, t.Field(COUNT, t.BIGINT)), internal=True)


Inputs: TypeAlias = tuple[Output, ...]
"""The streams that a step reads, in the order of its ports."""


@dataclass(frozen=True)
class Node:
    """A step. Subclasses add their settings as fields, and say what they derive from their inputs and where they run.

    `outputs` is what `derive` says; whoever makes a node may leave it out.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Output, ...] = field(default=(), kw_only=True)
    line: str = field(default="", kw_only=True, compare=False)
    parallelism: int | None = field(default=None, kw_only=True)
    on_error: OnError | None = field(default=None, kw_only=True)
    """What happens to a record the step fails on; None means what the flow says."""

    kind: ClassVar[str] = "node"
    python: ClassVar[bool] = False
    keyed: ClassVar[bool] = False
    timed: ClassVar[bool] = False
    """Whether the step does something when time moves, so that it may have work without records."""
    ordered: ClassVar[bool] = False
    """Whether a keyed step needs the records of a key in the order of arrival."""
    takes_functions: ClassVar[bool] = False
    """Whether Python functions may stand in the expressions of the step."""
    over_tables: ClassVar[bool] = False
    """Whether the step can read a table that changes, whose rows come and go."""
    usual_policy: ClassVar[OnError | None] = None
    """What happens to a record the step fails on where neither the step nor the flow says it; None is to fail."""
    over_records: ClassVar[str] = "it cannot take back what it made of a row"
    """Why it reads records alone, where it cannot read a table."""
    noun: ClassVar[str] = "step"
    """What errors call it."""

    def bound(self, given: Inputs) -> Self:
        """The step over these streams: checked, with the settings and the outputs that follow from them.

        Raises:
            FlowError: a setting does not fit the streams. The message does not name the step; the builder does.
        """
        self._check_records(given)
        self._check_functions()
        made = self.resolve(given)
        made.check(given)
        return replace(made, outputs=made.derive(given))

    def resolve(self, given: Inputs) -> Self:
        """The step with the settings that follow from its inputs, such as where their event time is."""
        return self

    def check(self, given: Inputs) -> None:
        """Refuses settings that do not fit each other or the inputs; the settings are resolved by now."""

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The streams that come out, from those that go in and the step's own settings."""
        raise NotImplementedError

    def _check_records(self, given: Inputs) -> None:
        for port, stream in zip(self.inputs, given, strict=True):
            if stream.changes is not None and not self.over_tables:
                raise FlowError(
                    f"{self.kind} reads records, and {port.step!r} emits a table whose rows change: {self.over_records}. To read the "
                    f"changes as records, say .changelog('name') before it; to read each new row as a record, .as_records('name')"
                )

    @cached_property
    def has_functions(self) -> bool:
        """Whether Python functions stand in its expressions."""
        return any(calls_in(expr) for expr in expressions_of(self))

    def _check_functions(self) -> None:
        if self.has_functions and not self.takes_functions:
            raise FlowError(
                f"no Python function can be used in the expressions of this step ({self.kind}), which are computed natively; "
                f"compute it before, with with_columns, and name its field here"
            )

    @property
    def where(self) -> str:
        """The step as errors call it: what it is, its name, and the user's line."""
        return f"{self.noun} {owner_of(self.name)!r}{f' ({self.line})' if self.line else ''}"

    @property
    def error_action(self) -> str:
        """What is done with a record that the step fails on, after any retries: 'fail', 'dead_letter' or 'skip'."""
        return FAIL if self.on_error is None else self.on_error.action

    @property
    def runs_python(self) -> bool:
        """Whether the step's records pass through a Python worker."""
        return self.python

    @property
    def stores(self) -> dict[str, str]:
        """What the step keeps from batch to batch: stores by id, each of "values" (one per key) or "rows" (in time)."""
        return {self.name: "values"} if self.keyed else {}

    @property
    def keeps(self) -> str:
        """What the step keeps and for how long, for people to read; it ends in `FOR_EVER` where nothing bounds it in time."""
        return ""

    @property
    def approximate(self) -> str:
        """Why its answer may differ from the exact one, such as a sketch or a time to live; empty where it is exact."""
        return ""

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """The functions in its expressions that may not answer the same twice, as they are written."""
        return tuple(dict.fromkeys(name for expr in expressions_of(self) for name in varying_in(expr)))

    @property
    def drawing(self) -> tuple[str, ...]:
        """The inside of the step, line by line, where it has one to draw: the automaton of a pattern."""
        return ()

    @property
    def hold(self) -> int:
        """How far its own watermark the records it emits may be behind, in microseconds."""
        return 0

    def keys_of(self, input: int) -> tuple[str, ...]:
        """The key fields of one of its inputs."""
        keys: tuple[str, ...] = getattr(self, "keys", ())
        return keys

    def output(self, port: str = OUT) -> Output:
        """The output of that name."""
        return next(o for o in self.outputs if o.name == port)

    def settings(self) -> Settings:
        """The options of the step, for people and tools to read."""
        return {}


def label(function: object) -> str:
    """How a user's function or class is shown: its module and qualified name.

    >>> label(len)
    'builtins:len'
    """
    target = function if hasattr(function, "__qualname__") else type(function)
    return f"{target.__module__}:{target.__qualname__}"


def typed(name: str, written: Expr, schema: Schema) -> t.Field:
    """The field that an expression over the fields of a stream makes."""
    return t.Field(name, type_of_expr(written, schema))


def need_boolean(what: str, written: Expr, schema: Schema) -> None:
    """Refuses a condition that is not true or false."""
    kind = type_of_expr(written, schema)
    if kind != t.BOOLEAN:
        raise ExpressionError(f"{what} needs a boolean; {to_text(written)} is {kind}")


def is_plain(field: t.Field) -> bool:
    """Whether a field can be a key: its values are exact, and not made of others."""
    return field.type not in (t.FLOAT, t.DOUBLE) and not isinstance(field.type, t.Map | t.Array | t.Struct)


def check_key(field: t.Field) -> None:
    """Refuses what cannot be a key: numbers that are not exact, and values that are made of others."""
    if not is_plain(field):
        raise SchemaError(
            f"a key is a plain value; {field.name!r} is {field.type}. Pick a part of it or cast it, such as "
            f"key_by(k='cast({field.name} as string)')"
        )
