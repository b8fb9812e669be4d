"""Reading a Kafka topic of JSON, live: a flow against Spark's own connector in a query written by hand."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session
from penstock.frontends.streams.flow import Flow
from penstock.graph.endpoints.basic import nothing
from penstock.graph.endpoints.kafka import kafka
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "kafka-read"
ABOUT = "a topic of JSON records read live in batches, against raw Spark reading the same topic"
FIELDS = "user string, n bigint, note string"
TOPIC = "bench"


def fill(spark: SparkSession, servers: str, rows: int) -> None:
    """Puts JSON records of about 100 bytes into the topic."""
    from penstock.connectors.kafka.jars import kafka_jars
    from penstock.spark.jvm.jars import use_jars

    use_jars(spark, kafka_jars())
    made = "to_json(named_struct('user', concat('u', id % 1000), 'n', id, 'note', repeat('x', 50)))"
    frame = spark.range(rows).selectExpr(
        "cast(concat('u', id % 1000) as binary) as key", f"cast({made} as binary) as value"
    )
    frame.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", TOPIC).save()


def graph(servers: str, most: int) -> Graph:
    flow = Flow("kafka-read")
    read = flow.source("in", kafka(TOPIC, FIELDS, servers=servers, rows_per_batch=most))
    read.where("some", "n % 2 = 0").sink("out", nothing())
    return flow.graph


def by_hand(spark: SparkSession, servers: str, most: int, directory: Path) -> None:
    def write(batch: DataFrame, _: int) -> None:
        batch.write.format("noop").mode("overwrite").save()

    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", TOPIC)
    reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", most)
    read = reader.option("kafka.isolation.level", "read_committed").load()
    parsed = f"from_json(cast(value as string), '{FIELDS}', map('mode', 'FAILFAST')) as v"
    rows = read.selectExpr(parsed).select("v.*").where("n % 2 = 0")
    query = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(directory)).trigger(availableNow=True)
    query.start().awaitTermination()


def penstock(spark: SparkSession, servers: str, most: int, directory: Path) -> None:
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    run_live(graph(servers, most), spark, RunSpec(checkpoint=directory, mode="once")).wait(0.02)


def run(quick: bool) -> Result:
    from penstock.jobs.broker import Broker

    rows, batches, rounds = (200_000, 2, 2) if quick else (2_000_000, 4, 5)
    spark = spark_session()
    with folder() as directory, Broker(directory / "kafka") as broker:
        fill(spark, broker.address, rows)
        number = itertools.count()
        servers, most = broker.address, rows // batches
        runs = {
            "by_hand": lambda: by_hand(spark, servers, most, directory / f"hand{next(number)}"),
            "penstock": lambda: penstock(spark, servers, most, directory / f"flow{next(number)}"),
        }
        taken = alternate(runs, rounds, warm=2)
    seconds = medians(taken)
    figures = {f"{name}_records_per_second": rows / value for name, value in seconds.items()}
    bar = Bar("throughput over raw Spark", paired_ratio(taken, "by_hand", "penstock"), at_least=0.95)
    return Result(NAME, {"records": rows, "batches": batches, **figures}, (bar,))
