"""The Spark session a flow runs in."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.spark.java import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: dict[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.python.worker.idleTimeoutSeconds": "600",
    "spark.sql.streaming.stopTimeout": "10s",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.shuffle.partitions": "0",
    "spark.log.level": "ERROR",
}
"""What Penstock sets unless the user sets it: the name, the value. Shuffle partitions of 0 mean one per core."""


def session(
    name: str = "penstock",
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    py_files: str = "",
    packages: str = "",
) -> SparkSession:
    """A session with Penstock's settings under the user's own. An active session is used as it is."""
    use_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = SparkSession.builder.appName(name)
    where = master or os.environ.get("MASTER") or _submitted_master() or "local[*,4]"
    builder = builder.master(where)
    for key, value in _settings(where, settings or {}, py_files, packages).items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def _submitted_master() -> str:
    """The master that spark-submit was told, which must stay."""
    arguments = os.environ.get("PYSPARK_SUBMIT_ARGS", "").split()
    return arguments[arguments.index("--master") + 1] if "--master" in arguments else ""


def _settings(master: str, given: Mapping[str, str], py_files: str, packages: str) -> dict[str, str]:
    made = {**SETTINGS, **_for_local(master)}
    if packages:
        made["spark.jars.packages"] = packages
    if py_files:
        made["spark.submit.pyFiles"] = py_files
    made |= given
    if made["spark.sql.shuffle.partitions"] == "0":
        made["spark.sql.shuffle.partitions"] = str(_cores(master))
    return made


def _for_local(master: str) -> dict[str, str]:
    if not master.startswith("local") and "127.0.0.1" not in master:
        return {}
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {**local, "spark.driver.memory": "2g"} if master.startswith("local") else local


def _cores(master: str) -> int:
    """A power of two near the number of cores: key groups are dealt out evenly then."""
    cores = os.cpu_count() or 2
    return power_of_two(cores)


def power_of_two(number: int) -> int:
    """The largest power of two that is not above the number, at most 128.

    >>> [power_of_two(n) for n in (1, 2, 3, 6, 8, 200)]
    [1, 2, 2, 4, 8, 128]
    """
    return 1 << (min(max(number, 1), 128).bit_length() - 1)
