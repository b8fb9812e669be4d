"""Steps that look at one record (or one batch) at a time and remember nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

from penstock.errors import ExpressionError, FlowError, NotYet, SchemaError
from penstock.graph import types as t
from penstock.graph.expr import Column, Expr, to_text, type_of_expr
from penstock.graph.logic.capture import check_function
from penstock.graph.nodes.base import (
    OUT,
    Changes,
    Inputs,
    Node,
    Output,
    Port,
    Settings,
    TimeField,
    label,
    need_boolean,
    typed,
)
from penstock.graph.schema import Schema, returned_schema

OTHERWISE = "otherwise"
"""The output of a branch for records that meet none of its conditions."""
RowFunction: TypeAlias = Callable[..., Any]
"""A function of the user's; `check_function` looks at its arguments."""
Sides: TypeAlias = tuple[tuple[str, Schema], ...]
"""Further outputs of a step, by name."""


@dataclass(frozen=True)
class PythonStep(Node):
    """The base of steps that call a function of the user's for each record or batch."""

    function: RowFunction
    python: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """The function takes one argument and may travel to a worker."""
        check_function(self.name, self.function, self.line)

    def settings(self) -> Settings:
        """The function."""
        return {"function": label(self.function)}


@dataclass(frozen=True)
class Map(PythonStep):
    """A Python function from one record to one record.

    Its schema is `schema`, or what the function's return annotation says, or that of the input.
    """

    schema: Schema | None = None
    kind: ClassVar[str] = "map"
    over_tables: ClassVar[bool] = True

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """A record for each. The function must leave the key of a table as it is."""
        made = self.schema or returned_schema(self.function, many=False) or given[0].schema
        return (given[0].with_schema(made),)


@dataclass(frozen=True)
class FlatMap(PythonStep):
    """A Python function from one record to any number of records, on any of the step's outputs."""

    schema: Schema | None = None
    sides: Sides = ()
    kind: ClassVar[str] = "flat_map"
    over_tables: ClassVar[bool] = True

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """What `schema` or the return annotation says, and the side outputs."""
        made = self.schema or returned_schema(self.function, many=True)
        if made is None:
            raise SchemaError(
                f"{self.where} must say what it emits: schema='word string', or a return annotation such as Iterator[Post] with a dataclass"
            )
        return outputs_with_sides(given[0], made, self.sides)


@dataclass(frozen=True)
class Filter(PythonStep):
    """A Python function that says which records stay."""

    kind: ClassVar[str] = "filter"
    over_tables: ClassVar[bool] = True

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The same stream, with fewer records."""
        return (given[0].filtered(),)


@dataclass(frozen=True)
class MapBatches(PythonStep):
    """A Python function from an Arrow record batch to Arrow record batches."""

    schema: Schema | None = None
    kind: ClassVar[str] = "map_batches"
    over_tables: ClassVar[bool] = True

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """What `schema` says, or the schema of the input. Of a table no key is proved: the function may make any rows of a row."""
        return (given[0].keyless(self.schema or given[0].schema),)


Columns: TypeAlias = tuple[tuple[str, Expr], ...]
"""Expressions, each with the name of the field it fills."""


@dataclass(frozen=True)
class Select(Node):
    """New records made of expressions; native."""

    columns: Columns
    record: type | None = field(default=None, kw_only=True)
    """The Python class of its rows, where they have one."""
    kind: ClassVar[str] = "select"
    over_tables: ClassVar[bool] = True
    takes_functions: ClassVar[bool] = True

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """A field for each expression. Event time and the keys of running totals are followed when they are renamed."""
        known = given[0].schema
        own = any(name.startswith("__") for name in known.names)
        record = None if any(name.startswith("__") for name, _ in self.columns) else self.record
        made = Schema(tuple(typed(n, e, known) for n, e in self.columns), record, internal=own)
        return (given[0].selected(made, dict(self.columns)),)

    def settings(self) -> Settings:
        """The expressions by name."""
        return {name: to_text(e) for name, e in self.columns}


@dataclass(frozen=True)
class WithColumns(Node):
    """The record with fields added or replaced; native. `hidden` says that they are Penstock's own."""

    columns: Columns
    hidden: bool = field(default=False, kw_only=True)
    kind: ClassVar[str] = "with_columns"
    over_tables: ClassVar[bool] = True
    takes_functions: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """There is something to add."""
        if not self.columns:
            raise FlowError("with_columns needs at least one field, such as total='price * n'")

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The fields of the input, with these replaced or added."""
        known = given[0].schema
        open_to_it = replace(known, internal=known.internal or self.hidden)
        made = open_to_it.with_fields(tuple(typed(n, e, known) for n, e in self.columns))
        return (given[0].selected(made, as_they_are(known) | dict(self.columns)),)

    def settings(self) -> Settings:
        """The expressions by name."""
        return {name: to_text(e) for name, e in self.columns}


@dataclass(frozen=True)
class FunctionColumns(WithColumns):
    """The record with the results of Python functions as hidden fields, in order: one may read those before it. The compiler puts it in."""

    kind: ClassVar[str] = "functions"
    python: ClassVar[bool] = True

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The fields of the input, and the results."""
        schema = replace(given[0].schema, record=None, internal=True)
        for name, call in self.columns:
            schema = schema.with_fields((typed(name, call, schema),))
        return (given[0].selected(schema, as_they_are(given[0].schema)),)


