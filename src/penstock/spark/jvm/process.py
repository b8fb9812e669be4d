"""The process of the driver's JVM, and the gateway through which Python talks to it."""

from __future__ import annotations

import importlib.util
import os
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import SetupError
from penstock.spark.jvm.command import Command, jvm_command
from penstock.spark.jvm.java import use_java
from penstock.spark.jvm.warm import import_for_driver
from penstock.temporary import temporary_directory

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf

PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
CONNECTION = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""Where the JVM writes the port and the secret of its gateway."""

_process: subprocess.Popen[bytes] | None = None
"""Kept for its standard input: the JVM ends when that is closed, at the latest when this process ends."""


class JvmEnded(Exception):
    """The JVM ended before it was ready."""


def spark_home() -> Path:
    """The directory of the pyspark package, found without importing it.

    Raises:
        SetupError: pyspark is not installed.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise SetupError("pyspark is not installed; `pip install penstock` brings it along")
    return Path(found.origin).parent


def launch(settings: Mapping[str, str], errors: int, directory: Path | None = None) -> None:
    """Starts the JVM, and has pyspark use it.

    Args:
        settings: Spark's settings for this start.
        errors: The file descriptor that becomes the JVM's standard error.
        directory: Where the JVM works, if not where this process does.

    Raises:
        JvmEnded: The JVM ended before it was ready; `errors` has its reason.
    """
    command = jvm_command(use_java(), spark_home(), settings)
    if command is None:
        gateway = _by_spark_submit(settings, errors, directory)
    else:
        gateway = _directly(command, errors, directory)
    import_for_driver()
    from pyspark import SparkContext

    SparkContext._ensure_initialized(gateway=gateway, conf=_conf(settings))


def _conf(settings: Mapping[str, str]) -> SparkConf:
    from pyspark import SparkConf

    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    return conf


def _by_spark_submit(settings: Mapping[str, str], errors: int, directory: Path | None) -> JavaGateway:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    try:
        return launch_gateway(_conf(settings), {"stderr": errors, "start_new_session": True, "cwd": directory})  # type: ignore[no-untyped-call]  # pyspark
    except PySparkRuntimeError as error:
        raise JvmEnded(str(error)) from None


def _directly(command: Command, errors: int, directory: Path | None) -> JavaGateway:
    """Starts the JVM itself, imports pyspark while it starts, and connects as to a JVM that was there before.

    No second thread imports: modules that import each other, as pyspark's do, would be seen half made.
    """
    global _process
    with temporary_directory("jvm") as folder:
        connection = folder / "connection"
        added = {**command.environment, "SPARK_CONNECT_MODE": "0", CONNECTION: str(connection)}
        _process = subprocess.Popen(
            command.words,
            stdin=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **added},
            start_new_session=True,
            cwd=directory,
        )
        import_for_driver()
        port, secret = _connection(_process, connection)
    from pyspark.java_gateway import launch_gateway

    with _variables({PORT: str(port), SECRET: secret}):
        return launch_gateway()  # type: ignore[no-untyped-call]  # pyspark


def _connection(process: subprocess.Popen[bytes], file: Path) -> tuple[int, str]:
    """The port and the secret of the gateway, once the JVM has written them: it puts the file there in one step."""
    while not file.is_file():
        if process.poll() is not None:
            raise JvmEnded(f"the JVM ended with exit code {process.returncode}")
        time.sleep(0.01)
    port, length = struct.unpack_from(">ii", found := file.read_bytes())
    return port, found[8 : 8 + length].decode()


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]
