"""What the manager sends to others reaches no address of a cloud's secrets, by no name and no redirect."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from penstock.jobs.manager.alerts.outside import check_address, opener

SECRET = [
    "169.254.169.254",
    "fe80::1",
    "fe80::1%lo",
    "::ffff:169.254.169.254",
    "0.0.0.0",
    "::",
    "224.0.0.1",
    "ff02::1",
    "240.0.0.1",
    "255.255.255.255",
    "fd00:ec2::254",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
]
INSIDE = [
    "127.0.0.1",
    "127.8.9.1",
    "::1",
    "::ffff:127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "fd12::1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
]


@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("address", SECRET)
def test_addresses_that_are_nobodys_are_refused(address: str, is_named: bool) -> None:
    with pytest.raises(OSError, match="not one to send to"):
        check_address(address, is_named=is_named)


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_inside_are_refused_unless_their_host_was_named(address: str) -> None:
    with pytest.raises(OSError, match="inside; start the server with --alert-host HOST"):
        check_address(address)
    check_address(address, is_named=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1"])
def test_no_spelling_of_this_machine_is_called(host: str) -> None:
    with listening(fine) as (canary, got):
        port = canary.rpartition(":")[2]
        with pytest.raises(urllib.error.URLError, match="is inside"):
            opener().open(f"http://{host}:{port}/", timeout=300)
        assert got == []


@contextmanager
def listening(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[tuple[str, list[str]]]:
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            answer(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


def fine(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def test_a_name_that_points_at_such_an_address_connects_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is looked up once, and what is found is what is connected to."""
    asked: list[Any] = []
    connected: list[Any] = []

    def looked_up(*given: Any, **named: Any) -> list[Any]:
        asked.append(given)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 80))]

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    monkeypatch.setattr(socket.socket, "connect", lambda self, where: connected.append(where))
    with pytest.raises(urllib.error.URLError, match="not one to send to"):
        opener().open("http://hooks.example.org/", timeout=5)
    assert (len(asked), connected) == (1, [])


def test_redirects_lead_nowhere_and_proxies_of_the_environment_get_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(fine) as (canary, got):
        monkeypatch.setenv("http_proxy", canary)

        def away(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(307)
            handler.send_header("Location", f"{canary}/secret")
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        with listening(away) as (url, seen):
            with pytest.raises(urllib.error.HTTPError) as caught:
                opener(lambda host: host == "127.0.0.1").open(f"{url}/hook", timeout=300)
            caught.value.close()
        assert (seen, got) == (["/hook"], [])


def test_files_and_other_schemes_are_not_read() -> None:
    for url in (
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "gopher://127.0.0.1/x",
        "jar:file:///x",
        "data:text/plain,x",
    ):
        found = opener()
        with suppress(urllib.error.URLError):
            assert found.open(url, timeout=5) is None, "no handler knows the scheme"
