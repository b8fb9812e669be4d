"""Requests that Schemathesis makes of what the API says of itself: none ends in a server error, and answers are as described."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import Service, phase_becomes

HERE = Path(__file__).parent
APART = r"^/api/v1/(plans|jobs/\{name\}/plans|live/.*)$"
"""Each plan is a process, and streams do not end; who shows no token is refused by test_access.py, on every route."""
MOST = 230
"""Requests for each operation that are made at random, beside those that cover its description."""


def fuzzed(service: Service, bundle: str, folder: Path, *options: str) -> dict[str, Any]:
    """What a run of Schemathesis reports."""
    client = service.client("admin")
    if "count" not in {job["name"] for job in client.jobs()}:
        client.submit("count", bundle, "count.py")
        phase_becomes(client, "count", "running")
    report = folder / "report.json"
    command = [
        *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"),
        *("--config-file", str(HERE / "schemathesis.toml"), "run", f"{service.url}/api/v1/openapi.json"),
        *("--header", f"Authorization: Bearer {service.token('admin')}", "--checks", "all", "--no-shrink"),
        *("--continue-on-failure", "--suppress-health-check", "all", "--request-timeout", "60"),
        *(
            "--exclude-checks",
            "missing_required_header",
            "--exclude-path-regex",
            APART,
            "--report-json-path",
            str(report),
            *options,
        ),
    ]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.server.fuzz_hooks", "PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert report.exists(), done.stdout[-2_000:] + done.stderr[-2_000:]
    found: dict[str, Any] = json.loads(report.read_text())
    assert found["exit_code"] == 0, done.stdout[-8_000:]
    return found


def test_a_few_requests_of_each_operation_are_answered_as_described(
    service: Service, bundle: str, tmp_path: Path
) -> None:
    found = fuzzed(service, bundle, tmp_path, "--phases", "fuzzing", "--max-examples", "4", "--seed", "7")
    assert found["test_cases"]["generated"] >= 150


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_ten_thousand_requests_are_answered_as_described(service: Service, bundle: str, tmp_path: Path) -> None:
    found = fuzzed(service, bundle, tmp_path, "--max-examples", str(MOST), "--workers", "2")
    assert found["test_cases"]["generated"] >= 10_000
