"""Storm's own choice of tasks in a fields grouping, for those who read task ids.

A `fields` grouping brings equal values to equal tasks, by the hash that Spark has too. Which task that is differs from Storm, where it is the hash that Java has of a list. Nothing needs
that but code that knows the tasks of its keys.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.errors import FlowError
from penstock.graph.logic.topology.task_context import TaskContext

_BITS = 0xFFFFFFFF


class StormFields:
    """Chooses the task that Storm chooses: `floorMod(Arrays.deepHashCode(values), tasks)`, for `bolt.custom("words", StormFields("word"))`.

    Numbers are those that Storm has of components in Python: whole ones are `Long`, others `Double`. It runs in Python, so prefer `fields` where the number of the task is all the same.

    Args:
        fields: the fields whose values are hashed.

    Raises:
        FlowError: there is no field.

    >>> from penstock.compat.storm import StormFields
    >>> import penstock as ps
    >>> top = ps.Topology("demo")
    >>> _ = top.bolt("count", ps.ShellBolt(["count"], "word string"), parallelism=4).custom("split", StormFields("word"))
    """

    def __init__(self, *fields: str) -> None:
        if not fields:
            raise FlowError("StormFields: expected at least one field, such as 'word'")
        self.fields = fields
        self._tasks: Sequence[int] = ()

    def __repr__(self) -> str:
        return f"StormFields({', '.join(map(repr, self.fields))})"

    def prepare(self, context: TaskContext, stream: str, tasks: Sequence[int]) -> None:
        """Takes the tasks among which it chooses.

        Args:
            context: the component whose tuples they are.
            stream: which of its streams.
            tasks: the tasks of the bolt.
        """
        self._tasks = tasks

    def choose(self, values: Any) -> int:
        """The task of a tuple.

        Args:
            values: the tuple.

        Returns:
            The number of the task.

        Raises:
            FlowError: a value has no hash in Java, such as a moment.
        """
        return self._tasks[deep_hash([values[field] for field in self.fields]) % len(self._tasks)]


def deep_hash(values: Sequence[object]) -> int:
    """`Arrays.deepHashCode` of some values, as a signed number of 32 bits.

    Args:
        values: None, truth values, numbers, texts, bytes, lists and dicts.

    Returns:
        The hash.

    Raises:
        FlowError: a value is none of these.

    >>> deep_hash(["hello"]), deep_hash([100, None])
    (99162353, 4061)
    """
    return _signed(_folded(map(_hash, values)))


def _folded(hashes: Iterable[int], start: int = 1) -> int:
    for each in hashes:
        start = (31 * start + each) & _BITS
    return start


def _hash(value: object) -> int:
    """The hash that Java has of a value, modulo 2^32."""
    if value is None:
        return 0
    if isinstance(value, bool):
        return 1231 if value else 1237
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return (value ^ ((value & ((1 << 64) - 1)) >> 32)) & _BITS
    if isinstance(value, float):
        bits = struct.unpack(">q", struct.pack(">d", value))[0]
        return _hash(bits)
    if isinstance(value, str):
        return _folded((unit for (unit,) in struct.iter_unpack(">H", value.encode("utf-16-be", "surrogatepass"))), 0)
    if isinstance(value, bytes | bytearray | memoryview):
        return _folded(each - 256 if each > 127 else each for each in bytes(value))
    return _hash_of_many(value)


def _hash_of_many(value: object) -> int:
    """That of a list, or of a map."""
    if isinstance(value, list | tuple):
        return _folded(map(_hash, value))
    if isinstance(value, Mapping):
        return sum(_hash(k) ^ _hash(v) for k, v in value.items()) & _BITS
    raise FlowError(
        f"StormFields: expected a truth value, a number, a text, bytes, a list or a dict, got {value!r}: Python does not know its hash in Java"
    )


def _signed(number: int) -> int:
    return number - (1 << 32) if number > _BITS >> 1 else number
