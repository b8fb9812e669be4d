"""Requests that Schemathesis makes of what the API says of itself: none ends in a server error, and answers are as described."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.manager.access.tokens import ROLES, Role
from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.manager import Manager
from penstock.log import Log
from penstock.server.serve import Listening, serving
from tests.jobs.manager.conftest import DRIVER, ending
from tests.server.conftest import Service, phase_becomes

HERE = Path(__file__).parent
APART = r"^/api/v1/(plans|jobs/\{name\}/plans|live/.*)$"
"""Each plan is a process, and streams do not end; who shows no token is refused by test_access.py, on every route."""
MOST = 230
"""Requests for each operation that are made at random, beside those that cover its description."""
OF_ROLE = 40
"""The same, of a role that may do less."""
LOG = "log"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server that has one of everything: a job, a pool, an alert and a topic, all named alike, and a log that the job reads."""
    root = tmp_path_factory.mktemp("fuzzed")
    manager, folder = Manager(root / "data", DRIVER), root / LOG
    with Log(folder) as log:
        log.create_topic("orders", 2)
    with serving(manager, Listening(port=0, log=folder)) as url, ending(manager):
        yield Service(url, manager)


def prepare(service: Service, folder: Path) -> str:
    """Has one of everything be there, which requests of before may have deleted; the log that the job reads."""
    client, file = service.client("admin", "ada"), folder / "count.py"
    file.write_text("x = 1\n")
    client.put_pool("count", cores=64)
    client.put_alert("count", "lag", 1e9)
    if "count" not in {job["name"] for job in client.jobs()}:
        client.submit("count", client.bundle(pack([("count.py", file)])), "count.py")
    client.act("count", "restart")
    phase_becomes(client, "count", "running")
    service.manager.directory("count").write_plan({"logs": [str(service.manager.root.parent / LOG)], "steps": []})
    (log,) = client.list_logs()["logs"]
    return str(log["log"])


def fuzzed(service: Service, role: Role, folder: Path, *options: str) -> dict[str, Any]:
    """What a run of Schemathesis reports, with a token of a role: of who owns the job, where the role may have one."""
    report = folder / "report.json"
    token, log = service.token(role, "ada" if role in ("admin", "developer") else ""), prepare(service, folder)
    command = [
        *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"),
        *("--config-file", str(HERE / "schemathesis.toml"), "run", f"{service.url}/api/v1/openapi.json"),
        *("--header", f"Authorization: Bearer {token}", "--checks", "all", "--no-shrink"),
        *("--continue-on-failure", "--suppress-health-check", "all", "--request-timeout", "60"),
        *("--exclude-checks", "missing_required_header", "--exclude-path-regex", APART),
        *("--report-json-path", str(report), *options),
    ]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.server.fuzz_hooks", "PYTHONPATH": str(HERE.parents[1])}
    environment["FUZZ_LOG"] = log
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert report.exists(), done.stdout[-2_000:] + done.stderr[-2_000:]
    found: dict[str, Any] = json.loads(report.read_text())
    assert found["exit_code"] == 0, done.stdout[-8_000:]
    return found


def test_a_few_requests_of_each_operation_are_answered_as_described(whole: Service, tmp_path: Path) -> None:
    found = fuzzed(whole, "admin", tmp_path, "--phases", "fuzzing", "--max-examples", "4", "--seed", "7")
    assert found["test_cases"]["generated"] >= 150


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_ten_thousand_requests_are_answered_as_described(whole: Service, tmp_path: Path) -> None:
    found = fuzzed(whole, "admin", tmp_path, "--max-examples", str(MOST), "--workers", "2")
    assert found["test_cases"]["generated"] >= 10_000


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("role", [role for role in ROLES if role != "admin"])
def test_requests_of_other_roles_are_answered_as_described(whole: Service, role: Role, tmp_path: Path) -> None:
    found = fuzzed(whole, role, tmp_path, "--max-examples", str(OF_ROLE), "--workers", "2")
    assert found["test_cases"]["generated"] >= 2_000
