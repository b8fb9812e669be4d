"""The doctor for a cluster: what its workers must have, one small check each.

A check is a function from a `Cluster` (what was heard of it) to checks; it looks at nothing else.
"""

from __future__ import annotations

import pickle
import platform
import shutil
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import PenstockError, SetupError
from penstock.graph.run import RunSpec
from penstock.jobs.archives import check_archives, read_archives, send_archives, worker_python
from penstock.jobs.doctor import Check
from penstock.jobs.machine import MODULES
from penstock.jobs.ship import penstock_itself, ship
from penstock.location import Address
from penstock.spark.failures import headline, start_failure
from penstock.spark.jvm.session import session
from penstock.spark.workers.cluster import WorkerAnswer, ask_workers, wait_for_executors
from penstock.storage import LocalStorage, Storage, open_storage
from penstock.storage.clock import written_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAIT = 60.0
"""How long the doctor waits for executors, in seconds."""
SLIGHT, MUCH = 1.0, 30.0
"""Clocks further apart than this, in seconds, are pointed out, or refused."""
OPTIONAL = ("pandas", "dateutil")
"""Modules that only steps that use them need."""


@dataclass(frozen=True)
class StoreAnswer:
    """How the checkpoint looks from the driver."""

    address: str
    error: str = ""
    skew: float | None = None
    """How far the clock of the store is ahead of the driver's; None where it does not say."""
    missing: tuple[str, ...] = ()
    """Workers that have put an object which the driver does not see."""


@dataclass(frozen=True)
class Cluster:
    """Everything the checks look at."""

    master: str
    spark: str
    java: str
    workers: tuple[WorkerAnswer, ...]
    store: StoreAnswer | None = None


def examine_cluster(spec: RunSpec) -> list[Check]:
    """Starts Spark on the master of a spec, asks its workers, and says what stands in the way of a run.

    Args:
        spec: The options of the run: its master, settings, archives and checkpoint.

    Returns:
        The checks; one that fails where the cluster cannot be asked at all.
    """
    try:
        cluster = look_at_cluster(spec)
    except PenstockError as error:
        return [Check("cluster", False, str(error), "look at the master's page, and at Spark's log")]
    return [check for make in CHECKS for check in make(cluster)]


def look_at_cluster(spec: RunSpec) -> Cluster:
    """Hears everything that the checks look at; ends Spark again.

    Raises:
        SetupError: Spark does not start, or no worker answers.
    """
    archives = read_archives(spec.archives)
    check_archives(archives)
    spark = _session(spec, worker_python(archives))
    try:
        ship(spark, [penstock_itself()], spec.py_files)
        send_archives(spark, archives)
        return _asked(spark, spec.checkpoint)
    except PenstockError:
        raise
    except Exception as error:
        raise SetupError(f"workers do not answer: {headline(str(error))}") from error
    finally:
        spark.stop()


def _session(spec: RunSpec, python: str) -> SparkSession:
    settings = {**spec.conf, "spark.dynamicAllocation.enabled": "false"}
    try:
        return session(
            "penstock doctor", spec.master, settings, properties_file=spec.properties_file, worker_python=python
        )
    except PenstockError:
        raise
    except Exception as error:
        raise start_failure(error, spec.master) from error


def _asked(spark: SparkSession, checkpoint: Address | None) -> Cluster:
    slots = wait_for_executors(spark, WAIT)
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    java = str(jvm.java.lang.System.getProperty("java.version"))
    master = str(spark.sparkContext.master)
    if checkpoint is None:
        return Cluster(master, spark.version, java, tuple(ask_workers(spark, slots, MODULES)))
    with _Trial(checkpoint.absolute()) as trial:
        workers = tuple(ask_workers(spark, slots, MODULES, trial.pickled, trial.prefix))
        return Cluster(master, spark.version, java, workers, trial.answer(workers))


class _Trial:
    """Objects that the driver and the workers put into a checkpoint, and that are gone afterwards."""

    def __init__(self, address: Address) -> None:
        self.address, self.prefix = address, f"doctor-{uuid.uuid4().hex[:12]}"
        self.storage: Storage = open_storage(address)
        self.error = ""
        self.skew: float | None = None
        self.root = self.storage.root if isinstance(self.storage, LocalStorage) else None
        self.is_new = self.root is not None and not self.root.exists()

    def __enter__(self) -> _Trial:
        try:
            before = time.time()
            self.storage.write(f"{self.prefix}/driver", self.prefix.encode())
            self.storage.read(f"{self.prefix}/driver")
            moment = written_at(self.storage, f"{self.prefix}/driver")
            self.skew = None if moment is None else _beyond(moment, before, time.time())
        except PenstockError as error:
            self.error = str(error)
        except OSError as error:
            self.error = f"{type(error).__name__}: {error}"
        return self

    @property
    def pickled(self) -> bytes:
        """The storage for the workers; none where the driver cannot use it itself."""
        return b"" if self.error else pickle.dumps(self.storage)

    def answer(self, workers: tuple[WorkerAnswer, ...]) -> StoreAnswer:
        """What the driver sees of it after the workers have answered."""
        seen = set() if self.error else {entry.name for entry in self.storage.list(self.prefix)}
        missing = tuple(w.address for w in workers if w.store_name and w.store_name not in seen)
        return StoreAnswer(str(self.address), self.error, self.skew, missing)

    def __exit__(self, *exception: object) -> None:
        if self.error:
            return
        self.storage.delete(*(entry.name for entry in self.storage.list(self.prefix)))
        if self.root is not None:
            shutil.rmtree(self.root if self.is_new else self.root / self.prefix, ignore_errors=True)


