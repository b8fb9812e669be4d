"""Ways to send a record to the task that owns its key: `python benchmarks/key_groups.py` prints a table for decision 17.

Seconds of a million and more records through one shuffle, in turns, on two cores. Eight tasks are a power of two, seven are not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from benchmarks.harness import alternate, medians, spark_session
from penstock.spark.lower.ownership import STEERING, key_hash_sql, steering_sql, task_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS, GROUPS = ("k",), 128


def records(spark: SparkSession, many: int, keys: int) -> DataFrame:
    """Records of some keys, in memory."""
    made = spark.range(0, many, 1, 2).selectExpr(f"concat('key-', pmod(xxhash64(id), {keys})) as k", "id as v")
    kept = made.persist()
    kept.count()
    return kept


def _written(frame: DataFrame) -> None:
    frame.selectExpr("*", key_hash_sql(KEYS)).write.format("noop").mode("overwrite").save()


def moves(frame: DataFrame) -> dict[str, Callable[[], Any]]:
    """Records of a Python step."""
    task, steering = task_sql(KEYS, 7, GROUPS), steering_sql(KEYS, 7, GROUPS)
    return {
        "8 tasks, hash of the key": lambda: _written(frame.repartition(8, "k")),
        "7 tasks, hash of the key (not the owner)": lambda: _written(frame.repartition(7, "k")),
        "7 tasks, repartitionById": lambda: _written(frame.repartitionById(7, f.expr(task))),
        "7 tasks, steering column": lambda: _written(frame.selectExpr("*", steering).repartition(7, "k", STEERING)),
        "7 tasks, repartitionByRange": lambda: _written(frame.repartitionByRange(7, f.expr(task))),
    }


def _summed(frame: DataFrame, *keys: str) -> DataFrame:
    return frame.groupBy(*keys).agg(f.sum("v").alias("v"))


def totals(frame: DataFrame) -> dict[str, Callable[[], Any]]:
    """A native aggregate."""
    task, steering = f"{task_sql(KEYS, 7, GROUPS)} as __task", steering_sql(KEYS, 7, GROUPS)
    steered, numbered = frame.selectExpr("*", steering), frame.selectExpr("*", task)
    first = numbered.repartitionById(7, "__task")
    return {
        "8 tasks, hash of the key": lambda: _written(_summed(frame, "k").repartition(8, "k")),
        "7 tasks, steering column": lambda: _written(_summed(steered, "k", STEERING).repartition(7, "k", STEERING)),
        "7 tasks, groupBy, then repartitionById": lambda: _written(
            _summed(frame, "k").repartitionById(7, f.expr(task_sql(KEYS, 7, GROUPS)))
        ),
        "7 tasks, repartitionById, then groupBy": lambda: _written(_summed(first, "k", "__task")),
    }


def main() -> None:
    """Prints the seconds of each way."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--records", type=int, default=4_000_000)
    asked.add_argument("--rounds", type=int, default=5)
    options = asked.parse_args()
    spark = spark_session()
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    for keys in (1000, 1_000_000):
        frame = records(spark, options.records, keys)
        for what, runs in (("Python step", moves(frame)), ("native total", totals(frame))):
            for tasks in (7, 8):
                spark.conf.set("spark.sql.shuffle.partitions", tasks)
                mine = {name: run for name, run in runs.items() if name.startswith(str(tasks))}
                for name, seconds in medians(alternate(mine, options.rounds)).items():
                    print(f"{what:13} {keys:9,} keys  {name:42} {seconds:.2f} s", flush=True)
        frame.unpersist()


if __name__ == "__main__":
    main()
