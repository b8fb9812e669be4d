"""What a step does with the tuples of a batch that have one key: aggregates, joins, and states that Penstock keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from penstock.errors import StateError
from penstock.graph.logic.trident.aggregators import (
    Aggregator,
    CombinerAggregator,
    CombinerSteps,
    ReducerAggregator,
    crossed,
)
from penstock.graph.logic.trident.operations import Collector, Picked, Values, prepared
from penstock.graph.logic.trident.queries import QueryFunction


class KeyedBatchLogic:
    """What a step by key and batch does. Nothing of it outlives a batch but what `finish` keeps."""

    def start(self, batch: int) -> Any:
        """What is gathered before the first tuple of a key."""
        return []

    def add(self, gathered: Any, source: int, row: Any) -> None:
        """Takes in a tuple of an input."""
        raise NotImplementedError

    def finish(self, key: Values, gathered: Any, kept: Any) -> tuple[Any, list[tuple[str, Values]]]:
        """At the end of the batch: what is kept for the key, and the records by output."""
        raise NotImplementedError

    @property
    def combines(self) -> bool:
        """Whether the tuples of a key of the first input can be put together in parts, before they move to where the key is."""
        return False

    def part(self, row: Any) -> Any:
        """The part that one tuple makes."""
        raise NotImplementedError

    def joined(self, one: Any, other: Any) -> Any:
        """Two parts of a key as one, in their order."""
        raise NotImplementedError

    def add_part(self, gathered: Any, part: Any) -> None:
        """Takes in a part, in place of the tuples that it was made of."""
        raise NotImplementedError


@dataclass(frozen=True)
class AggregatorCall:
    """An aggregator over some fields."""

    aggregator: Aggregator
    picked: Picked


@dataclass
class RunningCalls:
    """Chained aggregators on their way through the tuples of one group."""

    calls: tuple[AggregatorCall, ...]
    batch: int
    collectors: list[Collector] = field(init=False)
    states: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.collectors = [Collector() for _ in self.calls]
        self.states = [
            prepared(c.aggregator).init(self.batch, o) for c, o in zip(self.calls, self.collectors, strict=True)
        ]

    def add(self, row: Any) -> None:
        """Hands a tuple to each."""
        for call, state, collector in zip(self.calls, self.states, self.collectors, strict=True):
            call.aggregator.aggregate(state, call.picked(row), collector)

    def complete(self) -> list[Values]:
        """What they emit together."""
        for call, state, collector in zip(self.calls, self.states, self.collectors, strict=True):
            call.aggregator.complete(state, collector)
        return crossed([collector.values for collector in self.collectors])


@dataclass(frozen=True)
class BatchAggregate(KeyedBatchLogic):
    """Aggregators over the tuples of each key. Further inputs only say which keys there are: the aggregators of one without tuples emit too."""

    calls: tuple[AggregatorCall, ...]
    emits_key: tuple[int, ...] = ()
    """Which parts of the key stand before what is emitted."""

    def start(self, batch: int) -> RunningCalls:
        """Aggregators that begin."""
        return RunningCalls(self.calls, batch)

    def add(self, gathered: RunningCalls, source: int, row: Any) -> None:
        """Hands a tuple to the aggregators."""
        if source == 0:
            gathered.add(row)

    def finish(self, key: Values, gathered: RunningCalls, kept: Any) -> tuple[Any, list[tuple[str, Values]]]:
        """The parts of the key, and what the aggregators emit."""
        group = tuple([key[at] for at in self.emits_key])
        return None, [("out", group + made) for made in gathered.complete()]

    @property
    def combines(self) -> bool:
        """Where all aggregators do."""
        return all(isinstance(call.aggregator, CombinerSteps) for call in self.calls)

    @property
    def _combiners(self) -> list[CombinerAggregator]:
        return [call.aggregator.of for call in self.calls if isinstance(call.aggregator, CombinerSteps)]

    def part(self, row: Any) -> list[Any]:
        """The value of a tuple by each aggregator."""
        return [of.init(call.picked(row)) for of, call in zip(self._combiners, self.calls, strict=True)]

    def joined(self, one: list[Any], other: list[Any]) -> list[Any]:
        """Combines the values of each aggregator."""
        return [of.combine(a, b) for of, a, b in zip(self._combiners, one, other, strict=True)]

    def add_part(self, gathered: RunningCalls, part: list[Any]) -> None:
        """Combines the values with those so far."""
        for of, state, value in zip(self._combiners, gathered.states, part, strict=True):
            state[:] = [of.combine(state[0], value) if state else value]


@dataclass(frozen=True)
class BatchJoin(KeyedBatchLogic):
    """The tuples of a batch with the same key, each of one stream with each of the others. An outer stream without any stands in with nulls."""

    sides: tuple[Picked, ...]
    outer: tuple[bool, ...]

    def start(self, batch: int) -> list[list[Values]]:
        """No tuple of any stream."""
        return [[] for _ in self.sides]

    def add(self, gathered: list[list[Values]], source: int, row: Any) -> None:
        """Gathers a tuple."""
        gathered[source].append(self.sides[source].values(row))

    def finish(self, key: Values, gathered: list[list[Values]], kept: Any) -> tuple[Any, list[tuple[str, Values]]]:
        """The key, and the fields of each stream."""
        filled = [
            rows or ([(None,) * len(side.names)] if outer else [])
            for rows, side, outer in zip(gathered, self.sides, self.outer, strict=True)
        ]
        return None, [("out", sum(parts, key)) for parts in product(*filled)]


@dataclass(frozen=True)
class Query:
    """A question to a state: the function, its input fields, those of the stream, and the output of the step that gets the answers."""

    function: QueryFunction
    picked: Picked
    carried: Picked
    output: str


@dataclass(frozen=True)
class KeptValue:
    """A state that Penstock keeps, as a query sees it: the value of the one key that is asked for."""

    key: Values
    value: Any

    def multi_get(self, keys: list[Values]) -> list[Any]:
        """The value, for each time it is asked for."""
        return [self.get(key) for key in keys]

    def get(self, key: Values = ()) -> Any:
        """The value of the key."""
        if tuple(key) not in (self.key, ()):
            raise StateError(
                f"expected the key {self.key!r}, which the input fields of the query are, got {key!r}: a state that Penstock keeps answers where "
                f"its keys are. Group the stream by the fields that are asked for"
            )
        return self.value


@dataclass(frozen=True)
class PersistentAggregate(KeyedBatchLogic):
    """A running aggregate by key that Penstock keeps. Input 0 has tuples, the others queries, which see the batch's updates."""

    aggregator: CombinerAggregator | ReducerAggregator
    picked: Picked
    is_total: bool
    queries: tuple[Query, ...] = ()

    def start(self, batch: int) -> list[list[Any]]:
        """No tuples, no queries."""
        return [[] for _ in range(1 + len(self.queries))]

    def add(self, gathered: list[list[Any]], source: int, row: Any) -> None:
        """Combines a tuple with those before it; keeps a query until the end."""
        if source or not self.combines:
            gathered[source].append(row if source else self.picked(row))
        else:
            self.add_part(gathered, self.part(row))

    @property
    def combines(self) -> bool:
        """Where the aggregator does."""
        return isinstance(self.aggregator, CombinerAggregator)

    def part(self, row: Any) -> Any:
        """The value of a tuple."""
        return self._combiner.init(self.picked(row))

    def joined(self, one: Any, other: Any) -> Any:
        """Two values as one."""
        return self._combiner.combine(one, other)

    def add_part(self, gathered: list[list[Any]], part: Any) -> None:
        """Combines a value with that so far."""
        gathered[0][:] = [self._combiner.combine(gathered[0][0], part) if gathered[0] else part]

    @property
    def _combiner(self) -> CombinerAggregator:
        assert isinstance(self.aggregator, CombinerAggregator), "combines says so"
        return self.aggregator

    def finish(self, key: Values, gathered: list[list[Any]], kept: Any) -> tuple[Any, list[tuple[str, Values]]]:
        """The new value, and the answers."""
        value = self._updated(kept, gathered[0])
        group = () if self.is_total else key
        made = [("out", (*group, value[0]))] if gathered[0] and value is not None else []
        seen = KeptValue(group, None if value is None else value[0])
        for query, rows in zip(self.queries, gathered[1:], strict=True):
            made += [(query.output, answer) for answer in answered(query, seen, rows)]
        return value, made

    def _updated(self, kept: Any, mine: list[Any]) -> Any:
        """The value in a tuple of its own, so that a value that is None is one; None where there is none."""
        if not mine:
            return kept
        if isinstance(self.aggregator, CombinerAggregator):
            return (mine[0] if kept is None else self.aggregator.combine(kept[0], mine[0]),)
        value = self.aggregator.init() if kept is None else kept[0]
        for tup in mine:
            value = self.aggregator.reduce(value, tup)
        return (value,)


