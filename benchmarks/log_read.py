"""Reading the embedded log into Spark: a bounded flow over a topic, all fields of a record, a sink that keeps nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, best, folder, paired_ratio, spark_session
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph
from penstock.log import Log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "log-read"
ABOUT = "records of 100 bytes from the log into Spark, against the bare data source"
PARTITIONS, BATCH = 4, 10_000


def fill(directory: Path, records: int) -> Path:
    """A log with a topic of so many records."""
    with Log(directory / "log") as log, log.producer() as producer:
        log.create_topic("t", PARTITIONS)
        values = [b"x" * 100] * BATCH
        for at in range(0, records, BATCH):
            producer.send_many("t", values, partition=at // BATCH % PARTITIONS)
    return directory / "log"


def graph(path: Path) -> Graph:
    flow = ps.Flow("log-read")
    flow.source("t", ps.topic("t", path=path)).sink("out", nothing())
    return flow.graph


def bare(spark: SparkSession, path: Path) -> None:
    from penstock.connectors.log.source import NAME as FORMAT
    from penstock.connectors.log.source import LogDataSource

    spark.dataSource.register(LogDataSource)
    options = {"path": str(path), "topic": "t", "start": "earliest", "step": "t", "pace": str(path / "none")}
    spark.read.format(FORMAT).options(**options).load().write.format("noop").mode("overwrite").save()


def run(quick: bool) -> Result:
    from penstock.spark.run import run_bounded

    records, rounds = (1_000_000, 3) if quick else (8_000_000, 5)
    spark = spark_session()
    with folder() as directory:
        path = fill(directory, records)
        flow = graph(path)
        runs = {"bare_source": lambda: bare(spark, path), "penstock": lambda: run_bounded(flow, spark)}
        taken = alternate(runs, rounds, warm=2)
    seconds = best(taken)
    rates = {f"{name}_records_per_second": records / value for name, value in seconds.items()}
    figures = {"records": records, **rates, "over_bare_source": paired_ratio(taken, "bare_source", "penstock")}
    return Result(NAME, figures, (Bar("records per second", records / seconds["penstock"], at_least=2_000_000),))
