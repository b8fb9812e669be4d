"""Hostile requests and hostile drivers: paths and code in every name, what a driver says of itself, and more than there is room for."""

from __future__ import annotations

import http.client
import io
import json
import os
import socket
import sqlite3
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.processes.heard import heard
from penstock.server.guard import LARGEST_BODY, LARGEST_JSON
from penstock.server.routes import live
from tests.breadth import some_now
from tests.server.conftest import Service, phase_becomes
from tests.server.corpus import CANARY, CODE, PATHS, TEXTS
from tests.waiting import wait_until

API = "/api/v1"


@pytest.fixture(scope="module")
def outside(service: Service) -> Path:
    """A file beside the directory of the manager, which nothing may return or write."""
    canary = service.manager.root.parent / "outside.txt"
    canary.write_text(CANARY)
    return canary


def raw(service: Service, method: str, path: str, token: str, body: bytes = b"") -> tuple[int, bytes]:
    """A request whose path is sent as it is."""
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=300)
    connection.putrequest(method, path, skip_host=False, skip_accept_encoding=True)
    connection.putheader("Authorization", f"Bearer {token}")
    connection.putheader("Content-Length", str(len(body)))
    connection.putheader("Content-Type", "application/json")
    connection.endheaders(body)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def paths_of(service: Service) -> list[tuple[str, str]]:
    found = service.json("GET", f"{API}/openapi.json")["paths"]
    return [(method, path) for path, methods in found.items() for method in methods if "{" in path]


def snapshot(root: Path) -> set[str]:
    return {str(p.relative_to(root)) for p in root.rglob("*") if "log" not in p.parts and not p.name.endswith(".tmp")}


def test_no_path_in_a_name_leaves_its_directory(service: Service, outside: Path) -> None:
    token, before = service.token("admin"), snapshot(outside.parent / "data")
    routes = [(m, p) for m, p in paths_of(service) if m in ("get", "delete", "put")]
    assert len(routes) >= 15
    for at, text in enumerate(PATHS):
        method, path = routes[at % len(routes)]
        sent = text if text.isascii() and " " not in text else quote(text)
        for name in ("name", "id", "log", "topic"):
            path = path.replace(f"{{{name}}}", sent)
        status, body = raw(service, method.upper(), path, token)
        assert status < 500, (method, path)
        assert CANARY.encode() not in body
        assert b"SQLite format" not in body
        assert b"pstk_" not in body
    assert outside.read_text() == CANARY
    assert {
        p for p in snapshot(outside.parent / "data") ^ before if "manager.db" not in p and "history.db" not in p
    } == set()


@pytest.mark.parametrize("field", ["name", "pool", "bundle"])
def test_no_text_of_a_job_is_a_path_or_code(service: Service, bundle: str, outside: Path, field: str) -> None:
    token = service.token("developer", "mallory")
    for text in TEXTS:
        body = {"name": "hostile", "bundle": bundle, "target": "count.py", field: text}
        status, _, answer = service.ask("POST", f"{API}/jobs", token, body)
        assert status in (404, 422), (field, text)
        assert b"uid=" not in answer
    assert outside.read_text() == CANARY


@pytest.mark.parametrize(
    "target", ["../x.py", "a/../../x.py:flow", "/etc/x.py", "a\\..\\x.py", "x\0.py", "x\n.py", f"../{'0' * 64}/flow.py"]
)
def test_the_flow_of_a_job_is_in_its_own_bundle(service: Service, bundle: str, target: str) -> None:
    body = {"name": "hostile", "bundle": bundle, "target": target}
    status, _, answer = service.ask("POST", f"{API}/jobs", service.token("developer"), body)
    assert (status, b"expected a file of the bundle" in answer) == (422, True)