@dataclass(frozen=True)
class ListedState:
    """A state that Penstock keeps, as a query sees it that asks for all of it."""

    tuples: list[Values]

    def get_tuples(self) -> list[Values]:
        """All keys with their values."""
        return self.tuples


@dataclass(frozen=True)
class StateListing(KeyedBatchLogic):
    """All keys of a state that Penstock keeps, in one place. Input 0 has the values as batches change them, the others queries, which see them."""

    picked: Picked
    keys: int
    queries: tuple[Query, ...] = ()

    def start(self, batch: int) -> list[list[Any]]:
        """No values, no queries."""
        return [[] for _ in range(1 + len(self.queries))]

    def add(self, gathered: list[list[Any]], source: int, row: Any) -> None:
        """Keeps a tuple until the end."""
        gathered[source].append(row if source else self.picked.values(row))

    def finish(self, key: Values, gathered: list[list[Any]], kept: Any) -> tuple[Any, list[tuple[str, Values]]]:
        """The keys with their values, and the answers."""
        value = (kept or {}) | {row[: self.keys]: row for row in gathered[0]} if gathered[0] else kept
        seen = ListedState(list((value or {}).values()))
        pairs = zip(self.queries, gathered[1:], strict=True)
        return value, [(query.output, answer) for query, rows in pairs for answer in answered(query, seen, rows)]


