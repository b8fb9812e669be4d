"""What holds for every route, as its OpenAPI says: problems, pages, ETags, idempotency keys."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi import FastAPI

from penstock.errors import SetupError
from penstock.jobs.manager.manager import PHASES
from penstock.jobs.manager.store.answers import Answers
from penstock.server.app import make_app
from penstock.server.contract import operations
from penstock.server.tags import TAGGED
from tests.server.conftest import Service, phase_becomes
from tests.server.test_access import BODIES, OPEN

CHANGES = ("post", "put", "delete")


def described(service: Service) -> list[tuple[str, str, dict[str, Any]]]:
    found = service.json("GET", "/api/v1/openapi.json")
    return [(method, path.removeprefix("/api/v1"), each) for method, path, each in operations(found)]


def headers_of(operation: dict[str, Any]) -> set[str]:
    return {p["name"] for p in operation.get("parameters", ()) if p["in"] == "header"}


def queries_of(operation: dict[str, Any]) -> set[str]:
    return {p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"}


def is_list(service: Service, operation: dict[str, Any]) -> bool:
    """Whether an answer has a list of something that grows."""
    text = json.dumps(operation["responses"].get("200", {}).get("content", {}).get("application/json", {}))
    return '"type": "array"' in text or "Page" in text


def test_every_route_says_what_holds_for_it(service: Service) -> None:
    names = set()
    for method, path, operation in described(service):
        names.add(operation["operationId"])
        is_open = (method, path) in OPEN
        assert "Problem" in json.dumps(operation["responses"]["default"]), path
        assert operation["security"] == ([] if is_open else [{"token": []}]), path
        if method in CHANGES and not is_open:
            assert "Idempotency-Key" in headers_of(operation), path
            assert ("If-Match" in headers_of(operation)) == ("{name}" in path and path.split("/")[1] in TAGGED), path
        if method == "get" and is_list(service, operation):
            assert "limit" in queries_of(operation), path
            if path != "/logs/{log}/topics/{topic}/records":  # the newest of a topic; all of them: /topics
                assert queries_of(operation) & {"after", "before", "offset"}, path
    assert len(names) == len(described(service))


def fields_of(service: Service, operation: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The fields of the body of a request."""
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    known = service.json("GET", "/api/v1/openapi.json")["components"]["schemas"]
    found: dict[str, dict[str, Any]] = known.get(str(schema.get("$ref", "")).rpartition("/")[2], schema).get(
        "properties", {}
    )
    return found


def test_every_argument_is_described_also_those_in_the_body(service: Service) -> None:
    seen = 0
    for method, path, operation in described(service):
        given = {p["name"]: p for p in operation.get("parameters", ())}
        fields = fields_of(service, operation) if "requestBody" in operation else {}
        for name, found in [*given.items(), *fields.items()]:
            assert found.get("description"), f"{method} {path}: {name} has no description"
            seen += 1
    assert seen > 200


def filled(path: str) -> str:
    return path.replace("{name}", "tagged").replace("{log}", "nothing").replace("{topic}", "nothing")


@pytest.fixture(scope="module")
def tagged(service: Service, bundle: str) -> str:
    """A job, a pool and an alert of that name."""
    client = service.client("admin")
    client.submit("tagged", bundle, "count.py")
    phase_becomes(client, "tagged", "running")
    client.pause_job("tagged")
    phase_becomes(client, "tagged", "paused")
    client.put_pool("tagged", cores=2)
    client.put_alert("tagged", "lag", 5.0)
    return service.token("admin")


def test_what_was_read_and_is_the_same_is_not_sent_again(service: Service, tagged: str) -> None:
    service.client("admin").show_job("tagged")
    seen = 0
    for method, path, operation in described(service):
        if method != "get" or "304" not in operation["responses"] or path == "/openapi.json":
            continue
        status, headers, body = service.ask("GET", f"/api/v1{filled(path)}", tagged)
        if status != 200:
            assert status in (403, 404), path
            continue
        tag = {k.lower(): v for k, v in headers.items()}["etag"]
        again, _, empty = service.ask("GET", f"/api/v1{filled(path)}", tagged, headers={"If-None-Match": tag})
        moved = service.ask("GET", f"/api/v1{filled(path)}", tagged)[2] != body
        assert moved or (again, empty) == (304, b""), path
        seen += 1
    assert seen >= 15


def test_a_job_is_sent_whenever_it_is_asked_for_as_its_tag_is_that_of_what_is_wanted(
    service: Service, tagged: str
) -> None:
    path = "/api/v1/jobs/tagged"
    tag = service.json("GET", path, tagged)["etag"]
    assert service.ask("GET", path, tagged, headers={"If-None-Match": f'"{tag}"'})[0] == 200


