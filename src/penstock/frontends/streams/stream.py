"""Streams: what the user chains steps on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from penstock.errors import FlowError, UnknownName, nearest
from penstock.frontends.streams.branches import Branches
from penstock.frontends.streams.keyed import PER_KEY, KeyedStream
from penstock.frontends.streams.matches.matching import Matching
from penstock.frontends.streams.matches.row_patterns import RowMatching
from penstock.frontends.streams.naming import names_step
from penstock.frontends.streams.ordering import Ordering
from penstock.frontends.streams.projecting import Projecting, columns_of_names
from penstock.frontends.streams.rules import Ruling
from penstock.frontends.streams.sets import Comparing
from penstock.frontends.streams.settings import Settable
from penstock.frontends.streams.timing import Timing
from penstock.frontends.streams.windows import Windowing
from penstock.graph.aggregates.calls import Written, calls_of
from penstock.graph.binding import naming_call
from penstock.graph.caller import user_line
from penstock.graph.compose import add_total
from penstock.graph.duration import Span, micros
from penstock.graph.expr import Expr, as_expr, lit
from penstock.graph.logic.calls import AsyncFunction
from penstock.graph.nodes import (
    OTHERWISE,
    AsRecords,
    Branch,
    Changes,
    Endpoint,
    Filter,
    FlatMap,
    Map,
    MapAsync,
    MapBatches,
    Node,
    Port,
    Repartition,
    Sink,
    TimeField,
    Union,
    on_error_of,
)
from penstock.graph.nodes.base import ALL
from penstock.graph.nodes.policy import Policy
from penstock.graph.schema import Form, Schema, form_of, forms_of

if TYPE_CHECKING:
    from penstock.frontends.streams.flow import Flow

Condition: TypeAlias = str | Expr | Callable[..., object]
"""A condition of a branch: an expression, or a function of the record."""


@dataclass(frozen=True, repr=False)
class Stream(Projecting, Timing, Comparing, Ordering, Windowing, Ruling, RowMatching, Matching, Settable):
    """A stream of records between two steps. Each method adds a step and returns the stream that comes out of it.

    >>> from penstock.frontends.streams.flow import Flow
    >>> from penstock.graph.endpoints.basic import items
    >>> Flow("hello").source("names", items(["ada"], "name string"))
    Stream('names': name string)
    """

    flow: Flow
    port: Port

    @property
    def schema(self) -> Schema:
        """The fields of its records."""
        return self.flow.builder.output(self.port).schema

    @property
    def updates(self) -> tuple[str, ...] | None:
        """The key fields of a table of which the key is proved, such as running totals; None otherwise."""
        return self.flow.builder.output(self.port).updates

    @property
    def changes(self) -> Changes | None:
        """How a table changes: its proved key, and whether rows may go; None for a stream of records."""
        return self.flow.builder.output(self.port).changes

    @property
    def event_time_of(self) -> TimeField | None:
        """Where the event time of its records is; None when nothing says so."""
        return self.flow.builder.output(self.port).event_time

    def __repr__(self) -> str:
        by = f" by {', '.join(self.updates)}" if self.updates else ""
        totals = f", a table{by}" if self.changes is not None else ""
        time = f", event time {self.event_time_of.column}" if self.event_time_of is not None else ""
        return f"Stream({str(self.port)!r}: {self.schema}{totals}{time})"

    @names_step
    def map(self, name: str, function: Callable[..., object], schema: Form | None = None) -> Stream:
        """One record for each record, by a Python function.

        Args:
            name: the name of the step.
            function: `function(row)` returns a record: a tuple, a dict, a dataclass, or a bare value when there is one field.
                None is an error (a forgotten return), unless the annotation says so: `-> str | None`.
            schema: the fields; else the function's return annotation says (a dataclass or a NamedTuple), or they stay what they are.

        Returns:
            The stream of the new records.

        Raises:
            FlowError: the function does not take one argument, or holds what cannot travel to a worker.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> words = ps.Flow("demo").source("words", ps.items(["a", "bb"], "word string"))
        >>> words.map("upper", lambda row: row.word.upper()).sink("out", ps.console())
        >>> run_local(words.flow)["out"]
        [Row(word='A'), Row(word='BB')]
        """
        return self._add(Map(name, (self.port,), function, form_of(schema), line=user_line()))

    @names_step
    def flat_map(
        self,
        name: str,
        function: Callable[..., object],
        schema: Form | None = None,
        *,
        side: Mapping[str, Form] | None = None,
    ) -> Stream:
        """Any number of records for each record.

        Args:
            name: the name of the step.
            function: `function(row)` returns or yields records.
            schema: the fields; else the return annotation says, such as Iterator[Post] with a dataclass.
            side: further outputs by name, filled with `ps.to(name, record)`.

        Returns:
            The stream of the new records; further outputs are reached by `side`.

        Raises:
            SchemaError: nothing says what it emits.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> lines = ps.Flow("demo").source("lines", ps.items(["to be", "or"], "line string"))
        >>> lines.flat_map("words", lambda row: row.line.split(), "word string").sink("out", ps.console())
        >>> run_local(lines.flow)["out"]
        [Row(word='to'), Row(word='be'), Row(word='or')]
        """
        made = FlatMap(name, (self.port,), function, form_of(schema), forms_of(side), line=user_line())
        return self._add(made)

    @names_step
    def filter(self, name: str, function: Callable[..., object]) -> Stream:
        """The records for which a Python function returns true. `where` does the same natively.

        Args:
            name: the name of the step.
            function: `function(row)`.

        Returns:
            The stream of the records that pass.

        Raises:
            FlowError: the function does not take one argument, or holds what cannot travel to a worker.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> words = ps.Flow("demo").source("words", ps.items(["a", "bb"], "word string"))
        >>> words.filter("long", lambda row: len(row.word) > 1).sink("out", ps.console())
        >>> run_local(words.flow)["out"]
        [Row(word='bb')]
        """
        return self._add(Filter(name, (self.port,), function, line=user_line()))

    @names_step
    def map_batches(self, name: str, function: Callable[..., object], schema: Form | None = None) -> Stream:
        """Arrow record batches in, Arrow record batches out.

        Args:
            name: the name of the step.
            function: `function(batch)` returns a batch, or an iterable of them.
            schema: the fields; else they stay what they are.

        Returns:
            The stream of the records in the batches that come out.

        Raises:
            FlowError: the function does not take one argument, or holds what cannot travel to a worker.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> numbers = ps.Flow("demo").source("numbers", ps.items([1, 2, 3], "n bigint"))
        >>> numbers.map_batches("last", lambda batch: batch.slice(batch.num_rows - 1)).sink("out", ps.console())
        >>> run_local(numbers.flow)["out"]
        [Row(n=3)]
        """
        return self._add(MapBatches(name, (self.port,), function, form_of(schema), line=user_line()))

    @names_step
    def map_async(  # noqa: PLR0913 - options by name
        self,
        name: str,
        function: Callable[..., object] | AsyncFunction | type[AsyncFunction],
        schema: Form | None = None,
        *,
        concurrency: int = 32,
        ordered: bool = True,
        timeout: Span = "30s",
        retries: int | None = None,
        backoff: Span | None = None,
        on_error: Policy | None = None,
    ) -> Stream:
        """One record for each record, by calls to a service or a model, many at a time.

        Args:
            name: the name of the step.
            function: `async def function(row)` returns a record as in `map`; a plain function runs in a thread. Or a class: see
                `penstock.AsyncFunction`.
            schema: the fields; else the function's return annotation says, or they stay what they are.
            concurrency: how many calls each task has under way at most.
            ordered: whether the records come out in the order they went in; else as the calls finish.
            timeout: how long a call may take.
            retries: how many calls follow one that fails or takes too long; else what `on_error=ps.retry(...)` says, or none.
            backoff: the pause before the first of them, 100ms if nothing is said; it doubles, and up to a half of it is random.
            on_error: what happens to a record when all of its calls have failed, or what they return is no record: 'dead_letter',
                'fail' or 'skip'; else what the flow says, or 'dead_letter'.

        Returns:
            The stream of the new records.

        Raises:
            FlowError: the function does not take one argument, holds what cannot travel to a worker, or a number does not fit.
            NotYet: the stream is a table whose rows change.

        >>> import penstock as ps
        >>> async def length(row):
        ...     return row.name, len(row.name)
        >>> names = ps.Flow("hello").source("names", ps.items(["ada"], "name string"))
        >>> names.map_async("length", length, "name string, n int", concurrency=100, timeout="5s", retries=3)
        Stream('length': name string, n int)
        """
        settings = {
            "concurrency": concurrency,
            "ordered_output": ordered,
            "timeout": micros(timeout, "the timeout of a call"),
            "retries": retries,
            "backoff": None if backoff is None else micros(backoff, "the backoff of a retry"),
            "on_error": None if on_error is None else on_error_of(on_error),
        }
        return self._add(MapAsync(name, (self.port,), function, form_of(schema), line=user_line(), **settings))  # type: ignore[arg-type]  # checked there

    @names_step
    def union(self, name: str, *others: Stream) -> Stream:
        """The records of this stream and the others.

        Args:
            name: the name of the step.
            others: streams of the same flow, with the same fields.

        Returns:
            The stream of all of them, in no certain order.

        Raises:
            SchemaError: their fields differ.
            FlowError: one of them is no stream, or is of another flow.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> flow = ps.Flow("demo")
        >>> one, two = (flow.source(n, ps.items([n], "name string")) for n in ("one", "two"))
        >>> one.union("both", two).sink("out", ps.console())
        >>> run_local(flow)["out"]
        [Row(name='one'), Row(name='two')]
        """
        for stream in others:
            self._need_stream(stream, "a union is of streams")
        return self._add(Union(name, tuple(s.port for s in (self, *others)), line=user_line()))

    @names_step
    def branch(self, name: str, /, **conditions: Condition) -> Branches:
        """Splits the stream: each record goes to the first branch whose condition holds, else to `otherwise`.

        Args:
            name: the name of the step.
            conditions: expressions or functions, by the name of their branch.

        Returns:
            The streams by name.

        Raises:
            ExpressionError: an expression is not true or false.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> numbers = ps.Flow("demo").source("numbers", ps.items([1, 20], "n int"))
        >>> parts = numbers.branch("size", large="n > 10")
        >>> parts.large.sink("large", ps.console())
        >>> parts.otherwise.sink("small", ps.console())
        >>> run_local(numbers.flow)
        {'large': [Row(n=20)], 'small': [Row(n=1)]}
        """
        written = tuple((n, c if _is_function(c) else as_expr(c)) for n, c in conditions.items())
        self.flow.builder.add(Branch(name, (self.port,), written, line=user_line()))  # type: ignore[arg-type]  # checked there
        return Branches({n: self._at(Port(name, n)) for n in (*conditions, OTHERWISE)})

    def side(self, name: str) -> Stream:
        """A further output of the step this stream comes from.

        Args:
            name: the name of the output: one of `side=` of the step, `late`, or `bad`.

        Returns:
            The stream of that output.

        Raises:
            UnknownName: the step has no such output.

        >>> import penstock as ps
        >>> clicks = ps.items([], "user string, at timestamp")
        >>> ps.Flow("demo").source("clicks", clicks, event_time="at").side("bad")
        Stream('clicks@time.bad': user string, at timestamp)
        """
        names = [o.name for o in self.flow.builder.node(self.port).outputs]
        if name not in names:
            raise UnknownName(f"step {self.port.step!r} has no output {name!r}; {nearest(name, names)}")
        return self._at(Port(self.port.step, name))

    def key_by(self, *fields: str, **named: str | Expr) -> KeyedStream:
        """The stream by key, for the steps that keep something per key.

        Args:
            fields: fields of the stream.
            named: expressions by the name of the key.

        Returns:
            The stream by key.

        Raises:
            SchemaError: a field is not there, or is no plain value.
            ExpressionError: an expression cannot be read or typed.
            FlowError: there is no key.

        >>> import penstock as ps
        >>> words = ps.Flow("demo").source("words", ps.items([], "word string"))
        >>> words.key_by(first="substring(word, 1, 1)")
        Stream('words': word string) by first
        """
        if not fields and not named:
            raise FlowError(f"key_by ({user_line()}) needs at least one field, such as key_by('user')")
        with naming_call("key_by", user_line):
            made = KeyedStream(self, (*fields, *named), columns_of_names(named))
            made._input.check(self.flow.builder)
        return made

    @names_step
    def aggregate(self, name: str, /, **aggregates: Written) -> Stream:
        """Aggregates over all records, or over all rows of a table: `aggregate("stats", n="count(*)")` is a table of one row.

        Args:
            name: the name of the step.
            aggregates: by the name of the field each fills: an expression, or your own `ps.Aggregator`.

        Returns:
            A table of one row.

        Raises:
            ExpressionError: one is not an aggregate, or does not fit the fields.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> numbers = ps.Flow("demo").source("numbers", ps.items([1, 5], "n bigint"))
        >>> numbers.aggregate("stats", many="count(*)", most="max(n)").sink("out", ps.console())
        >>> run_local(numbers.flow)["out"]
        [Row(many=2, most=5)]
        """
        return self._at(add_total(self.flow.builder, name, self.port, calls_of(aggregates)))

    def _keyed(self) -> KeyedStream:
        """All records under one key that nobody sees."""
        return KeyedStream(self, (ALL,), ((ALL, lit(0)),))

    @names_step
    def repartition(self, name: str, tasks: int, *fields: str) -> Stream:
        """Spreads the records over tasks: evenly, or by fields so that equal values meet.

        Args:
            name: the name of the step.
            tasks: how many.
            fields: the fields by which.

        Returns:
            The same records, in other tasks.

        Raises:
            FlowError: the number of tasks is not one.
            SchemaError: a field is not there.

        >>> import penstock as ps
        >>> words = ps.Flow("demo").source("words", ps.items([], "word string"))
        >>> words.repartition("spread", 4)
        Stream('spread': word string)
        """
        return self._add(Repartition(name, (self.port,), fields, parallelism=tasks, line=user_line()))

    @names_step
    def as_records(self, name: str) -> Stream:
        """Takes each update of a running total as a record of its own, so that any step may follow.

        How many updates there are depends on how the input falls into batches; so will the result.

        Args:
            name: the name of the step.

        Returns:
            The stream of the updates.

        >>> import penstock as ps
        >>> words = ps.Flow("demo").source("words", ps.items([], "word string"))
        >>> words.key_by("word").count("n").as_records("updates")
        Stream('updates': word string, n bigint)
        """
        return self._add(AsRecords(name, (self.port,), line=user_line()))

    @names_step
    def sink(self, name: str, endpoint: Endpoint, *, delivery: str = "", on_error: Policy | None = None) -> None:
        """Where the records go.

        Args:
            name: the name of the step.
            endpoint: what is written, such as `ps.write_files(...)`.
            delivery: exactly_once, at_least_once or at_most_once; else what the flow says, or the best that the sink can hold.
            on_error: what happens to a row that the sink refuses: 'fail', 'dead_letter' or 'skip'.

        Raises:
            FlowError: the endpoint cannot be written, or cannot hold what is asked of it.

        >>> import penstock as ps
        >>> words = ps.Flow("demo").source("words", ps.items(["a"], "word string"))
        >>> words.sink("out", ps.write_files("words", "json"), delivery="exactly_once")
        """
        policy = None if on_error is None else on_error_of(on_error)
        self.flow.builder.add(Sink(name, (self.port,), endpoint, delivery, line=user_line(), on_error=policy))

    def __getattr__(self, name: str) -> NoReturn:
        steps = [step for step in dir(type(self)) if not step.startswith("_")]
        per_key = f"it keeps something per key: stream.key_by('field').{name}(...)"
        raise AttributeError(f"a stream has no {name!r}; {per_key if name in PER_KEY else nearest(name, steps)}")

    def _add(self, node: Node) -> Stream:
        return self._at(self.flow.builder.add(node))

    def _at(self, port: Port) -> Stream:
        """The stream of the same flow at a port."""
        return Stream(self.flow, port)

    def _need_stream(self, given: object, what: str) -> None:
        if not isinstance(given, Stream):
            raise FlowError(f"{what}, got {given!r}")
        if given.flow is not self.flow:
            raise FlowError(
                f"{given.port} is a stream of another flow, {given.flow.name!r}; steps join streams of one flow"
            )


def _is_function(given: Condition) -> bool:
    return callable(given) and not isinstance(given, Expr)
