"""What a job does inside, as the API shows and changes it: rules, checkpoints, advice, versions, pools, alerts that are silenced, Kafka clusters."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.insight.checkpoints import checkpoints_of
from penstock.jobs.manager.insight.ruled_steps import rule_sets
from penstock.jobs.manager.processes.directory import JobDirectory
from penstock.jobs.manager.processes.driver import plan_of
from penstock.jobs.manager.store.records import JobRecords
from penstock.log import Log
from penstock.state.notes import put_note
from penstock.storage import LocalStorage
from tests.server.conftest import Service
from tests.waiting import wait_until

do = ps.action


def ruled(log: Path) -> ps.Flow:
    flow = ps.Flow("ruled")
    pays = flow.source("pays", ps.items([], "card string, amount int"))
    changes = flow.source("changes", ps.rule_topic("pay-rules", path=log))
    found = pays.rules("fraud", [ps.rule("big", "amount > 500", do.emit("cases", "card"))], changes=changes)
    found.cases.sink("out", ps.console())
    plain = pays.rules("plain", [ps.rule("small", "amount < 5", do.emit("few", "card"))])
    plain.few.sink("few-out", ps.console())
    return flow


@pytest.fixture
def job(service: Service, bundle: str, tmp_path: Path) -> str:
    """A job whose driver has said that it has rules."""
    name = f"ruled-{tmp_path.name[-20:]}".lower().replace("_", "-")
    service.client("developer", "ada").submit(name, bundle, "count.py")
    with Log(tmp_path / "log"):
        pass
    directory = service.manager.directory(name)
    wait_until(directory.path.is_dir)
    directory.write_plan(plan_of(ruled(tmp_path / "log").graph))
    return name


def test_rules_are_listed_and_changed_by_their_topic(service: Service, job: str) -> None:
    token, path = service.token("developer", "ada"), f"/api/v1/jobs/{job}/rules"
    found = {each["step"]: each for each in service.json("GET", path, token)["sets"]}
    assert {name: each["changeable"] for name, each in found.items()} == {"fraud": True, "plain": False}
    assert [(r["rule"], r["version"], r["written"]) for r in found["fraud"]["rules"]] == [("big", 1, True)]
    added = {"op": "add", "rule": "huge", "text": "if amount > 9000 do emit to cases(card)"}
    assert service.json("POST", f"{path}/fraud", token, added)["version"] == 1
    assert service.ask("POST", f"{path}/fraud", token, added)[0] == 409
    assert service.json("POST", f"{path}/fraud", token, {"op": "disable", "rule": "big"})["enabled"] is False
    changed = {**added, "op": "change", "text": "if amount > 8000 do emit to cases(card)"}
    assert service.json("POST", f"{path}/fraud", token, changed)["version"] == 2
    rules = {r["rule"]: r for s in service.json("GET", path, token)["sets"] if s["step"] == "fraud" for r in s["rules"]}
    assert {name: (r["version"], r["enabled"], r["by"]) for name, r in rules.items()} == {
        "big": (1, False, "ada"),
        "huge": (2, True, "ada"),
    }
    assert "8000" in rules["huge"]["text"]
    assert "500" in rules["big"]["text"]
    assert service.json("POST", f"{path}/fraud", token, {"op": "remove", "rule": "huge"})["removed"] is True
    after = next(s for s in service.json("GET", path, token)["sets"] if s["step"] == "fraud")
    assert [r["rule"] for r in after["rules"]] == ["big"]
    assert {"add rule", "change rule", "remove rule"} <= {each.action for each in records(service).audit()}


def test_levels_of_the_log_are_changed_and_noted(service: Service, job: str) -> None:
    path, ada, bob = (
        f"/api/v1/jobs/{job}/log-levels",
        service.token("developer", "ada"),
        service.token("developer", "bob"),
    )
    assert service.json("GET", path, bob)["levels"] == {"penstock": "default", "spark": "default"}
    assert service.ask("PUT", path, bob, {"level": "debug"})[0] == 403
    assert service.json("PUT", path, ada, {"level": "debug"})["levels"]["penstock"] == "debug"
    assert service.json("PUT", path, ada, {"level": "error", "logger": "my.flow"})["levels"]["my.flow"] == "error"
    assert service.json("PUT", path, ada, {"level": "default", "logger": "my.flow"})["levels"].keys() == {
        "penstock",
        "spark",
    }
    assert service.ask("PUT", path, ada, {"level": "loud"})[0] == 422
    assert ("log level", job, "penstock: debug") in [(e.action, e.object, e.detail) for e in records(service).audit()]


def records(service: Service) -> JobRecords:
    return service.manager.records


@pytest.mark.parametrize(
    ("step", "body", "status", "said"),
    [
        ("fraud", {"op": "add", "rule": "bad", "text": "if amount >"}, 422, "bad"),
        ("fraud", {"op": "add", "rule": "big", "text": "if amount > 1 do emit to cases(card)"}, 422, "is in the flow already"),
        ("fraud", {"op": "enable", "rule": "nobody"}, 404, "nobody"),
        ("fraud", {"op": "forget", "rule": "big"}, 422, "op"),
        ("plain", {"op": "disable", "rule": "small"}, 422, "takes no changes"),
        ("nothing", {"op": "disable", "rule": "small"}, 404, "no step"),
    ],
)  # fmt: skip
def test_changes_of_rules_that_cannot_be_are_refused(
    service: Service, job: str, step: str, body: dict[str, str], status: int, said: str
) -> None:
    token = service.token("developer", "ada")
    code, _, answer = service.ask("POST", f"/api/v1/jobs/{job}/rules/{step}", token, body)
    assert (code, said in json.loads(answer)["detail"]) == (status, True), answer
    assert service.ask("POST", f"/api/v1/jobs/{job}/rules/{step}", service.token("developer", "bob"), body)[0] == 403


def test_patterns_and_standing_queries_of_a_flow_are_found(tmp_path: Path) -> None:
    flow = ps.Flow("patterns")
    events = flow.source("events", ps.items([], "user string, kind string, at timestamp"), event_time="at")
    changes = flow.source("changes", ps.rule_topic("pattern-rules", path=tmp_path))
    two = ps.pattern("xy").begin("a", "kind = 'x'").followed_by("b", "kind = 'y'").within("1h")
    events.key_by("user").patterns("all", {"xy": two}, changes=changes, reader=ps.pattern_reader("kind")).sink(
        "out", ps.console()
    )
    events.key_by("user").match("one", two).sink("other", ps.console())
    found = {each["step"]: (each["kind"], each["topic"], list(each["written"])) for each in rule_sets(flow.graph)}
    assert found == {"all": ("patterns", "pattern-rules", ["xy"]), "one": ("pattern", "", ["one"])}


def test_a_job_that_committed_nothing_has_no_checkpoints(tmp_path: Path) -> None:
    assert checkpoints_of(JobDirectory(tmp_path)) == []


def test_checkpoints_say_when_they_were_written_and_what_they_keep(service: Service, job: str) -> None:
    directory = service.manager.directory(job)
    storage = LocalStorage(directory.checkpoint / "state")
    for version in range(3):
        files = [
            {"path": f"files/{made}-run/count/0.state", "size": 100 + made, "rows": 10, "crc": 0, "ranges": []}
            for made in range(version + 1)
        ]
        put_note(storage, f"versions/{version}.json", {"version": version, "steps": {"count": files}})
    found = service.json("GET", f"/api/v1/jobs/{job}/checkpoints?limit=2", service.token("viewer"))["checkpoints"]
    assert [(c["version"], c["rows"], c["bytes"], c["written_bytes"], c["written_files"]) for c in found] == [
        (2, 30, 303, 102, 1), (1, 20, 201, 101, 1),
    ]  # fmt: skip
    assert abs(found[0]["time"] - time.time()) < 600
    storage.write("versions/2.json", b"{damaged")
    assert "rows" not in checkpoints_of(directory)[0]


def test_advice_says_how_many_tasks_a_rate_needs(service: Service, job: str) -> None:
    history, now = service.manager.history, time.time()
    for at in range(1, 6):
        figures = {"rows": at * 1_000.0, "busy:split": at * 0.5, "in:split": at * 1_000.0}
        totals = {"figures": figures, "watermarks": {}, "measured": {"tasks:split": 2.0, "skew:split": 1.5}}
        told = {"pid": 1, "generation": 1, "began": now - 5, "time": now - 5 + at, "totals": totals}
        history.observe(job, told, now)
    found = service.json("GET", f"/api/v1/jobs/{job}/advice?rate=4000&busy=0.5", service.token("viewer"))
    assert (found["now"], found["tasks"]) == (1000.0, 4)
    assert found["steps"][0]["needed"] == 4
    assert service.ask("GET", f"/api/v1/jobs/{job}/advice?busy=7", service.token("viewer"))[0] == 422


def test_a_version_is_shown_planned_and_tried_from_its_text(service: Service, tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text("import penstock as ps\nimport other\nflow = other.made()\n")
    text = "import penstock as ps\n\ndef made(name='first'):\n    flow = ps.Flow(name)\n    flow.source('in', ps.rate(1)).sink('out', ps.console())\n    return flow\n"
    (tmp_path / "other.py").write_text(text)
    client = service.client("developer", "ada")
    files = [(name, tmp_path / name) for name in ("flow.py", "other.py")]
    client.submit("versioned", client.bundle(pack(files)), "flow.py")
    token, path = service.token("developer", "ada"), "/api/v1/jobs/versioned"
    found = service.json("GET", f"{path}/source", token)
    assert (found["file"], found["others"], "other.made()" in found["text"]) == ("flow.py", 1, True)
    made = service.json("POST", f"{path}/plans", token, {"text": found["text"].replace("made()", "made('second')")})
    assert made["flow"] == "second"
    assert service.manager.bundles.has(made["bundle"])
    assert service.ask("POST", f"{path}/plans", token, {"text": "flow = 1 +"})[0] == 422
    wanted = {"bundle": made["bundle"], "target": made["target"], "trial": 300}
    assert service.ask("POST", f"{path}/upgrade", token, wanted)[0] == 202
    assert (
        client.job("versioned")["upgrade"] in ("on trial", "settled")
        or "went back" in client.job("versioned")["upgrade"]
    )


def test_a_dead_letter_is_changed_before_it_goes_back(service: Service, job: str) -> None:
    from penstock.live.dead_letters.store import DEAD_LETTERS, DeadLetterStore
    from tests.server.test_stored import letter

    token, path = service.token("developer", "ada"), f"/api/v1/jobs/{job}/dead-letters"
    store = DeadLetterStore(service.manager.directory(job).checkpoint / DEAD_LETTERS)
    store.stage([letter("x", "parse")], 0).commit()
    payload = {"schema": "n bigint", "record": {"n": 2}}
    assert service.json("PUT", f"{path}/x", token, {"payload": payload}) == {"id": "x"}
    assert service.json("GET", path, token)["dead_letters"][0]["payload"] == payload
    wrong: Any = {"payload": {"schema": "n bigint", "record": {"n": "two"}}}
    assert service.ask("PUT", f"{path}/x", token, wrong)[0] == 422
    assert service.ask("PUT", f"{path}/nobody", token, {"payload": payload})[0] == 404


def test_an_alert_is_silenced_and_speaks_again(service: Service) -> None:
    admin, operator = service.token("admin"), service.token("operator")
    service.json("PUT", "/api/v1/alerts/quiet", admin, {"measure": "lag", "above": 5})
    assert service.json("POST", "/api/v1/alerts/quiet/silence", operator, {"seconds": 60})["silent_until"] > time.time()
    (rule,) = [r for r in service.json("GET", "/api/v1/alerts", admin)["rules"] if r["name"] == "quiet"]
    assert rule["silent_until"] > time.time()
    assert service.json("POST", "/api/v1/alerts/quiet/silence", operator, {"seconds": 0})["silent_until"] == 0
    assert service.ask("POST", "/api/v1/alerts/quiet/silence", operator, {"seconds": -1})[0] == 422
    assert service.ask("POST", "/api/v1/alerts/nobody/silence", operator, {"seconds": 1})[0] == 404
    assert service.ask("DELETE", "/api/v1/alerts/quiet", admin)[0] == 204


def test_a_pool_says_what_is_taken_and_who_waits_for_what(service: Service, bundle: str) -> None:
    admin = service.token("admin")
    service.json("PUT", "/api/v1/pools/tiny", admin, {"cores": 2})
    for name in ("tiny-a", "tiny-b"):
        body = {"name": name, "bundle": bundle, "target": "count.py", "pool": "tiny", "cores": 2}
        assert service.ask("POST", "/api/v1/jobs", admin, body)[0] == 201

    def tiny() -> dict[str, Any]:
        pools: list[dict[str, Any]] = service.json("GET", "/api/v1/pool-uses", service.token("viewer"))["pools"]
        return next(pool for pool in pools if pool["name"] == "tiny")

    wait_until(lambda: tiny()["used"]["jobs"] == 1 and len(tiny()["queue"]) == 1)
    found = tiny()
    assert found["used"]["cores"] == 2
    assert found["owners"] == {"admin": {"cores": 2, "memory": 2048, "jobs": 1}}
    assert "the pool has 2, of which 2 are taken" in found["queue"][0]["why"]


def test_clusters_of_kafka_are_named_and_those_with_secrets_are_not_looked_into(
    service: Service, job: str, tmp_path: Path
) -> None:
    flow = ps.Flow("kafka")
    secret = {"sasl.username": "ada", "sasl.password": "env:NOTHING"}
    flow.source("in", ps.kafka("orders", servers="broker.example:9092", options=secret)).sink("out", ps.console())
    flow.source("open", ps.kafka("clicks", servers="127.0.0.1:1")).sink("more", ps.console())
    plan = plan_of(flow.graph)
    assert "NOTHING" not in json.dumps(plan["kafka"])
    service.manager.directory(job).write_plan(plan)
    token = service.token("developer", "ada")

    def found() -> dict[str, Any]:
        logs = service.json("GET", "/api/v1/logs", token)["logs"]
        return {each["name"]: each for each in logs if each["kind"] == "kafka"}

    closed = found()["broker.example:9092"]
    assert ([t["topic"] for t in closed["topics"]], "passwords" in closed["error"]) == (["orders"], True)
    records = f"/api/v1/logs/{closed['log']}/topics/orders/records"
    assert service.ask("GET", records, token)[0] == 422
    wait_until(lambda: found()["127.0.0.1:1"]["error"] not in ("", "it is being asked"))
    assert service.ask("GET", f"/api/v1/logs/{found()['127.0.0.1:1']['log']}/topics/other/records", token)[0] == 404
