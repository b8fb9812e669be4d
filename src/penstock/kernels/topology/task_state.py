"""The key-value state of one task of a stateful bolt, in the state layer: entries are looked up when they are asked for."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, MutableMapping
from typing import Any

import pyarrow as pa

from penstock.graph.state.key_groups import HASH_BITS, slot_hash
from penstock.graph.state.keyed import KeyedState
from penstock.graph.state.layout import ABSENT, Column, Layout

LAYOUT = Layout((Column("task", pa.int64()), Column("key", pa.binary())), (Column("value"),), single=True)
"""An entry for each task and key; keys are pickled."""


class TaskState(MutableMapping[Any, Any]):
    """The entries of a task; what a batch does not touch stays on disk.

    >>> from penstock.state.memory import MemoryState
    >>> state = TaskState(MemoryState(), 3)
    >>> state["a"] = 1
    >>> state["a"], "b" in state, list(state)
    (1, False, ['a'])
    """

    def __init__(self, state: KeyedState, task: int, *, apart: bool = False) -> None:
        self.state, self.task = state, task
        self.name = -1 - task if apart else task
        """Under which its entries stand: those of Penstock's own stand apart from the user's."""
        state.describe(LAYOUT)

    def _found(self, key: Any) -> tuple[int, bytes]:
        """The key as it is stored, prefetched."""
        stored = (self.name, pickle.dumps(key, 5))
        digest = hashlib.blake2b(stored[1], digest_size=8).digest()
        self.state.prefetch([stored], [slot_hash(self.task) + (int.from_bytes(digest, "big") >> (64 - HASH_BITS))])
        return stored

    def __getitem__(self, key: Any) -> Any:
        value = self.state.get(self._found(key), ABSENT)
        if value is ABSENT:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        self.state.put(self._found(key), value)

    def __delitem__(self, key: Any) -> None:
        self[key]
        self.discard(key)

    def discard(self, key: Any) -> None:
        """Forgets a key, if it is there."""
        self.state.delete(self._found(key))

    def __iter__(self) -> Iterator[Any]:
        return iter([pickle.loads(stored) for (task, stored), _ in self.state.items() if task == self.name])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def release(self, key: Any) -> None:
        """Lets go of what was read of an entry; it is read again when it is asked for."""
        self.state.release([(self.name, pickle.dumps(key, 5))])

    def taken_from(self, former: TaskState) -> dict[Any, Any]:
        """The entries of a task that is no more, which are gone afterwards."""
        found = [(name, stored) for (name, stored), _ in self.state.items() if name == former.name]
        made = {pickle.loads(stored): self.state.get((name, stored)) for name, stored in found}
        for each in found:
            self.state.delete(each)
        return made

    def take_over(self, former: int) -> None:
        """Takes the entries of a task that is no more."""
        for (task, stored), value in list(self.state.items()):
            if task == former:
                self[pickle.loads(stored)] = value
                self.state.delete((task, stored))