@pytest.mark.parametrize("path", ["/api/v1/pools", "/api/v1/pools/tagged", "/api/v1/alerts/tagged"])
def test_tags_are_compared_as_the_standard_says(service: Service, tagged: str, path: str) -> None:
    tag = {k.lower(): v for k, v in service.ask("GET", path, tagged)[1].items()}["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', f'"other",W/{tag}', "*"):
        assert service.ask("GET", path, tagged, headers={"If-None-Match": known})[0] == 304, known
    assert service.ask("GET", path, tagged, headers={"If-None-Match": '"other"'})[0] == 200


@pytest.mark.parametrize(("form", "status"), [("{}", 200), ('"other", {}', 200), ("*", 200), ("W/{}", 412)])
def test_a_change_may_name_several_tags_and_none_that_is_weak(
    service: Service, tagged: str, form: str, status: int
) -> None:
    path = "/api/v1/pools/tagged"
    tag = {k.lower(): v for k, v in service.ask("GET", path, tagged)[1].items()}["etag"]
    assert service.ask("PUT", path, tagged, {"cores": 2}, {"If-Match": form.format(tag)})[0] == status
    assert service.ask("PUT", "/api/v1/pools/nowhere", tagged, {"cores": 2}, {"If-Match": "*"})[0] == 412


RACES: dict[str, tuple[str, str, Callable[[int], dict[str, Any]]]] = {
    "/api/v1/jobs/tagged": ("POST", "/rescale", lambda n: {"tasks": n + 1}),
    "/api/v1/pools/tagged": ("PUT", "", lambda n: {"cores": n + 1}),
    "/api/v1/alerts/tagged": ("PUT", "", lambda n: {"measure": "lag", "above": n}),
}


@pytest.mark.parametrize("path", RACES)
def test_of_several_who_saw_the_same_only_one_changes_it(service: Service, tagged: str, path: str) -> None:
    method, action, body = RACES[path]
    for n in range(3):
        tag = {k.lower(): v for k, v in service.ask("GET", path, tagged)[1].items()}["etag"]
        together = threading.Barrier(6)

        def change(who: int, tag: str = tag, together: threading.Barrier = together, n: int = n) -> int:
            together.wait()
            return service.ask(method, path + action, tagged, body(100 + 10 * n + who), {"If-Match": tag})[0]

        with ThreadPoolExecutor(6) as pool:
            found = sorted(pool.map(change, range(6)))
        assert (found[0] < 300, found[1:]) == (True, [412] * 5)


def test_what_has_changed_since_it_was_read_is_not_overwritten(service: Service, tagged: str) -> None:
    seen = 0
    for method, path, operation in described(service):
        if "If-Match" not in headers_of(operation):
            continue
        body = BODIES.get(path, {})
        status, _, answer = service.ask(method.upper(), f"/api/v1{filled(path)}", tagged, body, {"If-Match": '"other"'})
        assert (status, "has changed since" in json.loads(answer)["detail"]) == (412, True), path
        seen += 1
    assert seen >= 14
    for kind, change in (("pools", {"cores": 3}), ("alerts", {"measure": "lag", "above": 6})):
        path = f"/api/v1/{kind}/tagged"
        tag = {k.lower(): v for k, v in service.ask("GET", path, tagged)[1].items()}["etag"]
        assert service.ask("PUT", path, tagged, change, {"If-Match": tag})[0] == 200
        assert service.ask("PUT", path, tagged, change, {"If-Match": tag})[0] == 412


CALLS: list[tuple[str, str, object]] = [
    ("PUT", "/pools/again", {"cores": 2}),
    ("DELETE", "/pools/again", None),
    ("PUT", "/alerts/again", {"measure": "lag", "above": 5}),
    ("DELETE", "/alerts/again", None),
    ("POST", "/tokens", {"owner": "ada", "role": "viewer"}),
    ("POST", "/sign-in-links", {}),
    ("POST", "/jobs/tagged/resume", {}),
    ("POST", "/jobs/tagged/pause", {}),
    ("POST", "/jobs/tagged/rescale", {"tasks": 2}),
    ("POST", "/alerts/tagged/silence", {"seconds": 60}),
    ("POST", "/jobs/tagged/restart", {}),
    ("POST", "/jobs/tagged/stop", {}),
    ("POST", "/jobs/tagged/kill", {}),
]


def sent_to(app: FastAPI, method: str, path: str, token: str, body: object, key: str) -> tuple[int, bytes]:
    """A request to an application that has answered none before, as after a restart."""
    content = b"" if body is None else json.dumps(body).encode()
    headers = {"host": "localhost", "authorization": f"Bearer {token}", "idempotency-key": key}
    headers |= {"content-type": "application/json", "content-length": str(len(content))}
    line = {"method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "scheme": "http"}
    scope = {"type": "http", "http_version": "1.1", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2), **line}
    given = [{"type": "http.request", "body": content, "more_body": False}]
    answer: list[Any] = []

    async def receive() -> Any:
        return given.pop() if given else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        answer.append(message)

    asyncio.run(app({**scope, "headers": [(k.encode(), v.encode()) for k, v in headers.items()]}, receive, send))
    return answer[0]["status"], b"".join(part.get("body", b"") for part in answer[1:])


def test_a_change_that_is_sent_again_after_a_restart_is_made_once_and_answered_as_before(
    service: Service, tagged: str
) -> None:
    for number, (method, path, body) in enumerate(CALLS):
        key, address = f"later-{number}", f"/api/v1{path}"
        first = service.ask(method, address, tagged, body, {"Idempotency-Key": key})
        before = len(service.manager.records.audit(1_000))
        again = sent_to(make_app(service.manager), method, address, tagged, body, key)
        assert (first[0] < 300, again) == (True, (first[0], first[2])), path
        assert len(service.manager.records.audit(1_000)) == before, path
    secrets = [json.loads(first[2])["token"] for first in [service.ask("POST", "/api/v1/tokens", tagged, TOKEN, KEPT)]]
    kept = b"".join(file.read_bytes() for file in service.manager.root.glob("manager.db*"))
    assert b"replays" in kept
    assert not [text for text in secrets if text.encode() in kept]


TOKEN, KEPT = {"owner": "zoe", "role": "viewer"}, {"Idempotency-Key": "kept"}


def test_a_change_whose_answer_was_lost_with_the_server_is_not_made_again(
    service: Service, tagged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*asked: object) -> None:
        raise SetupError("as if it were killed here")

    key, body = "lost-answer", {"owner": "lost", "role": "viewer"}
    with monkeypatch.context() as patched:
        patched.setattr(Answers, "keep", die)
        assert sent_to(make_app(service.manager), "POST", "/api/v1/tokens", tagged, body, key)[0] == 201
    status, answer = sent_to(make_app(service.manager), "POST", "/api/v1/tokens", tagged, body, key)
    assert (status, "use a new key" in json.loads(answer)["detail"]) == (409, True)
    assert [t.owner for t in service.manager.tokens.all()].count("lost") == 1
    other = sent_to(
        make_app(service.manager), "POST", "/api/v1/sign-in-links", service.token("admin", "somebody"), {}, key
    )
    assert other[0] == 201, "keys are those of who asks"


def test_an_answer_is_read_to_the_token_alone_that_asked(service: Service, tagged: str) -> None:
    body, key = {"owner": "own", "role": "viewer"}, {"Idempotency-Key": "own-answer"}
    tokens = [service.token("admin", "two-tokens") for _ in range(2)]
    answers = [service.ask("POST", "/api/v1/tokens", token, body, key) for token in tokens]
    assert [answer[0] for answer in answers] == [201, 409]
    assert [t.owner for t in service.manager.tokens.all()].count("own") == 1


def test_a_change_that_is_sent_again_is_made_once(service: Service, tagged: str) -> None:
    for number, (method, path, body) in enumerate(CALLS):
        before = len(service.manager.records.audit(1_000))
        key = {"Idempotency-Key": f"call-{number}"}
        first = service.ask(method, f"/api/v1{path}", tagged, body, key)
        again = service.ask(method, f"/api/v1{path}", tagged, body, key)
        assert first[0] < 300, (path, first)
        assert (first[0], first[2]) == (again[0], again[2])
        assert {k.lower() for k in again[1]} - {k.lower() for k in first[1]} == {"idempotent-replayed"}
        assert len(service.manager.records.audit(1_000)) == before + 1, path
        other = service.ask("POST", "/api/v1/tokens", tagged, {"owner": "bob", "role": "viewer"}, key)
        assert (other[0], json.loads(other[2])["detail"]) == (
            422,
            "this Idempotency-Key was used for another request",
        )
        assert service.ask(method, f"/api/v1{path}", service.token("viewer"), body, key)[2] != first[2] or not body


def test_a_change_that_failed_can_be_sent_again(service: Service, tagged: str) -> None:
    key = {"Idempotency-Key": "mended"}
    path = "/api/v1/pools/later"
    assert service.ask("DELETE", path, tagged, None, key)[0] == 404
    service.client("admin").put_pool("later", cores=1)
    assert service.ask("DELETE", path, tagged, None, key)[0] == 204


def test_the_same_change_twice_at_once_is_made_once(service: Service, tagged: str) -> None:
    together = threading.Barrier(4)

    def make(_: int) -> bytes:
        together.wait(300)
        key = {"Idempotency-Key": "at-once"}
        return service.ask("POST", "/api/v1/tokens", tagged, {"owner": "eve", "role": "viewer"}, key)[2]

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(make, range(4)))) == 1
    assert [t.owner for t in service.manager.tokens.all()].count("eve") == 1


