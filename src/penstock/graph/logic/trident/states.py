"""States of Trident that live outside: a store of the user's, and the rules by which batches are written to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from penstock.errors import FlowError, StateError
from penstock.graph.logic.trident.operations import Collector, Operation, Values
from penstock.graph.logic.trident.values import OpaqueValue, TransactionalValue

TRANSACTIONAL, OPAQUE, NON_TRANSACTIONAL = "transactional", "opaque", "non_transactional"
KINDS = (TRANSACTIONAL, OPAQUE, NON_TRANSACTIONAL)
"""Of spouts and of states."""
Update = Callable[[Any], Any]
"""From the stored value, None where there is none, to the new one."""


class State:
    """The base of a state of your own, one instance for each partition.

    >>> from penstock.trident import State
    >>> class Notes(State):
    ...     def begin_commit(self, txid):
    ...         self.txid = txid
    """

    kind: ClassVar[str] = NON_TRANSACTIONAL
    """What it does with a batch that runs again: "transactional", "opaque" or "non_transactional"."""

    def begin_commit(self, txid: int) -> None:
        """Called before the updates of a batch.

        Args:
            txid: the transaction, which is the id of the batch; a batch that runs again has the same.
        """

    def commit(self, txid: int) -> None:
        """Called after the updates of a batch.

        Args:
            txid: the transaction.
        """


class BackingMap(Protocol):
    """A store of the user's: values by key. A key is a tuple of the group's values."""

    def multi_get(self, keys: list[Values]) -> list[Any]:
        """What is stored for each key, None where nothing is."""

    def multi_put(self, keys: list[Values], values: list[Any]) -> None:
        """Stores a value for each key."""


class MapState(State):
    """A state with a value for each key, over a store of yours. The store keeps what `TransactionalMap`, `OpaqueMap` and `NonTransactionalMap` put there.

    Args:
        backing: the store.

    Raises:
        FlowError: it lacks `multi_get` or `multi_put`.

    >>> from penstock.trident import MemoryStore, NonTransactionalMap
    >>> state = NonTransactionalMap(MemoryStore())
    >>> state.begin_commit(1)
    >>> state.multi_put([("a",)], [5])
    >>> state.get(("a",)), state.get_tuples()
    (5, [('a', 5)])
    """

    def __init__(self, backing: BackingMap) -> None:
        for method in ("multi_get", "multi_put"):
            if not callable(getattr(backing, method, None)):
                raise FlowError(
                    f"expected a store with multi_get(keys) and multi_put(keys, values), got {backing!r} without {method}"
                )
        self.backing = backing
        self.txid: int | None = None

    def begin_commit(self, txid: int) -> None:
        """Remembers the transaction."""
        self.txid = txid

    def commit(self, txid: int) -> None:
        """Forgets the transaction."""
        self.txid = None

    def get(self, key: Values) -> Any:
        """The value of a key.

        Args:
            key: the key.

        Returns:
            Its value; None where there is none.
        """
        return self.multi_get([key])[0]

    def multi_get(self, keys: Sequence[Values]) -> list[Any]:
        """The values of keys.

        Args:
            keys: the keys.

        Returns:
            A value for each; None where there is none.
        """
        return [None if stored is None else self.read(stored) for stored in self.backing.multi_get(list(keys))]

    def multi_update(self, keys: Sequence[Values], updates: Sequence[Update]) -> list[Any]:
        """Changes the values of keys, as the kind of the state says.

        Args:
            keys: the keys, each once.
            updates: for each a function from its value to the new one.

        Returns:
            The new values.

        Raises:
            StateError: no batch is under way, or a later one has written already.
        """
        txid = self._transaction()
        before = self.backing.multi_get(list(keys))
        after = [self.changed(txid, stored, update) for stored, update in zip(before, updates, strict=True)]
        new = [(k, a) for k, b, a in zip(keys, before, after, strict=True) if a is not b]
        if new:
            self.backing.multi_put([k for k, _ in new], [a for _, a in new])
        return [self.read(stored) for stored in after]

    def multi_put(self, keys: Sequence[Values], values: Sequence[Any]) -> None:
        """Sets the values of keys.

        Args:
            keys: the keys, each once.
            values: for each its value.

        Raises:
            StateError: no batch is under way, or a later one has written already.
        """
        self.multi_update(keys, [_always(value) for value in values])

    def get_tuples(self) -> list[Values]:
        """All keys with their values, for `TupleCollectionGet`.

        Returns:
            A tuple for each key: its values, then the value that is kept.

        Raises:
            StateError: the store has no `items`.
        """
        items = getattr(self.backing, "items", None)
        if items is None:
            raise StateError(
                f"expected a store with items(), which lists its keys with their values, got {self.backing!r}"
            )
        return [(*key, self.read(stored)) for key, stored in items()]

    def _transaction(self) -> int:
        if self.txid is None:
            raise StateError("expected begin_commit(txid) before an update, got none: updates belong to a batch")
        return self.txid

    def read(self, stored: Any) -> Any:
        """The value in what is stored.

        Args:
            stored: what the store has.

        Returns:
            The value.
        """
        return stored

    def changed(self, txid: int, stored: Any, update: Update) -> Any:
        """What is stored after an update.

        Args:
            txid: the transaction.
            stored: what the store has; None where it has nothing.
            update: from the value to the new one.

        Returns:
            What is to be stored.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError


def _always(value: object) -> Update:
    return lambda _: value


