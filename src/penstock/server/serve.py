"""Starts the server of jobs: where it listens, with which certificate, and how this machine's user finds it."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import uvicorn

from penstock.bridge.asgi.protocol import Connections
from penstock.bridge.asgi.server import bounded_config
from penstock.bridge.guard import loopback
from penstock.bridge.listening import listening_socket
from penstock.errors import OptionError, SetupError
from penstock.jobs.manager.alerts.notify import MailServer, Notifier
from penstock.jobs.manager.disk import DiskLimits
from penstock.jobs.manager.insight.topics import is_log
from penstock.jobs.manager.manager import Manager
from penstock.server.app import LIMITS, make_app
from penstock.server.oidc.routes import OidcSignIn
from penstock.server.oidc.settings import OidcSettings, read_secret, role_rules
from penstock.storage.private import open_private

__all__ = ["DiskLimits", "Listening", "OidcSettings", "read_secret", "role_rules", "serve", "serving"]
ADDRESS, ADMIN = "server.json", "admin.token"


@dataclass(frozen=True)
class Listening:
    """Where a server listens. One that others can reach has a certificate, unless `is_open` says that something before it has."""

    host: str = "127.0.0.1"
    port: int = 8880
    names: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    is_open: bool = False
    mail: MailServer = field(default_factory=MailServer)
    log: Path | None = None
    oidc: OidcSettings | None = None
    alert_hosts: tuple[str, ...] = ()
    """Hosts inside the network that may be told of alerts."""
    disk: DiskLimits = field(default_factory=DiskLimits)
    """How much of the disk jobs may take."""

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise OptionError("TLS needs both --cert FILE and --key FILE")
        if not loopback(self.host) and self.certificate is None and not self.is_open:
            raise OptionError(
                f"others can reach {self.host}, and tokens would travel in the clear: give --cert and --key, listen on 127.0.0.1, "
                f"or say --plain-http if a proxy before it speaks TLS"
            )

        if self.log is not None and not is_log(self.log):
            raise OptionError(
                f"the log {self.log} is not there; `penstock topics create TOPIC --log {self.log}` makes it"
            )

    @property
    def scheme(self) -> str:
        """How clients speak to it."""
        return "http" if self.certificate is None else "https"


def serve(manager: Manager, where: Listening, tell: Callable[[str], None] = print) -> None:
    """Serves the jobs of a manager until SIGTERM or Ctrl-C; its jobs run on."""
    _check_rights(manager, tell)
    with manager.opened(), listening_socket(where.host, where.port) as listening:
        url = _announced(manager, where, listening)
        tell(f"jobs in {manager.root}; API at {url}/api/v1; Ctrl-C ends the server, jobs run on")
        if not manager.leads:
            tell("another manager leads; this one answers, and takes over when that one is gone")
        tell(f"the console is at {url}; `penstock console` prints a link that signs in")
        StreamingServer(_config(manager, where)).run(sockets=[listening])


def _check_rights(manager: Manager, tell: Callable[[str], None]) -> None:
    """Has the jobs of each owner run with rights of their own, or says with which they run."""
    if manager.accounts.by_owner:
        manager.accounts.check_python()
        os.umask(0o027)  # what a job's directory has of root's is for the job's user to read
    elif os.geteuid() == 0:
        tell(
            "jobs run as root, with all its rights; --run-as OWNER=USER has those of an owner run as a user of its own"
        )


@contextmanager
def serving(manager: Manager, where: Listening) -> Iterator[str]:
    """Serves the jobs of a manager in a thread, for as long as the block takes; gives the address."""
    with manager.opened(), listening_socket(where.host, where.port) as listening:
        url = _announced(manager, where, listening)
        server = StreamingServer(_config(manager, where))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="penstock-server")
        thread.start()
        try:
            while not server.started and thread.is_alive():  # it does not listen before
                time.sleep(0.01)
            yield url
        finally:
            server.end()
            thread.join()


def _announced(manager: Manager, where: Listening, listening: socket.socket) -> str:
    """The address, which is put where the commands of this machine find it."""
    name = f"[{where.host}]" if ":" in where.host else where.host
    url = f"{where.scheme}://{name}:{listening.getsockname()[1]}"
    _admin_token(manager)

    def announce() -> None:
        _write(manager.root / ADDRESS, json.dumps({"url": url, "token_file": ADMIN}))

    manager.lease.listeners.append(announce)  # a manager that takes over is the one to ask
    if manager.leads or not (manager.root / ADDRESS).exists():
        announce()
    return url


def _config(manager: Manager, where: Listening) -> uvicorn.Config:
    notifier = Notifier(where.mail, frozenset(host.lower() for host in where.alert_hosts))
    return bounded_config(
        make_app(manager, where.names, notifier, where.log, _sign_in(where.oidc), where.disk),
        Connections(LIMITS),
        log_level="warning",
        timeout_graceful_shutdown=5,
        ssl_certfile=where.certificate,
        ssl_keyfile=where.key,
    )


def _sign_in(settings: OidcSettings | None) -> OidcSignIn | None:
    """Signing in by a provider, which needs a package of its own."""
    if settings is None:
        return None
    try:
        from penstock.server.oidc.provider import Provider
    except ModuleNotFoundError as error:
        raise SetupError(f"--oidc needs {error.name}: pip install 'penstock[oidc]'") from None
    return OidcSignIn(Provider(settings))


class StreamingServer(uvicorn.Server):
    """Ends the streams of events when it is to end itself; it would wait for them for ever."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """What a signal does."""
        self.end()
        super().handle_exit(sig, frame)

    def end(self) -> None:
        """Has it end."""
        self.config.app.state.is_ending = True  # type: ignore[union-attr]  # an application, not its name
        self.should_exit = True


def _admin_token(manager: Manager) -> None:
    """Makes the token of this machine's user, at the first start or when its file is gone."""
    file = manager.root / ADMIN
    if not file.exists():
        owner = os.environ.get("USER") or "admin"
        _write(file, manager.tokens.make(owner, "admin", actor=owner)[0])


def _write(path: Path, text: str) -> None:
    with open_private(path) as file:
        file.write(text.encode())
