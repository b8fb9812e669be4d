"""The cost of a mark for each partition: `python -m benchmarks.watermarks` prints the table of decision 7."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.harness import jvm_seconds, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS, ROUNDS, COLUMNS = 4_000_000, 3, 64
WAYS: dict[str, list[str]] = {
    "none": [],
    "one": ["max(unix_micros(ts)) as high"],
    "columns": [f"max(case when pmod(p, {COLUMNS}) = {i} then unix_micros(ts) end) as high{i}" for i in range(COLUMNS)],
    "sketch": ["tuple_sketch_agg_double(p, cast(unix_micros(ts) as double), 20, 'max') as highs"],
}


def observed(frame: DataFrame, way: str) -> DataFrame:
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    return frame.observe(Observation(), *map(f.expr, WAYS[way])) if WAYS[way] else frame


def main() -> None:
    """Prints the seconds of each way for each number of partitions."""
    spark = spark_session()
    now = jvm_seconds(spark)
    for partitions in (1, 64, 1000, 10_000):
        times = "timestamp_micros(1700000000000000 + id) as ts"
        rows = spark.range(0, ROWS, 1, 2).selectExpr(f"pmod(id, {partitions}) as p", times, "id % 1000 as k")
        best = dict.fromkeys(WAYS, float("inf"))
        for _ in range(ROUNDS):
            for way in WAYS:
                began = now()
                observed(rows, way).groupBy("k").count().write.format("noop").mode("overwrite").save()
                best[way] = min(best[way], now() - began)
        print(f"{partitions:6,} partitions", *(f"{way} {seconds:.2f}" for way, seconds in best.items()), flush=True)


if __name__ == "__main__":
    main()
