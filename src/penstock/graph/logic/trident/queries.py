"""What asks a state of Trident, and what writes the tuples of a batch to one."""

from __future__ import annotations

from typing import Any

from penstock.graph.logic.trident.operations import Collector, Operation


class QueryFunction(Operation):
    """Asks a state about the tuples of a batch.

    >>> from penstock.trident import QueryFunction
    >>> class IsKnown(QueryFunction):
    ...     def batch_retrieve(self, state, tuples):
    ...         return [value is not None for value in state.multi_get([tuple(tup) for tup in tuples])]
    ...     def execute(self, tup, result, collector):
    ...         collector.emit(result)
    """

    def batch_retrieve(self, state: Any, tuples: list[Any]) -> list[Any]:
        """What the state answers. You must define it.

        Args:
            state: the state.
            tuples: the input fields of each tuple.

        Returns:
            A result for each tuple.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def execute(self, tup: Any, result: Any, collector: Collector) -> None:
        """Emits what is appended to a tuple; nothing drops it.

        Args:
            tup: its input fields.
            result: what the state answered.
            collector: takes what is emitted.
        """
        collector.emit((result,))


class MapGet(QueryFunction):
    """The value of the key that the input fields are; null where there is none.

    >>> from penstock.trident import MapGet, MemoryStore, OpaqueMap
    >>> MapGet().batch_retrieve(OpaqueMap(MemoryStore()), [("a",)])
    [None]
    """

    def batch_retrieve(self, state: Any, tuples: list[Any]) -> list[Any]:
        """The values of the keys."""
        made: list[Any] = state.multi_get([tuple(tup) for tup in tuples])
        return made


class SnapshotGet(QueryFunction):
    """The one value of a state that was aggregated without a group; null where there is none.

    >>> from penstock.trident import MemoryStore, OpaqueMap, SnapshotGet
    >>> SnapshotGet().batch_retrieve(OpaqueMap(MemoryStore()), [("who",), ("else",)])
    [None, None]
    """

    def batch_retrieve(self, state: Any, tuples: list[Any]) -> list[Any]:
        """The value, for each tuple."""
        made: list[Any] = state.multi_get([()])
        return made * len(tuples)


class TupleCollectionGet(QueryFunction):
    """All that a state keeps: for each tuple that asks, a tuple for each key, its values and then the value that is kept.

    A state of yours answers with `get_tuples()`; each of its partitions answers for itself. Of a state that Penstock keeps one task lists all keys.

    >>> import penstock as ps
    >>> from penstock import trident
    >>> from penstock.testing import LocalDRPC
    >>> top = ps.TridentTopology("demo")
    >>> words = top.new_stream("words", ps.items(["a", "b", "a"], "word string"))
    >>> counts = words.group_by("word").persistent_aggregate(None, (), trident.Count, "n bigint")
    >>> asked = top.new_drpc_stream("all").state_query(counts, "args", trident.TupleCollectionGet, "word string, n bigint")
    >>> _ = asked.project("word", "n")
    >>> called = LocalDRPC(top)
    >>> called.push("words", "a", "b", "a")
    >>> called.execute("all")
    '[["a", 2], ["b", 1]]'
    """

    def batch_retrieve(self, state: Any, tuples: list[Any]) -> list[Any]:
        """All that is kept, for each tuple."""
        made = list(state.get_tuples())
        return [made] * len(tuples)

    def execute(self, tup: Any, result: Any, collector: Collector) -> None:
        """Emits a tuple for each key."""
        for values in result:
            collector.emit(values)


class StateUpdater(Operation):
    """Writes the tuples of a batch to a state.

    >>> from penstock.trident import StateUpdater
    >>> class Put(StateUpdater):
    ...     def update_state(self, state, tuples, collector):
    ...         state.multi_put([(tup.id,) for tup in tuples], [tup.name for tup in tuples])
    """

    def update_state(self, state: Any, tuples: list[Any], collector: Collector) -> None:
        """Called for each batch of a partition. You must define it.

        Args:
            state: the state.
            tuples: the input fields of each tuple.
            collector: takes what is emitted: the stream of new values.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError
