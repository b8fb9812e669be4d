"""Bugs of the transactional writer, caught by its tests against a real broker."""

from __future__ import annotations

from penstock.connectors.base import Batch
from penstock.connectors.kafka.writer import KafkaWriter, Ready
from tests.kafka import test_transactions
from tests.planted.plant import Bug, method

judged = KafkaWriter._verdict


def read_first(self: KafkaWriter) -> Ready:
    """The ledger is read before the producer takes over."""
    assert self.ledger is not None
    entry = self.ledger.last()
    return Ready(self._initiated(), entry)


def no_fence(self: KafkaWriter, ready: Ready, batch: Batch) -> str:
    """A line of a later driver does not stop an earlier one."""
    if ready.entry is not None and ready.entry.fence > self.fence:
        return "write"
    return judged(self, ready, batch)


BUGS = [
    Bug(
        "Kafka's ledger is read before init_transactions",
        method(KafkaWriter, "fresh", read_first),
        lambda room: test_transactions.test_a_batch_committed_while_another_driver_takes_over_is_there_once(room.kafka),
        "twice",
    ),
    Bug(
        "Kafka's ledger has no fence",
        method(KafkaWriter, "_verdict", no_fence),
        lambda room: test_transactions.test_a_driver_that_wakes_up_cannot_stop_its_successor_for_good(room.kafka),
        "DID NOT RAISE .*DeliveryError",
    ),
]
