"""A real server of jobs on a free port, whose drivers are small programs."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.client import Client
from penstock.jobs.manager.access.tokens import Role
from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.manager import Manager
from penstock.server.serve import Listening, serving
from tests.jobs.manager.conftest import DRIVER, ending
from tests.waiting import wait_until


@dataclass(frozen=True)
class Service:
    """A server that answers, and its manager."""

    url: str
    manager: Manager

    def token(self, role: Role, owner: str = "") -> str:
        return self.manager.tokens.make(owner or role, role)[0]

    def client(self, role: Role = "admin", owner: str = "") -> Client:
        return Client(self.url, self.token(role, owner))

    def ask(
        self, method: str, path: str, token: str = "", body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """A request as anybody may send it."""
        shown = {"Authorization": f"Bearer {token}"} if token else {}
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if body is not None else {}
        request = urllib.request.Request(self.url + path, content, {**kind, **shown, **(headers or {})}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, dict(error.headers), error.read()

    def json(self, method: str, path: str, token: str = "", body: object = None) -> Any:
        return json.loads(self.ask(method, path, token, body)[2])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    manager = Manager(tmp_path_factory.mktemp("server") / "data", DRIVER)
    with serving(manager, Listening(port=0)) as url, ending(manager):
        yield Service(url, manager)


@pytest.fixture(scope="module")
def bundle(service: Service, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = Path(tmp_path_factory.mktemp("bundle")) / "count.py"
    file.write_text("x = 1\n")
    return service.client("developer").bundle(pack([("count.py", file)]))


def phase_becomes(client: Client, name: str, phase: str) -> None:
    wait_until(lambda: client.job(name)["phase"] == phase)
