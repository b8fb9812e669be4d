"""The servers and the processes of a verification of jobs: how they are started, found, killed and stopped."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from penstock.client import Client
from penstock.errors import PenstockError, RunError
from penstock.jobs.manager.processes.environment import DATABASE, job_environment
from penstock.testing.verify.job_patience import Patience, processes

ASLEEP = 8.0
"""Seconds for which a server is stopped, longer than its lease holds."""
SERVES = "penstock.testing.verify.job_server"
SUPERVISES, DRIVES = "penstock.jobs.manager.processes.supervisor", "penstock.testing.verify.job_driver"
"""The modules that servers, supervisors and drivers run."""


@dataclass
class JobServers:
    """The servers, which are started again when they are killed, as a machine would."""

    root: Path
    url: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """Starts those that are missing, one after the other, and waits until there is an answer."""
        while self._start_one():
            self._await(self.processes[-1])
        if not self.answers():
            self._await(self.processes[-1])

    def _start_one(self) -> bool:
        """Starts one that is missing, if any is."""
        self.processes = [process for process in self.processes if process.poll() is None]
        if len(self.processes) == (2 if self.url else 1):
            return False
        own = job_environment() | ({DATABASE: self.url} if self.url else {})
        command = [sys.executable, "-m", SERVES, str(self.root)]
        with self.log.open("ab") as log:
            self.processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=own))
        return True

    @property
    def log(self) -> Path:
        """What they print."""
        return self.root.parent / "server.log"

    def _await(self, process: subprocess.Popen[bytes]) -> None:
        patience = self.patience("the server does not answer")
        while not self.answers():
            if process.poll() is not None:
                raise RunError(f"the server failed:\n{self.log.read_text()[-4000:]}")
            patience.look()
            time.sleep(0.05)

    def patience(self, what: str) -> Patience:
        """For what a server is to do."""
        return Patience(lambda: what, lambda: self.log.stat().st_size, lambda: [p.pid for p in self.processes])

    def answers(self) -> bool:
        """Whether the server that leads answers, and is one of those that run."""
        try:
            self.client().jobs()
        except (PenstockError, OSError):
            return False
        return True

    def client(self) -> Client:
        """A client of the server that leads."""
        return Client.found(self.root)

    def kill(self, chance: random.Random) -> None:
        """Kills one of them, which may be starting."""
        self._start_one()
        process = chance.choice(self.processes)
        process.kill()
        process.wait()

    def stop_for_a_while(self, chance: random.Random) -> None:
        """Stops one of them for longer than a lease holds; then it goes on as if nothing had been."""
        self.start()
        process = chance.choice(self.processes)
        process.send_signal(signal.SIGSTOP)
        time.sleep(ASLEEP)
        process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """Ends them."""
        for process in self.processes:
            process.kill()
            process.wait()


def processes_of(directory: Path, kind: str) -> list[int]:
    """The supervisor or the driver of a job, with others that are about to be."""
    if kind == "supervisor":
        return processes(SUPERVISES, directory.parent.parent, directory.name)
    return processes(DRIVES, directory)


def kill_one(pids: Iterable[int], chance: random.Random) -> bool:
    """Kills one of some processes, and returns when it has ended; whether there was one."""
    found = sorted(pids)
    if not found:
        return False
    pid = chance.choice(found)
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    while processes_at(pid):
        time.sleep(0.01)
    return True


def processes_at(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    with suppress(OSError):
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def end_all(root: Path, names: Iterable[str]) -> None:
    """Ends what a verification has left that was broken off; a supervisor that is killed may have started a driver just before."""
    directories = [root / "jobs" / name for name in names]
    while left := _left(root, directories):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _left(root: Path, directories: Iterable[Path]) -> list[int]:
    """The processes of a verification that still run."""
    found = processes(SERVES, root)
    for directory in directories:
        found += [*processes_of(directory, "supervisor"), *processes_of(directory, "driver")]
    return [pid for pid in found if processes_at(pid)]
