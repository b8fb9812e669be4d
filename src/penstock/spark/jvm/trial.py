"""The smallest run that proves Spark and its Python workers work here: `python -m penstock.spark.jvm.trial`.

`penstock doctor --spark` runs it as a process of its own, so that a JVM that dies or hangs harms nobody.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.spark.jvm.java import use_java

if TYPE_CHECKING:
    from pyarrow import RecordBatch

ROWS = 1000


def main() -> None:
    """Send rows through a Python worker and back, and print how many arrived."""
    use_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("penstock doctor")
    spark = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "512m").getOrCreate()
    try:
        back = spark.range(ROWS).mapInArrow(_double, "id long").selectExpr("sum(id)").first()
        wanted = ROWS * (ROWS - 1)
        if back is None or back[0] != wanted:
            raise SystemExit(f"Spark {spark.version} answered {back}, not {wanted}")
        print(f"Spark {spark.version}: {ROWS} rows through a Python step and back")  # noqa: T201 - its output is the result
    finally:
        spark.stop()


def _double(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        yield pa.RecordBatch.from_arrays([pc.multiply(batch.column(0), 2)], ["id"])


if __name__ == "__main__":
    main()
