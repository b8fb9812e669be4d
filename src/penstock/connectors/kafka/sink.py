"""Kafka as a sink: exactly once by transactions, at least once by Spark's connector or by Python in the tasks."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import Batch, Refusal, SinkContext, StagedBatch, refusals_of
from penstock.connectors.delivery import Entry, LedgerSink
from penstock.connectors.kafka.admin import Cluster
from penstock.connectors.kafka.columns import check_columns, kafka_columns
from penstock.connectors.kafka.ledger import KafkaLedger, ensure_topic
from penstock.connectors.kafka.refusals import RefusalSearch, deliver
from penstock.connectors.kafka.row_columns import NUMBER
from penstock.connectors.kafka.settings import confluent, java_settings, python_settings
from penstock.connectors.kafka.writer import PRODUCER, KafkaWriter, Transaction, produce
from penstock.errors import RunError
from penstock.graph.endpoints.delivery import AT_LEAST_ONCE, EXACTLY_ONCE

if TYPE_CHECKING:
    import pyarrow as pa
    from confluent_kafka import KafkaError, Message
    from pyspark.sql import DataFrame, SparkSession

_OLDER = "spark.sql.sources.useV1SourceList"
BOUNDED = "bounded"
"""The lineage of bounded runs: their one batch is atomic, and no ledger keeps it."""


class KafkaSink(LedgerSink):
    """Records of a topic."""

    def __init__(self) -> None:
        self.context: SinkContext | None = None
        self.writer: KafkaWriter | None = None
        self.settings: dict[str, Any] = {}
        self._cluster: Cluster | None = None

    def refuses(self, context: SinkContext) -> str:
        """Client settings under which records can be lost or doubled."""
        check_columns(context)
        if context.options.get("record_ids") and context.delivery != EXACTLY_ONCE:
            return "record_ids are given to records that are delivered exactly once; leave record_ids out"
        return _breaking(context.options["client"], context.delivery)

    def open(self, context: SinkContext) -> Entry | None:
        """Makes the topic if it is not there; for exactly once, takes over from older drivers."""
        self.context = context
        cluster = self._cluster = Cluster(context.options["servers"], context.options["client"])
        if context.options["topic"]:
            ensure_topic(cluster, context.options["topic"])
        settings = self.settings = sending_settings(context, cluster)
        if context.delivery != EXACTLY_ONCE:
            return None
        name = f"penstock/{context.flow}/{context.sink}/{context.lineage}"
        if context.lineage == BOUNDED:
            self.writer = KafkaWriter(settings, f"{name}/{uuid.uuid4().hex[:12]}", context.options["topic"], None)
            return None
        ledger = KafkaLedger(cluster, context.options["ledger"], name)
        ledger.make()
        self.writer = KafkaWriter(settings, name, context.options["topic"], ledger)
        found = self.writer.take_over()
        self.fence = self.writer.fence
        return found

    def stage(self, frame: DataFrame, batch: Batch) -> StagedBatch:
        """Exactly once: sends the rows in a transaction. At most once: holds them. At least once: writes them."""
        assert self.context is not None
        rows = kafka_columns(frame, self.context)
        if batch.delivery == AT_LEAST_ONCE:
            return _written(rows, self.context, self.settings)
        if self.writer is None:
            return HeldRows(rows.toArrow(), self.context, self.settings)
        table = rows.toArrow()
        return StagedTransaction(self.writer.send(table, batch), table.num_rows)

    def stage_rows(self, frame: DataFrame, batch: Batch) -> tuple[StagedBatch, list[Refusal]]:
        """As `stage`, without the records that Kafka refuses, which are told."""
        assert self.context is not None
        numbered = frame.selectExpr("*", f"monotonically_increasing_id() as {NUMBER}")
        rows = kafka_columns(numbered, self.context, NUMBER)
        if batch.delivery == AT_LEAST_ONCE or self.writer is None:
            staged, refused = _delivered(rows, self.context, self.settings)
        else:
            transaction, refused = RefusalSearch(self.writer, batch).send(rows.toArrow())
            staged = StagedTransaction(transaction, transaction.rows.num_rows)
            staged.through, staged.refused = transaction.producer is None, transaction.refused
        return staged, refusals_of(numbered, refused)

    def interrupt(self) -> bool:
        """Has the writer give up after the request that is under way, which takes a minute at most."""
        if self.writer is None:
            return False
        self.writer.interrupted.set()
        return True

    def close(self) -> None:
        """Closes the clients."""
        if self.writer is not None:
            self.writer.close()
        if self._cluster is not None:
            self._cluster.close()


def _breaking(client: dict[str, str], delivery: str) -> str:
    if delivery != EXACTLY_ONCE:
        return ""
    if client.get("acks", "all") not in ("all", "-1"):
        return f"acks={client['acks']} lets a broker lose what it has confirmed; leave it out, or say acks=all"
    if client.get("enable.idempotence", "true") != "true":
        return "enable.idempotence=false lets a repeated request be written twice; leave it out"
    if "transactional.id" in client:
        return "the transactional.id is Penstock's own, it is what fences older drivers; leave it out"
    if int(client.get("transaction.timeout.ms", "60000")) > 900_000:
        return "transaction.timeout.ms above 15 minutes lets a driver that died hold up readers for as long; make it smaller"
    return ""


class StagedTransaction(StagedBatch):
    """Rows in a transaction that is not committed yet."""

    def __init__(self, transaction: Transaction, rows: int) -> None:
        self.transaction, self.rows = transaction, rows

    def commit(self) -> None:
        """Commits it."""
        self.transaction.refused = self.refused
        self.transaction.commit()

    def abort(self) -> None:
        """Aborts it."""
        self.transaction.abort()


class HeldRows(StagedBatch):
    """Rows in the driver, to be sent once at most."""

    def __init__(self, rows: pa.Table, context: SinkContext, settings: dict[str, Any]) -> None:
        self.taken, self.context, self.settings = rows, context, settings
        self.rows = rows.num_rows

    def commit(self) -> None:
        """Sends them."""
        _send_all(self.settings, self.context.options["topic"], self.taken.to_batches(), self.context.sink)


def sending_settings(context: SinkContext, cluster: Cluster | None = None) -> dict[str, Any]:
    """The settings of a producer in Python: it makes no request larger than the topic takes, since it does not divide one that is refused."""
    servers, client, topic = (context.options[name] for name in ("servers", "client", "topic"))
    most = (cluster or Cluster(servers, client)).largest_request(topic) if topic else None
    limits = {} if most is None else {"batch.size": min(most, PRODUCER["batch.size"])}
    return {**limits, **python_settings(servers, client)}


def _delivered(rows: DataFrame, context: SinkContext, settings: dict[str, Any]) -> tuple[StagedBatch, dict[int, str]]:
    """Sends rows from the tasks, at least once; the records that Kafka refuses."""
    topic, sink = context.options["topic"], context.sink

    def make(more: dict[str, Any]) -> Any:
        return confluent().Producer({**PRODUCER, **settings, **more})

    def write(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for table in (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows):
            refused = deliver(table, topic, make, sink)
            sent = table.num_rows - len(refused)
            listed = pa.array([list(refused.items())], pa.map_(pa.int64(), pa.string()))
            yield pa.record_batch({"rows": [sent], "refused": listed})

    staged, reports = StagedBatch(), rows.mapInArrow(write, "rows bigint, refused map<bigint, string>").collect()
    staged.rows = sum(int(report[0]) for report in reports)
    return staged, {number: said for report in reports for number, said in report[1].items()}


def _written(rows: DataFrame, context: SinkContext, settings: dict[str, Any]) -> StagedBatch:
    """Writes rows from the tasks; how many is counted on the way."""
    staged = StagedBatch()
    staged.rows = (
        _by_python(rows, context, settings) if context.options["via"] == "python" else _by_spark(rows, context)
    )
    return staged


def _by_spark(rows: DataFrame, context: SinkContext) -> int:
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    counted = Observation()
    given = java_settings(context.options["servers"], {"acks": "all", "linger.ms": "5", **context.options["client"]})
    writer = rows.observe(counted, f.count(f.lit(1)).alias("rows")).write.format("kafka").options(**given)
    if context.options["topic"]:
        writer = writer.option("topic", context.options["topic"])
    if "headers" in rows.columns:
        writer = writer.option("includeHeaders", "true")
    with _newer_writer(rows.sparkSession):
        writer.mode("append").save()
    return int(counted.get["rows"])


@contextmanager
def _newer_writer(spark: SparkSession) -> Iterator[None]:
    """Has Spark use the newer form of its Kafka writer: the older one, its choice for plain frames, does not count rows."""
    before = str(spark.conf.get(_OLDER))
    spark.conf.set(_OLDER, ",".join(name for name in before.split(",") if name.strip() != "kafka"))
    try:
        yield
    finally:
        spark.conf.set(_OLDER, before)


def _by_python(rows: DataFrame, context: SinkContext, settings: dict[str, Any]) -> int:
    import pyarrow as pa

    topic, sink = context.options["topic"], context.sink

    def write(batches: Iterator[Any]) -> Iterator[Any]:
        yield pa.record_batch({"rows": [_send_all(settings, topic, batches, sink)]})

    return int(sum(row[0] for row in rows.mapInArrow(write, "rows bigint").collect()))


def _send_all(settings: dict[str, Any], topic: str, rows: Iterable[Any], sink: str) -> int:
    """Sends rows and waits until all are there; returns how many."""
    failed: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error.str())

    producer = confluent().Producer({**PRODUCER, **settings, "on_delivery": delivered})
    sent = produce(producer, topic, rows)
    left = producer.flush(120.0)
    producer.close()
    if failed or left:
        why = failed[0] if failed else "Kafka did not confirm them"
        raise RunError(f"sink {sink!r}: {len(failed) or left} records could not be sent: {why}")
    return sent
