"""A reliable spout: an order whose booking fails is replayed, and every order is acked when its booking is committed.

penstock run --batch examples/reliable_orders.py
"""

from __future__ import annotations

from typing import Any

import penstock as ps


class Orders(ps.Spout):
    """Orders with their numbers as ids; what fails waits again."""

    outputs = "number bigint, item string"
    reliable = True

    def __init__(self, items: list[str]) -> None:
        self.items = items
        self.waiting = list(range(len(items)))

    def next_tuple(self) -> Any:
        """The next order."""
        if not self.waiting:
            return ps.END
        number = self.waiting.pop(0)
        self.emit((number, self.items[number]), id=number)
        return None

    def fail(self, id: Any) -> None:
        """Has the order wait again."""
        self.waiting.append(id)


class Book(ps.BasicBolt):
    """Books an order; the shop of tea opens at the second attempt."""

    outputs = "number bigint, item string, attempt int"

    def prepare(self, context: Any) -> None:
        """No attempt yet."""
        self.attempts: dict[int, int] = {}

    def process(self, tup: Any) -> Any:
        """One attempt."""
        attempt = self.attempts[tup.number] = self.attempts.get(tup.number, 0) + 1
        if tup.item == "tea" and attempt == 1:
            raise ps.FailedException("the shop is closed")
        yield tup.number, tup.item, attempt


topology = ps.Topology("orders", config={"topology.max.spout.pending": 100, "topology.message.timeout.secs": 60})
topology.spout("orders", Orders(["coffee", "tea", "cake"]))
topology.bolt("book", Book(), parallelism=2).fields("orders", "number")
topology.sink("booked", ps.console(), from_="book")
