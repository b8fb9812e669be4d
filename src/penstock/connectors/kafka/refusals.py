"""Records that Kafka refuses: too large, without a key where the topic is compacted, or for a topic that no cluster can have.

The client says it of some at once, a broker of the others. A broker refuses all records of a request for one of them, so those of a
request that is refused are sent once more, each in a request of its own: in a transaction that is never committed, or, where the sink
delivers at least once, for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from penstock.connectors.base import Batch
from penstock.connectors.kafka.admin import said
from penstock.connectors.kafka.row_columns import NUMBER, REFUSED
from penstock.connectors.kafka.settings import confluent
from penstock.connectors.kafka.writer import ATTEMPTS, CHUNK, KafkaWriter, Transaction, discard, ids_of, patiently
from penstock.errors import RunError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

MOST = 20
"""Records of a batch that are looked for one by one; if a broker refuses more, it is the topic that is wrong."""
ALONE = {"batch.num.messages": 1}
"""The setting by which each record gets a request of its own."""
_OF_THE_RECORD = ("MSG_SIZE_TOO_LARGE", "INVALID_RECORD")
_OF_THE_TOPIC = ("TOPIC_EXCEPTION", "_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART")
"""What a broker says of a record that names its topic itself."""
_DROPPED = ("_PURGE_QUEUE", "_PURGE_INFLIGHT")


class KafkaRecord(NamedTuple):
    """A record with the number of its row."""

    number: int
    topic: Any
    value: bytes | None
    key: bytes | None
    headers: list[tuple[str, bytes]] | None


@dataclass
class Answers:
    """What was said of the records of one attempt: those that are refused themselves, those in a request that is refused, and the first other error."""

    refused: dict[int, str] = field(default_factory=dict)
    suspects: set[int] = field(default_factory=set)
    failed: KafkaError | None = None

    @property
    def is_clean(self) -> bool:
        """Whether every record was taken."""
        return not (self.refused or self.suspects or self.failed)


@dataclass(frozen=True)
class RecordSender:
    """Sends records and hears what is said of each. `alone` says that each has a request of its own."""

    producer: Producer
    names_topics: bool
    alone: bool = False

    def send(self, records: Iterable[KafkaRecord], *, until_refused: bool) -> Answers:
        """Sends all and waits for the answers; with `until_refused` only for the first that is a refusal, after which a transaction sends nothing."""
        answers = Answers()
        for record in records:
            self._send(record, answers)
        while self.producer.flush(0.2):
            if until_refused and not answers.is_clean:
                break
        return answers

    def _send(self, record: KafkaRecord, answers: Answers) -> None:
        told = partial(self._delivered, record.number, answers)
        try:
            patiently(self.producer, record.topic, record.value, record.key, record.headers, told)
        except confluent().KafkaException as error:
            self._note(record.number, error.args[0], answers, exact=True)
        except (TypeError, ValueError) as error:
            answers.refused[record.number] = f"it cannot be sent to the topic {record.topic!r}: {error}"

    def _delivered(self, number: int, answers: Answers, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._note(number, error, answers, exact=self.alone)

    def _note(self, number: int, error: KafkaError, answers: Answers, *, exact: bool) -> None:
        name = error.name()
        if name in _OF_THE_RECORD or (self.names_topics and name in _OF_THE_TOPIC):
            if exact or name in _OF_THE_TOPIC:
                answers.refused[number] = _cause(error)
            else:
                answers.suspects.add(number)
        elif name not in _DROPPED:
            answers.failed = answers.failed or error


def _cause(error: KafkaError) -> str:
    likely = {
        "MSG_SIZE_TOO_LARGE": "the record is larger than Kafka takes; raise message.max.bytes here (options=) and max.message.bytes of the topic",
        "INVALID_RECORD": "a compacted topic takes no record without a key",
    }
    return "; ".join(part for part in (said(error), likely.get(error.name(), "")) if part)


def records_of(table: pa.Table, topic: str, ids: str = "") -> Iterator[KafkaRecord]:
    """The records of a table with the columns key, value and number, and maybe topic and headers."""
    sent = 0
    for chunk in table.to_batches(max_chunksize=CHUNK):
        names = chunk.schema.names
        numbers, values, keys = (chunk.column(name).to_pylist() for name in (NUMBER, "value", "key"))
        topics = chunk.column("topic").to_pylist() if "topic" in names else [topic] * len(keys)
        given = chunk.column("headers").to_pylist() if "headers" in names else [None] * len(keys)
        for number, where, value, key, listed in zip(numbers, topics, values, keys, given, strict=True):
            headers = [(h["key"], h["value"]) for h in listed or ()]
            if ids:
                headers.append(("penstock", f"{ids}/{sent}".encode()))
            sent += 1
            yield KafkaRecord(number, where, value, key, headers or None)


def without(table: pa.Table, refused: Iterable[int]) -> pa.Table:
    """The rows of a table whose numbers are not among those."""
    import pyarrow.compute as pc

    return table.filter(pc.invert(pc.is_in(table[NUMBER], pa.array(sorted(refused), pa.int64()))))


def only(table: pa.Table, numbers: Iterable[int]) -> pa.Table:
    """The rows of a table with those numbers."""
    import pyarrow.compute as pc

    return table.filter(pc.is_in(table[NUMBER], pa.array(sorted(numbers), pa.int64())))


def prepared(table: pa.Table) -> tuple[pa.Table, dict[int, str]]:
    """The rows that can be sent, and those that cannot be written in the format of the topic."""
    if REFUSED not in table.column_names:
        return table, {}
    causes = zip(table[NUMBER].to_pylist(), table[REFUSED].to_pylist(), strict=True)
    refused = {number: cause for number, cause in causes if cause is not None}
    return without(table, refused).drop_columns([REFUSED]), refused


class RefusalSearch:
    """Sends a batch in a transaction, without the records that are refused, which it finds."""

    def __init__(self, writer: KafkaWriter, batch: Batch) -> None:
        self.writer, self.batch = writer, batch
        self.searched = 0

    def send(self, table: pa.Table) -> tuple[Transaction, dict[int, str]]:
        """The transaction, of which nothing is shown yet, and what is said against the records that are not in it.

        A batch that the ledger has already is a transaction without a producer.
        """
        rows, refused = prepared(table)
        left = ATTEMPTS
        while True:
            ready = self.writer.ready()
            if not self.writer.is_new(ready, self.batch):
                discard(ready.producer)
                told = ready.entry.refused if ready.entry is not None else ""
                return Transaction(self.writer, self.batch, rows, None, told), {}
            answers = self._attempt(ready.producer, rows)
            if answers.is_clean:
                return Transaction(self.writer, self.batch, rows, ready.producer), refused
            discard(ready.producer)
            if answers.failed is not None and not (answers.refused or answers.suspects):
                left -= 1
                self._check_left(left, answers.failed)
                continue
            refused |= answers.refused | self._found(only(rows, answers.suspects))
            rows = without(rows, refused)

    def _attempt(self, producer: Producer, rows: pa.Table, *, alone: bool = False) -> Answers:
        """Sends rows in a transaction, and hears what is said of them."""
        sender = RecordSender(producer, "topic" in rows.column_names, alone)
        try:
            producer.begin_transaction()
            return sender.send(records_of(rows, self.writer.topic, ids_of(self.batch)), until_refused=True)
        except confluent().KafkaException as error:
            return Answers(failed=error.args[0])

    def _found(self, suspects: pa.Table) -> dict[int, str]:
        """The records to blame among those of requests that were refused."""
        found: dict[int, str] = {}
        left = ATTEMPTS
        while suspects.num_rows:
            ready = self.writer.fresh(ALONE)
            self.writer.is_new(
                ready, self.batch
            )  # raises when another driver has taken over, which is to be left alone
            answers = self._attempt(ready.producer, suspects, alone=True)
            discard(ready.producer)
            if answers.is_clean:
                break
            if answers.failed is not None and not answers.refused:
                left -= 1
                self._check_left(left, answers.failed)
            found |= answers.refused
            self.searched += len(answers.refused)
            self._check_searched(answers)
            suspects = without(suspects, found)
        return found

    def _check_left(self, left: int, error: KafkaError) -> None:
        self.writer.check_interrupted(said(error))
        if not left:
            raise RunError(
                f"sink {self.batch.sink!r}: batch {self.batch.id} could not be sent, {ATTEMPTS} times: {said(error)}"
            )

    def _check_searched(self, answers: Answers) -> None:
        if self.searched > MOST:
            why = next(iter(answers.refused.values()))
            raise RunError(
                f"sink {self.batch.sink!r}: Kafka refuses more than {MOST} records of batch {self.batch.id}, which is taken for a wrong topic, not for "
                f"bad records: {why}"
            )


def deliver(table: pa.Table, topic: str, make: Callable[[dict[str, Any]], Producer], sink: str) -> dict[int, str]:
    """Sends rows at once, at least once; returns what is said against those that Kafka refuses.

    Raises:
        RunError: others were not confirmed.
    """
    rows, refused = prepared(table)
    answers = _delivered(rows, topic, make({}), sink, alone=False)
    refused |= answers.refused
    if answers.suspects:
        refused |= _delivered(only(rows, answers.suspects), topic, make(ALONE), sink, alone=True).refused
    return refused


def _delivered(rows: pa.Table, topic: str, producer: Producer, sink: str, *, alone: bool) -> Answers:
    sender = RecordSender(producer, "topic" in rows.column_names, alone)
    answers = sender.send(records_of(rows, topic), until_refused=False)
    producer.close()
    if answers.failed is not None:
        raise RunError(f"sink {sink!r}: records could not be sent: {said(answers.failed)}")
    return answers
