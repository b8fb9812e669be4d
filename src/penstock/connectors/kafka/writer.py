"""Writes batches to Kafka, each in one transaction together with its line in the ledger.

The order of the steps is what holds the promise. A fresh producer takes over the transactional id: that ends whatever an
earlier one, of this driver or of another, had left open, and fences it. Only then is the ledger read, so what it says cannot change
any more unless we change it, or somebody takes over from us, which our own commit would notice. After any error whose outcome is
not known the producer is thrown away and all begins again.
"""

from __future__ import annotations

import contextlib
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import Batch
from penstock.connectors.delivery import WRITE, Entry, verdict
from penstock.connectors.kafka.admin import said
from penstock.connectors.kafka.ledger import KafkaLedger
from penstock.connectors.kafka.settings import confluent
from penstock.errors import DeliveryError, RunError
from penstock.faults import passing

if TYPE_CHECKING:
    import pyarrow as pa
    from confluent_kafka import KafkaException, Producer

ATTEMPTS = 5
PATIENCE = 60.0
CONNECT = 5.0
CHUNK = 10_000
PRODUCER: dict[str, Any] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 5,
    "batch.num.messages": 50_000,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 1 << 19,
    "partitioner": "murmur2_random",
}
"""Settings of every producer; the partitioner is that of Kafka's Java client, so that both put a key into the same partition."""


@dataclass
class Ready:
    """A producer that has taken over, and what the ledger said after that."""

    producer: Any
    entry: Entry | None