@dataclass(frozen=True)
class Where(Node):
    """The records for which an expression is true; native."""

    condition: Expr
    kind: ClassVar[str] = "where"
    over_tables: ClassVar[bool] = True
    takes_functions: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """The condition is true or false."""
        need_boolean("where", self.condition, given[0].schema)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The same stream, with fewer records."""
        return (given[0].filtered(),)

    def settings(self) -> Settings:
        """The condition."""
        return {"condition": to_text(self.condition)}


@dataclass(frozen=True)
class Explode(Node):
    """One record for each item of a list; native."""

    column: str
    items: Expr
    kind: ClassVar[str] = "explode"
    over_tables: ClassVar[bool] = True
    takes_functions: ClassVar[bool] = True

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The fields of the input, and the item."""
        kind = type_of_expr(self.items, given[0].schema)
        if not isinstance(kind, t.Array):
            raise ExpressionError(f"explode needs a list; {to_text(self.items)} is {kind}")
        made = given[0].schema.with_fields((t.Field(self.column, kind.item),))
        timed = given[0].selected(made, as_they_are(given[0].schema) | {self.column: self.items}).event_time
        return (replace(given[0].keyless(made), event_time=timed),)

    def settings(self) -> Settings:
        """The list and the field its items land in."""
        return {self.column: to_text(self.items)}


@dataclass(frozen=True)
class Union(Node):
    """The records of several streams of one schema."""

    kind: ClassVar[str] = "union"
    over_tables: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """All have the same fields."""
        first = given[0].schema
        for port, stream in zip(self.inputs, given, strict=True):
            if not stream.schema.types_equal(first):
                raise SchemaError(
                    f"all streams of a union have the same fields; {self.inputs[0]} has ({first}), {port} has ({stream.schema}). "
                    f"Use select to bring them together"
                )

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The fields of the first; the event time that all share, if they do."""
        times = {stream.event_time for stream in given}
        changes = Changes(None) if any(stream.changes for stream in given) else None
        return (Output(given[0].schema, OUT, changes, given[0].event_time if len(times) == 1 else None),)


@dataclass(frozen=True)
class Branch(Node):
    """Each record goes to the first output whose condition it meets, or to `otherwise`."""

    conditions: tuple[tuple[str, Expr | RowFunction], ...]
    kind: ClassVar[str] = "branch"
    over_tables: ClassVar[bool] = True
    takes_functions: ClassVar[bool] = True

    def check(self, given: Inputs) -> None:
        """Conditions are expressions that are true or false, or functions."""
        names = [name for name, _ in self.conditions]
        if not names or OTHERWISE in names:
            raise FlowError(f"branch takes conditions by name, and {OTHERWISE!r} is always there")
        for _, condition in self.conditions:
            if isinstance(condition, Expr):
                need_boolean("a branch", condition, given[0].schema)
            else:
                check_function(self.name, condition, self.line)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The same stream for each condition, and for the rest."""
        names = (*(name for name, _ in self.conditions), OTHERWISE)
        return tuple(given[0].filtered(name) for name in names)

    @property
    def runs_python(self) -> bool:
        """Native when every condition is an expression."""
        return any(not isinstance(c, Expr) for _, c in self.conditions)

    def settings(self) -> Settings:
        """The conditions by output."""
        return {n: to_text(c) if isinstance(c, Expr) else label(c) for n, c in self.conditions}


@dataclass(frozen=True)
class AsRecords(Node):
    """Takes each update of a running total as a record of its own. `event_time` says when they happened, if anything does."""

    event_time: TimeField | None = None
    kind: ClassVar[str] = "as_records"
    over_tables: ClassVar[bool] = True

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The same fields."""
        if self.event_time is not None:
            given[0].schema.field(self.event_time.column)
        return (Output(given[0].schema, event_time=self.event_time),)


@dataclass(frozen=True)
class Feedback(Node):
    """Where a loop begins: the records that a later step sends back, one round later."""

    schema: Schema
    fed_by: Port | None = None
    kind: ClassVar[str] = "feedback"
    noun: ClassVar[str] = "feedback"

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """What it is to be fed with."""
        return (Output(self.schema),)

    def check_fed(self, given: Output) -> None:
        """What closes the loop must be records with the fields that begin it."""
        if given.changes is not None:
            raise NotYet(f"a loop carries records, and {self.fed_by} emits a table; say .as_records('name') before it")
        if not given.schema.types_equal(self.schema):
            raise SchemaError(
                f"{self.noun} {self.name!r} carries ({self.schema}); {self.fed_by} emits ({given.schema})"
            )

    def settings(self) -> Settings:
        """The stream that feeds it."""
        return {"fed by": str(self.fed_by)}


def as_they_are(schema: Schema) -> dict[str, Expr]:
    """The fields of a stream as expressions, each under its own name."""
    return {name: Column(name) for name in schema.names}


def outputs_with_sides(given: Output, made: Schema, sides: Iterable[tuple[str, Schema]]) -> tuple[Output, ...]:
    """A main output and the side outputs of a step of the user's own, each with the event time if its column is there."""
    named = dict(sides)
    if OUT in named:
        raise FlowError(f"{OUT!r} is the main output; give the side output another name")
    return tuple(given.keyless(s, n) for n, s in {OUT: made, **named}.items())
