"""The transactional writer against a real broker: crashes at every point, and two drivers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.base import Batch
from penstock.connectors.delivery import Entry
from penstock.connectors.kafka.admin import Cluster
from penstock.connectors.kafka.ledger import KafkaLedger
from penstock.connectors.kafka.settings import python_settings
from penstock.connectors.kafka.writer import KafkaWriter, Transaction
from penstock.errors import DeliveryError
from penstock.faults import SETTING
from tests.kafka.conftest import Kafka, Reader

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

ROWS = 200


def rows_of(batch: int) -> Any:
    """The records of a batch: who they are can be seen from outside."""
    values = [f"{batch}:{n}".encode() for n in range(ROWS)]
    return pa.table({"key": pa.array([b"k%d" % (n % 7) for n in range(ROWS)]), "value": pa.array(values)})


def about(number: int, fingerprint: str = "") -> Batch:
    return Batch(number, "out", lineage="life", delivery="exactly_once", fingerprint=fingerprint or f"print-{number}")


@contextmanager
def writer_of(kafka: Kafka, topic: str, name: str = "", kind: type[KafkaWriter] = KafkaWriter) -> Iterator[KafkaWriter]:
    cluster = Cluster(kafka.servers, {})
    ledger = KafkaLedger(cluster, "test-ledger", name or topic)
    ledger.make()
    made = kind(python_settings(kafka.servers, {}), name or topic, topic, ledger)
    try:
        yield made
    finally:
        made.close()
        cluster.close()


def test_a_batch_that_comes_again_is_skipped(kafka: Kafka) -> None:
    topic = kafka.topic()
    with writer_of(kafka, topic) as writer:
        assert writer.take_over() is None
        for _ in range(2):
            writer.send(rows_of(0), about(0)).commit()
        writer.send(rows_of(1), about(1)).commit()
    assert Counter(kafka.values(topic)) == Counter(v for b in (0, 1) for v in rows_of(b)["value"].to_pylist())
    with writer_of(kafka, topic) as writer:
        found = writer.take_over()
        assert found is not None
        assert (found.batch, found.rows, found.fingerprint) == (1, ROWS, "print-1")
        assert writer.fence == 2


@pytest.mark.parametrize(
    ("number", "fingerprint", "said"),
    [(0, "other", "other offsets"), (-1, "", "older than the sink"), (2, "", "not there")],
)
def test_what_does_not_fit_the_ledger_is_refused(kafka: Kafka, number: int, fingerprint: str, said: str) -> None:
    topic = kafka.topic()
    with writer_of(kafka, topic) as writer:
        writer.take_over()
        writer.send(rows_of(0), about(0)).commit()
        with pytest.raises(DeliveryError, match=said):
            writer.send(rows_of(number), about(number, fingerprint))
    assert len(kafka.values(topic)) == ROWS


def test_nothing_is_seen_before_the_commit_and_nothing_after_an_abort(kafka: Kafka) -> None:
    topic = kafka.topic()
    with writer_of(kafka, topic) as writer:
        writer.take_over()
        sent = writer.send(rows_of(0), about(0))
        sent.producer.flush(300)
        assert kafka.values(topic) == []
        sent.abort()
        assert kafka.values(topic) == []
        writer.send(rows_of(0), about(0)).commit()
    assert len(kafka.values(topic)) == ROWS


def test_the_second_driver_fences_the_first(kafka: Kafka) -> None:
    topic = kafka.topic()
    with writer_of(kafka, topic) as old, writer_of(kafka, topic) as new:
        old.take_over()
        sent = old.send(rows_of(0), about(0))
        assert new.take_over() is None
        new.send(rows_of(0), about(0)).commit()
        with pytest.raises(DeliveryError, match="another driver"):
            sent.commit()
        with pytest.raises(DeliveryError, match="another driver"):
            old.send(rows_of(1), about(1))
        new.send(rows_of(1), about(1)).commit()
    assert Counter(kafka.values(topic)) == Counter(v for b in (0, 1) for v in rows_of(b)["value"].to_pylist())


def test_a_driver_that_wakes_up_cannot_stop_its_successor_for_good(kafka: Kafka) -> None:
    """Its fresh producer throws the successor out of its transaction; the successor sees from the ledger that it is the later one."""
    topic = kafka.topic()
    with writer_of(kafka, topic) as old, writer_of(kafka, topic) as new:
        old.take_over()
        new.take_over()
        sent = new.send(rows_of(0), about(0))
        with pytest.raises(DeliveryError, match="another driver"):
            old.send(rows_of(0), about(0)).commit()
        sent.commit()
        new.send(rows_of(1), about(1)).commit()
    assert Counter(kafka.values(topic)) == Counter(v for b in (0, 1) for v in rows_of(b)["value"].to_pylist())


class Between:
    """Has something done after the first of the two steps by which a driver takes over, whichever that is."""

    def __init__(self, writer: KafkaWriter, act: Callable[[], None]) -> None:
        assert writer.ledger is not None
        self.left = [act]
        writer._initiated = self.after(writer._initiated)  # type: ignore[method-assign]  # the schedule of the test
        writer.ledger.last = self.after(writer.ledger.last)  # type: ignore[method-assign]

    def after(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def done(*given: Any) -> Any:
            made = step(*given)
            if self.left:
                self.left.pop()()
            return made

        return done


def _committed(writer: KafkaWriter, sent: Transaction) -> None:
    """Commits, and waits for what the writer then does in the background, which might end the transaction of another."""
    sent.commit()
    assert writer._next is not None
    writer._next.result(300)


def test_a_batch_committed_while_another_driver_takes_over_is_there_once(kafka: Kafka) -> None:
    """The first driver commits between the two steps of the second one."""
    topic = kafka.topic()
    with writer_of(kafka, topic) as old, writer_of(kafka, topic) as new:
        old.take_over()
        sent = old.send(rows_of(0), about(0))
        new.fence = old.fence + 1
        Between(new, lambda: _committed(old, sent))
        new.send(rows_of(0), about(0)).commit()
    counted = Counter(kafka.values(topic))
    assert len(counted) == ROWS
    assert set(counted.values()) == {1}, "records are there twice"


def test_a_line_behind_an_open_transaction_of_another_flow_is_found(kafka: Kafka) -> None:
    """Readers of committed records stop at the first open transaction; the ledger must not."""
    topic = kafka.topic()
    other = kafka.producer(**{"transactional.id": f"other-{topic}"})
    other.init_transactions(300)
    with writer_of(kafka, topic) as writer:
        writer.take_over()
        other.begin_transaction()
        other.produce("test-ledger", Entry(0, "x", 1).as_json().encode(), b"somebody else")
        other.flush(300)
        ending = threading.Timer(2, lambda: other.commit_transaction(300))
        ending.start()
        writer.send(rows_of(0), about(0)).commit()
        writer.send(rows_of(0), about(0)).commit()
        ending.join()
    other.close()
    assert len(kafka.values(topic)) == ROWS


def test_a_ledger_topic_of_another_shape_is_refused(kafka: Kafka) -> None:
    from penstock.errors import SetupError

    with pytest.raises(SetupError, match="compacted"):
        KafkaLedger(Cluster(kafka.servers, {}), kafka.topic(2), "x").make()


PROGRAM = """
import sys
from penstock.faults import passing
from tests.kafka.conftest import Kafka
from tests.kafka.test_transactions import about, rows_of, writer_of
from penstock.jobs.broker import Broker
from pathlib import Path

