"""How long a record takes from Kafka to Kafka through one Python step; the same open loop as `latency`.

Raw Spark's sink delivers at least once, so the ratio is taken against a flow that does the same; exactly once is shown beside it.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks import latency
from benchmarks.harness import Bar, Result, folder, spark_session
from benchmarks.latency import FIELDS, RATE, Serve, measure, served, shown, step, steps
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "latency-kafka"
ABOUT = "Kafka to Kafka through a Python step at 1,000 records a second, against raw Spark's micro-batches"


def send(directory: str, start: int, seconds: int) -> None:
    """Sends records on schedule, from a moment in nanoseconds on."""
    from confluent_kafka import Producer

    servers, source, _ = directory.split()
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 2, "log_level": 2})
    for n in range(RATE * seconds):
        due = start + n * 1_000_000_000 // RATE
        time.sleep(max(due - time.time_ns(), 0) / 1e9)
        producer.produce(source, json.dumps({"n": n, "due": due}).encode())
        producer.poll(0)
    producer.flush(30)


def receive(directory: str, records: int, deadline: float, reported: Any) -> None:
    """Reads so many records, and tells the delay of each in seconds, by its number; of one that comes twice the first counts."""
    from confluent_kafka import Consumer, TopicPartition

    servers, _, sink = directory.split()
    settings = {"bootstrap.servers": servers, "group.id": sink, "isolation.level": "read_committed", "log_level": 2}
    consumer = Consumer({**settings, "enable.auto.commit": False, "fetch.wait.max.ms": 10})
    consumer.assign([TopicPartition(sink, 0, 0)])
    delays: dict[int, float] = {}
    while len(delays) < records and time.time() < deadline:
        found = consumer.consume(1000, 0.01)
        now = time.time_ns()
        for row in (json.loads(m.value()) for m in found if m.error() is None):
            delays.setdefault(row["n"] - 1, (now - row["due"]) / 1e9)
    consumer.close()
    reported.put(delays)


def graph(directory: str, delivery: str) -> Graph:
    servers, source, sink = directory.split()
    flow = ps.Flow(f"latency-{delivery.replace('_', '-')}")
    records = flow.source("in", ps.kafka(source, FIELDS, servers=servers))
    stepped = records.map("step", lambda r: step(r.n, r.due), FIELDS)
    stepped.sink("out", ps.write_kafka(sink, servers=servers), delivery=delivery)
    return flow.graph


def by_hand(spark: SparkSession, directory: str, checkpoint: Path) -> Serve:
    servers, source, sink = directory.split()

    def serve(ended: threading.Event) -> None:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
        raw = reader.option("subscribe", source).option("startingOffsets", "earliest").load()
        parsed = raw.selectExpr(f"from_json(cast(value as string), '{FIELDS}') as v").select("v.*")
        rows = parsed.mapInArrow(steps, FIELDS).selectExpr("to_json(struct(*)) as value")
        writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", sink)
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime="0 seconds").start()
        ended.wait()
        query.stop()

    return serve


def make_topics(servers: str, *names: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        made.result(30)


def run(quick: bool) -> Result:
    from pyspark import cloudpickle

    from penstock.connectors.kafka.jars import kafka_jars
    from penstock.jobs.broker import Broker
    from penstock.spark.jvm.jars import use_jars

    warm, seconds = (10, 10) if quick else (20, 60)
    for module in (latency, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)
    spark = spark_session()
    use_jars(spark, kafka_jars())
    figures: dict[str, float] = {"records_per_second": RATE}
    with folder() as at, Broker(at / "kafka") as broker:
        number = itertools.count()
        for name in ("by_hand", "at_least_once", "exactly_once"):
            topics = (f"in-{next(number)}", f"out-{next(number)}")
            make_topics(broker.address, *topics)
            directory = " ".join((broker.address, *topics))
            hand = name == "by_hand"
            serve = by_hand(spark, directory, at / name) if hand else served(spark, graph(directory, name), at / name)
            figures |= shown(name, measure(directory, (send, receive), serve, warm, seconds))
    bars = (
        Bar("p50 in seconds, exactly once", figures["exactly_once_p50"], at_most=0.4),
        Bar("p99 in seconds, exactly once", figures["exactly_once_p99"], at_most=1.0),
        Bar(
            "p50 over raw Spark, both at least once", figures["at_least_once_p50"] / figures["by_hand_p50"], at_most=1.3
        ),
        Bar(
            "p99 over raw Spark, both at least once", figures["at_least_once_p99"] / figures["by_hand_p99"], at_most=1.3
        ),
    )
    return Result(NAME, figures, bars)
