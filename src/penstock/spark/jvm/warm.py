"""What a start can do meanwhile: import modules while the JVM starts, and start Python workers while the query does."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

DRIVER_MODULES = (
    "pyspark.sql",
    "pyspark.testing.utils",
    "pyspark.sql.streaming",
    "pyspark.sql.classic.dataframe",
    "pyspark.sql.classic.column",
    "pyspark.sql.pandas.map_ops",
    "penstock.spark.run",
)
"""What the driver imports before its first batch anyhow, and all that warming up imports: two threads that import modules of pyspark for the
first time see each other's half made. pyspark's first call needs its `testing`."""
WORKER_MODULE = "penstock.spark.tasks.worker"


def import_for_driver() -> None:
    """Imports what the driver needs next; called while the JVM starts, when this process would only wait."""
    for name in DRIVER_MODULES:
        importlib.import_module(name)


def warm_workers(spark: SparkSession) -> threading.Thread | None:
    """Starts the Python workers of a local run in a thread, so that the first batch finds them ready.

    Args:
        spark: The session of the run. On a cluster nothing happens: its workers are not this process's to start.

    Returns:
        The thread, or None on a cluster. Whatever goes wrong in it shows in the first batch, and is reported there.
    """
    if not str(spark.sparkContext.master).startswith("local"):
        return None
    return _in_background("penstock-warm-up", lambda: _run_job(spark))


def _in_background(name: str, work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=_quietly, args=(work,), name=name, daemon=True)
    thread.start()
    return thread


def _quietly(work: Callable[[], None]) -> None:
    try:
        work()
    except Exception:  # it is only an attempt: the run itself reports what is wrong
        return


def _run_job(spark: SparkSession) -> None:
    tasks = spark.sparkContext.defaultParallelism
    frame = spark.range(0, tasks, 1, tasks).mapInArrow(_import_in_worker, "id bigint")
    frame.write.format("noop").mode("overwrite").save()


def _import_in_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    importlib.import_module(WORKER_MODULE).prepare()
    yield from batches
