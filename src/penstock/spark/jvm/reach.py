"""Whether the tasks of Spark see the directories of this machine."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import SetupError
from penstock.graph.run.master import is_on_one_machine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def runs_here(spark: SparkSession) -> bool:
    """Whether all tasks run on this machine."""
    return is_on_one_machine(str(spark.sparkContext.master))


def check_reach(spark: SparkSession, folder: Path, what: str) -> None:
    """Refuses a directory that workers on other machines do not see: what tasks write there would be lost.

    Args:
        spark: The session; of a local one nothing is asked.
        folder: The directory, which need not be there.
        what: What is kept in it, for the message.

    Raises:
        SetupError: A task did not find a file that the driver has put there.
    """
    if runs_here(spark):
        return
    token = uuid.uuid4().hex
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", prefix=".reach-", dir=folder) as probe:
        probe.write(token)
        probe.flush()
        blind = sorted(set(_asked(spark, _looker(probe.name, token))))
    if blind:
        raise SetupError(
            f"{what} is kept in {folder}, a directory that tasks on {', '.join(blind)} do not see. Workers and driver must share it: give a URL that "
            f"all of them reach, such as --checkpoint s3://bucket/flow, or a directory of a file system that all have mounted"
        )


def _asked(spark: SparkSession, look: Callable[[int], list[str]]) -> list[str]:
    tasks = max(2, spark.sparkContext.defaultParallelism)
    return list(spark.sparkContext.parallelize(range(tasks), tasks).flatMap(look).collect())


def _looker(path: str, token: str) -> Callable[[int], list[str]]:
    """What a task does: the name of its machine where it does not find the file. A closure, since workers may have no Penstock yet."""

    def look(_: int) -> list[str]:
        import socket
        from pathlib import Path

        try:
            found = Path(path).read_text()
        except OSError:
            found = ""
        return [] if found == token else [socket.gethostname()]

    return look
