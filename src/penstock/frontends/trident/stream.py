"""Streams of a Trident topology: each method adds a step and returns the stream that comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from penstock.errors import FlowError
from penstock.frontends.trident.base import Fields, aggregation, fields_of, out_schema
from penstock.frontends.trident.grouped import ChainedAggregation, GroupedStream
from penstock.frontends.trident.partitions import Partitioning
from penstock.frontends.trident.state import TridentState, kept_by_user, query
from penstock.graph.aggregates.calls import calls_of
from penstock.graph.caller import user_line
from penstock.graph.compose import picked_fields
from penstock.graph.duration import Span as Duration
from penstock.graph.expr import col
from penstock.graph.ids import child
from penstock.graph.logic.trident import rows
from penstock.graph.logic.trident.aggregators import Extreme
from penstock.graph.logic.trident.bolts import PartitionAggregate
from penstock.graph.logic.trident.keyed import AggregatorCall, BatchAggregate
from penstock.graph.logic.trident.operations import Filter, operation_of
from penstock.graph.logic.trident.queries import StateUpdater
from penstock.graph.logic.trident.states import StateFactory
from penstock.graph.nodes import Endpoint, FlatMap, Sink, Window, Windows
from penstock.graph.nodes.base import ALL
from penstock.graph.nodes.exchange import Grouping
from penstock.graph.schema import Form, Schema, schema_of
from penstock.graph.windows import WindowSpec, count_window, sliding, tumbling


@dataclass(frozen=True)
class TridentStream(Partitioning):
    """A stream of a `TridentTopology`. Steps may be named with `name=`; state goes by the name of its step.

    >>> import penstock as ps
    >>> ps.TridentTopology("demo").new_stream("words", ps.items(["a"], "word string"))
    TridentStream('words': word string)
    """

    def each(self, fields: Fields, operation: object, new: Form | None = None, *, name: str = "") -> TridentStream:
        """Appends what a function emits for each tuple, or keeps those that a filter wants.

        Args:
            fields: the input fields; none stands for all.
            operation: a Function or a Filter, a class or an instance, or a plain function of the tuple: it returns the values to append, or, without
                `new`, whether the tuple stays.
            new: the fields that a function appends.
            name: the name of the step.

        Returns:
            The stream with the fields appended, or with fewer tuples.

        Raises:
            FlowError: the operation is none, or does not go with the fields.
        """
        made = operation_of(operation, appends=new is not None)
        picked, scope = self._picked(fields), len(self.scope)
        if isinstance(made, Filter):
            return self._rows("filter", rows.EachFilter(made, picked, scope), self.schema, name)
        assert new is not None, "operation_of refuses a function without fields"
        schema = self._appended(new)
        return self._rows("each", rows.EachFunction(made, picked, scope), schema, name)

    def filter(self, operation: object, fields: Fields = (), *, name: str = "") -> TridentStream:
        """Keeps the tuples that a filter wants.

        Args:
            operation: a Filter, a class or an instance, or a plain function of the tuple.
            fields: the input fields; none stands for all.
            name: the name of the step.

        Returns:
            The stream with fewer tuples.

        Raises:
            FlowError: it is no filter.
        """
        return self.each(fields, operation, name=name)

    def map(self, function: Callable[[Any], Any], new: Form | None = None, *, name: str = "") -> TridentStream:
        """A tuple for each, with other values.

        Args:
            function: from the tuple to the values of the new one.
            new: its fields; else those of the stream.
            name: the name of the step.

        Returns:
            The stream of the new tuples.
        """
        return self._mapped("map", function, new, name, many=False)

    def flat_map(self, function: Callable[[Any], Any], new: Form | None = None, *, name: str = "") -> TridentStream:
        """Any number of tuples for each.

        Args:
            function: from the tuple to a list of new ones.
            new: their fields; else those of the stream.
            name: the name of the step.

        Returns:
            The stream of the new tuples.
        """
        return self._mapped("flat_map", function, new, name, many=True)

    def _mapped(
        self, kind: str, function: Callable[[Any], Any], new: Form | None, name: str, *, many: bool
    ) -> TridentStream:
        schema = self.schema if new is None else self._scoped(*schema_of(new).fields)
        return self._rows(kind, rows.Mapped(function, self._whole(), len(self.scope), many=many), schema, name)

    def peek(self, function: Callable[[Any], object], *, name: str = "") -> TridentStream:
        """Shows each tuple to a function, and passes it on.

        Args:
            function: gets the tuple; what it returns does not matter.
            name: the name of the step.

        Returns:
            The same stream.
        """
        return self._rows("peek", rows.Peeked(function, self._whole(), len(self.scope)), self.schema, name)

    def project(self, *fields: str, name: str = "") -> TridentStream:
        """The tuples with some of their fields.

        Args:
            fields: the fields, in the order they are to have.
            name: the name of the step.

        Returns:
            The stream of these fields.

        Raises:
            SchemaError: a field is not there.
        """
        picked = self._picked(tuple(n for f in fields for n in fields_of(f)))
        schema = self._scoped(*self.schema.only(picked.names).fields)
        if self.segment is not None:
            return self._rows("project", rows.Projected(None, picked, len(self.scope)), schema, name)
        columns = {n: col(n) for n in (*self.scope, *picked.names)}
        return self._at(
            self.builder.add(picked_fields(self.topology._named("project", name), self.port, columns, user_line()))
        )

    # Aggregates of a batch.

    def group_by(self, *fields: str) -> GroupedStream:
        """The stream by groups of equal fields.

        Args:
            fields: the fields of the group.

        Returns:
            The stream by groups.

        Raises:
            FlowError: there is no field.
            SchemaError: a field is not there.
        """
        return GroupedStream(self, self._group(fields))

    def aggregate(
        self, fields: object, aggregator: object, new: Form | None = None, *, name: str = ""
    ) -> TridentStream:
        """What an aggregator makes of all tuples of a batch; of a call, on the stream of a function, even where none is left.

        Args:
            fields: the input fields; none, or left out as in Trident, stands for all.
            aggregator: an Aggregator, CombinerAggregator or ReducerAggregator, a class or an instance.
            new: the fields of the result.
            name: the name of the step.

        Returns:
            The stream of the results.

        Raises:
            FlowError: it is no aggregator.
        """
        wanted, made, given = aggregation(fields, aggregator, new)
        return self._aggregates((self._call(wanted, made),), out_schema(made, given, self), name)

    def _aggregates(self, calls: tuple[AggregatorCall, ...], made: Schema, name: str) -> TridentStream:
        """What several aggregators make together of all tuples of a batch."""
        called, logic = self.topology._named("aggregate", name), BatchAggregate(calls, tuple(range(len(self.scope))))
        others = ((self.topology.functions[self.requests].port, self.scope),) if self.scope else ()
        return self._at(self._keyed_batch(called, logic, self._scoped(*made.fields), self.scope, others))

    def min_by(self, field: str, *, name: str = "") -> TridentStream:
        """The tuple of each batch with the least of a field.

        Args:
            field: the field.
            name: the name of the step.

        Returns:
            The stream of these tuples.
        """
        return self._extreme(field, name, greatest=False)

    def max_by(self, field: str, *, name: str = "") -> TridentStream:
        """The tuple of each batch with the greatest of a field.

        Args:
            field: the field.
            name: the name of the step.

        Returns:
            The stream of these tuples.
        """
        return self._extreme(field, name, greatest=True)

    def _extreme(self, field: str, name: str, *, greatest: bool) -> TridentStream:
        self.schema.field(field)
        return self.aggregate((), Extreme(field, greatest), name=name)

    def chained_agg(self) -> ChainedAggregation:
        """Several aggregators over all tuples of a batch, side by side.

        Returns:
            The chain: `.aggregate(...)` for each, then `.chain_end()`.
        """
        return ChainedAggregation(self, self._aggregates)

    def partition_aggregate(
        self, fields: object, aggregator: object, new: Form | None = None, *, name: str = ""
    ) -> TridentStream:
        """What an aggregator makes of the tuples of a batch in each partition.

        Args:
            fields: the input fields; none stands for all.
            aggregator: an Aggregator, CombinerAggregator or ReducerAggregator, a class or an instance.
            new: the fields of the result.
            name: the name of the step.

        Returns:
            The stream of the results of all partitions.

        Raises:
            FlowError: it is no aggregator.
        """
        wanted, made, given = aggregation(fields, aggregator, new)
        return self._in_partitions((self._call(wanted, made),), out_schema(made, given, self), name)

    def _in_partitions(self, calls: tuple[AggregatorCall, ...], made: Schema, name: str) -> TridentStream:
        logic = PartitionAggregate(outputs=self._scoped(*made.fields), calls=calls, scope=len(self.scope))
        return self._bolt(self.topology._named("partition_aggregate", name), logic, Grouping("local_or_shuffle"))

    # States.

    def persistent_aggregate(
        self, state: StateFactory | None, fields: object, aggregator: object, new: Form | None = None, *, name: str = ""
    ) -> TridentState:
        """Keeps the aggregate of all tuples of all batches; `group_by(...).persistent_aggregate` keeps that of each group.

        Args:
            state: None for Penstock's own state, where every batch counts once; else makes the state in a store of yours.
            fields: the input fields; none stands for all.
            aggregator: a CombinerAggregator or ReducerAggregator, a class or an instance.
            new: the field of the value.
            name: the name of the step, by which its state goes.

        Returns:
            The state.

        Raises:
            FlowError: it is no such aggregator, or the kinds of spout and state would lose tuples.
        """
        return GroupedStream(self, ()).persistent_aggregate(state, fields, aggregator, new, name=name)

    def partition_persist(
        self,
        state: StateFactory,
        fields: Fields,
        updater: StateUpdater | type[StateUpdater],
        new: Form | None = None,
        *,
        name: str = "",
        parallelism: int = 1,
    ) -> TridentState:
        """Writes the tuples of each batch to a state of yours, partition by partition.

        Args:
            state: makes the states.
            fields: the input fields; none stands for all.
            updater: a StateUpdater, a class or an instance.
            new: the fields that the updater emits, if it does.
            name: the name of the step.
            parallelism: as how many partitions, where the stream has none.

        Returns:
            The state.

        Raises:
            FlowError: it is no updater, or the kinds of spout and state would lose tuples.
        """
        made = updater() if isinstance(updater, type) else updater
        if not isinstance(made, StateUpdater):
            raise FlowError(f"expected a trident.StateUpdater, a class or an instance, got {updater!r} ({user_line()})")
        values = None if new is None else schema_of(new)
        return kept_by_user(self, None, state, made, self._picked(fields), values, name, parallelism)

    def state_query(self, state: TridentState, fields: Fields, function: object, new: Form) -> TridentStream:
        """Asks a state about each tuple, and appends the answers.

        A state that Penstock keeps answers as it stands after the batch: `trident.MapGet` the value of a group, `trident.SnapshotGet` that of a state without groups.

        Args:
            state: the state.
            fields: the input fields: for a state by groups the key, in the order of its group.
            function: a QueryFunction, a class or an instance.
            new: the fields that are appended.

        Returns:
            The stream with the answers.

        Raises:
            FlowError: it is no query, or the fields do not fit the state.
        """
        return query(self, state, fields, function, new)

    # Windows.

    def window(
        self,
        spec: WindowSpec,
        fields: Fields,
        aggregator: object,
        new: Form,
        *,
        clock: str = "processing",
        name: str = "",
    ) -> TridentStream:
        """What an aggregator makes of the tuples of each window, over all batches.

        Args:
            spec: the windows: `ps.tumbling("10s")`, `ps.sliding("10s", "2s")`, `ps.count_window(100, every=20)` and the like.
            fields: the input fields; none stands for all.
            aggregator: an Aggregator, CombinerAggregator or ReducerAggregator, a class or an instance.
            new: the fields of the result.
            clock: "processing" as in Trident, or "event" where the source has an event time.
            name: the name of the step.

        Returns:
            The stream of the results, a batch of its own for each window.

        Raises:
            FlowError: it is no aggregator, the stream is that of a function, or it has no event time.
        """
        if self.scope:
            raise FlowError(
                f"window ({user_line()}): expected a stream of a spout, got one of a function: a call is one batch"
            )
        called, call = self.topology._named("window", name), self._call(fields, aggregator)
        own = self.schema.only(self.fields)
        windows = Windows(spec, 0, None, True, "append", clock)
        calls = calls_of({"gathered": rows.GatheredRows(own)})
        port = self.builder.add(
            Window(child(called, "rows"), (self._with_all(called),), (ALL,), calls=calls, windows=windows)
        )
        return self._at(
            self.builder.add(FlatMap(called, (port,), rows.WindowCalls((call,)), out_schema(aggregator, new, self)))
        )

    def tumbling_window(
        self, size: int | Duration, fields: Fields, aggregator: object, new: Form, *, name: str = ""
    ) -> TridentStream:
        """Windows side by side: of so many tuples (a number), or of so much processing time ("10s").

        Args:
            size: how many tuples, or how long.
            fields: the input fields; none stands for all.
            aggregator: an Aggregator, CombinerAggregator or ReducerAggregator, a class or an instance.
            new: the fields of the result.
            name: the name of the step.

        Returns:
            The stream of the results.
        """
        spec = count_window(size) if isinstance(size, int) else tumbling(size)
        return self.window(spec, fields, aggregator, new, name=name)

    def sliding_window(
        self,
        size: int | Duration,
        every: int | Duration,
        fields: Fields,
        aggregator: object,
        new: Form,
        *,
        name: str = "",
    ) -> TridentStream:
        """Windows that overlap: of so many tuples, every so many (numbers), or of so much processing time, every so often.

        As in Trident the first windows by tuples hold what is there: of 4 every 2 the first has 2 tuples.

        Args:
            size: how many tuples, or how long.
            every: after how many tuples, or after which time, the next begins.
            fields: the input fields; none stands for all.
            aggregator: an Aggregator, CombinerAggregator or ReducerAggregator, a class or an instance.
            new: the fields of the result.
            name: the name of the step.

        Returns:
            The stream of the results.

        Raises:
            FlowError: one is a number and the other a time.
        """
        if isinstance(size, int) != isinstance(every, int):
            raise FlowError(
                f"sliding_window ({user_line()}): expected two numbers or two times, got {size!r} and {every!r}"
            )
        spec = _sliding_count(size, every) if isinstance(size, int) else sliding(size, every)  # type: ignore[arg-type]  # as size
        return self.window(spec, fields, aggregator, new, name=name)

    def sink(self, name: str, endpoint: Endpoint) -> None:
        """Where the tuples go.

        Args:
            name: the name of the sink.
            endpoint: what is written, such as `ps.write_topic(...)`.

        Raises:
            FlowError: the endpoint is none, or the stream is that of a function, which answers.
        """
        if not isinstance(endpoint, Endpoint):
            raise FlowError(
                f"sink {name!r} ({user_line()}): expected an endpoint such as ps.console(), got {endpoint!r}"
            )
        self.builder.add(Sink(name, (self.port,), endpoint, line=user_line()))

    def __repr__(self) -> str:
        return f"TridentStream({str(self.port)!r}: {self.schema.only(self.fields)})"


def _sliding_count(size: int, every: int) -> WindowSpec:
    return replace(count_window(size, every=every), is_partial=True)
