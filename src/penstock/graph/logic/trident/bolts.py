"""The parts of a Trident topology that run by partition, as bolts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.graph.logic.tagged import TaggedRecord
from penstock.graph.logic.topology.components import Bolt
from penstock.graph.logic.topology.task_context import TaskContext
from penstock.graph.logic.trident.aggregators import CombinerAggregator, ReducerAggregator
from penstock.graph.logic.trident.keyed import AggregatorCall, Query, RunningCalls, answered
from penstock.graph.logic.trident.operations import Collector, OperationContext, Picked, Values, clean_up, prepared
from penstock.graph.logic.trident.queries import StateUpdater
from penstock.graph.logic.trident.rows import PerRequest, RowStep
from penstock.graph.logic.trident.states import State, StateFactory
from penstock.graph.schema import Schema


@dataclass
class PartitionRows(Bolt):
    """Rows one at a time, in the partition they are in; without a step they pass as they are."""

    outputs: Schema | dict[str, Schema]
    step: RowStep | PerRequest | None = None
    stateful = False

    def prepare(self, context: TaskContext) -> None:
        """Prepares the operation."""
        if self.step is not None:
            self.step.prepare(OperationContext(context.task, context.tasks))

    def close(self) -> None:
        """Tells the operation."""
        if self.step is not None:
            self.step.close()

    def process(self, tup: Any) -> list[Any]:
        """The rows that one becomes."""
        return [tup.values] if self.step is None else self.step(tup)


@dataclass(kw_only=True)
class PartitionAggregate(Bolt):
    """Aggregators over the tuples of a batch that are in one partition; by the scope, where the stream carries one."""

    outputs: Schema
    calls: tuple[AggregatorCall, ...]
    scope: int = 0
    stateful = False

    def prepare(self, context: TaskContext) -> None:
        """Prepares the aggregators."""
        self._rows: dict[Values, list[Any]] = {}
        for call in self.calls:
            prepared(call.aggregator, OperationContext(context.task, context.tasks))

    def close(self) -> None:
        """Tells the aggregators."""
        for call in self.calls:
            clean_up(call.aggregator)

    def process(self, tup: Any) -> None:
        """Gathers a tuple."""
        self._rows.setdefault(tuple(tup[: self.scope]), []).append(tup)

    def end_batch(self, batch: int) -> Iterator[Values]:
        """What the aggregators emit. A partition without tuples emits nothing."""
        groups, self._rows = self._rows, {}
        for scope, rows in groups.items():
            running = RunningCalls(self.calls, batch)
            for row in rows:
                running.add(row)
            yield from (scope + made for made in running.complete())


@dataclass(frozen=True)
class GroupUpdates(StateUpdater):
    """Updates the value of each group in a state of the user's."""

    aggregator: CombinerAggregator | ReducerAggregator
    keys: Picked
    picked: Picked

    def update_state(self, state: Any, tuples: list[Any], collector: Collector) -> None:
        """One update for each group, which makes its new value; the groups with their new values are emitted."""
        groups: dict[Values, list[Any]] = {}
        for tup in tuples:
            groups.setdefault(self.keys.values(tup), []).append(self.picked(tup))
        made = state.multi_update(list(groups), [self._update(rows) for rows in groups.values()])
        for key, value in zip(groups, made, strict=True):
            collector.values.append((*key, value))

    def _update(self, rows: list[Any]) -> Any:
        aggregator = self.aggregator

        def combined(value: Any) -> Any:
            for made in map(aggregator.init, rows):  # type: ignore[arg-type]  # of a combiner it takes a tuple
                value = made if value is None else aggregator.combine(value, made)  # type: ignore[union-attr]
            return value

        def reduced(value: Any) -> Any:
            value = aggregator.init() if value is None else value  # type: ignore[call-arg]  # of a reducer it takes nothing
            for tup in rows:
                value = aggregator.reduce(value, tup)  # type: ignore[union-attr]
            return value

        return combined if isinstance(aggregator, CombinerAggregator) else reduced


UPDATES = "updates"
"""The component from which a state has its updates; queries have other names."""


@dataclass(kw_only=True)
class StatePartition(Bolt):
    """A partition of a state of the user's: its updates, in a transaction for each batch, then the queries, which see them."""

    outputs: dict[str, Schema]
    factory: StateFactory
    updater: StateUpdater
    picked: Picked
    queries: tuple[Query, ...] = ()
    stateful = False
    _state: Any = field(default=None, compare=False)

    def prepare(self, context: TaskContext) -> None:
        """Makes the state of this partition."""
        self._state = self.factory.state(context.task, context.tasks)
        self._updates: list[Any] = []
        self._asked: dict[str, list[Any]] = {query.output: [] for query in self.queries}
        for operation in (self.updater, *(query.function for query in self.queries)):
            prepared(operation, OperationContext(context.task, context.tasks))

    def close(self) -> None:
        """Tells the updater and the queries."""
        for operation in (self.updater, *(query.function for query in self.queries)):
            clean_up(operation)

    def process(self, tup: Any) -> None:
        """Gathers a tuple."""
        if tup.component == UPDATES:
            self._updates.append(self.picked(tup))
        else:
            self._asked[tup.component].append(tup)

    def end_batch(self, batch: int) -> Iterator[Any]:
        """Commits the updates, and answers."""
        updates, self._updates = self._updates, []
        if updates:
            yield from self._committed(self._state, updates, batch)
        for query in self.queries:
            asked, self._asked[query.output] = self._asked[query.output], []
            for answer in answered(query, self._state, asked):
                yield TaggedRecord(query.output, answer)

    def _committed(self, state: State, updates: list[Any], batch: int) -> list[Values]:
        """The new values of a transaction, when it is committed."""
        collector = Collector()
        state.begin_commit(batch)
        self.updater.update_state(state, updates, collector)
        state.commit(batch)
        return collector.values if self.outputs.get("default") else []
