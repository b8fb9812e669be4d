"""A reader of the ledger that missed a line of the writer's own is found out. No broker."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.base import Batch
from penstock.connectors.delivery import Entry
from penstock.connectors.kafka.writer import KafkaWriter
from penstock.errors import DeliveryError

LINES = [Entry(number, str(number), 1) for number in range(3)]


class Producer:
    """A producer whose transactions succeed."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None


class Ledger:
    """A reader that stands before the last line until it begins anew; `whole` is what the topic holds then."""

    topic = "ledger"

    def __init__(self, whole: list[Entry]) -> None:
        self.seen, self.whole = LINES[:2], whole

    def last(self) -> Entry | None:
        return self.seen[-1]

    def begin_anew(self) -> None:
        self.seen = self.whole


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> KafkaWriter:
    made = KafkaWriter({}, "out", "topic", None)
    monkeypatch.setattr(made, "_initiated", lambda _=None: Producer())
    monkeypatch.setattr(made, "prepare", lambda: None)
    return made


def shown(writer: KafkaWriter, ledger: Any) -> None:
    """Has the writer show batch 2."""
    writer.ledger = ledger
    producer: Any = Producer()
    writer.finish(producer, pa.table({"value": [b"x"]}), Batch(2, "out", fingerprint="2", offsets="2"))


def test_a_reader_that_missed_the_last_batch_reads_the_ledger_anew(writer: KafkaWriter) -> None:
    shown(writer, Ledger(LINES))
    assert writer.fresh().entry == LINES[2]


def test_a_ledger_without_the_last_batch_is_refused(writer: KafkaWriter) -> None:
    shown(writer, Ledger(LINES[:2]))
    with pytest.raises(DeliveryError, match="says batch 1, and this driver has shown batch 2"):
        writer.fresh()
