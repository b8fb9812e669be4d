"""The Spark session a flow runs in."""

from __future__ import annotations

import importlib.metadata
import itertools
import logging
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.connectors.kafka.jars import Jar
from penstock.errors import SetupError
from penstock.graph.run.master import is_in_one_jvm, is_on_one_machine
from penstock.spark.jvm.command import DAEMON, DAEMON_MODULE, OPTIONS
from penstock.spark.jvm.ending import quiet_ending
from penstock.spark.jvm.gateway import jvm_is_up, start_jvm
from penstock.spark.jvm.hardening import EVERYWHERE, LOCAL_SECURITY, check_encryption, left_weak
from penstock.spark.jvm.heap import gc_options
from penstock.spark.jvm.jars import get_jars, has_jars
from penstock.spark.jvm.java import use_java
from penstock.spark.workers.sockets import socket_settings
from penstock.spark.workers.stand_in import in_user_directory, make_stand_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock")
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"
"""Where Spark has two classes that write its own files of a checkpoint. The other one starts ten processes for each file on a local disk."""
SETTINGS: dict[str, str] = {
    **EVERYWHERE,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "67108864",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.python.worker.idleTimeoutSeconds": "600",
    "spark.sql.streaming.stopTimeout": "10s",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.shuffle.partitions": "0",
}
"""What Penstock sets unless the user sets it: the name, the value. Shuffle partitions of 0 mean one per core."""
LOOPBACK = "127.0.0.1"


def session(
    name: str = "penstock",
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    packages: str = "",
    jars: Sequence[Jar] = (),
    properties_file: str | Path | None = None,
    log_level: str = "warn",
    worker_python: str = "",
) -> SparkSession:
    """A session with Penstock's settings under the user's own. An active session is used as it is.

    The user's own come from, the later the stronger: `spark-defaults.conf`, `properties_file`, what spark-submit or
    `PYSPARK_SUBMIT_ARGS` say, and `settings`. Spark's log goes to a file; see `penstock.spark.jvm.gateway`. `worker_python` is the path of
    the Python in an archive that workers take theirs from.
    """
    use_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    active = _active()
    if active is not None:
        return active
    given = _given(settings, properties_file)
    if packages:
        given["spark.jars.packages"] = ",".join(filter(None, (given.get("spark.jars.packages"), packages)))
    if jars and not jvm_is_up() and not has_jars(given, jars):
        given["spark.jars"] = ",".join(filter(None, (given.get("spark.jars"), *map(str, get_jars(jars)))))
    where = master or _master_in(given)
    made = {**_own_daemon(where, given), **_settings(where, {**given, "spark.master": where, "spark.app.name": name})}
    if not jvm_is_up():
        if is_in_one_jvm(where):
            os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)  # the web page listens there; Spark has no setting for it
        _start(made, log_level, "" if is_in_one_jvm(where) else worker_python)
        made = {**(socket_settings() if is_in_one_jvm(where) else {}), **made}
    from pyspark.sql import SparkSession

    quiet_ending()
    spark = SparkSession.builder.config(map=dict(made)).getOrCreate()
    if "PYSPARK_GATEWAY_PORT" in os.environ and not _own_log_settings(given):
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def master_of(
    master: str | None = None, settings: Mapping[str, str] | None = None, properties_file: str | Path | None = None
) -> str:
    """The master that `session` would take, without starting anything."""
    active = _active()
    return (
        str(active.sparkContext.master)
        if active is not None
        else master or _master_in(_given(settings, properties_file))
    )


def _given(settings: Mapping[str, str] | None, properties_file: str | Path | None) -> dict[str, str]:
    """The user's own settings."""
    return {**_read(_defaults_file()), **_read(properties_file), **_submitted(), **(settings or {})}


def _master_in(given: Mapping[str, str]) -> str:
    return given.get("spark.master") or os.environ.get("MASTER") or "local[*,4]"


