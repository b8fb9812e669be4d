"""States of Trident that live outside: a store of the user's, and the rules by which batches are written to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

from penstock.errors import FlowError, StateError
from penstock.graph.logic.trident.operations import Values
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
        self._written: dict[Values, Any] = {}

    def begin_commit(self, txid: int) -> None:
        """Remembers the transaction."""
        self.txid, self._written = txid, {}

    def commit(self, txid: int) -> None:
        """Forgets the transaction."""
        self.txid, self._written = None, {}

    def get(self, key: Values) -> Any:
        """The value of a key.

        Args:
            key: the key.

        Returns:
            Its value; None where there is none.
        """
        return self.multi_get([key])[0]

    def multi_get(self, keys: Sequence[Values]) -> list[Any]:
        """The values of keys: within a batch those from which it begins, and where it has written itself what it has written.

        Args:
            keys: the keys.

        Returns:
            A value for each; None where there is none.

        Raises:
            StateError: a later batch than the one at hand has written already.
        """
        return [
            None if stored is None else self._seen(key, stored)
            for key, stored in zip(keys, self._stored(keys), strict=True)
        ]

    def _seen(self, key: Values, stored: Any) -> Any:
        return self.read(stored) if tuple(key) in self._written else self.begun(self.txid, stored)

    def _stored(self, keys: Sequence[Values]) -> list[Any]:
        """What is stored for each key; the store is asked for those that the batch has not written itself."""
        asked = [key for key in keys if tuple(key) not in self._written]
        found = iter(self.backing.multi_get(asked) if asked else ())
        return [self._written[tuple(key)] if tuple(key) in self._written else next(found) for key in keys]

    def multi_update(self, keys: Sequence[Values], updates: Sequence[Update]) -> list[Any]:
        """Changes the values of keys, as the kind of the state says. A key that the batch has written already goes on from there.

        Args:
            keys: the keys.
            updates: for each a function from its value to the new one.

        Returns:
            The new values.

        Raises:
            StateError: no batch is under way, or a later one has written already.
        """
        txid, made = self._transaction(), []
        new: dict[Values, Any] = {}
        for key, stored, update in zip(map(tuple, keys), self._stored(keys), updates, strict=True):
            before = new.get(key, stored)
            again = key in new or key in self._written
            after = self.changed_again(before, update) if again else self.changed(txid, before, update)
            if after is not before:
                new[key] = after
            made.append(self.read(after))
        if new:
            self.backing.multi_put(list(new), list(new.values()))
            self._written |= new
        return made

    def multi_put(self, keys: Sequence[Values], values: Sequence[Any]) -> None:
        """Sets the values of keys.

        Args:
            keys: the keys.
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

    def begun(self, txid: int | None, stored: Any) -> Any:
        """The value from which a transaction begins.

        Args:
            txid: the transaction; None outside of one.
            stored: what the store has.

        Returns:
            The value.
        """
        return self.read(stored)

    def changed(self, txid: int, stored: Any, update: Update) -> Any:
        """What is stored after the first update of a transaction.

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

    def changed_again(self, stored: Any, update: Update) -> Any:
        """What is stored after a further update of the same transaction.

        Args:
            stored: what the transaction has stored itself.
            update: from the value to the new one.

        Returns:
            What is to be stored.
        """
        return replace(stored, value=update(self.read(stored)))


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

    def changed_again(self, stored: Any, update: Update) -> Any:
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

    def begun(self, txid: int | None, stored: OpaqueValue) -> Any:
        """The value before the transaction, also where an attempt of it has written already."""
        return stored.get(txid)

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
