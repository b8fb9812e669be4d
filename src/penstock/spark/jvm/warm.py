"""What a start can do meanwhile: import modules while the JVM starts, and start Python workers while the query does."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from penstock.graph.run.master import is_on_one_machine
from penstock.temporary import temporary_directory

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

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
    if not is_on_one_machine(str(spark.sparkContext.master)):
        return None
    return _in_background("penstock-warm-up", lambda: _run_job(spark))


def rehearse(spark: SparkSession) -> threading.Thread:
    """Has Spark run a small query of its own in a thread: the first batch of a session takes several times as long as the next, most of it for classes that are loaded and compiled.

    Args:
        spark: The session of a driver that stands by. What the query reads and writes is in a directory that is gone afterwards.

    Returns:
        The thread. Whatever goes wrong in it is of no account.
    """
    return _in_background("penstock-rehearsal", lambda: _run_query(spark))


def _run_query(spark: SparkSession) -> None:
    with temporary_directory("rehearsal") as directory:
        (directory / "in").mkdir()
        (directory / "in" / "words.json").write_text('{"word": "one"}\n{"word": "two"}\n')

        def batch(frame: DataFrame, number: int) -> None:
            counts = frame.groupBy("word").count().repartition(2, "word").mapInArrow(_same, "word string, count bigint")
            counts.write.mode("overwrite").json(str(directory / "out"))

        stream = spark.readStream.schema("word string").json(str(directory / "in"))
        writer = stream.writeStream.foreachBatch(batch).option("checkpointLocation", str(directory / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


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
