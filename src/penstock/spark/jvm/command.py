"""The command that starts the driver's JVM, without asking Spark's launcher every time.

`spark-submit` runs two shell scripts and a JVM of its own only to find this command out. Where nothing of the user's takes part in it (no
Spark settings in the environment, no configuration directory) it is always the same for one Java and one set of JARs: the launcher is asked
once, and its answer is kept in the cache directory.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.spark.jvm.archive import fingerprint
from penstock.spark.jvm.cache import recall, remember
from penstock.spark.jvm.java import Java

MAIN = "org.apache.spark.deploy.SparkSubmit"
LAUNCHER = "org.apache.spark.launcher.Main"
OPTIONS = "spark.driver.extraJavaOptions"
MEMORY = "spark.driver.memory"
DAEMON_MODULE = "spark.python.daemon.module"
DAEMON = "penstock.spark.tasks.daemon"
"""The module that forks Python workers where they have the Python of this process, with what is installed for it."""
HARMLESS = frozenset({"SPARK_LOCAL_IP", "SPARK_LOCAL_DIRS", "SPARK_LOCAL_HOSTNAME", "SPARK_PUBLIC_DNS"})
"""Variables that Spark's JVM reads itself; they have no part in its command."""
PREFIXES = ("SPARK_", "HADOOP_", "YARN_", "PYSPARK_SUBMIT_ARGS", "CLASSPATH")
SETTINGS = ("extraClassPath", "extraLibraryPath", "defaultJavaOptions")
"""Settings of the driver that change the command in ways that only the launcher knows."""


@dataclass(frozen=True)
class Command:
    """How a JVM is started: the words of its command line, and the variables that Spark's scripts add to the environment."""

    words: tuple[str, ...]
    environment: Mapping[str, str]


def jvm_command(java: Java, spark_home: Path, settings: Mapping[str, str]) -> Command | None:
    """The command of the driver's JVM.

    Args:
        java: The Java that runs Spark.
        spark_home: Where Spark is: the directory of the pyspark package.
        settings: Spark's settings for this start.

    Returns:
        The command, or None where Spark's own scripts must find it out: they read more than is known here, or the launcher gave no answer.
    """
    if not _is_plain(spark_home, settings):
        return None
    environment = _environment(spark_home)
    start = _kept(java, spark_home, settings.get(MEMORY, ""), environment)
    if start is None:
        return None
    confs = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    words = (*start, *shlex.split(settings.get(OPTIONS, "")), MAIN, *confs, "pyspark-shell")
    if _is_installed(spark_home, settings):
        del environment["SPARK_HOME"]
    return Command(words, environment)


def _is_installed(home: Path, settings: Mapping[str, str]) -> bool:
    """Whether Python processes of the JVM find pyspark where it is installed.

    A JVM that knows `SPARK_HOME` puts Spark's archives first on the path of each of them: they compile all that they import anew.
    """
    folders = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    return settings.get(DAEMON_MODULE) == DAEMON and home.parent in folders and (home.parent / "py4j").is_dir()


def _is_plain(home: Path, settings: Mapping[str, str]) -> bool:
    """Whether nothing of the user's takes part: no variables, no configuration directory, no class path of the driver."""
    named = [name for name in os.environ if name.startswith(PREFIXES) and name not in HARMLESS]
    changed = [key for key in settings if key.startswith("spark.driver.") and key.endswith(SETTINGS)]
    return os.name == "posix" and not named and not changed and not (home / "conf").exists()


def _environment(home: Path) -> dict[str, str]:
    """What `spark-submit` and the scripts it calls export."""
    core = next((home / "jars").glob("spark-core_*.jar"), None)
    scala = core.name.removeprefix("spark-core_").partition("-")[0] if core is not None else ""
    return {
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(home / "conf"),
        "SPARK_ENV_LOADED": "1",
        "SPARK_SCALA_VERSION": scala,
        "PYTHONHASHSEED": "0",
    }


def _kept(java: Java, home: Path, memory: str, environment: Mapping[str, str]) -> Sequence[str] | None:
    """The command up to the user's options: what the launcher once said, or what it says now."""
    name = f"launch/{fingerprint(java, home / 'jars')}-{memory or 'default'}.json"
    words = [str(word) for word in recall(name)]
    if words and Path(words[0]).is_file():
        return words
    asked = _ask_launcher(java, home, memory, environment)
    if asked is not None:
        remember(name, list(asked))
    return asked


def _ask_launcher(java: Java, home: Path, memory: str, environment: Mapping[str, str]) -> list[str] | None:
    command = [str(java.home / "bin" / "java"), "-Xmx128m", "-cp", str(home / "jars" / "*"), LAUNCHER, MAIN]
    command += ["--conf", f"{MEMORY}={memory}"] if memory else []
    said = subprocess.run(
        [*command, "pyspark-shell"], capture_output=True, env={**os.environ, **environment}, check=False
    )
    words = [word.strip("\n") for word in said.stdout.decode(errors="replace").split("\0")]
    words = [word for word in words if word]
    if said.returncode != 0 or MAIN not in words or not Path(words[0]).is_file():
        return None
    return words[: words.index(MAIN)]
