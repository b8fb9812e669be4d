"""Starts the server of jobs: where it listens, with which certificate, and how this machine's user finds it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from penstock.bridge.guard import loopback
from penstock.errors import OptionError, SetupError
from penstock.jobs.manager.manager import Manager
from penstock.server.app import make_app
from penstock.storage.private import open_private

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

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise OptionError("TLS needs both --cert FILE and --key FILE")
        if not loopback(self.host) and self.certificate is None and not self.is_open:
            raise OptionError(
                f"others can reach {self.host}, and tokens would travel in the clear: give --cert and --key, listen on 127.0.0.1, "
                f"or say --plain-http if a proxy before it speaks TLS"
            )

    @property
    def scheme(self) -> str:
        """How clients speak to it."""
        return "http" if self.certificate is None else "https"


def serve(manager: Manager, where: Listening, tell: Callable[[str], None] = print) -> None:
    """Serves the jobs of a manager until SIGTERM or Ctrl-C; its jobs run on."""
    with manager.opened(), _socket(where) as listening:
        port = listening.getsockname()[1]
        name = f"[{where.host}]" if ":" in where.host else where.host
        url = f"{where.scheme}://{name}:{port}"
        _admin_token(manager)
        _write(manager.root / ADDRESS, json.dumps({"url": url, "token_file": ADMIN}))
        tell(f"jobs in {manager.root}; API at {url}/api/v1; Ctrl-C ends the server, jobs run on")
        config = uvicorn.Config(
            make_app(manager, where.names),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
            limit_concurrency=512,
            ssl_certfile=where.certificate,
            ssl_keyfile=where.key,
        )
        uvicorn.Server(config).run(sockets=[listening])


def _socket(where: Listening) -> socket.socket:
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((where.host, where.port))
    except OSError as error:
        made.close()
        raise SetupError(
            f"cannot listen at {where.host}:{where.port}: {os.strerror(error.errno or 0).lower()}; "
            f"stop what listens there, or choose another --port (0 takes a free one)"
        ) from None
    return made


def _admin_token(manager: Manager) -> None:
    """Makes the token of this machine's user, at the first start or when its file is gone."""
    file = manager.root / ADMIN
    if not file.exists():
        text, token = manager.tokens.make(os.environ.get("USER") or "admin", "admin")
        _write(file, text)
        manager.records.note(token.owner, "token", token.id, "first start")


def _write(path: Path, text: str) -> None:
    with open_private(path) as file:
        file.write(text.encode())
