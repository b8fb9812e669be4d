"""Starts the JVM that Spark lives in, and keeps it quiet.

Spark's log goes to a file of its own. What else the JVM writes to its standard error, above all what steps print in
local workers, comes to ours; the lines that every start prints do not.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from penstock.errors import SetupError
from penstock.spark.jvm.archive import archive_options
from penstock.spark.jvm.cache import cache_dir
from penstock.spark.jvm.hardening import with_kafka_bounds
from penstock.spark.jvm.java import use_java
from penstock.spark.jvm.noise import NOISE, quiet
from penstock.spark.jvm.process import PORT, JvmEnded, launch, spark_home
from penstock.storage.private import make_private

KEEP = 20
"""How many log files of earlier runs stay."""

_LOG4J = """\
status = off
rootLogger.level = {level}
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
"""

_log_file: Path | None = None


def spark_log() -> Path | None:
    """Where the log of the JVM that this process started is; None when it did not start one."""
    return _log_file


def jvm_is_up() -> bool:
    """Whether this process has a JVM already: started earlier, or by spark-submit."""
    if PORT in os.environ:
        return True
    pyspark = sys.modules.get("pyspark")
    return pyspark is not None and pyspark.SparkContext._gateway is not None


def start_jvm(settings: Mapping[str, str], log_level: str = "warn", directory: Path | None = None) -> None:
    """Starts the JVM with these settings, in a session of its own so that no signal of the terminal reaches it; in a directory, or in that of this process."""
    made = _with_archive(_with_log(with_kafka_bounds(settings), log_level))
    errors = _Errors()
    try:
        launch(made, errors.write_end, directory)
    except JvmEnded as error:
        raise SetupError(not_started(errors.all(), str(error))) from None
    finally:
        os.close(errors.write_end)
    errors.up.set()


def _with_log(settings: Mapping[str, str], level: str) -> dict[str, str]:
    """The settings, with Spark's log sent to a file unless the user has a log4j configuration of their own."""
    global _log_file
    given = settings.get("spark.driver.extraJavaOptions", "")
    if "log4j" in given or "log4j" in os.environ.get("PYSPARK_SUBMIT_ARGS", ""):
        return dict(settings)
    _log_file = _new_log()
    config = _log_file.with_suffix(".properties")
    config.write_text(_LOG4J.format(level=level, file=_log_file))
    options = f"-Dlog4j2.configurationFile=file:{config} {given}".strip()
    return {**settings, "spark.driver.extraJavaOptions": options}


def _with_archive(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings, with the driver's JVM sharing class data with earlier ones."""
    given = settings.get("spark.driver.extraJavaOptions", "")
    options = archive_options(use_java(), spark_home() / "jars", given)
    return {**settings, "spark.driver.extraJavaOptions": " ".join((*options, given)).strip()}


def _new_log() -> Path:
    """A file in the cache folder, or in the temporary one when that cannot be written. Old ones are removed."""
    name = f"spark-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    for folder in (cache_dir() / "logs", Path(tempfile.gettempdir()) / f"penstock-logs-{os.getuid()}"):
        try:
            make_private(folder)
            (folder / name).touch(0o600)
        except OSError:
            continue
        _prune(folder)
        return folder / name
    raise SetupError("no folder for Spark's log can be written to; set PENSTOCK_CACHE to one you may write to")


def _prune(folder: Path) -> None:
    """Removes the oldest logs, but for those of processes that still run."""
    for old in sorted(folder.glob("spark-*.log"))[:-KEEP]:
        if not _runs(int(old.stem.rsplit("-", 1)[1])):
            for file in folder.glob(f"{old.stem}.*"):
                file.unlink(missing_ok=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


class _Errors:
    """The standard error of the JVM: kept while it starts, then copied to ours line by line."""

    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()
        self.up = threading.Event()
        self.kept: deque[str] = deque(maxlen=200)
        self.thread = threading.Thread(target=self._read, daemon=True, name="jvm-stderr")
        self.thread.start()

    def _read(self) -> None:
        with os.fdopen(self.read_end, errors="replace") as pipe:
            for line in quiet(self._starting(pipe)):
                _write(line)

    def _starting(self, pipe: Iterable[str]) -> Iterator[str]:
        """Keeps the lines of a JVM that starts, and hands on those of one that is up."""
        for line in pipe:
            if self.up.is_set():
                yield line
            else:
                self.kept.append(line)

    def all(self) -> str:
        """What a JVM that ended has said."""
        self.thread.join(timeout=2)
        return "".join(self.kept)


def _write(line: str) -> None:
    try:
        sys.stderr.write(line)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # the terminal is gone; the JVM must not block on that
        return


def not_started(said: str, otherwise: str) -> str:
    r"""The reason why a JVM did not start: its exception in one line, or the last lines it wrote.

    >>> not_started('Exception in thread "main" org.apache.spark.SparkException: no such master\n\tat x', "")
    "Spark's JVM did not start: no such master. `penstock doctor --spark` looks for the reason"
    """
    found = re.search(r'^Exception in thread "main" [\w.$]+(?:Exception|Error): (.+)', said, re.MULTILINE)
    lines = [
        line for line in said.splitlines() if line.strip() and not line.startswith("\tat ") and not NOISE.match(line)
    ]
    reason = found[1] if found else "\n".join(lines[-10:]) or otherwise
    return f"Spark's JVM did not start: {reason.rstrip('.')}. `penstock doctor --spark` looks for the reason"