class KafkaWriter:
    """The one writer of a sink and lineage. `ledger` is None in a bounded run, whose batch is atomic but never replayed."""

    def __init__(self, settings: Mapping[str, Any], name: str, topic: str, ledger: KafkaLedger | None) -> None:
        self.settings = {"transaction.timeout.ms": 60_000, **PRODUCER, **settings, "transactional.id": name}
        self.name, self.topic, self.ledger = name, topic, ledger
        self.fence = 0
        self.interrupted = threading.Event()
        """Set by another thread when the writer is to give up what it tries."""
        self._next: Future[Ready] | None = None
        self._shown = -1

    def check_interrupted(self, last: str) -> None:
        """Ends a row of tries; called between two, with what the last one said.

        Raises:
            RunError: another thread asked for it.
        """
        if self.interrupted.is_set():
            self.interrupted.clear()
            raise RunError(f"{self.name}: given up: {last}")

    def take_over(self) -> Entry | None:
        """Fences older drivers: a line with a higher fence, in a transaction of its own. Gives the last line of a batch."""
        for left in reversed(range(ATTEMPTS)):
            ready = self.fresh()
            self.fence = 1 + (ready.entry.fence if ready.entry is not None else 0)
            kept = ready.entry or Entry(-1, "", 0)
            try:
                ready.producer.begin_transaction()
                self._send_line(ready.producer, replace(kept, fence=self.fence))
                ready.producer.commit_transaction(PATIENCE)
            except confluent().KafkaException as error:
                discard(ready.producer)
                if not left:
                    raise DeliveryError(f"{self.name}: the ledger could not be written: {said(error)}") from None
                _pause(ATTEMPTS - 1 - left)
                continue
            ready.producer.close()
            self.prepare()
            return ready.entry if ready.entry is not None and ready.entry.batch >= 0 else None
        return None

    def fresh(self, more: Mapping[str, Any] | None = None) -> Ready:
        """A producer that has taken over, then the ledger: in this order. `more` are settings of this producer alone."""
        producer = self._initiated(more)
        try:
            return Ready(producer, self._last(self.ledger) if self.ledger is not None else None)
        except BaseException:
            discard(producer)
            raise

    def _last(self, ledger: KafkaLedger) -> Entry | None:
        """The last line, which is not older than the last batch that this writer has shown; a reader that missed it reads all anew."""
        entry = ledger.last()
        if _batch_of(entry) < self._shown:
            ledger.begin_anew()
            entry = ledger.last()
        if _batch_of(entry) < self._shown:
            raise DeliveryError(
                f"{self.name}: the ledger {ledger.topic!r} says batch {_batch_of(entry)}, and this driver has shown batch {self._shown}: lines "
                f"of it are lost. Restore the topic, or start afresh with --fresh and an empty sink"
            )
        return entry

    def _initiated(self, more: Mapping[str, Any] | None = None) -> Producer:
        """A producer that has taken over."""
        kafka = confluent()
        producer = kafka.Producer({**self.settings, **(more or {})})
        self._connect(producer)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                producer.init_transactions(PATIENCE)
                return producer
            except kafka.KafkaException as error:
                self.check_interrupted(said(error))
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    discard(producer)
                    raise DeliveryError(f"{self.name}: no transaction could be begun: {said(error)}") from None

    def _connect(self, producer: Producer) -> None:
        """Connects to a broker, if one is there. Taking over without one at hand waits half a second before it looks again.

        The first question is answered over the connection to the bootstrap server, which the client then gives up; the second is not.
        """
        topic = self.topic or (self.ledger.topic if self.ledger is not None else None)
        with contextlib.suppress(confluent().KafkaException):
            for _ in range(2):
                producer.list_topics(topic, timeout=CONNECT)

    def prepare(self) -> None:
        """Makes the next producer ready while the batch is being computed."""
        self._next = _later(self.fresh)

    def ready(self) -> Ready:
        """A producer of our own; a failure in the background is tried again here."""
        prepared, self._next = self._next, None
        if prepared is not None:
            try:
                return prepared.result()
            except DeliveryError:
                pass
        return self.fresh()

    def send(self, rows: pa.Table, batch: Batch) -> Transaction:
        """Begins a transaction and sends all rows; nothing is shown before `commit`."""
        last = ""
        for attempt in range(ATTEMPTS):
            ready = self.ready()
            if not self.is_new(ready, batch):
                discard(ready.producer)
                return Transaction(self, batch, rows, None)
            try:
                ready.producer.begin_transaction()
                produce(ready.producer, self.topic, rows.to_batches(max_chunksize=CHUNK), ids_of(batch))
                return Transaction(self, batch, rows, ready.producer)
            except confluent().KafkaException as error:
                discard(ready.producer)
                _check_size(error, batch)
                last = said(error)
                self.check_interrupted(last)
                _pause(attempt)
        raise RunError(f"sink {batch.sink!r}: batch {batch.id} could not be sent, {ATTEMPTS} times: {last}")

    def is_new(self, ready: Ready, batch: Batch) -> bool:
        """Whether a batch is to be written: the ledger has it not yet."""
        return self.ledger is None or self._verdict(ready, batch) == WRITE

    def _verdict(self, ready: Ready, batch: Batch) -> str:
        """What to do with a batch; a line of batch -1 says only who has taken over."""
        entry = ready.entry
        if entry is not None and entry.batch < 0 and entry.fence <= self.fence:
            entry = None
        try:
            return verdict(entry, batch, self.fence)
        except DeliveryError:
            discard(ready.producer)
            raise

    def _send_line(self, producer: Producer, entry: Entry) -> None:
        assert self.ledger is not None
        producer.produce(self.ledger.topic, entry.as_json().encode(), self.name.encode())

    def finish(self, producer: Producer, rows: pa.Table, batch: Batch, refused: str = "") -> None:
        """Adds the line to the transaction and commits both; raises KafkaException when the outcome is not known."""
        if self.ledger is not None:
            self._send_line(producer, Entry.of(batch, self.fence, rows.num_rows, crc_of(rows), refused))
        producer.commit_transaction(PATIENCE)
        self._shown = batch.id
        passing("after sink commit", batch.id)
        producer.close()
        self.prepare()

    def close(self) -> None:
        """Lets go of everything; a thread that waits for a broker is not waited for."""
        try:
            if self._next is not None:
                discard(self._next.result(timeout=3.0).producer)
        except TimeoutError:
            return
        except Exception:
            self._next = None
        if self.ledger is not None:
            self.ledger.close()


class Transaction:
    """A batch on its way: sent, not yet shown. Without a producer it was there already. `refused` is what its line says of refused rows."""

    def __init__(
        self, writer: KafkaWriter, batch: Batch, rows: pa.Table, producer: Producer, refused: str = ""
    ) -> None:
        self.writer, self.batch, self.rows, self.producer, self.refused = writer, batch, rows, producer, refused

    def commit(self) -> None:
        """Shows the batch. When the outcome is not known a fresh producer and the ledger tell, and it is sent again if need be."""
        last = ""
        for attempt in range(ATTEMPTS):
            if self.producer is None:
                return
            try:
                self.writer.finish(self.producer, self.rows, self.batch, self.refused)
                return
            except confluent().KafkaException as error:
                last = said(error)
                discard(self.producer)
                self.writer.check_interrupted(last)
                if self.writer.ledger is None:
                    break
                _pause(attempt)
                self.producer = self.writer.send(self.rows, self.batch).producer
        raise RunError(f"sink {self.batch.sink!r}: batch {self.batch.id} could not be committed: {last}")

    def abort(self) -> None:
        """Takes back what was sent."""
        if self.producer is not None:
            try:
                self.producer.abort_transaction(10.0)
            except confluent().KafkaException:
                pass  # whoever comes next takes over the id, which aborts it
            discard(self.producer)
            self.producer = None