@pytest.mark.parametrize("key", ["x" * 256, "a b"])
def test_a_key_that_is_none_is_refused(service: Service, tagged: str, key: str) -> None:
    assert service.ask("POST", "/api/v1/sign-in-links", tagged, {}, {"Idempotency-Key": key})[0] == 422


def test_lists_go_on_where_the_page_before_ended(service: Service) -> None:
    client = service.client("admin")
    for name in ("page-a", "page-b", "page-c"):
        client.put_pool(name, cores=1)
        client.put_alert(name, "lag", 5.0)
    assert [p["name"] for p in client.list_pools("page-a", 2)["pools"]] == ["page-b", "page-c"]
    assert [r["name"] for r in client.list_alerts("page-aa", 1)["rules"]] == ["page-b"]
    tokens = client.tokens()
    assert client.list_tokens(tokens[0]["id"], 1)["tokens"] == [tokens[1]]


def test_a_cursor_that_has_gone_of_a_list_by_time_is_refused(service: Service, tagged: str) -> None:
    status, _, body = service.ask("GET", "/api/v1/tokens?after=nobody", tagged)
    assert (status, "begin with the first page" in json.loads(body)["detail"]) == (422, True)
    status, _, body = service.ask("GET", "/api/v1/jobs/tagged/dead-letters?after=nothing", tagged)
    assert status == 422


