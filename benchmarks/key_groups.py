"""Ways to send a record to the task that owns its key: `python -m benchmarks.key_groups` prints the tables of decision 17.

Seconds of processor time of the JVM for some million records, in turns, the best of some rounds. Eight tasks are a power of two, seven are not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.harness import jvm_seconds, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS, GROUPS = ("k",), 128
Ways = dict[str, "Callable[[DataFrame], DataFrame]"]


def records(spark: SparkSession, many: int, keys: int) -> DataFrame:
    """Records of some keys, in memory."""
    made = spark.range(0, many, 1, 2).selectExpr(f"concat('key-', pmod(xxhash64(id), {keys})) as k", "id as v")
    kept = made.persist()
    kept.count()
    return kept


def moves() -> Ways:
    """Records of a Python step."""
    from pyspark.sql import functions as f

    from penstock.spark.lower.ownership import STEERING, steering_sql, task_sql

    task, steering = f.expr(task_sql(KEYS, 7, GROUPS)), steering_sql(KEYS, 7, GROUPS)
    return {
        "8 tasks, hash of the key": lambda rows: rows.repartition(8, "k"),
        "7 tasks, repartitionById": lambda rows: rows.repartitionById(7, task),
        "7 tasks, steering column": lambda rows: rows.selectExpr("*", steering).repartition(7, "k", STEERING),
        "7 tasks, repartitionByRange": lambda rows: rows.repartitionByRange(7, task),
    }


def totals() -> Ways:
    """A native aggregate."""
    from pyspark.sql import functions as f

    from penstock.spark.lower.ownership import STEERING, steering_sql, task_sql

    task, steering, total = task_sql(KEYS, 7, GROUPS), steering_sql(KEYS, 7, GROUPS), f.sum("v").alias("v")

    def steered(rows: DataFrame) -> DataFrame:
        grouped = rows.selectExpr("*", steering).groupBy("k", STEERING).agg(total)
        return grouped.repartition(7, "k", STEERING)

    def moved_first(rows: DataFrame) -> DataFrame:
        return rows.selectExpr("*", f"{task} as t").repartitionById(7, "t").groupBy("k", "t").agg(total)

    return {
        "8 tasks, hash of the key": lambda rows: rows.groupBy("k").agg(total).repartition(8, "k"),
        "7 tasks, steering column": steered,
        "7 tasks, groupBy, then repartitionById": lambda rows: (
            rows.groupBy("k").agg(total).repartitionById(7, f.expr(task))
        ),
        "7 tasks, repartitionById, then groupBy": moved_first,
    }


def measure(spark: SparkSession, rows: DataFrame, ways: Ways, rounds: int) -> dict[str, float]:
    """The least seconds of each way."""
    now, least = jvm_seconds(spark), dict.fromkeys(ways, float("inf"))
    for _ in range(rounds + 1):
        for name, way in ways.items():
            spark.conf.set("spark.sql.shuffle.partitions", name[0])
            began = now()
            way(rows).write.format("noop").mode("overwrite").save()
            least[name] = min(least[name], now() - began)
    return least


def main() -> None:
    """Prints the seconds of each way."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--records", type=int, default=3_000_000)
    asked.add_argument("--rounds", type=int, default=4)
    options = asked.parse_args()
    spark = spark_session()
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    for keys in (1000, 1_000_000):
        rows = records(spark, options.records, keys)
        for what, ways in (("Python step", moves()), ("native total", totals())):
            for name, seconds in measure(spark, rows, ways, options.rounds).items():
                print(f"{what:13} {keys:9,} keys  {name:42} {seconds:.2f} s", flush=True)
        rows.unpersist()


if __name__ == "__main__":
    main()
