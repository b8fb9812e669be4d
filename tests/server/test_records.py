"""The log that the server serves: records in and out by the API, with its tokens, roles and audit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from penstock.errors import OptionError
from penstock.jobs.manager.manager import Manager
from penstock.log import Log
from penstock.log.produce.partitioner import partition_for
from penstock.server.serve import Listening, serving
from tests.jobs.manager.conftest import DRIVER, ending
from tests.server.conftest import Service

ORDERS = "/api/v1/topics/orders"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log"
    with Log(path) as log:
        for topic in ("orders", "hooks", "audited"):
            log.create_topic(topic, 2)
    return path


@pytest.fixture(scope="module")
def served(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    manager = Manager(tmp_path_factory.mktemp("server") / "data", DRIVER)
    with serving(manager, Listening(port=0, log=folder)) as url, ending(manager):
        yield Service(url, manager)


def test_records_are_put_in_and_read_page_by_page(served: Service, folder: Path) -> None:
    token = served.token("developer")
    body = [{"user": f"u{n}", "n": n} for n in range(10)]
    made = served.json("POST", f"{ORDERS}?key_field=user", token, body)
    assert made["records"] == 10
    assert sum(position["records"] for position in made["positions"]) == 10
    for partition in (0, 1):
        found, offset = [], 0
        while page := served.json("GET", f"{ORDERS}/records?partition={partition}&offset={offset}&limit=2", token):
            found += page["records"]
            if page["next"] == offset:
                break
            offset = page["next"]
        expected = [f"u{n}" for n in range(10) if partition_for(f"u{n}".encode(), 2) == partition]
        assert [record["key"] for record in found] == expected
        assert [json.loads(record["value"])["user"] for record in found] == expected


def test_a_request_that_comes_again_is_stored_once_and_answered_as_before(served: Service) -> None:
    token, path = served.token("operator"), "/api/v1/topics/hooks"
    answers = [served.ask("POST", path, token, {"n": 1}, {"Idempotency-Key": "k1"}) for _ in range(2)]
    assert answers[0][2] == answers[1][2]
    assert [{k.lower() for k in headers} & {"idempotent-replayed"} for _, headers, _ in answers] == [
        set(),
        {"idempotent-replayed"},
    ]
    status, headers, body = served.ask("POST", path, token, {"n": 2}, {"Idempotency-Key": "k1"})
    assert (status, json.loads(body)["status"]) == (422, 422)
    assert {k.lower(): v for k, v in headers.items()}["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/topics/nothing", {"n": 1}, 404, "there is no topic 'nothing'"),
        ("/topics/orders?key_field=user", {"n": 1}, 400, "no field 'user'"),
        ("/topics/orders?key_field=a&key_header=b", {"n": 1}, 422, "exclude each other"),
        ("/topics/orders", b"[1", 400, "not JSON"),
        ("/topics/orders", b"x" * ((1 << 20) + 1), 413, "at most 1048576 bytes"),
    ],
)
def test_what_cannot_be_stored_is_a_problem(served: Service, path: str, body: object, status: int, said: str) -> None:
    got, _, answer = served.ask("POST", f"/api/v1{path}", served.token("admin"), body)
    assert got == status
    assert said in json.loads(answer)["detail"]


def test_viewers_see_topics_and_no_records(served: Service) -> None:
    token = served.token("viewer")
    listed = served.json("GET", "/api/v1/topics?limit=2", token)["topics"]
    assert [topic["topic"] for topic in listed] == ["audited", "hooks"]
    after = served.json("GET", "/api/v1/topics?after=hooks", token)["topics"]
    assert [topic["topic"] for topic in after] == ["orders"]
    assert served.ask("POST", ORDERS, token, {"n": 1})[0] == 403
    assert served.ask("GET", f"{ORDERS}/records", token)[0] == 403


def test_the_audit_says_who_put_how_many_records_into_which_topic(served: Service) -> None:
    token = served.token("developer", "zoe")
    for _ in range(5):
        assert served.ask("POST", "/api/v1/topics/audited", token, [1, 2])[0] == 200
    entries = served.json("GET", "/api/v1/audit", served.token("admin"))["entries"]
    mine = [(e["action"], e["object"], e["detail"]) for e in entries if e["actor"] == "zoe"]
    assert mine == [("produce", "audited", "2 records")], "at once; then once a minute, and when the server ends"


def test_records_that_are_not_noted_yet_are_noted_at_the_end(folder: Path, tmp_path: Path) -> None:
    manager = Manager(tmp_path / "data", DRIVER)
    with serving(manager, Listening(port=0, log=folder)) as url, ending(manager):
        service = Service(url, manager)
        token = service.token("developer", "ann")
        for _ in range(3):
            assert service.ask("POST", "/api/v1/topics/audited", token, [1, 2])[0] == 200
    with manager.opened():
        noted = [entry.detail for entry in manager.records.audit() if entry.actor == "ann"]
    assert noted == ["4 records", "2 records"]


def test_a_server_without_a_log_says_how_to_have_one(service: Service, tmp_path: Path) -> None:
    status, _, body = service.ask("POST", ORDERS, service.token("admin"), {"n": 1})
    assert (status, json.loads(body)["detail"]) == (
        404,
        "this server has no log of its own; start it with --log DIR",
    )
    with pytest.raises(OptionError, match="penstock topics create TOPIC"):
        Listening(log=tmp_path / "none")


@pytest.mark.parametrize("name", ["\U00085a41", "ä", "a b", "x:y", "a\r\nb"])
def test_a_name_that_no_header_has_is_refused_as_the_key(served: Service, name: str) -> None:
    token = served.token("operator")
    status, _, body = served.ask("POST", f"{ORDERS}?key_header={quote(name)}", token, {"n": 1})
    assert (status, "name of a header" in json.loads(body)["detail"]) == (422, True), body
