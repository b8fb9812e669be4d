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

    def __init__(self, state: KeyedState, task: int) -> None:
        self.state, self.task = state, task
        state.describe(LAYOUT)

    def _found(self, key: Any) -> tuple[int, bytes]:
        """The key as it is stored, prefetched."""
        stored = (self.task, pickle.dumps(key, 5))
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
        self.state.delete(self._found(key))

    def __iter__(self) -> Iterator[Any]:
        return iter([pickle.loads(stored) for (task, stored), _ in self.state.items() if task == self.task])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def take_over(self, former: int) -> None:
        """Takes the entries of a task that is no more."""
        for (task, stored), value in list(self.state.items()):
            if task == former:
                self[pickle.loads(stored)] = value
                self.state.delete((task, stored))
