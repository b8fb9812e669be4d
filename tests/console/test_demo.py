"""The demo as a job: it prints a link that signs in, its flow moves, and it ends what it started."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from penstock.cli.tools.demo_console import demo_console
from penstock.client import Client
from penstock.demo.job import NAME
from penstock.graph.run import RunSpec
from penstock.jobs.manager.manager import Manager
from tests.console.conftest import DRIVER
from tests.jobs.manager.conftest import supervisors_of
from tests.waiting import wait_until


def test_the_demo_starts_a_job_and_ends_what_it_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, object] = {}

    def look(stopped: threading.Event, seconds: float | None = None) -> bool:
        """In the place of waiting: looks at the job, and is done when it moves."""
        client = Client.found(tmp_path / "jobs")
        wait_until(lambda: (client.job(NAME)["rows"] or 0) > 0)
        seen.update(client.job(NAME), url=client.url)
        return True

    monkeypatch.setattr(threading.Event, "wait", _instead(look, threading.Event.wait))
    demo_console(tmp_path, 100, RunSpec.of(duration="100s", interval="1s"), driver=DRIVER)
    out = capsys.readouterr().out
    assert seen["phase"] == "running"
    assert f"the console: {seen['url']}/#/sign-in/" in out
    assert out.endswith("stopping\n")
    assert supervisors_of(Manager(tmp_path / "jobs")) == []
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{seen['url']}/api/v1/health", timeout=5)
    assert json.loads((tmp_path / "jobs" / "jobs" / NAME / "status.json").read_text())["phase"] == "stopped"


def _instead(look: object, wait: object) -> object:
    def waiting(event: threading.Event, timeout: float | None = None) -> bool:
        return look(event, timeout) if timeout == 100.0 else wait(event, timeout)  # type: ignore[operator,no-any-return]

    return waiting
