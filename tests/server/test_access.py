"""Who may do what: every route, every role; and what pages, other hosts and hostile requests get."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

import pytest

from penstock.jobs.manager.access.tokens import ROLES
from penstock.jobs.manager.bundle import pack
from tests.server.conftest import Service

OPEN = {("get", "/health"), ("get", "/openapi.json"), ("post", "/session")} | {
    ("get", f"/oidc{way}") for way in ("", "/start", "/callback")
}
EXPECTED = {
    # who may: viewer, operator, developer who is not the owner, admin
    ("get", "/me"): "voda",
    ("post", "/bundles"): "da",
    ("get", "/jobs"): "voda",
    ("post", "/jobs"): "da",
    ("get", "/jobs/{name}"): "voda",
    ("delete", "/jobs/{name}"): "oa",
    ("post", "/jobs/{name}/stop"): "oa",
    ("post", "/jobs/{name}/kill"): "oa",
    ("post", "/jobs/{name}/pause"): "oa",
    ("post", "/jobs/{name}/resume"): "oa",
    ("post", "/jobs/{name}/restart"): "oa",
    ("post", "/jobs/{name}/rescale"): "oa",
    ("post", "/jobs/{name}/upgrade"): "a",
    ("post", "/jobs/{name}/savepoints"): "oa",
    ("get", "/jobs/{name}/log"): "voda",
    ("get", "/jobs/{name}/events"): "voda",
    ("get", "/jobs/{name}/plan"): "voda",
    ("get", "/jobs/{name}/failure"): "voda",
    ("get", "/jobs/{name}/history"): "voda",
    ("get", "/jobs/{name}/dead-letters"): "oa",
    ("post", "/jobs/{name}/dead-letters/replay"): "oa",
    ("post", "/jobs/{name}/dead-letters/drop"): "oa",
    ("put", "/jobs/{name}/dead-letters/{id}"): "oa",
    ("get", "/jobs/{name}/savepoints"): "voda",
    ("get", "/jobs/{name}/checkpoints"): "voda",
    ("get", "/jobs/{name}/advice"): "voda",
    ("get", "/jobs/{name}/log-levels"): "voda",
    ("put", "/jobs/{name}/log-levels"): "oa",
    ("get", "/jobs/{name}/rules"): "oa",
    ("post", "/jobs/{name}/rules/{step}"): "oa",
    ("get", "/live/jobs/{name}/trace"): "oa",
    ("get", "/live/jobs/{name}/profile"): "oa",
    ("post", "/jobs/{name}/stacks"): "oa",
    ("get", "/logs"): "voda",
    ("get", "/logs/{log}/topics/{topic}/records"): "oa",
    ("post", "/logs/{log}/topics/{topic}/records"): "oa",
    ("get", "/topics"): "voda",
    ("post", "/topics/{topic}"): "oda",
    ("get", "/topics/{topic}/records"): "oda",
    ("post", "/plans"): "da",
    ("get", "/jobs/{name}/source"): "oa",
    ("post", "/jobs/{name}/plans"): "a",
    ("get", "/live/jobs"): "voda",
    ("get", "/live/jobs/{name}"): "voda",
    ("get", "/live/jobs/{name}/sample"): "oa",
    ("post", "/sign-in-links"): "voda",
    ("delete", "/session"): "voda",
    ("get", "/pools"): "voda",
    ("get", "/pools/{name}"): "voda",
    ("get", "/pool-uses"): "voda",
    ("put", "/pools/{name}"): "a",
    ("delete", "/pools/{name}"): "a",
    ("get", "/alerts"): "voda",
    ("get", "/alerts/{name}"): "voda",
    ("put", "/alerts/{name}"): "a",
    ("post", "/alerts/{name}/silence"): "oa",
    ("delete", "/alerts/{name}"): "a",
    ("get", "/metrics"): "voda",
    ("get", "/tokens"): "a",
    ("post", "/tokens"): "a",
    ("delete", "/tokens/{id}"): "a",
    ("get", "/audit"): "a",
    ("get", "/audit/verification"): "a",
}
BODIES: dict[str, Any] = {
    "/jobs": {"name": "x", "bundle": "0" * 64, "target": "x.py"},
    "/jobs/{name}/rescale": {"tasks": 2},
    "/jobs/{name}/upgrade": {"bundle": "0" * 64},
    "/jobs/{name}/savepoints": {"name": ""},
    "/pools/{name}": {"cores": 2},
    "/alerts/{name}": {"measure": "lag", "above": 5},
    "/alerts/{name}/silence": {"seconds": 60},
    "/jobs/{name}/plans": {"text": ""},
    "/jobs/{name}/dead-letters/replay": {"ids": ["x"]},
    "/jobs/{name}/dead-letters/drop": {"ids": ["x"]},
    "/jobs/{name}/dead-letters/{id}": {"payload": {}},
    "/jobs/{name}/log-levels": {"level": "info"},
    "/jobs/{name}/rules/{step}": {"op": "enable", "rule": "x"},
    "/logs/{log}/topics/{topic}/records": {"value": "x"},
    "/topics/{topic}": {"id": 1},
    "/plans": {"file": "nothing", "text": ""},
    "/tokens": {"owner": "x", "role": "viewer"},
    "/bundles": pack([]),
}


def routes(service: Service) -> list[tuple[str, str]]:
    found = service.json("GET", "/api/v1/openapi.json")
    assert found["openapi"].startswith("3.1")
    return [(method, path.removeprefix("/api/v1")) for path, methods in found["paths"].items() for method in methods]


def test_every_route_is_in_the_table_and_answers_each_role_as_it_says(service: Service, bundle: str) -> None:
    service.client("developer", "owner").submit("matrix", bundle, "count.py")
    found = routes(service)
    assert {*found} - OPEN == {*EXPECTED}
    expired, _ = service.manager.tokens.make("late", "admin", -1.0)
    revoked, gone = service.manager.tokens.make("gone", "admin")
    service.manager.tokens.revoke(gone.id)
    tokens = {role: service.token(role, f"other-{role}") for role in ROLES}
    for method, path in sorted(EXPECTED):
        for token in ("", "pstk_guess", expired, revoked):
            assert ask(service, method, path, token) == 401, (method, path, token)
        for role, token in tokens.items():
            status = ask(service, method, path, token)
            assert (status != 403) == (role[0] in EXPECTED[method, path]), (method, path, role, status)
            assert status < 500, (method, path, role, status)


def ask(service: Service, method: str, path: str, token: str) -> int:
    filled = path.replace("{name}", "matrix").replace("{id}", "nobody")
    events = "?events=1" if path.startswith("/live/") else ""
    events += "&step=x" if path.endswith("/sample") else ""
    filled = filled.replace("{log}", "nothing").replace("{topic}", "nothing")
    body = BODIES.get(path) if method != "get" else None
    return service.ask(method.upper(), f"/api/v1{filled}{events}", token, body)[0]


def test_a_page_of_another_site_and_a_name_that_points_here_are_refused(service: Service) -> None:
    token = service.token("admin")
    status, _, body = service.ask("GET", "/api/v1/jobs", token, headers={"Origin": "https://evil.example"})
    assert (status, json.loads(body)["title"]) == (403, "Forbidden")
    status, _, _ = service.ask("GET", "/api/v1/jobs", token, headers={"Host": "evil.example"})
    assert status == 421


def test_answers_cannot_be_framed_sniffed_or_kept(service: Service) -> None:
    _, headers, _ = service.ask("GET", "/api/v1/health")
    found = {key.lower(): value for key, value in headers.items()}
    assert found["x-content-type-options"] == "nosniff"
    assert found["x-frame-options"] == "DENY"
    assert found["cache-control"] == "no-store"
    assert "default-src 'none'" in found["content-security-policy"]


def test_an_error_is_a_problem_and_does_not_repeat_what_was_sent(service: Service) -> None:
    token = service.token("admin")
    status, headers, body = service.ask("POST", "/api/v1/tokens", token, {"owner": "x", "role": "canary-9"})
    assert status == 422
    assert {k.lower(): v for k, v in headers.items()}["content-type"] == "application/problem+json"
    assert b"canary-9" not in body
    assert json.loads(body)["status"] == 422


PATHS = [
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e",
    "a%00b",
    "..%252f",
    "%2fetc",
    "x" * 5_000,
    "'%20or%201=1--",
    "%0d%0aX: y",
    "<script>",
]


@pytest.mark.parametrize("name", PATHS)
def test_names_that_are_paths_or_code_are_unknown_jobs(service: Service, name: str) -> None:
    connection = http.client.HTTPConnection(service.url.removeprefix("http://"))
    token = service.token("admin")
    for route in (f"/api/v1/jobs/{name}", f"/api/v1/jobs/{name}/log"):
        connection.request("GET", route.replace(" ", "%20"), headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        assert answer.status in (400, 404)
        assert b"root:" not in answer.read()
    connection.close()


def test_a_body_that_is_too_large_is_refused_before_it_is_read(service: Service) -> None:
    connection = http.client.HTTPConnection(service.url.removeprefix("http://"))
    connection.putrequest("POST", "/api/v1/bundles")
    connection.putheader("Authorization", f"Bearer {service.token('developer')}")
    connection.putheader("Content-Length", str(1 << 40))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_a_token_that_expires_and_one_that_is_revoked_end(service: Service) -> None:
    admin = service.token("admin")
    made = service.json("POST", "/api/v1/tokens", admin, {"owner": "ada", "role": "viewer", "seconds": 3600})
    assert made["token"].startswith("pstk_")
    assert made["expires"] > time.time() + 3000
    assert service.json("GET", "/api/v1/me", made["token"]) == {"owner": "ada", "role": "viewer"}
    assert made["token"] not in json.dumps(service.json("GET", "/api/v1/tokens", admin))
    assert service.ask("DELETE", f"/api/v1/tokens/{made['id']}", admin)[0] == 204
    assert service.ask("GET", "/api/v1/me", made["token"])[0] == 401


def test_the_use_of_a_token_is_noted_and_not_written_with_each_request(service: Service) -> None:
    text, token = service.manager.tokens.make("used", "viewer")

    def used() -> float | None:
        (found,) = [each.used for each in service.manager.tokens.all() if each.id == token.id]
        return found

    assert used() is None
    assert service.ask("GET", "/api/v1/me", text)[0] == 200
    first = used()
    assert first is not None
    session = service.manager.sessions.open_token(text)
    assert session is not None
    assert service.manager.sessions.identity(session) == service.manager.tokens.identity(text)
    assert used() == first
    service.manager.tokens.noted[token.id] -= 3_600.0
    service.manager.sessions.identity(session)
    later = used()
    assert later is not None
    assert later > first


def test_no_token_is_in_the_database(service: Service) -> None:
    token = service.token("viewer")
    kept = b"".join(path.read_bytes() for path in service.manager.root.glob("manager.db*"))
    assert token.encode() not in kept