servers, topic, batches = sys.argv[1], sys.argv[2], int(sys.argv[3])
broker = Broker(Path("/nowhere"), port=int(servers.split(":")[1]))
with writer_of(Kafka(broker, Path()), topic) as writer:
    passing("reconcile", 0)
    found = writer.take_over()
    passing("reconciled", 0)
    for number in range((found.batch if found else -1), batches):
        if number >= 0:
            sent = writer.send(rows_of(number), about(number))
            passing("staged", number)
            sent.producer and sent.producer.flush()
            passing("before sink commit", number)
            sent.commit()
            passing("sink written", number)
print("done")
"""
POINTS = [
    "reconcile",
    "reconciled",
    "staged@1",
    "before sink commit@2",
    "after sink commit@2",
    "sink written@3",
    "before sink commit@4",
]


@pytest.mark.timeout(1200)
def test_a_writer_killed_at_every_point_loses_and_doubles_nothing(kafka: Kafka, tmp_path: Path) -> None:
    """A reader that looks on all the time sees whole batches, in order."""
    topic, batches = kafka.topic(), 6
    (tmp_path / "program.py").write_text(PROGRAM)
    watching = Watch(kafka, topic)
    for point in [*POINTS, ""]:
        process = subprocess.run(
            [sys.executable, str(tmp_path / "program.py"), kafka.servers, topic, str(batches)],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), SETTING: point},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert process.returncode == (-signal.SIGKILL if point else 0), f"{point}: {process.stdout}{process.stderr}"
    seen = watching.end()
    assert Counter(seen) == Counter(v for b in range(batches) for v in rows_of(b)["value"].to_pylist())
    assert watching.torn == []
    by_key = [v.decode().split(":") for v in seen]
    for key in range(7):
        mine = [(int(b), int(n)) for b, n in by_key if int(n) % 7 == key]
        assert mine == sorted(mine), "records of one key out of order"


class Watch:
    """A reader of committed records beside the writers; it notes every look at which a batch was there in part."""

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self.reader = Reader(kafka.servers, topic)
        self.seen: list[bytes] = []
        self.torn: list[str] = []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while not self.stopped.is_set():
            self._look()
            time.sleep(0.05)
        self._look()

    def _look(self) -> None:
        """A batch that a look has begun to see may end in another partition: what counts is that the next look completes it."""
        before = self._partial()
        self.seen += [m.value() for m in self.reader.to_end()]
        still = {b for b in before if b in self._partial()}
        self.torn += [f"batch {b} stayed in part" for b in still]

    def _partial(self) -> set[str]:
        counted = Counter(v.decode().split(":")[0] for v in self.seen)
        return {b for b, n in counted.items() if n % ROWS}

    def end(self) -> list[bytes]:
        self.stopped.set()
        self.thread.join()
        self.reader.close()
        return self.seen