def answered(query: Query, state: Any, rows: list[Any]) -> list[Values]:
    """The rows with what a query appends to each."""
    tuples = [query.picked(row) for row in rows]
    if not tuples:
        return []
    results = prepared(query.function).batch_retrieve(state, tuples)
    if len(results) != len(tuples):
        raise StateError(
            f"expected a result for each of {len(tuples)} tuples from {type(query.function).__qualname__}.batch_retrieve, got {len(results)}"
        )
    made: list[Values] = []
    for row, tup, result in zip(rows, tuples, results, strict=True):
        collector = Collector()
        query.function.execute(tup, result, collector)
        made += [query.carried.values(row) + values for values in collector.values]
    return made


FAILED = "failed"
"""The output of requests on which a step failed: the request, and why."""


def why(error: BaseException) -> str:
    """An error as a caller reads it."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


@dataclass(frozen=True)
class PerRequest(KeyedBatchLogic):
    """Logic whose key begins with a request: where it fails, the request fails, and no other."""

    of: KeyedBatchLogic

    def start(self, batch: int) -> list[Any]:
        """What the logic gathers, and the first error."""
        try:
            return [self.of.start(batch), None]
        except Exception as error:
            return [None, why(error)]

    def add(self, gathered: list[Any], source: int, row: Any) -> None:
        """Takes in a tuple, unless the request has failed."""
        if gathered[1] is None:
            try:
                self.of.add(gathered[0], source, row)
            except Exception as error:
                gathered[1] = why(error)

    def finish(self, key: Values, gathered: list[Any], kept: Any) -> tuple[Any, list[tuple[str, Values]]]:
        """What the logic makes, or the failed request."""
        if gathered[1] is None:
            try:
                return self.of.finish(key, gathered[0], kept)
            except Exception as error:
                gathered[1] = why(error)
        return kept, [(FAILED, (key[0], gathered[1]))]


@dataclass(frozen=True)
class Answers(KeyedBatchLogic):
    """The answer to each request: input 0 has the tuples of the result, input 1 all requests, the others requests that failed.

    `whole` says that the answer is all tuples, as JSON; else it is the first field of the first, as text.
    """

    picked: Picked
    whole: bool

    def start(self, batch: int) -> tuple[list[Any], list[str]]:
        """No tuple, no failure."""
        return [], []

    def add(self, gathered: tuple[list[Any], list[str]], source: int, row: Any) -> None:
        """Gathers a tuple of the result, or a failure."""
        if source == 0:
            gathered[0].append(self.picked.values(row))
        elif source > 1:
            gathered[1].append(row[1])

    def finish(self, key: Values, gathered: Any, kept: Any) -> tuple[Any, list[tuple[str, Values]]]:
        """The request with its answer, or with what went wrong."""
        rows, failures = gathered
        if not failures and not rows and not self.whole:
            failures = ["the function returned no result for this request"]
        if failures:
            return None, [("out", (key[0], None, failures[0]))]
        return None, [("out", (key[0], self._answer(rows), None))]

    def _answer(self, rows: list[Values]) -> str:
        if not self.whole:
            return _text(rows[0][0])
        return json.dumps([list(row) for row in rows], default=str, ensure_ascii=False)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
