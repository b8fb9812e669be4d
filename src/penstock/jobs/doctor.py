"""What must hold on a machine before Penstock can run on it, one small check each.

A check is a function from a `Machine` (what was read of it) to a `Check`; it looks at nothing else.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from penstock.jobs.machine import Interpreter, Machine
from penstock.jobs.versions import clashes, dotted, fits

GIB = 2**30


@dataclass(frozen=True)
class Check:
    """What was looked at, how it stands, and what to do about it."""

    name: str
    ok: bool | None
    """True: fine. None: it runs, but look at it. False: it will not run."""
    found: str
    fix: str = ""

    @property
    def status(self) -> Literal["ok", "warn", "fail"]:
        """The word for `ok`."""
        if self.ok is None:
            return "warn"
        return "ok" if self.ok else "fail"


def examine(machine: Machine) -> list[Check]:
    """Every check, in the order in which a run would meet the trouble."""
    return [check(machine) for check in CHECKS]


def check_python(machine: Machine) -> Check:
    """Python 3.11 to 3.13, 64 bits."""
    found = f"{dotted(machine.python)}, {machine.bits} bit"
    ok = (3, 11) <= machine.python[:2] <= (3, 13) and machine.bits == 64
    return Check("Python", ok, found, "use a 64-bit Python 3.11, 3.12 or 3.13")


def check_pyspark(machine: Machine) -> Check:
    """The pyspark releases Penstock is made for."""
    return _package(machine, "pyspark", ">=4.2,<4.4")


def check_pandas(machine: Machine) -> Check:
    """Not pandas 3: pyspark does not support it, though its own requirements let it in."""
    return _package(machine, "pandas", ">=2.2,<3")


def check_pyarrow(machine: Machine) -> Check:
    """Rows cross between Spark and Python as Arrow."""
    return _package(machine, "pyarrow", ">=18")


def check_numpy(machine: Machine) -> Check:
    """Kernels search and sort with it."""
    return _package(machine, "numpy", ">=1.26")


def check_dateutil(machine: Machine) -> Check:
    """Pandas will not import without it."""
    return _package(machine, "python-dateutil", ">=2.8", "dateutil")


def check_java(machine: Machine) -> Check:
    """A Java that can run Spark."""
    java = machine.java
    if java is None:
        first, _, rest = machine.java_error.partition("\n")
        return Check("Java", False, first, rest)
    found = java.text if java.vector else f"{java.text}, without the vector module: started by {java.home}/bin/java"
    if java.notes:
        return Check(
            "Java",
            None,
            f"{found}; passed over: {'; '.join(java.notes)}",
            "set JAVA_HOME to a Java 17 or newer, or unset it",
        )
    return Check("Java", True, found)


def check_worker_python(machine: Machine) -> Check:
    """Workers must run the same Python as the driver, or what is pickled here cannot be read there."""
    return _same_python("PYSPARK_PYTHON", machine.worker, machine)


def check_driver_python(machine: Machine) -> Check:
    """`spark-submit` starts the driver with this one."""
    return _same_python("PYSPARK_DRIVER_PYTHON", machine.driver, machine)


def check_worker_imports(machine: Machine) -> Check:
    """A worker needs the packages too."""
    worker = machine.worker
    broken = [f"{name} ({error})" for name, error in worker.imports.items() if error]
    if not worker.version or broken:
        found = (
            f"{worker.command} cannot import {', '.join(broken)}"
            if worker.version
            else f"{worker.command} does not run"
        )
        return Check("worker imports", False, found, "install penstock into that Python, or unset PYSPARK_PYTHON")
    return Check("worker imports", True, ", ".join(worker.imports))


def check_spark_home(machine: Machine) -> Check:
    """A SPARK_HOME of another version starts a JVM that does not understand this pyspark."""
    home = machine.env.get("SPARK_HOME")
    if home is None:
        return Check("SPARK_HOME", True, "not set: Spark comes from the pyspark package")
    version, wanted = machine.spark_home_version, machine.packages.get("pyspark", "")
    if not version:
        return Check("SPARK_HOME", None, f"{home} holds no Spark that tells its version", "unset SPARK_HOME")
    fix = f"unset SPARK_HOME, or install pyspark=={version}"
    return Check("SPARK_HOME", version == wanted, f"{home}: Spark {version}; pyspark {wanted or 'missing'}", fix)


def check_other_pysparks(machine: Machine) -> Check:
    """pyspark-client and pyspark-connect install files of the same names as pyspark."""
    present = [
        f"{name} {machine.packages[name]}" for name in ("pyspark-client", "pyspark-connect") if name in machine.packages
    ]
    if not present:
        return Check("one pyspark", True, "no second package claims its name")
    fix = "pip uninstall pyspark-client pyspark-connect, then pip install --force-reinstall --no-deps pyspark"
    return Check("one pyspark", False, " and ".join(present), fix)


def check_delta(machine: Machine) -> Check:
    """delta-spark is bound to certain releases of Spark."""
    fix = "use a pyspark that this delta-spark supports, or remove delta-spark"
    return _pins("delta-spark", machine, fix)


def check_flink(machine: Machine) -> Check:
    """apache-flink pins old versions of what Spark needs."""
    return _pins("apache-flink", machine, "give apache-flink an environment of its own")


def check_confluent_kafka(machine: Machine) -> Check:
    """One release of the Kafka client has an extra that cannot be installed."""
    version = machine.packages.get("confluent-kafka")
    if version == "2.16.1":
        fix = "if you need confluent-kafka[schemaregistry], use 2.16.0"
        return Check(
            "confluent-kafka", None, "2.16.1, whose schemaregistry extra asks for a certifi that does not exist", fix
        )
    return Check("confluent-kafka", True, version or "not installed (only Kafka clients in Python need it)")


def check_protobuf(machine: Machine) -> Check:
    """For information only."""
    version = machine.packages.get("protobuf")
    return Check("protobuf", True, version or "not installed (only Protobuf records and Spark Connect need it)")


def check_memory(machine: Machine) -> Check:
    """A driver and its workers want about 2 GiB."""
    if machine.memory is None:
        return Check("memory", True, "this system does not say")
    ok = True if machine.memory >= 2 * GIB else None
    return Check("memory", ok, f"{machine.memory / GIB:.1f} GiB free", "free some: a local Spark wants 2 GiB")


def check_cores(machine: Machine) -> Check:
    """For information: it is the parallelism of a local run."""
    return Check("cores", True, str(machine.cores))


def check_folders(machine: Machine) -> Check:
    """The folders Penstock writes to."""
    bad = [f"{folder.name} {folder.path}: {folder.error}" for folder in machine.folders if folder.error]
    if bad:
        fix = "run in a folder you may write to; TMPDIR and PENSTOCK_CACHE move the other two"
        return Check("folders", False, "; ".join(bad), fix)
    return Check("folders", True, ", ".join(str(folder.path) for folder in machine.folders))


def check_disk(machine: Machine) -> Check:
    """Room for shuffle files, state and checkpoints."""
    least = min(machine.folders, key=lambda folder: folder.free)
    ok = True if least.free >= GIB else None
    return Check("disk", ok, f"{least.free / GIB:.1f} GiB free for {least.path}", "free at least 1 GiB")


def check_loopback(machine: Machine) -> Check:
    """Python and the JVM talk over the loopback address."""
    found = machine.loopback_error or "127.0.0.1 can be bound and reached"
    return Check("loopback", not machine.loopback_error, found, "bring the loopback interface up: ip link set lo up")


def check_hostname(machine: Machine) -> Check:
    """Spark binds to the address of the host's name unless another is set."""
    chosen = machine.env.get("SPARK_LOCAL_IP")
    name = f"SPARK_LOCAL_IP={chosen}" if chosen else f"host name {machine.hostname}"
    found = f"{name}: {machine.hostname_error}" if machine.hostname_error else f"{name} leads to this machine"
    return Check("host name", not machine.hostname_error, found, "export SPARK_LOCAL_IP=127.0.0.1")


