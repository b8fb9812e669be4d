"""Hostile jobs that need no user of their own to be tried: what they write, ask for and listen on harms neither the server nor other jobs."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from penstock.jobs.manager.access.accounts import Account
from penstock.jobs.manager.processes.environment import DATABASE, SIGN_IN_SECRET
from tests.jobs.manager.conftest import children_of
from tests.server.conftest import Service, phase_becomes
from tests.server.test_hostile import memory

API = "/api/v1"
GIB = 1 << 30


def test_a_log_line_of_a_gibibyte_costs_no_memory(service: Service, bundle: str) -> None:
    client = service.client("developer", "ada")
    client.submit("long-line", bundle, "count.py")
    phase_becomes(client, "long-line", "running")
    client.act("long-line", "stop")
    phase_becomes(client, "long-line", "stopped")  # a supervisor would put so long a log aside
    log = service.manager.directory("long-line").log
    with log.open("r+b") as file:  # sparse: a line without an end that takes no room on the disk
        file.truncate(GIB)
        file.seek(GIB)
        file.write(b"x\nthe end\n")
    before, token = memory(), service.token("viewer")
    for query in ("lines=1", "lines=10000", "lines=10&search=the", "lines=10&search=nowhere"):
        status, _, body = service.ask("GET", f"{API}/jobs/long-line/log?{query}", token)
        assert (status, len(body) < 1 << 20) == (200, True), query
    assert memory() - before < 100 << 20
    assert service.ask("GET", f"{API}/jobs/long-line/log?lines=1", token)[2] == b"the end\n"


@pytest.mark.parametrize("field", ["env", "environment", "LD_PRELOAD", "command", "driver", "uid", "owner", "python"])
def test_a_job_brings_no_environment_and_no_command(service: Service, bundle: str, field: str) -> None:
    token = service.token("developer", "mallory")
    value = {"LD_PRELOAD": "/tmp/evil.so"}
    for body in ({field: value}, {"options": {field: value}}):
        whole = {"name": "preload", "bundle": bundle, "target": "count.py", **body}
        status, _, answer = service.ask("POST", f"{API}/jobs", token, whole)
        assert (status, b"evil.so" in answer) == (422, False), body
    assert "preload" not in {job["name"] for job in service.client().jobs()}


def test_a_driver_of_another_user_gets_nothing_of_the_environment_that_loads_code_or_is_secret(tmp_path: Path) -> None:
    hostile = (
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "BASH_ENV",
        "AWS_SECRET_ACCESS_KEY",
    )
    given = dict.fromkeys((*hostile, DATABASE, SIGN_IN_SECRET), "x") | {"PATH": "/bin", "LANG": "C"}
    made = Account("nobody", 65534, 65534).process(tmp_path, given)["env"]
    assert made.keys() & given.keys() == {"PATH", "LANG"}
    assert made["HOME"] == str(tmp_path)


def listen(thief: socket.socket, host: str, port: int | None) -> None:
    thief.bind((host, port))
    thief.listen()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", ""])
@pytest.mark.parametrize(
    "options", [(), (socket.SO_REUSEADDR,), (socket.SO_REUSEPORT,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)]
)
def test_nobody_else_listens_on_the_port_of_the_server(service: Service, host: str, options: tuple[int, ...]) -> None:
    port = urlsplit(service.url).port
    with socket.socket() as thief:
        for option in options:
            thief.setsockopt(socket.SOL_SOCKET, option, 1)
        with pytest.raises(OSError, match="in use"):
            listen(thief, host, port)
    assert service.ask("GET", f"{API}/health")[0] == 200


FORGED = {
    "phase": "running",
    "generation": 99,
    "pid": 1,
    "owner": "admin",
    "wish": "stopped",
    "role": "admin",
    "time": 4e12,
    "since": 4e12,
    "flow": "other",
    "checkpoint": "../../victim/checkpoint",
    "totals": {"figures": {"rows": 1e300}, "watermarks": {}},
}


def test_a_forged_heartbeat_changes_nothing_but_the_figures_of_its_own_job(service: Service, bundle: str) -> None:
    client = service.client("developer", "mallory")
    for name in ("forger", "victim"):
        service.client("developer", "ada" if name == "victim" else "mallory").submit(name, bundle, "count.py")
        phase_becomes(client, name, "running")
    before = {name: client.job(name) for name in ("forger", "victim")}
    directory = service.manager.directory("forger")
    for name, content in (
        ("progress.json", FORGED),
        ("failure.json", {**FORGED, "message": "x"}),
        ("plan.json", FORGED),
    ):
        (directory.path / f"{name}.new").write_text(json.dumps(content))
        (directory.path / f"{name}.new").replace(directory.path / name)
    service.manager.reconcile()
    after = {name: client.job(name) for name in ("forger", "victim")}
    for field in ("owner", "wish", "generation", "bundle", "target", "etag", "restarts", "failures", "phase"):
        assert after["forger"].get(field) == before["forger"].get(field), field
    assert {**after["victim"], "throughput": 0} == {**before["victim"], "throughput": 0}
    assert service.manager.records.get("forger").owner == "mallory"


ODD: tuple[str, ...] = (
    '"\\ud800"',
    "NaN",
    "1e999",
    '{"\\udcff": "\\udcff"}',
    "[1]",
    "null",
    '"a\\nb{}"',
    "-1",
    '{"a": null}',
)
"""What JSON can spell and nobody expects."""
SAID = {
    "progress.json": '{"phase": "running", "batches": 3, "rows": 5, "flow": %s, "last": {"finished": 1.0, "lag": {"a": %s}, "behind": {"a": %s}}, '
    '"lags": [["a", "records", 1], ["a", "records", 2], [%s, "records", 3]], "totals": {"figures": {"dead:a": %s}, "measured": {"skew:a": %s, "kept:a": 2}}}',
    "failure.json": '{"generation": %s, "message": %s, "record": %s, "traceback": %s}',
    "plan.json": '{"version": 1, "flow": %s, "steps": [], "more": %s}',
}


def plain(word: str) -> object:
    raise AssertionError(f"{word} is no JSON")


@pytest.mark.parametrize("name", SAID)
def test_whatever_a_driver_writes_is_shown_as_json_or_left_out(service: Service, bundle: str, name: str) -> None:
    job = name.partition(".")[0]
    client, token = service.client("developer", "mallory"), service.token("viewer")
    client.submit(job, bundle, "count.py")
    phase_becomes(client, job, "running")
    client.act(job, "pause")
    phase_becomes(client, job, "paused")
    paths = ("", "/plan", "/failure", "/history", "/advice", "/checkpoints", "/log-levels")
    for odd in ODD:
        (service.manager.directory(job).path / name).write_text(SAID[name].replace("%s", odd))
        service.manager.reconcile()
        for path in (f"{API}/jobs", *(f"{API}/jobs/{job}{path}" for path in paths)):
            status, _, body = service.ask("GET", path, token)
            assert status == 200, (path, odd, body)
            json.loads(body, parse_constant=plain)
        status, _, body = service.ask("GET", f"{API}/metrics", token)
        lines = [line.rpartition(" ")[0] for line in body.decode().splitlines() if not line.startswith("#")]
        assert (status, len(lines)) == (200, len({*lines})), odd


def test_a_job_that_is_held_says_why_also_where_that_is_no_whole_text(service: Service, bundle: str) -> None:
    client = service.client("developer", "mallory")
    client.submit("half", bundle, "count.py")
    phase_becomes(client, "half", "running")
    directory = service.manager.directory("half")
    (directory.path / "plan.txt").write_text("2")  # the next driver says that the flow is wrong
    client.act("half", "restart")
    phase_becomes(client, "half", "held")
    failure = {"generation": directory.course().generation, "message": "no file named a\udcff"}
    (directory.path / "failure.json").write_text(json.dumps(failure))
    service.manager.reconcile()
    (found,) = [job for job in service.client("viewer").jobs() if job["name"] == "half"]
    assert found["error"] == "no file named a?"


def test_a_driver_leaves_no_image_of_its_memory(service: Service, bundle: str) -> None:
    client = service.client("developer", "ada")
    client.submit("no-dumps", bundle, "count.py")
    phase_becomes(client, "no-dumps", "running")
    (driver,) = children_of(service.manager.supervisors["no-dumps"].pid)
    limits = Path(f"/proc/{driver}/limits").read_text().splitlines()
    (core,) = [line.split() for line in limits if line.startswith("Max core file size")]
    assert core[4:6] == ["0", "0"]
    client.act("no-dumps", "stop")
