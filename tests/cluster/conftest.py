"""A real standalone Spark cluster on loopback: a master and two workers of one core each."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
import pytest

from penstock.spark.jvm.java import find_java

WORKERS = ("one", "two")
BOTH = (
    "spark.cores.max=2",
    "spark.scheduler.minRegisteredResourcesRatio=1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime=120s",
)
"""Settings of a driver whose first task waits until both workers are there: on a busy machine one of them would do all the work before the other comes."""
LAUNCHER = Path(pyspark.__file__).parent / "bin" / "spark-class"


@dataclass
class Cluster:
    """The processes, by name, and the master's address."""

    folder: Path
    url: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    environment: dict[str, str] = field(default_factory=dict)
    """What every process finds in its environment."""

    def start(self, name: str, *arguments: str, hidden: Sequence[Path] = (), host: str = "127.0.0.1") -> Path:
        """Starts a process in a group of its own; its output goes to a file. Directories that are hidden are empty to it and its children."""
        output, own = self.folder / f"{name}.log", self.folder / name
        own.mkdir(exist_ok=True)
        environment = os.environ | {
            "SPARK_LOCAL_IP": host,
            "JAVA_HOME": str(find_java().home),
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_LOCAL_DIRS": str(own / "local"),
            "TMPDIR": str(own),
            **self.environment,
        }
        command = [*apart(hidden), str(LAUNCHER), *arguments]
        with output.open("wb") as out:
            made = subprocess.Popen(
                command, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, cwd=own
            )
        self.processes[name] = made
        return output

    def kill(self, name: str) -> None:
        """Kills a process and its children at once, as a lost machine would."""
        process = self.processes.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """Ends all of it."""
        for name in list(self.processes):
            self.kill(name)


def wait_for(output: Path, pattern: str, seconds: float = 300) -> str:
    """The first match of a pattern in a growing file."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = re.search(pattern, output.read_text(errors="replace"))
        if found:
            return found.group(1)
        time.sleep(0.2)
    raise AssertionError(f"{pattern!r} did not come:\n{output.read_text()[-2000:]}")


_HIDE = 'while [ "$1" != -- ]; do mount -t tmpfs -o size=1m hidden "$1" || exit 99; shift; done; shift; exec "$@"'


def apart(hidden: Sequence[Path]) -> list[str]:
    """What goes before a command that runs in a mount namespace of its own, in which some directories are empty."""
    if not hidden:
        return []
    user = [] if os.getuid() == 0 else ["--map-root-user"]
    namespace = ["unshare", *user, "--mount", "--propagation", "private"]
    return [*namespace, "sh", "-c", _HIDE, "sh", *map(str, hidden), "--"]


def why_not_apart(folder: Path) -> str:
    """Why this machine does not give processes mount namespaces of their own; empty when it does."""
    folder.mkdir(exist_ok=True)
    (folder / "seen").touch()
    try:
        found = subprocess.run([*apart([folder]), "ls", str(folder)], capture_output=True, text=True, check=True)
    except FileNotFoundError:
        return "there is no unshare"
    except subprocess.CalledProcessError as error:
        return str(error.stderr).strip() or f"unshare ends with {error.returncode}"
    return "" if not found.stdout else "what is mounted over a directory does not hide it"


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for the tests of this folder, one after the other."""
    with running_cluster(tmp_path_factory.mktemp("shared") / "cluster") as made:
        yield made


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """A cluster of two workers, whatever the test before has killed."""
    start_workers(shared_cluster)
    return shared_cluster


@contextlib.contextmanager
def running_cluster(
    folder: Path, environment: Mapping[str, str] | None = None, hidden: Mapping[str, Sequence[Path]] | None = None
) -> Iterator[Cluster]:
    """A master and two workers, from each of which some directories may be hidden."""
    made = Cluster(folder, environment=dict(environment or {}))
    made.folder.mkdir()
    try:
        master = "org.apache.spark.deploy.master.Master"
        output = made.start("master", master, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        made.url = wait_for(output, r"(spark://127\.0\.0\.1:\d+)")
        for name in WORKERS:
            (made.folder / name).mkdir()
        start_workers(made, hidden)
        yield made
    finally:
        made.stop()


def start_workers(made: Cluster, hidden: Mapping[str, Sequence[Path]] | None = None) -> None:
    """Starts those workers of a cluster that do not run."""
    missing = [name for name in WORKERS if name not in made.processes]
    outputs = [_start_worker(made, name, (hidden or {}).get(name, ())) for name in missing]
    for output in outputs:
        wait_for(output, r"(Successfully registered with master)")


def _start_worker(made: Cluster, name: str, hidden: Sequence[Path]) -> Path:
    worker = "org.apache.spark.deploy.worker.Worker"
    # Spark reads shuffle files of another executor on its own host from the disk.
    host = f"127.0.0.{2 + WORKERS.index(name)}" if hidden else "127.0.0.1"
    own = ["--host", host, "--webui-port", "0", "--work-dir", str(made.folder / name)]
    return made.start(name, worker, *own, "--cores", "1", "--memory", "1g", made.url, hidden=hidden, host=host)