class NonTransactionalMap(MapState):
    """Stores values as they are: a batch that runs again counts again.

    >>> from penstock.trident import MemoryStore, NonTransactionalMap
    >>> store = MemoryStore()
    >>> state = NonTransactionalMap(store)
    >>> for txid in (1, 1):
    ...     state.begin_commit(txid)
    ...     _ = state.multi_update([("a",)], [lambda n: (n or 0) + 1])
    >>> store.values
    {('a',): 2}
    """

    def changed(self, txid: int, stored: Any, update: Update) -> Any:
        """The new value."""
        return update(stored)


class TransactionalMap(MapState):
    """Stores each value with its transaction: a batch that runs again with the same tuples counts once.

    >>> from penstock.trident import MemoryStore, TransactionalMap, TransactionalValue
    >>> store = MemoryStore()
    >>> state = TransactionalMap(store)
    >>> for txid in (1, 1, 2):
    ...     state.begin_commit(txid)
    ...     _ = state.multi_update([("a",)], [lambda n: (n or 0) + 1])
    >>> store.values
    {('a',): TransactionalValue(txid=2, value=2)}
    """

    kind = TRANSACTIONAL

    def read(self, stored: TransactionalValue) -> Any:
        """The value."""
        return stored.value

    def changed(self, txid: int, stored: TransactionalValue | None, update: Update) -> TransactionalValue:
        """The new value, or the stored one where this transaction has written it."""
        return TransactionalValue(txid, update(None)) if stored is None else stored.update(txid, update)


class OpaqueMap(MapState):
    """Stores each value with the one before it and its transaction: a batch that runs again counts once, whatever tuples it has.

    >>> from penstock.trident import MemoryStore, OpaqueMap, OpaqueValue
    >>> store = MemoryStore()
    >>> state = OpaqueMap(store)
    >>> for txid, n in ((1, 5), (2, 3), (2, 4)):
    ...     state.begin_commit(txid)
    ...     _ = state.multi_update([("a",)], [lambda total, n=n: (total or 0) + n])
    >>> store.values
    {('a',): OpaqueValue(txid=2, value=9, previous=5)}
    """

    kind = OPAQUE

    def read(self, stored: OpaqueValue) -> Any:
        """The value as it stands."""
        return stored.value

    def changed(self, txid: int, stored: OpaqueValue | None, update: Update) -> OpaqueValue:
        """The new value, made of that from which the transaction begins."""
        if stored is None:
            return OpaqueValue(txid, update(None))
        return stored.update(txid, update(stored.get(txid)))


MAPS: dict[str, type[MapState]] = {
    TRANSACTIONAL: TransactionalMap,
    OPAQUE: OpaqueMap,
    NON_TRANSACTIONAL: NonTransactionalMap,
}


class MemoryStore:
    """A store in this process, for tests: all that is stored is in `values`.

    >>> from penstock.trident import MemoryStore
    >>> store = MemoryStore()
    >>> store.multi_put([("a",)], [1])
    >>> store.multi_get([("a",), ("b",)])
    [1, None]
    """

    def __init__(self) -> None:
        self.values: dict[Values, Any] = {}

    def multi_get(self, keys: list[Values]) -> list[Any]:
        """What is stored for each key.

        Args:
            keys: the keys.

        Returns:
            A value for each; None where there is none.
        """
        return [self.values.get(tuple(key)) for key in keys]

    def multi_put(self, keys: list[Values], values: list[Any]) -> None:
        """Stores a value for each key.

        Args:
            keys: the keys.
            values: for each its value.
        """
        self.values.update(zip(map(tuple, keys), values, strict=True))

    def items(self) -> list[tuple[Values, Any]]:
        """All keys with what is stored.

        Returns:
            The pairs.
        """
        return list(self.values.items())


class StateFactory:
    """Makes the states of the partitions of a step.

    Args:
        make: `make(conf, partition, partitions)` returns a State of yours, or a store with `multi_get` and `multi_put` where `kind` is given.
        kind: "transactional", "opaque" or "non_transactional": stores become states of that kind. It also says the kind of states that `make` returns.

    Raises:
        FlowError: the kind is not one, or `make` is no function.

    >>> from penstock.trident import MemoryStore, StateFactory
    >>> StateFactory(lambda conf, partition, partitions: MemoryStore(), "opaque").state(0, 1).kind
    'opaque'
    """

    def __init__(self, make: Callable[[dict[str, Any], int, int], Any], kind: str = NON_TRANSACTIONAL) -> None:
        if kind not in KINDS:
            raise FlowError(f"expected the kind of a state ({', '.join(KINDS)}), got {kind!r}")
        if not callable(make):
            raise FlowError(f"expected a function make(conf, partition, partitions), got {make!r}")
        self.make, self.kind = make, kind

    def state(self, partition: int, partitions: int) -> Any:
        """The state of a partition.

        Args:
            partition: its number.
            partitions: how many there are.

        Returns:
            A State.
        """
        made = self.make({}, partition, partitions)
        return made if isinstance(made, State) else MAPS[self.kind](made)


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


def check_pair(spouts: frozenset[str], state: str) -> bool:
    """Whether spouts of these kinds and a state of that kind give exactly once; a pair that loses tuples without a word is refused.

    >>> check_pair(frozenset({"transactional"}), "opaque"), check_pair(frozenset({"opaque"}), "non_transactional")
    (True, False)

    Raises:
        FlowError: the state is transactional, and the tuples of a transaction may change.
    """
    if state == TRANSACTIONAL and spouts - {TRANSACTIONAL}:
        worst = ", ".join(sorted(spouts - {TRANSACTIONAL}))
        raise FlowError(
            f"expected an opaque state, since its spout is {worst}; got a transactional one, which leaves out a transaction that it has seen, "
            f"and on a replay it may have other tuples. Take kind='opaque'"
        )
    return state != NON_TRANSACTIONAL and NON_TRANSACTIONAL not in spouts
