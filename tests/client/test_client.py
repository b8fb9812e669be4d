"""The client: a method for each route, made of the OpenAPI; retries, problems, streams."""

from __future__ import annotations

import http.server
import inspect
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from penstock.client import Client, ServerError
from penstock.errors import SetupError
from penstock.server.contract import operations
from scripts import client as generator
from tests.server.conftest import Service, bundle, phase_becomes, service

__all__ = ["bundle", "service"]


def test_the_client_is_what_the_openapi_makes() -> None:
    for name, text in generator.modules().items():
        assert (generator.FOLDER / name).read_text() == text, f"{name} is stale; `make reference` makes it anew"


def test_every_route_has_a_method_with_its_arguments(service: Service) -> None:
    found = service.json("GET", "/api/v1/openapi.json")
    for _, path, operation in operations(found):
        if not generator.is_for_programs(operation):
            assert path.startswith("/api/v1/oidc/")
            continue
        method = getattr(Client, operation["operationId"])
        names = {*inspect.signature(method).parameters}
        asked = {p["name"] for p in operation.get("parameters", ()) if p["in"] in ("path", "query")}
        assert asked <= names, path
        assert method.__doc__.startswith(operation["summary"].rstrip("."))


def test_a_job_from_end_to_end(service: Service, bundle: str) -> None:
    client = service.client("developer", "ada")
    assert client.who_am_i() == {"owner": "ada", "role": "developer"}
    made = client.submit_job("walk", bundle, "count.py", {"parallelism": 2}, idempotency_key="walk-1")
    assert (made["name"], made["options"]) == ("walk", {"parallelism": 2})
    assert client.submit_job("walk", bundle, "count.py", {"parallelism": 2}, idempotency_key="walk-1")["name"] == "walk"
    phase_becomes(client, "walk", "running")
    moved = next(event for event in client.follow_jobs() if any(j["name"] == "walk" for j in event.data["jobs"]))
    assert moved.event == "jobs"
    assert [event.data["job"]["name"] for event in client.follow_job("walk", events=1)] == ["walk"]
    assert client.rescale_job("walk", 3)["options"] == {"parallelism": 3}
    with pytest.raises(ServerError, match="has changed since") as caught:
        client.pause_job("walk", if_match=made["etag"])
    assert (caught.value.status, caught.value.title) == (412, "Precondition Failed")
    assert "driver says hello" in client.read_log("walk", search="hello")
    assert [event["what"] for event in client.list_events("walk")["events"]]
    client.kill_job("walk")
    phase_becomes(client, "walk", "stopped")
    client.remove_job("walk")
    with pytest.raises(ServerError, match="there is no job 'walk'") as gone:
        client.show_job("walk")
    assert (gone.value.status, gone.value.detail) == (404, str(gone.value))


Answer = Callable[[http.server.BaseHTTPRequestHandler, int], None]


@contextmanager
def answering(answer: Answer) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server that answers each request as the number of the request says; its address, and the headers that it got."""
    asked: list[dict[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append(dict(self.headers))
            answer(self, len(asked))

        do_GET = do_DELETE = do_POST  # noqa: N815 - the names of the standard library

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def said(handler: http.server.BaseHTTPRequestHandler, status: int, found: object, **headers: str) -> None:
    body = found if isinstance(found, bytes) else json.dumps(found).encode()
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def test_a_request_that_could_not_be_taken_is_sent_again_with_the_same_key() -> None:
    def answer(handler: http.server.BaseHTTPRequestHandler, number: int) -> None:
        if number == 1:
            said(handler, 503, {"detail": "later"}, Retry_After="0")
        elif number == 2:
            handler.connection.close()  # the answer is lost
        else:
            said(handler, 201, {"token": "t"})

    with answering(answer) as (url, asked):
        assert Client(url, "x").make_token("ada", "viewer") == {"token": "t"}
    assert len(asked) == 3
    assert len({headers["Idempotency-Key"] for headers in asked}) == 1


def test_a_request_is_not_sent_for_ever() -> None:
    with (
        answering(lambda handler, _: said(handler, 503, {"detail": "never", "title": "Service Unavailable"})) as (
            url,
            asked,
        ),
        pytest.raises(ServerError, match="never") as caught,
    ):
        Client(url, "x", tries=2).show_job("a")
    assert (caught.value.status, caught.value.title, len(asked)) == (503, "Service Unavailable", 2)


@pytest.mark.parametrize("status", [400, 403, 404, 409, 412, 422, 500])
def test_what_is_refused_is_not_sent_again(status: int) -> None:
    refused = pytest.raises(ServerError, match=f"the server answered {status}")
    with answering(lambda handler, _: said(handler, status, b"no JSON")) as (url, asked), refused:
        Client(url, "x").pause_job("a")
    assert len(asked) == 1


def test_names_do_not_lead_elsewhere() -> None:
    paths: list[str] = []

    def answer(handler: http.server.BaseHTTPRequestHandler, number: int) -> None:
        paths.append(handler.path)
        said(handler, 200, {})

    with answering(answer) as (url, _):
        Client(url, "x").show_job("../tokens?x=1#")
    assert paths == ["/api/v1/jobs/..%2Ftokens%3Fx%3D1%23"]


def test_a_redirect_is_not_followed_with_the_token() -> None:
    leading_away = answering(lambda handler, _: said(handler, 302, b"", Location="http://evil.example/"))
    with leading_away as (url, asked), pytest.raises(ServerError, match="302"):
        Client(url, "x").who_am_i()
    assert len(asked) == 1


def test_what_is_no_server_is_said() -> None:
    stranger = pytest.raises(SetupError, match="is no server of jobs: expected JSON")
    with answering(lambda handler, _: said(handler, 200, b"<html>")) as (url, _), stranger:
        Client(url, "x").jobs()
    with pytest.raises(SetupError, match="start it with `penstock server`"):
        Client("http://127.0.0.1:9", "x").jobs()
