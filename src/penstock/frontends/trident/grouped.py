"""A stream by groups, and aggregators in a chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.errors import FlowError
from penstock.frontends.trident.base import Fields, aggregation, out_schema
from penstock.frontends.trident.state import TridentState, group_updates, kept_by_penstock, kept_by_user, query
from penstock.graph.caller import user_line
from penstock.graph.logic.trident.keyed import AggregatorCall, BatchAggregate
from penstock.graph.logic.trident.states import StateFactory
from penstock.graph.schema import Form, Schema

if TYPE_CHECKING:
    from penstock.frontends.trident.stream import TridentStream


@dataclass(frozen=True)
class GroupedStream:
    """A stream by groups, as `TridentStream.group_by` returns it.

    >>> import penstock as ps
    >>> from penstock import trident
    >>> words = ps.TridentTopology("demo").new_stream("words", ps.items(["a"], "word string"))
    >>> words.group_by("word").aggregate((), trident.Count, "n bigint").fields
    ('word', 'n')
    """

    stream: TridentStream
    group: tuple[str, ...]

    def aggregate(
        self, fields: object, aggregator: object, new: Form | None = None, *, name: str = ""
    ) -> TridentStream:
        """What an aggregator makes of the tuples of each group in a batch.

        Args:
            fields: the input fields; none stands for all.
            aggregator: an Aggregator, CombinerAggregator or ReducerAggregator, a class or an instance.
            new: the fields of the result, after those of the group.
            name: the name of the step.

        Returns:
            The stream of the results: the group and the fields.

        Raises:
            FlowError: it is no aggregator.
        """
        wanted, made, given = aggregation(fields, aggregator, new)
        return self._aggregates((self.stream._call(wanted, made),), out_schema(made, given, self.stream), name)

    def _aggregates(self, calls: tuple[AggregatorCall, ...], made: Schema, name: str) -> TridentStream:
        """What several aggregators make together."""
        stream = self.stream
        keys = (*stream.scope, *self.group)
        schema = stream._scoped(*stream.schema.only(self.group).fields, *made.fields)
        logic = BatchAggregate(calls, tuple(range(len(keys))))
        return stream._at(stream._keyed_batch(stream.topology._named("aggregate", name), logic, schema, keys))

    def chained_agg(self) -> ChainedAggregation:
        """Several aggregators over the tuples of each group, side by side.

        Returns:
            The chain: `.aggregate(...)` for each, then `.chain_end()`.
        """
        return ChainedAggregation(self.stream, self._aggregates)

    def persistent_aggregate(
        self,
        state: StateFactory | None,
        fields: object,
        aggregator: object,
        new: Form | None = None,
        *,
        name: str = "",
        parallelism: int = 1,
    ) -> TridentState:
        """Keeps the aggregate of each group over all batches.

        Args:
            state: None for Penstock's own state, where every batch counts once; else makes the states in a store of yours.
            fields: the input fields; none stands for all.
            aggregator: a CombinerAggregator or ReducerAggregator, a class or an instance.
            new: the field of the value.
            name: the name of the step, by which its state goes.
            parallelism: as how many partitions a store of yours is written; Penstock's own state follows the run's parallelism.

        Returns:
            The state: `new_values_stream()` has the groups with their new values, and `state_query` asks it.

        Raises:
            FlowError: it is no such aggregator, or the kinds of spout and state would lose tuples.
        """
        wanted, made, given = aggregation(fields, aggregator, new)
        stream, value = self.stream, out_schema(made, given, self.stream)
        if state is None:
            return kept_by_penstock(stream, self.group, wanted, made, value, name)
        updater, picked = group_updates(stream, self.group, wanted, made)
        values = Schema((*(stream.schema.only(self.group).fields if self.group else ()), *value.fields))
        return kept_by_user(stream, self.group, state, updater, picked, values, name, parallelism)

    def state_query(self, state: TridentState, fields: Fields, function: object, new: Form) -> TridentStream:
        """Asks a state about each tuple, where the values of its group are.

        Args:
            state: the state.
            fields: the input fields: for a state by groups the key, in the order of its group.
            function: a QueryFunction such as `trident.MapGet`.
            new: the fields that are appended.

        Returns:
            The stream with the answers.

        Raises:
            FlowError: it is no query, or the fields do not fit the state.
        """
        return query(self.stream, state, fields, function, new)


Finish = Callable[[tuple[AggregatorCall, ...], Schema, str], "TridentStream"]


@dataclass(frozen=True)
class ChainedAggregation:
    """Aggregators in a chain: their results stand side by side, each tuple of one with each of the others.

    >>> import penstock as ps
    >>> from penstock import trident
    >>> scores = ps.TridentTopology("demo").new_stream("scores", ps.items([], "user string, score bigint"))
    >>> chain = scores.chained_agg().aggregate((), trident.Count, "n bigint").aggregate("score", trident.Sum, "sum bigint")
    >>> chain.chain_end().fields
    ('n', 'sum')
    """

    stream: TridentStream
    finish: Finish
    calls: tuple[AggregatorCall, ...] = ()
    made: tuple[Schema, ...] = ()

    def aggregate(self, fields: object, aggregator: object, new: Form | None = None) -> ChainedAggregation:
        """One more aggregator.

        Args:
            fields: the input fields; none stands for all.
            aggregator: an Aggregator, CombinerAggregator or ReducerAggregator, a class or an instance.
            new: the fields of its result.

        Returns:
            The chain.

        Raises:
            FlowError: it is no aggregator.
        """
        wanted, made, given = aggregation(fields, aggregator, new)
        schema, call = out_schema(made, given, self.stream), self.stream._call(wanted, made)
        return replace(self, calls=(*self.calls, call), made=(*self.made, schema))

    partition_aggregate = aggregate

    def chain_end(self, *, name: str = "") -> TridentStream:
        """Ends the chain.

        Args:
            name: the name of the step.

        Returns:
            The stream of the results.

        Raises:
            FlowError: the chain is empty.
        """
        if not self.calls:
            raise FlowError(f"expected an aggregator in the chain ({user_line()}), got none: .aggregate(...) first")
        return self.finish(self.calls, Schema(tuple(f for schema in self.made for f in schema.fields)), name)