@pytest.mark.parametrize("text", [*CODE, *PATHS[::7]])
def test_no_file_of_a_bundle_leaves_its_directory(service: Service, outside: Path, text: str) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(text.replace("\0", "") or "x", CANARY)
        archive.writestr(f"../../{text[:40]}", CANARY)
    status, _, _ = service.ask("POST", f"{API}/bundles", service.token("developer"), made.getvalue())
    assert status == 422
    assert {p.name for p in outside.parent.iterdir()} <= {"data", "outside.txt", "other.json"}


def test_other_texts_of_requests_are_no_code_either(service: Service, bundle: str) -> None:
    admin = service.token("admin")
    for text in TEXTS[::3]:
        for path, body in (
            ("/tokens", {"owner": text, "role": "viewer"}),
            ("/plans", {"file": text, "text": ""}),
            ("/jobs/nothing/savepoints", {"name": text}),
            ("/session", {"code": text[:200]}),
        ):
            status, _, answer = service.ask("POST", API + path, admin, body)
            assert 400 <= status < 500, (path, text)
            assert b"uid=" not in answer
        for path in (f"/pools/{quote(text, safe='')}", f"/alerts/{quote(text, safe='')}"):
            status, _, answer = service.ask(
                "PUT", API + path, admin, {"measure": "lag", "above": 1} if "alerts" in path else {"cores": 1}
            )
            assert 400 <= status < 500, (path, text)


HALF = "\ud800"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/jobs", {"name": HALF, "bundle": "0" * 64, "target": "x"}),
        ("/jobs", {"name": "a", "bundle": "0" * 64, "target": HALF}),
        ("/jobs", {"name": "a", "bundle": "0" * 64, "target": "x", "options": {"conf": {"a": HALF}}}),
        ("/jobs", {"name": "a", "bundle": "0" * 64, "target": "x", "options": {HALF: 1}}),
        ("/jobs/half/dead-letters/drop", {"ids": [HALF]}),
        ("/tokens", {"owner": HALF, "role": "viewer"}),
        ("/plans", {"file": "a.py", "text": HALF}),
        ("/session", {"token": HALF}),
        ("/jobs", {"name": "a", "bundle": "0" * 64, "target": "x", "options": {"interval": float("nan")}}),
        ("/tokens", {"owner": "a", "role": "viewer", "seconds": float("inf")}),
        ("/tokens", {"owner": "a", "role": "viewer", "seconds": -1}),
        ("/jobs/half/rescale", {"tasks": 10**30}),
        ("/jobs/half/upgrade", {"bundle": "0" * 64, "trial": 1e300}),
    ],
)
def test_halves_of_characters_and_numbers_without_end_are_refused(
    service: Service, bundle: str, path: str, body: dict[str, Any]
) -> None:
    if "half" not in {job["name"] for job in service.client().jobs()}:
        service.client("developer", "ada").submit("half", bundle, "count.py")
    filled = {**body, "bundle": bundle} if "bundle" in body else body
    status, _, answer = service.ask("POST", API + path, service.token("admin"), filled)
    assert 400 <= status < 500, answer


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
KEYS = (
    *("phase", "time", "since", "began", "pid", "generation", "batches", "rows", "last", "lags", "totals", "flow"),
    *("under_way", "checkpoint", "seconds", "finished", "lag", "behind", "figures", "watermarks"),
)
SAID = st.dictionaries(
    st.sampled_from(KEYS), JSON | st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6), max_size=10
)


@given(SAID)
def test_what_a_driver_says_is_of_the_types_that_readers_expect(said: dict[str, Any]) -> None:
    found: dict[str, Any] = heard(said)
    assert all(isinstance(found.get(name, 0.0), float) for name in ("time", "since", "began"))
    assert all(isinstance(found.get(name, 0), int) for name in ("pid", "generation", "batches", "rows"))
    assert all(len(lag) == 3 for lag in found.get("lags", ()))
    assert {"figures", "watermarks"} <= found["totals"].keys() if "totals" in found else True
    assert heard(found) == found


@pytest.mark.parametrize("many", some_now((15, 60), 1))
def test_a_driver_that_lies_harms_nobodys_view(service: Service, bundle: str, many: int) -> None:
    @settings(max_examples=many, deadline=None)
    @given(said=SAID)
    def check(said: dict[str, Any]) -> None:
        look_at_a_liar(service, bundle, said)

    check()


