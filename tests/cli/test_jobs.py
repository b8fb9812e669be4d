"""`penstock submit` and `penstock jobs` do through a real server what they say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli.main import make_app
from penstock.errors import OptionError
from penstock.jobs.load import load_flow
from penstock.jobs.manager.directory import JobDirectory
from penstock.jobs.manager.driver import spec_of
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager
from penstock.server.serve import ADDRESS, Listening, _admin_token, _write
from tests.jobs.manager.conftest import DRIVER, ending
from tests.server.conftest import serving
from tests.waiting import wait_until

FLOW = """
import penstock as ps
from near import SCHEMA
flow = ps.Flow("Ticks")
flow.source("in", ps.items([(1,)], SCHEMA)).sink("out", ps.console())
"""
Command = Callable[..., Any]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    (tmp_path / "ticks.py").write_text(FLOW)
    (tmp_path / "near.py").write_text("SCHEMA = 'n bigint'\n")
    monkeypatch.chdir(tmp_path)
    manager = Manager(tmp_path / "data", DRIVER)
    app = make_app(["submit", "jobs", "tokens"])
    with manager.opened(), ending(manager), serving(manager) as url:
        _admin_token(manager)
        _write(manager.root / ADDRESS, json.dumps({"url": url, "token_file": "admin.token"}))
        yield lambda *given: CliRunner().invoke(app, [*given, "--data", str(manager.root)])


def test_a_flow_is_submitted_with_its_modules_and_shown_stopped_and_removed(command: Command, tmp_path: Path) -> None:
    done = command("submit", "ticks.py", "--interval", "5s")
    assert done.exit_code == 0, done.output
    assert "ticks" in done.output
    (bundle,) = (tmp_path / "data" / "bundles").glob("*.zip")
    wait_until(lambda: json.loads(command("jobs", "list", "--json").stdout)[0]["phase"] == "running")
    assert {p.name for p in (tmp_path / "data" / "bundles" / bundle.stem).iterdir()} == {"ticks.py", "near.py"}
    shown = json.loads(command("jobs", "show", "ticks", "--json").stdout)
    assert (shown["target"], shown["options"]) == ("ticks.py", {"interval": 5.0})
    assert command("jobs", "logs", "ticks", "--search", "hello").stdout == "driver says hello\n"
    assert command("jobs", "stop", "ticks").exit_code == 0
    wait_until(lambda: json.loads(command("jobs", "show", "ticks", "--json").stdout)["phase"] == "stopped")
    wait_until(lambda: command("jobs", "remove", "ticks").exit_code == 0)
    assert "no jobs" in command("jobs", "list").output


def test_a_file_of_sql_is_submitted_as_it_is(command: Command, tmp_path: Path) -> None:
    (tmp_path / "one.sql").write_text("SET 'interval' = '7s'; SELECT 1 AS x;")
    made = json.loads(command("submit", "one.sql", "--name", "one", "--json").stdout)
    assert made["target"] == "one.sql"
    job = Job("one", "ada", made["bundle"], made["target"], {"parallelism": 2})
    spec = spec_of(JobDirectory(tmp_path / "job"), job, load_flow("one.sql"))
    assert (spec.interval, spec.parallelism, spec.checkpoint) == (7.0, 2, tmp_path / "job" / "checkpoint")


def test_what_is_wrong_is_said_before_anything_is_sent(command: Command, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("import penstock as ps\nflow = ps.Flow('x')\nflow.nonsense()\n")
    done = command("submit", "wrong.py")
    assert done.exit_code == 2
    assert not (tmp_path / "data" / "bundles").exists()
    assert "matches no file" in command("submit", "ticks.py", "--include", "*.csv").output
    assert "there is no job 'tocks'" in command("jobs", "pause", "tocks").output


def test_a_token_is_made_used_and_revoked(command: Command, tmp_path: Path) -> None:
    made = command("tokens", "make", "bob", "--expires", "30d")
    (tmp_path / "bob.token").write_text(made.stdout)
    url = json.loads((tmp_path / "data" / ADDRESS).read_text())["url"]
    elsewhere = ("--server", url, "--token-file", str(tmp_path / "bob.token"))
    assert "no jobs" in command("jobs", "list", *elsewhere).output
    assert "the role viewer may not administer" in command("tokens", "list", *elsewhere).output
    (found,) = [t for t in json.loads(command("tokens", "list", "--json").stdout) if t["owner"] == "bob"]
    assert made.stdout.strip() not in command("tokens", "list").output
    assert command("tokens", "revoke", found["id"]).exit_code == 0
    assert "a token is needed" in command("jobs", "list", *elsewhere).output
    assert "--role is viewer" in command("tokens", "make", "eve", "--role", "root").output


def test_a_server_that_never_ran_is_said_with_what_to_do(tmp_path: Path) -> None:
    done = CliRunner().invoke(make_app(["jobs"]), ["jobs", "list", "--data", str(tmp_path)])
    assert done.exit_code == 1
    assert "penstock server" in done.output


def test_a_server_that_others_can_reach_needs_tls_or_a_word() -> None:
    with pytest.raises(OptionError, match="tokens would travel in the clear"):
        Listening("0.0.0.0")
    with pytest.raises(OptionError, match="both --cert FILE and --key FILE"):
        Listening(certificate=Path("x"))
    assert Listening("0.0.0.0", is_open=True).scheme == "http"