def check_encoding(machine: Machine) -> Check:
    """File names and the output of the JVM follow the locale."""
    ok = True if machine.encoding.lower().replace("-", "") == "utf8" else None
    return Check("text", ok, machine.encoding, "export LANG=C.UTF-8")


def check_timezone(machine: Machine) -> Check:
    """For information only."""
    return Check("time zone", True, machine.timezone)


CHECKS: tuple[Callable[[Machine], Check], ...] = (
    check_python,
    check_pyspark,
    check_pandas,
    check_pyarrow,
    check_numpy,
    check_dateutil,
    check_java,
    check_worker_python,
    check_driver_python,
    check_worker_imports,
    check_spark_home,
    check_other_pysparks,
    check_delta,
    check_flink,
    check_confluent_kafka,
    check_protobuf,
    check_memory,
    check_cores,
    check_folders,
    check_disk,
    check_loopback,
    check_hostname,
    check_encoding,
    check_timezone,
)


def try_spark(seconds: int = 180) -> Check:
    """Start a tiny local Spark in a process of its own and send rows through a Python step."""
    command = [sys.executable, "-m", "penstock.spark.jvm.trial"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return Check("Spark", False, f"no answer within {seconds} s", "look at memory, disk and host name above")
    if done.returncode == 0:
        return Check("Spark", True, done.stdout.strip().splitlines()[-1])
    last = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-15:]
    return Check(
        "Spark", False, f"exit {done.returncode}\n" + "\n".join(last), "the first failure above is the likely cause"
    )


def _package(machine: Machine, name: str, wanted: str, module: str = "") -> Check:
    version = machine.packages.get(name)
    fix = f"pip install '{name}{wanted}'"
    if version is None:
        return Check(name, False, "not installed", fix)
    error = machine.worker.imports.get(module or name, "")
    if error:
        return Check(
            name,
            False,
            f"{version}, but it does not import: {error}",
            f"pip install --force-reinstall '{name}{wanted}'",
        )
    return Check(name, fits(version, wanted), version, fix)


def _same_python(variable: str, other: Interpreter | None, machine: Machine) -> Check:
    if other is None or variable not in machine.env:
        return Check(variable, True, "not set: this Python is used")
    fix = f"unset {variable}, or point it at a Python {dotted(machine.python[:2])}"
    if not other.version:
        return Check(variable, None, f"{other.command} does not say which Python it is", fix)
    return Check(
        variable, other.version[:2] == machine.python[:2], f"{other.command}: Python {dotted(other.version)}", fix
    )


def _pins(name: str, machine: Machine, fix: str) -> Check:
    version = machine.packages.get(name)
    if version is None:
        return Check(name, True, "not installed")
    broken = clashes(machine.requires.get(name, ()), machine.packages)
    return Check(name, None if broken else True, f"{version}: {'; '.join(broken) or 'fits'}", fix)
