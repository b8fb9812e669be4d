"""The console's side of the server: signing in, sessions, what pages of others can do, streams, and files."""

from __future__ import annotations

import json
import time
import urllib.request
from http.cookies import SimpleCookie

import pytest

from penstock.jobs.manager.access import sessions
from penstock.server.assets import assets
from penstock.server.routes import live
from tests.server.conftest import Service, phase_becomes

CONSOLE = {"X-Penstock-Console": "1"}


def signed_in(service: Service, token: str) -> str:
    """The session that the link of a token opens, as a browser sends it."""
    link = service.json("POST", "/api/v1/sign-in-links", token, {})
    status, headers, _ = service.ask("POST", "/api/v1/session", body={"code": link["path"].rsplit("/", 1)[1]})
    assert status == 204
    cookie = SimpleCookie({k.lower(): v for k, v in headers.items()}["set-cookie"])["penstock_session"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "strict"
    return f"penstock_session={cookie.value}"


def test_a_link_signs_in_once_as_who_made_it(service: Service) -> None:
    token = service.token("viewer", "ada")
    code = service.json("POST", "/api/v1/sign-in-links", token, {})["path"].rsplit("/", 1)[1]
    assert service.ask("POST", "/api/v1/session", body={"code": code})[0] == 204
    assert service.ask("POST", "/api/v1/session", body={"code": code})[0] == 401
    cookie = signed_in(service, token)
    assert json.loads(service.ask("GET", "/api/v1/me", headers={"Cookie": cookie})[2]) == {
        "owner": "ada",
        "role": "viewer",
    }


def test_a_link_that_is_too_old_does_not_sign_in(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "LINK", -1.0)
    code = service.json("POST", "/api/v1/sign-in-links", service.token("viewer"), {})["path"].rsplit("/", 1)[1]
    assert service.ask("POST", "/api/v1/session", body={"code": code})[0] == 401


def test_a_token_signs_in_and_signing_out_ends_the_session_on_the_server(service: Service) -> None:
    token = service.token("operator")
    assert service.ask("POST", "/api/v1/session", body={"token": "pstk_guess"})[0] == 401
    _, headers, _ = service.ask("POST", "/api/v1/session", body={"token": token})
    cookie = {k.lower(): v for k, v in headers.items()}["set-cookie"].partition(";")[0]
    assert service.ask("DELETE", "/api/v1/session", headers={"Cookie": cookie, **CONSOLE})[0] == 204
    assert service.ask("GET", "/api/v1/me", headers={"Cookie": cookie})[0] == 401


def test_a_session_ends_with_its_token_and_by_itself(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    text, token = service.manager.tokens.make("gone", "admin")
    cookie = signed_in(service, text)
    service.manager.tokens.revoke(token.id)
    assert service.ask("GET", "/api/v1/me", headers={"Cookie": cookie})[0] == 401
    monkeypatch.setattr(sessions, "SESSION", -1.0)
    assert service.manager.sessions.open_token(service.token("viewer")) is not None
    assert service.manager.sessions.identity(service.manager.sessions.open_token(service.token("viewer")) or "") is None


def test_there_are_only_so_many_sessions(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 3)
    token = service.token("viewer")
    opened = [service.manager.sessions.open_token(token) for _ in range(5)]
    holding = [found for found in opened if found and service.manager.sessions.identity(found)]
    assert holding == opened[2:]


def test_neither_links_nor_sessions_are_in_the_database(service: Service) -> None:
    cookie = signed_in(service, service.token("viewer"))
    code = service.json("POST", "/api/v1/sign-in-links", service.token("viewer"), {})["path"].rsplit("/", 1)[1]
    kept = b"".join(path.read_bytes() for path in service.manager.root.glob("manager.db*"))
    assert cookie.partition("=")[2].encode() not in kept
    assert code.encode() not in kept


def test_a_change_by_a_session_needs_the_word_of_the_console(service: Service, bundle: str) -> None:
    service.client("developer", "ada").submit("csrf", bundle, "count.py")
    cookie = {"Cookie": signed_in(service, service.token("admin"))}
    path = "/api/v1/jobs/csrf/stop"
    assert service.ask("POST", path, body={}, headers=cookie)[0] == 403
    assert service.ask("POST", path, body={}, headers={**cookie, **CONSOLE, "Sec-Fetch-Site": "same-site"})[0] == 403
    other = {**cookie, **CONSOLE, "Origin": "http://127.0.0.1:1"}
    assert service.ask("POST", path, body={}, headers=other)[0] == 403
    assert service.ask("GET", "/api/v1/jobs", headers={**cookie, "Sec-Fetch-Site": "cross-site"})[0] == 403
    assert service.client().job("csrf")["wish"] == "running"
    mine = {**cookie, **CONSOLE, "Origin": service.url, "Sec-Fetch-Site": "same-origin"}
    assert service.ask("POST", path, body={}, headers=mine)[0] == 202


def test_a_large_body_of_somebody_unknown_is_refused(service: Service) -> None:
    assert service.ask("POST", "/api/v1/session", body={"token": "x" * 5_000})[0] == 413


def test_the_page_and_its_files_are_for_all_and_run_nothing_but_themselves(service: Service) -> None:
    status, headers, body = service.ask("GET", "/")
    found = {k.lower(): v for k, v in headers.items()}
    assert (status, found["content-type"]) == (200, "text/html; charset=utf-8")
    assert "script-src 'self'" in found["content-security-policy"]
    assert "unsafe" not in found["content-security-policy"]
    assert b"<script>" not in body
    assert b"style=" not in body
    assert service.ask("GET", "/app.js", headers={"If-None-Match": assets()["/app.js"].tag})[0] == 304
    assert service.ask("GET", "/app.js", headers={"Accept-Encoding": "gzip"})[2] == assets()["/app.js"].packed
    for path in ("/nothing.js", "/..%2f__init__.py", "/../__init__.py", "/vendor/", "/api/v1/../../app.js"):
        assert service.ask("GET", path)[0] in (401, 404), path
    assert service.ask("POST", "/app.js", body={})[0] == 405


def test_the_whole_console_is_small(service: Service) -> None:
    assert sum(len(asset.packed) for path, asset in assets().items() if path != "/") < 500_000


def test_a_stream_of_events_sends_jobs_and_ends_with_the_right_to_look(
    service: Service, bundle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = service.client("developer", "ada")
    client.submit("streamed", bundle, "count.py", {"conf": {"spark.secret": "canary-8"}})
    phase_becomes(client, "streamed", "running")
    _, headers, body = service.ask("GET", "/api/v1/live/jobs?events=1", service.token("viewer"))
    assert {k.lower(): v for k, v in headers.items()}["content-type"].startswith("text/event-stream")
    assert b"event: jobs" in body
    assert b'"streamed"' in body
    for role, shown in (("viewer", False), ("operator", True)):
        _, _, body = service.ask("GET", "/api/v1/live/jobs/streamed?events=1", service.token(role))  # type: ignore[arg-type]
        assert (b"canary-8" in body) == shown
    monkeypatch.setattr(live, "ASKED_AGAIN", 0.0)
    text, token = service.manager.tokens.make("leaving", "viewer")
    request = urllib.request.Request(f"{service.url}/api/v1/live/jobs", headers={"Authorization": f"Bearer {text}"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        assert answer.readline() == b"event: jobs\n"
        service.manager.tokens.revoke(token.id)
        answer.read()  # it ends


def test_there_are_only_so_many_streams(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_OF_ONE", 0)
    status, _, body = service.ask("GET", "/api/v1/live/jobs?events=1", service.token("viewer", "greedy"))
    assert (status, json.loads(body)["title"]) == (429, "Too Many Requests")


def test_a_plan_shows_settings_to_those_who_may_change_the_job(service: Service, bundle: str) -> None:
    service.client("developer", "ada").submit("planned", bundle, "count.py")
    directory = service.manager.directory("planned")
    directory.write_plan({"steps": [{"name": "read", "settings": {"path": "canary-9"}}]})
    directory.write_failure({"error": "ValueError", "message": "it broke", "time": time.time()})
    path = "/api/v1/jobs/planned/plan"
    assert b"canary-9" not in service.ask("GET", path, service.token("viewer"))[2]
    assert b"canary-9" in service.ask("GET", path, service.token("operator"))[2]
    assert service.json("GET", "/api/v1/jobs/planned/failure", service.token("viewer"))["error"] == "ValueError"


def test_the_history_of_a_job_is_there_for_who_looks(service: Service, bundle: str) -> None:
    service.client("developer", "ada").submit("past", bundle, "count.py")
    now = time.time()
    for at, rows in ((now - 2, 10.0), (now - 1, 30.0)):
        told = {
            "pid": 1,
            "generation": 1,
            "began": now - 3,
            "time": at,
            "totals": {"figures": {"rows": rows, "in:split": rows}, "watermarks": {}},
        }
        service.manager.history.observe("past", told, at)
    found = service.json("GET", "/api/v1/jobs/past/history", service.token("viewer"))
    assert found["figures"]["rows"] == [10.0, 20.0]
    assert "in:split" not in found["figures"]
    step = service.json("GET", "/api/v1/jobs/past/history?step=split&span=1h", service.token("viewer"))
    assert sum(step["figures"]["in"]) == 30.0
    assert service.ask("GET", "/api/v1/jobs/past/history?span=2y", service.token("viewer"))[0] == 422