def _beyond(moment: float, before: float, after: float) -> float:
    """How far a moment lies outside a span, in seconds; stores count in seconds."""
    return min(0.0, moment + 1.0 - before) or max(0.0, moment - after)


def check_executors(cluster: Cluster) -> list[Check]:
    """For information: who answered."""
    cores = sum(worker.cores for worker in cluster.workers)
    hosts = len({worker.host for worker in cluster.workers})
    return [Check("executors", True, f"{len(cluster.workers)} on {hosts} hosts, {cores} cores ({cluster.master})")]


def check_versions(cluster: Cluster) -> list[Check]:
    """Each worker runs the Spark and the Python of the driver; another Java will do, if it is new enough."""
    return [check for worker in cluster.workers for check in _versions(cluster, worker)]


def _versions(cluster: Cluster, worker: WorkerAnswer) -> list[Check]:
    here = platform.python_version()
    spark = worker.imports.get("pyspark", ("", ""))[0]
    major = worker.java.split(".")[0]
    java_ok = None if not major.isdigit() or major != cluster.java.split(".")[0] else True
    return [
        Check(
            f"Python {worker.address}",
            _minor(worker.python) == _minor(here),
            f"{worker.python} ({worker.executable}); driver {here}",
            f"give workers Python {_minor(here)}: penstock pack --with-python, then --archives",
        ),
        Check(
            f"Spark {worker.address}",
            spark == cluster.spark,
            f"{spark or 'no pyspark'}; driver {cluster.spark}",
            (f"install pyspark=={spark} on the driver, or " if spark else "") + f"Spark {cluster.spark} on the cluster",
        ),
        Check(
            f"Java {worker.address}",
            False if major.isdigit() and int(major) < 17 else java_ok,
            f"{worker.java or 'not seen'}; driver {cluster.java}",
            "Java 17 or newer, of the same release on all machines",
        ),
    ]


def check_imports(cluster: Cluster) -> list[Check]:
    """Each worker can import what steps need, in the driver's versions."""
    return [_imports(worker) for worker in cluster.workers]


def _imports(worker: WorkerAnswer) -> Check:
    broken = {name: error for name, (_, error) in worker.imports.items() if error}
    fatal = any(name not in OPTIONAL for name in broken)
    found = [
        f"{name} ({broken[name]})" if name in broken else f"{name} {v}".strip()
        for name, (v, _) in worker.imports.items()
    ]
    fix = "penstock pack -o environment.tar.gz, then --archives environment.tar.gz; or install them on the workers"
    return Check(f"imports {worker.address}", False if fatal else None if broken else True, ", ".join(found), fix)


def check_clocks(cluster: Cluster) -> list[Check]:
    """Clocks of machines should agree: logs and processing time follow them, and object stores refuse requests of the wrong time."""
    found = [_clock(f"clock {worker.address}", *worker.skew) for worker in cluster.workers]
    skew = cluster.store.skew if cluster.store is not None else None
    return [*found, *([] if skew is None else [_clock("clock of the checkpoint", skew, skew)])]


def _clock(name: str, least: float, most: float) -> Check:
    apart = abs(least)
    found = (
        f"within {most:.2f} s of the driver's"
        if not least
        else f"{apart:.1f} s {'ahead of' if least > 0 else 'behind'} the driver's"
    )
    ok = False if apart > MUCH else None if apart > SLIGHT else True
    return Check(name, ok, found, "synchronize the clocks (chrony, systemd-timesyncd)")


def check_store(cluster: Cluster) -> list[Check]:
    """The driver and each worker can put, read and delete objects in the checkpoint, and see each other's."""
    store = cluster.store
    if store is None:
        return [Check("checkpoint", True, "not looked at; --checkpoint URL does")]
    fix = "a checkpoint that all machines reach, by a URL, with credentials on each (docs/guide/storage-urls.md)"
    if store.error:
        return [Check("checkpoint", False, f"{store.address} from the driver: {store.error}", fix)]
    here = Check("checkpoint", True, f"{store.address}: the driver has put an object and read it back")
    return [here, *(_store(worker, store, fix) for worker in cluster.workers)]


def _store(worker: WorkerAnswer, store: StoreAnswer, fix: str) -> Check:
    name = f"checkpoint {worker.address}"
    if worker.store_error:
        shared = worker.store_error.startswith("NotFound")
        found = f"does not see what the driver has put there ({worker.store_error})" if shared else worker.store_error
        return Check(name, False, found, fix)
    if worker.address in store.missing:
        return Check(name, False, "has put an object that the driver does not see", fix)
    return Check(name, True, f"read, put and read back in {worker.store_seconds * 1000:.0f} ms")


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


CHECKS: tuple[Callable[[Cluster], list[Check]], ...] = (
    check_executors,
    check_versions,
    check_imports,
    check_clocks,
    check_store,
)
