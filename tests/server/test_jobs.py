"""The API does with jobs what it says, for those who may, and every change is in the audit."""

from __future__ import annotations

import json

import pytest

from penstock.client import Client, ServerError
from penstock.errors import SetupError
from tests.server.conftest import Service, phase_becomes


def test_a_job_is_submitted_watched_paused_resumed_and_removed(service: Service, bundle: str) -> None:
    client = service.client("developer", "ada")
    made = client.submit("life", bundle, "count.py", {"parallelism": 2})
    assert (made["owner"], made["options"]) == ("ada", {"parallelism": 2})
    phase_becomes(client, "life", "running")
    shown = client.job("life")
    assert (shown["batches"], shown["rows"], shown["batch_seconds"]) == (1, 10, 0.5)
    assert "driver says hello" in client.log("life", search="hello")
    client.act("life", "pause")
    phase_becomes(client, "life", "paused")
    client.act("life", "resume")
    phase_becomes(client, "life", "running")
    assert client.act("life", "rescale", {"tasks": 3})["options"] == {"parallelism": 3}
    client.act("life", "stop")
    phase_becomes(client, "life", "stopped")
    assert "paused" in [event["what"] for event in client.events("life")]
    client.remove("life")
    with pytest.raises(ServerError, match="there is no job 'life'") as caught:
        client.job("life")
    assert caught.value.status == 404
    entries = service.json("GET", "/api/v1/audit", service.token("admin"))["entries"]
    mine = [entry["action"] for entry in entries if entry["object"] == "life"]
    assert mine == ["remove", "stopped", "rescale", "running", "paused", "submit"]


def test_a_request_that_is_sent_again_with_its_key_makes_one_job(service: Service, bundle: str) -> None:
    client = service.client("developer", "bob")
    first = client.submit("twice", bundle, "count.py", key="k1")
    assert client.submit("twice", bundle, "count.py", key="k1")["created"] == first["created"]
    with pytest.raises(ServerError, match="there is a job 'twice' already"):
        client.submit("twice", bundle, "count.py")
    with pytest.raises(ServerError, match="used for another request"):
        client.submit("thrice", bundle, "count.py", key="k1")


def test_a_change_of_a_job_that_has_changed_since_is_refused(service: Service, bundle: str) -> None:
    token = service.token("developer", "eve")
    Client(service.url, token).submit("tagged", bundle, "count.py")
    _, headers, _ = service.ask("GET", "/api/v1/jobs/tagged", token)
    tag = {key.lower(): value for key, value in headers.items()}["etag"]
    assert service.ask("POST", "/api/v1/jobs/tagged/pause", token, {}, {"If-Match": tag})[0] == 202
    status, _, body = service.ask("POST", "/api/v1/jobs/tagged/resume", token, {}, {"If-Match": tag})
    assert status == 412
    assert "has changed since" in json.loads(body)["detail"]


def test_a_viewer_sees_figures_and_no_options_and_others_do_not_touch_a_job(service: Service, bundle: str) -> None:
    service.client("developer", "ada").submit("mine", bundle, "count.py", {"conf": {"spark.secret": "canary-7"}})
    for role in ("viewer", "developer"):
        client = service.client(role, "mallory")
        assert client.job("mine")["options"] is None
        assert "canary-7" not in json.dumps(client.jobs())
        with pytest.raises(ServerError, match="belongs to ada") as caught:
            client.act("mine", "kill")
        assert caught.value.status == 403
    service.client("operator").act("mine", "stop")


def test_pages_of_a_list_go_on_where_the_last_one_ended(service: Service, bundle: str) -> None:
    client, token = service.client("developer", "zoe"), service.token("viewer")
    for name in ("page-a", "page-b", "page-c"):
        client.submit(name, bundle, "count.py")
    first = service.json("GET", "/api/v1/jobs?owner=zoe&limit=2", token)["jobs"]
    second = service.json("GET", f"/api/v1/jobs?owner=zoe&limit=2&after={first[-1]['name']}", token)["jobs"]
    assert [job["name"] for job in first + second] == ["page-a", "page-b", "page-c"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"checkpoint": "/etc"}, "sets checkpoint itself"),
        ({"paralelism": 2}, "parallelism"),
        ({"parallelism": "many"}, "parallelism"),
        ({"batch": {}}, "expected true or false"),
    ],
)
def test_options_that_are_wrong_are_said_at_once(
    service: Service, bundle: str, options: dict[str, object], reason: str
) -> None:
    with pytest.raises(ServerError, match=reason) as caught:
        service.client("developer").submit("wrong", bundle, "count.py", options)
    assert caught.value.status == 422


def test_a_server_that_is_not_there_is_said_with_what_to_do() -> None:
    with pytest.raises(SetupError, match="start it with `penstock server`"):
        Client("http://127.0.0.1:9", "x").jobs()
