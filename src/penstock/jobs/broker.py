"""A Kafka broker of one's own: one node, loopback only, for development and tests.

It is the real Apache Kafka in KRaft mode, broker and controller in one process, from pinned JARs. What it keeps lies in
a folder; a note there says which process serves it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.connectors.kafka.jars import kafka_jars
from penstock.errors import SetupError
from penstock.jobs.ports import answers, free_port
from penstock.spark.jvm.jars import get_jars
from penstock.spark.jvm.java import use_java
from penstock.storage.holder import began_at
from penstock.storage.private import make_private

CLUSTER = "cGVuc3RvY2stZGV2ZWxvcA"
"""The cluster id: one name for all development brokers."""

_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.hours": "168",
}


@dataclass
class Broker:
    """A broker in a folder. `listeners` adds some beside the plain one: name and security protocol."""

    folder: Path
    port: int = 0
    heap: str = "512m"
    settings: Mapping[str, str] = field(default_factory=dict)
    listeners: Mapping[str, str] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    pid: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _guard: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """What clients call the bootstrap server."""
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """What the broker says."""
        return self.folder / "broker.log"

    def start(self, patience: float = 60.0, *, detached: bool = False) -> Broker:
        """Starts it and returns when it answers. `detached` lets it outlive this process."""
        running = at(self.folder)
        if running is not None:
            raise SetupError(f"a broker runs in {self.folder} already: {running.address}, process {running.pid}")
        self.folder = self.folder.absolute()
        make_private(self.folder / "data")
        self._choose_ports()
        (self.folder / "server.properties").write_text(self._properties())
        if not (self.folder / "data" / "meta.properties").exists():
            self._format()
        with self.log.open("ab") as log:
            process = self._process = subprocess.Popen(
                self._java("kafka.Kafka", str(self.folder / "server.properties")),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True,
            )  # fmt: skip
        self.pid = process.pid
        if not detached:
            self._guard = _end_with_us(self.pid)
        self._await(process, patience)
        self._note()
        return self

    def _await(self, process: subprocess.Popen[bytes], patience: float) -> None:
        deadline = time.monotonic() + patience
        while not answers(self.port):
            if process.poll() is not None:
                raise SetupError(f"the broker ended at once; the end of {self.log}:\n{_tail(self.log)}")
            if time.monotonic() > deadline:
                process.kill()
                raise SetupError(f"the broker does not answer after {patience:g} s; see {self.log}")
            time.sleep(0.1)

    def _choose_ports(self) -> None:
        if self.port and answers(self.port):
            raise SetupError(f"port {self.port} of 127.0.0.1 is taken; choose another with --port")
        self.port = self.port or free_port()
        for name in ("CONTROLLER", *self.listeners):
            self.ports[name] = self.ports.get(name) or free_port()

    def _properties(self) -> str:
        listeners = {"PLAINTEXT": self.port, **self.ports}
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **self.listeners}
        made = {
            **_SETTINGS,
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "controller.quorum.voters": f"1@127.0.0.1:{self.ports['CONTROLLER']}",
            "log.dirs": str(self.folder / "data"),
            **self.settings,
        }
        return "".join(f"{name}={value}\n" for name, value in made.items())

    def _format(self) -> None:
        command = self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", "server.properties")
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder)
        if done.returncode != 0:
            raise SetupError(f"the broker's folder {self.folder} could not be made ready: {done.stderr[-800:].strip()}")

    def _java(self, main: str, *args: str) -> list[str]:
        path = os.pathsep.join(map(str, get_jars(kafka_jars("broker"))))
        quick = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"] if main != "kafka.Kafka" else ["-XX:+UseG1GC"]
        log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return [str(use_java().home / "bin" / "java"), f"-Xmx{self.heap}", *quick, log, "-cp", path, main, *args]

    def _note(self) -> None:
        body = {"pid": self.pid, "began": began_at(self.pid), "port": self.port, "ports": self.ports, "heap": self.heap}
        aside = self.folder / ".broker.json"
        aside.write_text(json.dumps(body))
        aside.replace(self.folder / "broker.json")

    def stop(self, patience: float = 20.0) -> None:
        """Ends it: by asking first, by force when it does not go."""
        guard, self._guard = self._guard, None
        if guard is not None:  # before the broker: the guard must not end whoever gets its number next
            guard.kill()
            guard.communicate()
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if not self._alive():
                break
            os.kill(self.pid, sign)
            deadline = time.monotonic() + patience
            while self._alive() and time.monotonic() < deadline:
                time.sleep(0.05)
        (self.folder / "broker.json").unlink(missing_ok=True)

    def _alive(self) -> bool:
        return self._process.poll() is None if self._process is not None else began_at(self.pid) != ""

    def __enter__(self) -> Broker:
        return self.start() if not self.pid else self

    def __exit__(self, *_: object) -> None:
        self.stop()


def at(folder: Path) -> Broker | None:
    """The broker that runs in a folder; None when none does."""
    try:
        note = json.loads((folder / "broker.json").read_text())
    except (OSError, ValueError):
        return None
    if not note["began"] or began_at(note["pid"]) != note["began"]:
        return None
    return Broker(folder, note["port"], note["heap"], ports=note["ports"], pid=note["pid"])


def _end_with_us(pid: int) -> subprocess.Popen[bytes]:
    """A guard that ends the process when this one ends, in whatever way: it waits for the end of a pipe."""
    command = ["sh", "-c", 'read -r _; kill "$1" 2>/dev/null', "sh", str(pid)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def _tail(path: Path, lines: int = 8) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
