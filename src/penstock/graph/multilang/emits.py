"""What a program has emitted for tuples that it has not acked yet: none of it shall stay when the program ends before it does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any

from penstock.graph.logic.topology.collector import Collector

_UNDER_WAY = ("emit", "log", "error", "metrics")
"""What a program says of a tuple before it acks it."""


Emitted = tuple[list[str], str, int]
"""An emit: the tuples it is anchored to, its stream, and its number there."""


class OpenEmits:
    """The emits of a batch, by the last of the tuples that they are anchored to, until that is acked."""

    def __init__(self) -> None:
        self.by_tuple: dict[str, list[Emitted]] = {}

    def add(self, anchors: list[str], stream: str, number: int) -> None:
        """Notes an emit."""
        emit, last = (anchors, stream, number), anchors[-1]
        if last in self.by_tuple:
            self.by_tuple[last].append(emit)
        else:
            self.by_tuple[last] = [emit]

    def forget(self, lost: set[str], collector: Collector) -> None:
        """Takes back what was emitted last for tuples that are all lost, as far as it has not left the task."""
        numbers = defaultdict[str, set[int]](set)
        for anchors, stream, number in chain.from_iterable(self.by_tuple.values()):
            if lost.issuperset(anchors):
                numbers[stream].add(number)
        for stream, gone in numbers.items():
            collector.cut_last(stream, gone)
        self.by_tuple = {}


def settled(received: Sequence[Any]) -> int:
    """How many messages there are up to the last one that waits for nothing after it: an ack, a fail, a question, what is no message.

    >>> emit = {"command": "emit", "need_task_ids": False}
    >>> settled([emit, {"command": "ack"}, emit]), settled([emit]), settled([{"command": "emit"}])
    (2, 0, 1)
    """
    for at in range(len(received), 0, -1):
        message = received[at - 1]
        if not isinstance(message, dict) or message.get("command") not in _UNDER_WAY or _asks(message):
            return at
    return 0


def _asks(message: dict[str, Any]) -> bool:
    return message["command"] == "emit" and message.get("need_task_ids") is not False
