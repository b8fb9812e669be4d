"""Aggregators of Trident: what is made of the tuples of a batch, a partition or a group."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from penstock.errors import FlowError
from penstock.graph.logic.trident.operations import Collector, Operation, Values


class Aggregator(Operation):
    """The most general aggregator: it may emit any number of tuples, whenever it likes.

    >>> from penstock.trident import Aggregator
    >>> class CountAll(Aggregator):
    ...     def init(self, batch, collector):
    ...         return [0]
    ...     def aggregate(self, state, tup, collector):
    ...         state[0] += 1
    ...     def complete(self, state, collector):
    ...         collector.emit(state[0])
    """

    def init(self, batch: int, collector: Collector) -> Any:
        """Called before the first tuple of a batch or group.

        Args:
            batch: the id of the batch; a batch that runs again has the same.
            collector: takes what is emitted.

        Returns:
            The state of the aggregation, which may be mutated.
        """

    def aggregate(self, state: Any, tup: Any, collector: Collector) -> None:
        """Called for each tuple. You must define it.

        Args:
            state: what `init` returned.
            tup: the input fields of the tuple.
            collector: takes what is emitted.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def complete(self, state: Any, collector: Collector) -> None:
        """Called after the last tuple.

        Args:
            state: what `init` returned.
            collector: takes what is emitted.
        """


class CombinerAggregator:
    """An aggregator whose values combine: each tuple becomes a value, and two values become one, however they are paired.

    >>> from penstock.trident import CombinerAggregator
    >>> class Total(CombinerAggregator):
    ...     def init(self, tup):
    ...         return tup.n
    ...     def combine(self, one, other):
    ...         return one + other
    ...     def zero(self):
    ...         return 0
    """

    def init(self, tup: Any) -> Any:
        """The value of one tuple. You must define it.

        Args:
            tup: the input fields of the tuple.

        Returns:
            Its value.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def combine(self, one: Any, other: Any) -> Any:
        """Two values as one. You must define it.

        Args:
            one: a value.
            other: another.

        Returns:
            The value of both.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def zero(self) -> Any:
        """The value of no tuples.

        Returns:
            None, unless you say otherwise.
        """
        return None


class ReducerAggregator:
    """An aggregator that takes in one tuple after the other.

    >>> from penstock.trident import ReducerAggregator
    >>> class Last(ReducerAggregator):
    ...     def init(self):
    ...         return None
    ...     def reduce(self, current, tup):
    ...         return tup[0]
    """

    def init(self) -> Any:
        """The value before the first tuple.

        Returns:
            None, unless you say otherwise.
        """
        return None

    def reduce(self, current: Any, tup: Any) -> Any:
        """Takes in one tuple. You must define it.

        Args:
            current: the value so far.
            tup: the input fields of the tuple.

        Returns:
            The new value.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError


class Count(CombinerAggregator):
    """How many tuples there are.

    >>> from penstock.trident import Count
    >>> Count().combine(Count().init(("a",)), 2)
    3
    """

    def init(self, tup: Any) -> int:
        """One for each tuple."""
        return 1

    def combine(self, one: int, other: int) -> int:
        """The sum."""
        return one + other

    def zero(self) -> int:
        """None of them."""
        return 0


class Sum(CombinerAggregator):
    """The sum of a field.

    >>> from penstock.trident import Sum
    >>> Sum().combine(Sum().init((3,)), 4)
    7
    """

    def init(self, tup: Any) -> Any:
        """The field."""
        return tup[0]

    def combine(self, one: Any, other: Any) -> Any:
        """The sum."""
        return one + other

    def zero(self) -> Any:
        """Nothing."""
        return 0


@dataclass
class Extreme(ReducerAggregator):
    """The tuple with the least or the greatest of a field; the first of several. Null is never it."""

    field: str
    greatest: bool

    def reduce(self, current: Any, tup: Any) -> Any:
        """The better of both."""
        value = tup[self.field]
        if value is None or (current is not None and not self._beats(value, current[self.field])):
            return current
        return tup

    def _beats(self, value: Any, best: Any) -> bool:
        return bool(value > best) if self.greatest else bool(value < best)


@dataclass
class CombinerSteps(Aggregator):
    """A combiner as the most general aggregator."""

    of: CombinerAggregator

    def init(self, batch: int, collector: Collector) -> list[Any]:
        """The value of no tuples, which the first tuple's replaces."""
        return []

    def aggregate(self, state: list[Any], tup: Any, collector: Collector) -> None:
        """Combines the value of a tuple."""
        made = self.of.init(tup)
        state[:] = [self.of.combine(state[0], made) if state else made]

    def complete(self, state: list[Any], collector: Collector) -> None:
        """Emits the value."""
        collector.values.append((state[0] if state else self.of.zero(),))


@dataclass
class ReducerSteps(Aggregator):
    """A reducer as the most general aggregator; `whole` where its value is a tuple of the fields."""

    of: ReducerAggregator
    whole: bool = False

    def init(self, batch: int, collector: Collector) -> list[Any]:
        """The value before the first tuple."""
        return [self.of.init()]

    def aggregate(self, state: list[Any], tup: Any, collector: Collector) -> None:
        """Takes in a tuple."""
        state[0] = self.of.reduce(state[0], tup)

    def complete(self, state: list[Any], collector: Collector) -> None:
        """Emits the value."""
        if not self.whole:
            collector.values.append((state[0],))
        elif state[0] is not None:
            collector.values.append(tuple(state[0]))


def is_aggregator(given: object) -> bool:
    """Whether something is an aggregator, a class or an instance."""
    kinds = (Aggregator, CombinerAggregator, ReducerAggregator)
    return issubclass(given, kinds) if isinstance(given, type) else isinstance(given, kinds)


def aggregator_of(given: object) -> Aggregator:
    """Any aggregator as the most general one.

    Raises:
        FlowError: it is none.
    """
    made = given() if isinstance(given, type) else given
    if isinstance(made, CombinerAggregator):
        return CombinerSteps(made)
    if isinstance(made, ReducerAggregator):
        return ReducerSteps(made, whole=isinstance(made, Extreme))
    if not isinstance(made, Aggregator):
        raise FlowError(
            f"expected a trident.Aggregator, CombinerAggregator or ReducerAggregator, a class or an instance, got {given!r}"
        )
    return made


def stored_aggregator(given: object) -> CombinerAggregator | ReducerAggregator:
    """An aggregator whose values a state can keep.

    Raises:
        FlowError: it is none, or is the most general one, whose values nobody can store.
    """
    made = given() if isinstance(given, type) else given
    if not isinstance(made, CombinerAggregator | ReducerAggregator) or isinstance(made, Extreme):
        raise FlowError(
            f"expected a CombinerAggregator or a ReducerAggregator, whose values a state can keep, got {given!r}"
        )
    return made


def crossed(parts: list[list[Values]]) -> list[Values]:
    """What chained aggregators emit together: each tuple of one with each of the others, side by side.

    >>> crossed([[(1,), (2,)], [("a",)]])
    [(1, 'a'), (2, 'a')]
    """
    return [sum(each, ()) for each in product(*parts)]
