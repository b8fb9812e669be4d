"""What a client without a token may cost the server: connections, time, bytes. Each test goes past a limit."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.bridge.limits import Limits
from penstock.jobs.manager.manager import Manager
from penstock.server import app, serve
from tests.jobs.manager.conftest import DRIVER, ending
from tests.server.conftest import Service

LONG = 600.0
"""Seconds that nobody waits for: what ends before was ended by another limit."""
SMALL = Limits(connections=5, head_seconds=0.4, idle_seconds=LONG, crowded_seconds=LONG, write_seconds=0.4)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A server with limits that are soon reached."""
    with served(tmp_path, monkeypatch, SMALL) as found:
        yield found


@contextmanager
def served(folder: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits) -> Iterator[Service]:
    for module in (app, serve):
        monkeypatch.setattr(module, "LIMITS", limits)
    manager = Manager(folder / "data", DRIVER)
    with serve.serving(manager, serve.Listening(port=0)) as url, ending(manager):
        yield Service(url, manager)


def connected(service: Service) -> socket.socket:
    host, _, port = service.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=300)


def everything(made: socket.socket) -> bytes:
    parts = []
    with suppress(ConnectionError):
        while part := made.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def test_a_head_that_does_not_come_is_not_waited_for(small: Service) -> None:
    with connected(small) as made:
        made.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: local")
        assert everything(made).startswith(b"HTTP/1.1 408 ")


def test_a_body_that_does_not_come_is_not_waited_for(small: Service) -> None:
    with connected(small) as made:
        made.sendall(b"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        answer = everything(made)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["detail"] == "the body did not come in time"


def test_a_body_that_nobody_wants_is_not_read_to_its_end(small: Service) -> None:
    with connected(small) as made:
        made.sendall(b"POST /api/v1/bundles HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000000\r\n\r\n")
        began = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - began < LONG / 2:
                made.sendall(b"x" * 1_000)
                time.sleep(0.01)
        assert time.monotonic() - began < LONG / 2


def test_connections_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = replace(SMALL, head_seconds=LONG)
    with served(tmp_path, monkeypatch, patient) as service, ExitStack() as opened:
        for _ in range(5):
            opened.enter_context(connected(service)).sendall(b"GET /api/v1/")
        refused = opened.enter_context(connected(service))
        assert everything(refused).startswith(b"HTTP/1.1 503 ")


def test_a_head_is_not_longer_than_it_may_be(small: Service) -> None:
    with connected(small) as made:
        with suppress(OSError):
            made.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 1_000_000)
        assert everything(made)[:13] in (b"HTTP/1.1 431 ", b"")
    assert small.ask("GET", "/api/v1/health")[0] == 200
