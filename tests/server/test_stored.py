"""What jobs have stored, as the API shows and changes it: dead letters, savepoints, topics; plans of flows that are text."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import OptionError
from penstock.graph.nodes import DEAD
from penstock.jobs.manager.insight.dead_letters import JobDeadLetters
from penstock.jobs.manager.insight.topics import logs_of
from penstock.jobs.manager.processes.directory import DRIVER, JobDirectory
from penstock.jobs.manager.processes.stacks import dump_stacks
from penstock.live.dead_letters.replay import Replays
from penstock.live.dead_letters.store import DEAD_LETTERS, DeadLetterStore
from penstock.log import Log
from tests.server.conftest import Service

NO_DRIVER = "there is no driver to ask; the job does not run"
NOT_HERE = "the driver is starting, or runs on another machine; ask again, or ask the server there"
PAYLOAD = json.dumps({"schema": "n bigint", "record": {"n": 1}})


def letter(id: str, step: str) -> tuple[Any, ...]:
    values = {
        "id": id,
        "time": datetime(2026, 5, 1, tzinfo=UTC),
        "step": step,
        "payload": PAYLOAD,
        "cause": "ValueError: no",
    }

    return tuple(values.get(name, "") for name in DEAD.names)


@pytest.fixture(scope="module")
def job(service: Service, bundle: str) -> str:
    service.client("developer", "ada").submit("stored", bundle, "count.py")
    directory = service.manager.directory("stored")
    store = DeadLetterStore(directory.checkpoint / DEAD_LETTERS)
    store.stage([letter("a", "parse"), letter("b", "parse")], 0).commit()
    store.stage([letter("c", "check")], 1).commit()
    return "stored"


def test_dead_letters_are_listed_replayed_and_dropped_by_those_who_may(service: Service, job: str) -> None:
    token, path = service.token("developer", "ada"), f"/api/v1/jobs/{job}/dead-letters"
    found = service.json("GET", path, token)
    assert [each["id"] for each in found["dead_letters"]] == ["c", "b", "a"]
    assert found["steps"] == {"parse": 2, "check": 1}
    assert [each["id"] for each in service.json("GET", f"{path}?step=parse&limit=1", token)["dead_letters"]] == ["b"]
    assert service.json("POST", f"{path}/replay", token, {"ids": ["a", "b"]}) == {"replayed": 2}
    assert service.json("POST", f"{path}/replay", token, {"ids": ["a"]}) == {"replayed": 0}
    assert service.json("POST", f"{path}/drop", token, {"ids": ["a"]}) == {"dropped": 1}
    replays = Replays(service.manager.directory(job).checkpoint / "replay")
    assert replays._ids("pending/") == {"b"}
    assert service.ask("POST", f"{path}/drop", token, {"ids": ["a"]})[0] == 404
    assert service.ask("POST", f"{path}/drop", token, {"ids": []})[0] == 422
    assert service.ask("GET", path, service.token("viewer"))[0] == 403
    assert service.ask("GET", path, service.token("developer", "bob"))[0] == 403


def test_a_long_text_of_a_dead_letter_is_cut(service: Service, job: str) -> None:
    directory = service.manager.directory(job)
    long = tuple("x" * 50_000 if value == "ValueError: no" else value for value in letter("long", "parse"))
    DeadLetterStore(directory.checkpoint / DEAD_LETTERS).stage([long], 7).commit()
    found, _ = JobDeadLetters(directory).newest(1)
    assert len(found[0]["cause"]) == 20_000


def test_a_job_without_savepoints_has_none(service: Service, job: str) -> None:
    assert service.json("GET", f"/api/v1/jobs/{job}/savepoints", service.token("viewer")) == {"savepoints": []}


def test_a_driver_that_is_none_of_the_jobs_is_not_asked_for_its_stacks(service: Service, job: str) -> None:
    directory = service.manager.directory(job)
    directory.write_progress({"phase": "running", "pid": 1})
    status, _, body = service.ask("POST", f"/api/v1/jobs/{job}/stacks", service.token("operator"), {})
    assert (status, json.loads(body)["detail"]) in [(422, NO_DRIVER), (422, NOT_HERE)], "whether its driver has begun"


@pytest.mark.parametrize("is_held", [True, False])
def test_a_driver_that_is_not_here_is_told_from_one_that_is_not_there(tmp_path: Path, is_held: bool) -> None:
    directory = JobDirectory(tmp_path)
    lock = directory.lock(DRIVER) if is_held else None
    with pytest.raises(OptionError, match=NOT_HERE if is_held else NO_DRIVER):
        dump_stacks(directory, {"phase": "running", "pid": 1})
    assert directory.is_held(DRIVER) == is_held
    if lock is not None:
        lock.close()


@pytest.fixture(scope="module")
def log(service: Service, job: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("log")
    with Log(folder) as found:
        found.create_topic("orders", 2)
        with found.producer() as producer:
            for n in range(10):
                producer.send("orders", json.dumps({"n": n}).encode(), str(n).encode()).result()
    service.manager.directory(job).write_plan({"logs": [str(folder), "relative", 7, str(folder / "nothing")]})
    (made,) = service.json("GET", "/api/v1/logs", service.token("viewer"))["logs"]
    assert made["jobs"] == [job]
    assert [(t["topic"], t["records"], len(t["partitions"])) for t in made["topics"]] == [("orders", 10, 2)]
    assert str(folder) not in json.dumps(made)
    return str(made["log"])


def test_records_are_looked_at_and_put_by_those_who_may_change_the_job(service: Service, log: str) -> None:
    token, path = service.token("developer", "ada"), f"/api/v1/logs/{log}/topics/orders/records"
    found = service.json("GET", f"{path}?limit=3", token)["records"]
    assert [json.loads(record["value"])["n"] for record in found] == [9, 8, 7]
    matched = service.json("GET", f"{path}?where=n%20%3C%202", token)["records"]
    assert [json.loads(record["value"])["n"] for record in matched] == [1, 0]
    made = service.json("POST", path, token, {"value": '{"n": 10}', "key": "k"})
    assert service.json("GET", f"{path}?limit=1", token)["records"][0]["offset"] == made["offset"]
    for token in (service.token("viewer"), service.token("developer", "bob")):
        assert service.ask("GET", path, token)[0] == 403
        assert service.ask("POST", path, token, {"value": "x"})[0] == 403


FILTERS = [
    "__import__('os').system('id')",
    "n.__class__ = 1 (",
    "1; drop table",
    "lambda: 0",
    "{{7*7}}",
    "n > " + "(" * 400,
]


@pytest.mark.parametrize("where", FILTERS)
def test_a_filter_is_never_code(service: Service, log: str, where: str) -> None:
    path = f"/api/v1/logs/{log}/topics/orders/records?where="
    status, _, body = service.ask("GET", path + "".join(f"%{b:02x}" for b in where.encode()), service.token("operator"))
    assert (status, b"uid=" in body) == (422, False)


@pytest.mark.parametrize("topic", ["nothing", "..%2f..%2fetc", "orders%00", "%2e%2e"])
def test_topics_and_logs_that_are_none_are_unknown(service: Service, log: str, topic: str) -> None:
    assert service.ask("GET", f"/api/v1/logs/{log}/topics/{topic}/records", service.token("operator"))[0] in (404, 422)
    assert service.ask("GET", f"/api/v1/logs/{topic}/topics/orders/records", service.token("operator"))[0] in (404, 422)


def test_a_directory_that_is_no_log_is_not_made_one(tmp_path: Path) -> None:
    assert logs_of([("job", {"logs": [str(tmp_path)]})]) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_flow_that_is_text_is_planned_in_a_process_of_its_own_and_submitted(service: Service) -> None:
    token = service.token("developer", "ada")
    text = 'import os, penstock as ps\nflow = ps.Flow("by-hand")\nflow.source("in", ps.items([1], "n int")).sink("out", ps.console())\nprint("noise")\n'
    made = service.json("POST", "/api/v1/plans", token, {"file": "flow.py", "text": text})
    assert [step["name"] for step in made["plan"]["steps"]] == ["in", "out"]
    body = {"name": made["flow"], "bundle": made["bundle"], "target": made["target"]}
    assert service.json("POST", "/api/v1/jobs", token, body)["name"] == "by-hand"


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("flow.sql", "SELECT x FROM nowhere;", "nowhere"),
        ("flow.py", "import sys; sys.exit(3)", "flow.py ended the program"),
        ("flow.py", "x = 1", "flow"),
        ("../flow.py", "", "expected the name of a file"),
        ("flow.sh", "id", "expected the name of a file"),
    ],
)
def test_a_flow_that_is_wrong_is_said_to_be_so(service: Service, file: str, text: str, reason: str) -> None:
    status, _, body = service.ask("POST", "/api/v1/plans", service.token("developer"), {"file": file, "text": text})
    assert status == 422
    assert reason in json.loads(body)["detail"]