def test_head_is_answered_as_get_without_the_content(service: Service, tagged: str) -> None:
    seen = 0
    for method, path, operation in described(service):
        if method != "get" or path.startswith("/oidc/"):
            continue
        address = f"/api/v1{filled(path)}"
        status, headers, body = service.ask("HEAD", address, tagged)
        found = {name.lower(): value for name, value in headers.items()}
        assert body == b""
        if path.startswith("/live/"):
            assert (status, found["allow"]) == (405, "GET"), path
            continue
        assert status == service.ask("GET", address, tagged)[0], path
        assert int(found["content-length"]) > 0, path
        assert ("etag" in found) == (
            "ETag" in operation["responses"].get("200", {}).get("headers", {})
        ) or status != 200
        seen += 1
    assert seen >= 25
    assert service.ask("HEAD", "/api/v1/jobs")[0] == 401
    assert service.ask("HEAD", "/api/v1/nowhere", tagged)[0] == 404
    allowed = {k.lower(): v for k, v in service.ask("PUT", "/api/v1/jobs/tagged", tagged, {})[1].items()}["allow"]
    assert allowed == "DELETE, GET, HEAD"


def test_a_parameter_that_a_route_does_not_know_or_that_is_given_twice_is_refused(
    service: Service, tagged: str
) -> None:
    for method, path, operation in described(service):
        if path == "/oidc/callback":
            continue
        address = f"/api/v1{filled(path)}?phse=running"
        body = BODIES.get(path) if method != "get" else None
        status, headers, answer = service.ask(method.upper(), address, tagged, body)
        assert status == 422, (method, path, answer)
        assert {k.lower(): v for k, v in headers.items()}["content-type"] == "application/problem+json"
        detail = json.loads(answer)["detail"]
        assert detail.startswith("query.phse: no such parameter"), path
        assert all(name in detail for name in queries_of(operation)), path
    status, _, answer = service.ask("GET", "/api/v1/jobs?limit=1&limit=2", tagged)
    assert (status, json.loads(answer)["detail"]) == (422, "query.limit: given twice; give one value")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("jobs?phase=runing", "'queued', 'starting', 'running'"),
        ("jobs/tagged/history?span=2h", "5m, 1h, 1d, all"),
        ("audit?before=nan", "finite number"),
        ("jobs/tagged/events?before=inf", "finite number"),
        ("audit?before=yesterday", "valid number"),
        ("jobs?limit=0", "greater than or equal to 1"),
    ],
)
def test_a_value_that_a_parameter_cannot_have_is_refused_with_those_it_can(
    service: Service, tagged: str, query: str, expected: str
) -> None:
    status, _, answer = service.ask("GET", f"/api/v1/{query}", tagged)
    assert (status, expected in json.loads(answer)["detail"]) == (422, True), answer


def test_jobs_are_listed_by_their_phase(service: Service, tagged: str) -> None:
    for phase in PHASES:
        found = service.json("GET", f"/api/v1/jobs?phase={phase}", tagged)["jobs"]
        assert {job["phase"] for job in found} <= {phase}
        assert ("tagged" in {job["name"] for job in found}) == (service.client("admin").job("tagged")["phase"] == phase)
