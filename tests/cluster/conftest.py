"""A real standalone Spark cluster on loopback: a master and two workers of one core each."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
import pytest

from penstock.spark.jvm.java import find_java

LAUNCHER = Path(pyspark.__file__).parent / "bin" / "spark-class"


@dataclass
class Cluster:
    """The processes, by name, and the master's address."""

    folder: Path
    url: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *arguments: str) -> Path:
        """Starts a process in a group of its own; its output goes to a file."""
        output = self.folder / f"{name}.log"
        environment = os.environ | {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "JAVA_HOME": str(find_java().home),
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
        }
        command = [str(LAUNCHER), *arguments]
        with output.open("wb") as out:
            made = subprocess.Popen(
                command, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, cwd=self.folder
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


def wait_for(output: Path, pattern: str, seconds: float = 60) -> str:
    """The first match of a pattern in a growing file."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = re.search(pattern, output.read_text(errors="replace"))
        if found:
            return found.group(1)
        time.sleep(0.2)
    raise AssertionError(f"{pattern!r} did not come:\n{output.read_text()[-2000:]}")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster that is gone when the test ends."""
    made = Cluster(tmp_path / "cluster")
    made.folder.mkdir()
    try:
        master = "org.apache.spark.deploy.master.Master"
        output = made.start("master", master, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        made.url = wait_for(output, r"(spark://127\.0\.0\.1:\d+)")
        for name in ("one", "two"):
            _start_worker(made, name)
        yield made
    finally:
        made.stop()


def _start_worker(made: Cluster, name: str) -> None:
    worker = "org.apache.spark.deploy.worker.Worker"
    place = ["--host", "127.0.0.1", "--webui-port", "0", "--work-dir", str(made.folder / name)]
    output = made.start(name, worker, *place, "--cores", "1", "--memory", "1g", made.url)
    wait_for(output, r"(Successfully registered with master)")
