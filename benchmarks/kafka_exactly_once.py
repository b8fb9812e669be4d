"""Kafka to Kafka, live: a flow that delivers exactly once against Spark's own sink, which delivers at least once."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session
from benchmarks.kafka_read import TOPIC, fill
from penstock.frontends.streams.flow import Flow
from penstock.graph.endpoints.kafka import kafka, write_kafka
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "kafka-exactly-once"
ABOUT = "Kafka to Kafka in transactions, against raw Spark's at-least-once sink"


def graph(servers: str, most: int, out: str) -> Graph:
    flow = Flow("kafka-exactly-once")
    read = flow.source("in", kafka(TOPIC, servers=servers, format="raw", rows_per_batch=most))
    rows = read.select("rows", "key", "value")
    rows.sink("out", write_kafka(out, servers=servers, format="raw", key="key"), delivery="exactly_once")
    return flow.graph


def by_hand(spark: SparkSession, servers: str, most: int, directory: Path) -> None:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", TOPIC)
    reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", most)
    rows = reader.option("kafka.isolation.level", "read_committed").load().select("key", "value")
    writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", directory.name)
    writer = writer.option("checkpointLocation", str(directory)).trigger(availableNow=True)
    writer.start().awaitTermination()


def penstock(spark: SparkSession, servers: str, most: int, directory: Path) -> None:
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    run_live(graph(servers, most, directory.name), spark, RunSpec(checkpoint=directory, mode="once")).wait(0.02)


def run(quick: bool) -> Result:
    from penstock.jobs.broker import Broker

    rows, batches, rounds = (100_000, 2, 2) if quick else (1_000_000, 4, 5)
    spark = spark_session()
    with folder() as directory, Broker(directory / "kafka") as broker:
        fill(spark, broker.address, rows)
        number = itertools.count()
        servers, most = broker.address, rows // batches
        runs = {
            "by_hand": lambda: by_hand(spark, servers, most, directory / f"hand{next(number)}"),
            "penstock": lambda: penstock(spark, servers, most, directory / f"flow{next(number)}"),
        }
        taken = alternate(runs, rounds, warm=1)
    seconds = medians(taken)
    figures = {f"{name}_records_per_second": rows / value for name, value in seconds.items()}
    bar = Bar(
        "throughput over raw Spark's at-least-once sink", paired_ratio(taken, "by_hand", "penstock"), at_least=0.6
    )
    return Result(NAME, {"records": rows, "batches": batches, **figures}, (bar,))