def _batch_of(entry: Entry | None) -> int:
    return -1 if entry is None else entry.batch


def _pause(attempt: int) -> None:
    """Waits before the next attempt, longer each time."""
    time.sleep(min(2.0, 0.1 * 2**attempt))


def _later(function: Callable[[], Ready]) -> Future[Ready]:
    """Has a thread call a function. The end of the process does not wait for it."""
    promise: Future[Ready] = Future()

    def run() -> None:
        try:
            promise.set_result(function())
        except BaseException as error:
            promise.set_exception(error)

    threading.Thread(target=run, daemon=True, name="kafka-writer").start()
    return promise


def discard(producer: Producer) -> None:
    """Lets go of a producer whose transaction is not over, without asking the broker to end it: that might end a later one.

    What it has not sent is dropped. The next producer of the same id ends the transaction for good.
    """
    producer.purge()


def crc_of(rows: pa.Table) -> int:
    """A checksum of the values, in order."""
    crc = 0
    for chunk in rows.column("value").chunks:
        for buffer in chunk.buffers():
            if buffer is not None:
                crc = zlib.crc32(buffer, crc)
    return crc


def ids_of(batch: Batch) -> str:
    """What the ids of the records of a batch begin with; empty when they get none."""
    return f"{batch.lineage}/{batch.id}" if batch.options.get("record_ids") else ""


def _check_size(error: KafkaException, batch: Batch) -> None:
    """A record that is too large will not become smaller."""
    if error.args[0].code() == confluent().KafkaError.MSG_SIZE_TOO_LARGE:
        raise RunError(
            f"sink {batch.sink!r}: a record of batch {batch.id} is larger than Kafka takes; raise message.max.bytes here (options=) and "
            f"max.message.bytes of the topic"
        ) from None


def produce(producer: Producer, topic: str, chunks: Iterable[Any], ids: str = "") -> int:
    """Hands the rows of Arrow batches (key, value, maybe topic and headers) to a producer; returns how many."""
    number = 0
    for chunk in chunks:
        _produce_chunk(producer, topic, chunk, ids, number)
        number += chunk.num_rows
        producer.poll(0)
    return number


def _produce_chunk(producer: Producer, topic: str, chunk: pa.RecordBatch, ids: str, number: int) -> None:
    names = chunk.schema.names
    keys, values = chunk.column("key").to_pylist(), chunk.column("value").to_pylist()
    if "topic" not in names and "headers" not in names and not ids:
        _produce_plain(producer, topic, keys, values)
        return
    topics = chunk.column("topic").to_pylist() if "topic" in names else [topic] * len(keys)
    headers = chunk.column("headers").to_pylist() if "headers" in names else [None] * len(keys)
    for at, (key, value, where, given) in enumerate(zip(keys, values, topics, headers)):
        whole = [(h["key"], h["value"]) for h in given or ()]
        if ids:
            whole.append(("penstock", f"{ids}/{number + at}".encode()))
        patiently(producer, where, value, key, whole)


def _produce_plain(producer: Producer, topic: str, keys: list[Any], values: list[Any]) -> None:
    send = producer.produce
    for key, value in zip(keys, values):
        try:
            send(topic, value, key)
        except BufferError:
            patiently(producer, topic, value, key, None)


def patiently(
    producer: Producer,
    topic: str,
    value: bytes | None,
    key: bytes | None,
    headers: list[tuple[str, bytes]] | None,
    told: Callable[[Any, Any], None] | None = None,
) -> None:
    """Sends a record, waiting for room in the queue as long as any leaves it. `told` is called with what becomes of it."""
    more = {} if told is None else {"on_delivery": told}
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            producer.produce(topic, value, key, headers=headers or None, **more)
            return
        except BufferError:
            producer.poll(0.05)
            if time.monotonic() > deadline:
                raise RunError(
                    f"topic {topic!r}: Kafka takes no more records; the queue has been full for {PATIENCE:g} s"
                ) from None