def look_at_a_liar(service: Service, bundle: str, said: dict[str, Any]) -> None:
    if "liar" not in {job["name"] for job in service.client().jobs()}:
        client = service.client("developer", "mallory")
        client.submit("liar", bundle, "count.py")
        phase_becomes(client, "liar", "running")
    directory = service.manager.directory("liar")
    directory.write_progress(said)
    service.manager.reconcile()
    viewer = service.token("viewer")
    for path in ("/jobs", "/jobs/liar", "/metrics", "/live/jobs?events=1", "/live/jobs/liar?events=1", "/alerts"):
        status, _, body = service.ask("GET", API + path, viewer)
        assert status == 200, (path, body)
    assert "liar" in {job["name"] for job in service.client().jobs()}


@pytest.mark.parametrize(
    "content", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"null", b"[1]", b'{"phase"', b"0" * (17 << 20)]
)
def test_files_of_a_driver_that_are_no_objects_say_nothing(service: Service, bundle: str, content: bytes) -> None:
    service.client("developer", "ada").submit(f"files-{abs(hash(content)) % 10**9}", bundle, "count.py")
    directory = service.manager.directory(f"files-{abs(hash(content)) % 10**9}")
    for name in ("progress.json", "plan.json", "failure.json", "samples.json"):
        (directory.path / f"{name}.new").write_bytes(content)
        (directory.path / f"{name}.new").rename(directory.path / name)
    assert (directory.plan(), directory.failure(), directory.samples()) == ({}, {}, {})
    assert service.ask("GET", f"{API}/jobs", service.token("viewer"))[0] == 200


def test_links_and_pipes_of_a_driver_are_not_read(service: Service, bundle: str, outside: Path) -> None:
    service.client("developer", "ada").submit("links", bundle, "count.py")
    directory = service.manager.directory("links")
    secret = outside.parent / "other.json"
    secret.write_text(json.dumps({"secret": CANARY}))
    (directory.path / "failure.json").symlink_to(secret)
    os.mkfifo(directory.path / "plan.json")
    (directory.path / "samples.json").symlink_to("/dev/zero")
    for path in ("failure", "plan"):
        status, _, body = service.ask("GET", f"{API}/jobs/links/{path}", service.token("admin"))
        assert (status, CANARY.encode() in body) == (200, False)
    assert directory.samples() == {}


