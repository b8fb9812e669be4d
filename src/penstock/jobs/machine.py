"""What `penstock doctor` needs to know of a machine, read once; the checks themselves look at nothing but this."""

from __future__ import annotations

import importlib.metadata
import json
import locale
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import SetupError
from penstock.spark.jvm.cache import cache_dir
from penstock.spark.jvm.java import Java, find_java

PACKAGES = (
    *("pyspark", "pandas", "pyarrow", "numpy", "python-dateutil", "py4j"),
    *("pyspark-client", "pyspark-connect", "delta-spark", "apache-flink", "confluent-kafka", "protobuf"),
)
"""The packages whose presence and version some check looks at."""

MODULES = ("pyspark", "pandas", "pyarrow", "numpy", "dateutil", "penstock")
"""What a Python worker must be able to import."""

_VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME", "SPARK_LOCAL_IP", "TZ")

_ASK = """
import importlib, json, sys
imports = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        imports[name] = ""
    except BaseException as error:
        imports[name] = f"{type(error).__name__}: {error}"
print(json.dumps({"version": sys.version_info[:3], "imports": imports}))
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python, asked what it is and what it can import."""

    command: str
    version: tuple[int, ...] = ()
    """Empty when it did not answer."""
    imports: Mapping[str, str] = field(default_factory=dict)
    """Module to error; an empty error means that the import works."""


@dataclass(frozen=True)
class Folder:
    """A directory Penstock writes to."""

    name: str
    path: Path
    error: str
    """Why nothing can be written there; empty when it can."""
    free: int
    """Bytes left on its disk."""


@dataclass(frozen=True)
class Machine:
    """Everything the checks look at."""

    python: tuple[int, ...]
    bits: int
    packages: Mapping[str, str]
    """Installed package to version, of those in PACKAGES."""
    requires: Mapping[str, tuple[str, ...]]
    """What each of them asks for."""
    worker: Interpreter
    driver: Interpreter | None
    """The Python of PYSPARK_DRIVER_PYTHON, when that is set."""
    java: Java | None
    java_error: str
    env: Mapping[str, str]
    spark_home_version: str
    """The version of the Spark in SPARK_HOME; empty when there is none or it does not say."""
    memory: int | None
    """Bytes that can still be had, or None where the system does not tell."""
    cores: int
    folders: tuple[Folder, ...]
    loopback_error: str
    hostname: str
    hostname_error: str
    encoding: str
    timezone: str


def look() -> Machine:
    """Read this machine. Takes a second or two: it starts a Python and a Java to hear them."""
    env = {name: os.environ[name] for name in _VARIABLES if os.environ.get(name)}
    java, java_error = _java()
    packages = _packages()
    return Machine(
        python=sys.version_info[:3],
        bits=64 if sys.maxsize > 2**32 else 32,
        packages=packages,
        requires={name: tuple(importlib.metadata.requires(name) or ()) for name in packages},
        worker=ask(env.get("PYSPARK_PYTHON", sys.executable), *MODULES),
        driver=ask(env["PYSPARK_DRIVER_PYTHON"]) if "PYSPARK_DRIVER_PYTHON" in env else None,
        java=java,
        java_error=java_error,
        env=env,
        spark_home_version=spark_version_of(Path(env["SPARK_HOME"])) if "SPARK_HOME" in env else "",
        memory=free_memory(),
        cores=_cores(),
        folders=_folders(),
        loopback_error=bind_error("127.0.0.1"),
        hostname=socket.gethostname(),
        hostname_error=_hostname_error(env.get("SPARK_LOCAL_IP", "")),
        encoding=locale.getencoding(),
        timezone=time.strftime("%Z (UTC%z)"),
    )


def ask(command: str, *modules: str) -> Interpreter:
    """Start an interpreter and hear its version and which modules it can import."""
    try:
        done = subprocess.run([command, "-c", _ASK, *modules], capture_output=True, text=True, timeout=120, check=False)
        said = json.loads(done.stdout.splitlines()[-1])
        return Interpreter(command, tuple(said["version"]), said["imports"])
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError, KeyError, TypeError):
        return Interpreter(command)


def spark_version_of(home: Path) -> str:
    """The version of a Spark installation, read from the name of its core JAR."""
    for jar in sorted(home.glob("jars/spark-core_*.jar")):
        found = re.fullmatch(r"spark-core_[\d.]+-(.+)\.jar", jar.name)
        if found is not None:
            return found[1]
    return ""


def free_memory(proc: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes a new process can have: what the system has left, or less where a container sets a limit."""
    try:
        available = re.search(r"^MemAvailable:\s+(\d+) kB", proc.read_text(), re.MULTILINE)
    except OSError:
        return None
    if available is None:
        return None
    left = int(available[1]) * 1024
    try:
        limit, used = (cgroup / "memory.max").read_text(), (cgroup / "memory.current").read_text()
        return min(left, int(limit) - int(used))
    except (OSError, ValueError):  # no container, or one without a limit
        return left


def folder(name: str, path: Path) -> Folder:
    """Try to write to a folder, or to the nearest one above it that exists; leaves nothing behind."""
    there = next(each for each in (path, *path.parents) if each.exists())
    free = shutil.disk_usage(there).free
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"penstock")
    except OSError as error:
        return Folder(name, path, str(error), free)
    return Folder(name, path, "", free)


def bind_error(address: str) -> str:
    """Why a server on this address could not be reached from this machine; empty when it can."""
    try:
        with socket.socket() as server:
            server.bind((address, 0))
            server.listen(1)
            with socket.create_connection(server.getsockname(), timeout=5):
                return ""
    except OSError as error:
        return str(error)


def _java() -> tuple[Java | None, str]:
    try:
        return find_java(), ""
    except SetupError as error:
        return None, str(error)


def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _folders() -> tuple[Folder, ...]:
    return (
        folder("work folder", Path.cwd() / ".penstock"),
        folder("temporary folder", Path(tempfile.gettempdir())),
        folder("cache folder", cache_dir()),
    )


def _hostname_error(chosen: str) -> str:
    """Why Spark could not bind to the address it will choose: SPARK_LOCAL_IP, or that of the host's name."""
    try:
        return bind_error(chosen or socket.gethostbyname(socket.gethostname()))
    except OSError as error:
        return str(error)