def _start(made: Mapping[str, str], log_level: str, worker_python: str) -> None:
    if worker_python:
        start_jvm(in_user_directory(made), log_level, make_stand_in(worker_python))
    else:
        start_jvm(made, log_level)


def _active() -> SparkSession | None:
    """The session that is there already; pyspark is not imported for it, because the JVM can start meanwhile."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _own_log_settings(given: Mapping[str, str]) -> bool:
    """Whether the user of spark-submit says how Spark logs."""
    options = given.get("spark.driver.extraJavaOptions", "")
    return "spark.log.level" in given or "log4j" in options or (_conf_folder() / "log4j2.properties").is_file()


def read_properties(text: str) -> dict[str, str]:
    r"""The settings of a Spark properties file.

    >>> read_properties("# comment\nspark.executor.memory  4g\nspark.eventLog.enabled=true")
    {'spark.executor.memory': '4g', 'spark.eventLog.enabled': 'true'}
    """
    lines = (line.strip() for line in text.splitlines())
    pairs = (re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!")
    return {pair[0]: pair[1] if len(pair) > 1 else "" for pair in pairs}


def _read(path: str | Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        return read_properties(Path(path).read_text())
    except OSError as error:
        raise SetupError(f"the properties file {path} cannot be read: {error.strerror}") from None


def _defaults_file() -> Path | None:
    file = _conf_folder() / "spark-defaults.conf"
    return file if file.is_file() else None


def _conf_folder() -> Path:
    return Path(os.environ.get("SPARK_CONF_DIR") or f"{os.environ.get('SPARK_HOME', '')}/conf")


def _submitted() -> dict[str, str]:
    """The options of spark-submit: asked of the JVM it started, or read from `PYSPARK_SUBMIT_ARGS`."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        from pyspark import SparkConf, SparkContext

        SparkContext._ensure_initialized()
        return dict(SparkConf().getAll())
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    given = [value for flag, value in itertools.pairwise(words) if flag == "--conf" and "=" in value]
    given += [f"spark.master={value}" for flag, value in itertools.pairwise(words) if flag == "--master"]
    return dict(value.split("=", 1) for value in given)


def _settings(master: str, given: Mapping[str, str]) -> dict[str, str]:
    made = {**SETTINGS, **_for_local(master), **given}
    check_encryption(made)
    if left_weak(made):
        log.warning(
            "Spark's encryption can be tampered with; also set, on master, workers and driver: %s",
            ", ".join(left_weak(made)),
        )
    if made["spark.sql.shuffle.partitions"] == "0":
        made["spark.sql.shuffle.partitions"] = str(_cores(master))
    return made | _collected(made) if is_in_one_jvm(master) else made


def _collected(made: Mapping[str, str]) -> dict[str, str]:
    options = gc_options(made["spark.driver.memory"], made.get(OPTIONS, ""))
    return {OPTIONS: options} if options else {}


def _for_local(master: str) -> dict[str, str]:
    on_loopback = master.startswith("spark://") and LOOPBACK in master
    if not is_on_one_machine(master) and not on_loopback:
        return {}
    made = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    made |= {"spark.driver.memory": "2g"} if is_on_one_machine(master) else {}
    return made | (LOCAL_SECURITY if is_in_one_jvm(master) else {})


def _own_daemon(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """The setting by which workers on this machine start quicker; none where their Python may be another one, without Penstock."""
    is_same = os.environ["PYSPARK_PYTHON"] == sys.executable and "spark.pyspark.python" not in given
    return {DAEMON_MODULE: DAEMON} if is_in_one_jvm(master) and is_same and _is_installed() else {}


def _is_installed() -> bool:
    """Whether any Python of this environment finds Penstock, not this process alone."""
    try:
        importlib.metadata.distribution("penstock")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _cores(master: str) -> int:
    """The number of cores of a run on this machine."""
    named = re.match(r"local\[(\d+)", master)
    return max(1, int(named[1]) if named else os.cpu_count() or 2)