def memory() -> int:
    """The memory of this process, in which the server runs."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_body_that_never_ends_and_one_that_says_nothing_of_its_length_are_refused(service: Service) -> None:
    token, before = service.token("developer"), memory()
    for header in (
        "Transfer-Encoding: chunked",
        f"Content-Length: {1 << 30}",
        "Content-Length: -1",
        "Content-Length: x",
    ):
        with socket.create_connection(urlsplit(service.url).netloc.split(":"), timeout=300) as client:  # type: ignore[arg-type]
            client.sendall(
                f"POST {API}/bundles HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n{header}\r\n\r\n".encode()
            )
            line = client.recv(100).split(b"\r\n")[0]
        assert line.split(b" ")[1] in (b"400", b"411", b"413"), header
    assert memory() - before < LARGEST_BODY


def test_archives_and_objects_that_grow_are_refused(service: Service) -> None:
    token, before = service.token("developer"), memory()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("zeros", "w") as file:
        for _ in range(600):
            file.write(bytes(1 << 20))
    status, _, body = service.ask("POST", f"{API}/bundles", token, made.getvalue())
    assert (status, b"bytes unpacked" in body) == (422, True)
    deep = b'{"name": ' + b"[" * 200_000
    assert service.ask("POST", f"{API}/jobs", token, deep)[0] in (400, 422)
    wide = (
        b'{"name": "a", "bundle": "b", "target": "c", "options": {'
        + b",".join(b'"%d": 1' % n for n in range(200_000))
        + b"}}"
    )
    assert service.ask("POST", f"{API}/jobs", token, wide)[0] == 422
    assert memory() - before < 300 << 20


def test_clients_that_say_nothing_keep_nobody_out(service: Service) -> None:
    """Slow clients: a hundred that have begun a request and do not go on."""
    address = urlsplit(service.url).netloc.split(":")
    slow = [socket.create_connection(address, timeout=300) for _ in range(100)]  # type: ignore[arg-type]
    try:
        for client in slow:
            client.sendall(b"GET /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ")
        began = time.monotonic()
        assert service.ask("GET", f"{API}/health")[0] == 200
        assert time.monotonic() - began < 10.0
    finally:
        for client in slow:
            client.close()


def test_more_who_follow_events_than_may_are_refused_and_leave_room_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, held = service.token("viewer", "many"), []
    netloc = urlsplit(service.url).netloc
    for _ in range(live.MOST_OF_ONE):
        connection = http.client.HTTPConnection(netloc, timeout=300)
        connection.request("GET", f"{API}/live/jobs", headers={"Authorization": f"Bearer {token}"})
        held.append((connection, connection.getresponse()))
    assert service.ask("GET", f"{API}/live/jobs?events=1", token)[0] == 429
    assert service.ask("GET", f"{API}/live/jobs?events=1", service.token("viewer", "another"))[0] == 200
    for connection, answer in held:
        answer.close()
        connection.close()
    deadline = time.monotonic() + 300
    while service.ask("GET", f"{API}/live/jobs?events=1", token)[0] == 429:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_many_who_read_a_log_at_once_are_served_within_bounds(service: Service, bundle: str) -> None:
    service.client("developer", "ada").submit("loud", bundle, "count.py")
    log = service.manager.directory("loud").log
    with log.open("wb") as file:
        for _ in range(64):
            file.write(b"x" * (1 << 20))  # one line of 64 MiB
    token, before, found = service.token("viewer"), memory(), []

    def read() -> None:
        found.append(len(service.ask("GET", f"{API}/jobs/loud/log?lines=10000", token)[2]))

    threads = [threading.Thread(target=read) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert max(found) <= 11_000
    assert memory() - before < 400 << 20


def test_bundles_with_links_are_refused(service: Service) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        entry = zipfile.ZipInfo("link")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")
    status, _, body = service.ask("POST", f"{API}/bundles", service.token("developer"), made.getvalue())
    assert (status, b"no links" in body) == (422, True)
    assert pack([]) is not None


def test_an_object_is_no_larger_than_any_could_be(service: Service) -> None:
    token = service.token("viewer")
    for path in ("/jobs", "/jobs/x/kill"):
        with socket.create_connection(urlsplit(service.url).netloc.split(":"), timeout=300) as client:  # type: ignore[arg-type]
            head = f"POST {API}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            client.sendall(f"{head}Content-Length: {LARGEST_JSON + 1}\r\n\r\n".encode())
            assert client.recv(100).split(b" ")[1] == b"413", path


def test_the_server_says_how_it_is_while_its_database_is_locked(service: Service) -> None:
    """More requests wait for the database than there are threads."""
    token, many = service.token("admin"), 45
    with closing(sqlite3.connect(service.manager.root / "manager.db")) as locking, ThreadPoolExecutor(many) as pool:
        locking.execute("begin immediate")
        asked = [pool.submit(service.ask, "PUT", f"{API}/pools/p{n}", token, {"cores": 1}) for n in range(many)]
        wait_until(lambda: sum("AnyIO" in thread.name for thread in threading.enumerate()) >= 40)
        began = time.monotonic()
        for _ in range(3):
            assert service.ask("GET", f"{API}/health")[0] == 200
        took = time.monotonic() - began
        locking.rollback()
        assert {each.result()[0] for each in asked} <= {200, 503}
    assert took < 25, "it waited for the lock, which is given up after 30 seconds"
    for name in service.manager.records.pools():
        service.manager.records.remove_pool(name, "test")
