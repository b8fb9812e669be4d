"""`penstock submit` and `penstock jobs` do through a real server what they say."""

from __future__ import annotations

import json
import re
import sqlite3
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.errors import OptionError
from penstock.jobs.load import load_flow
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.processes.directory import JobDirectory
from penstock.jobs.manager.processes.driver import spec_of
from penstock.server.serve import ADDRESS, Listening, serving
from tests.command_line import make_app
from tests.jobs.manager.conftest import DRIVER, ending
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
    app = make_app(["submit", "jobs", "tokens", "console", "pools", "audit"])
    with serving(manager, Listening(port=0)), ending(manager):
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
    told = dict(line.split(maxsplit=1) for line in command("jobs", "show", "ticks").stdout.splitlines())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", told["created"])
    assert (told["cores"], told["options"]) == ("not asked for", '{"interval": 5.0}')
    assert not {"etag", "lags"} & told.keys()
    assert command("jobs", "logs", "ticks", "--search", "hello").stdout == "driver says hello\n"
    assert command("jobs", "stop", "ticks").exit_code == 0
    wait_until(lambda: json.loads(command("jobs", "show", "ticks", "--json").stdout)["phase"] == "stopped")
    wait_until(lambda: command("jobs", "remove", "ticks").exit_code == 0)
    assert "no jobs" in command("jobs", "list").output


def test_a_job_is_upgraded_to_another_file_and_keeps_its_options(command: Command, tmp_path: Path) -> None:
    command("submit", "ticks.py", "--interval", "5s")
    (tmp_path / "later.py").write_text(FLOW)
    made = json.loads(
        command("jobs", "upgrade", "ticks", "later.py", "--max-rows", "7", "--trial", "1m", "--json").stdout
    )
    assert (made["target"], made["options"]) == ("later.py", {"interval": 5.0, "max_rows": 7})

    def settled() -> bool:
        return bool(json.loads(command("jobs", "show", "ticks", "--json").stdout)["upgrade"] == "settled")

    wait_until(settled)


def test_a_job_waits_in_its_pool_and_says_why(command: Command) -> None:
    assert json.loads(command("pools", "set", "small", "--cores", "1", "--owner-memory", "1g", "--json").stdout) == {
        "name": "small",
        "cores": 1,
        "memory": None,
        "owner_cores": None,
        "owner_memory": 1024,
    }
    needs = ("--needs", "pool=small", "--needs", "cores=1", "--needs", "memory=512m")
    command("submit", "ticks.py", *needs)
    made = json.loads(
        command("submit", "ticks.py", "--name", "second", *needs, "--needs", "priority=3", "--json").stdout
    )
    assert (made["phase"], made["reason"], made["priority"]) == (
        "queued",
        "it asks for 1 cores, the pool has 1, of which 1 are taken",
        3,
    )
    assert "the pool has 1" in command("jobs", "list").output
    assert "has jobs" in command("pools", "remove", "small").output
    assert (
        "can never run"
        in command("submit", "ticks.py", "--name", "x", "--needs", "pool=small", "--needs", "cores=2").output
    )
    assert "expected pool=NAME" in command("submit", "ticks.py", "--needs", "disk=1g").output
    assert "expected a size" in command("pools", "set", "small", "--memory", "lots").output
    assert "small" in command("pools", "list").output


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


READS = """
import penstock as ps
flow = ps.Flow("reads")
orders = flow.source("in", ps.items([(1,)], "id bigint"))
orders.join("names", ps.files({path}, "csv", "id bigint, name string"), on="id").sink("out", ps.console())
"""


def test_a_file_of_a_join_travels_or_is_missed_before_the_job_runs(command: Command, tmp_path: Path) -> None:
    (tmp_path / "reads.py").write_text(READS.format(path="'tables/names.csv'"))
    done = command("submit", "reads.py")
    assert done.exit_code == 1
    assert "'names' reads tables/names.csv, which is not in the bundle" in " ".join(done.output.split())
    assert not (tmp_path / "data" / "bundles").exists()
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "names.csv").write_text("id,name\n")
    assert "note: 'names' reads tables/names.csv" in command("submit", "reads.py", "--name", "noted").stderr
    done = command("submit", "reads.py", "--include", "tables/names.csv")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "expected a path below" in command("submit", "reads.py", "--include", "/etc/hosts").output


def test_a_file_beside_the_flow_is_found_by_both_of_its_paths(command: Command, tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "names.csv").write_text("id,name\n")
    (tmp_path / "flows" / "beside.py").write_text(
        "from pathlib import Path\n" + READS.format(path="Path(__file__).parent / 'names.csv'")
    )
    assert "send it along: --include flows/names.csv" in command("submit", "flows/beside.py").stderr
    done = command("submit", "flows/beside.py", "--name", "two", "--include", "flows/names.csv", "--json")
    assert done.stderr == ""
    bundle = tmp_path / "data" / "bundles" / f"{json.loads(done.stdout)['bundle']}.zip"
    assert {"beside.py", "names.csv", "flows/names.csv"} <= set(zipfile.ZipFile(bundle).namelist())


def test_a_topic_of_a_relative_log_is_said(command: Command, tmp_path: Path) -> None:
    flow = "import penstock as ps\nflow = ps.Flow('topics')\nflow.source('in', ps.topic('orders', 'n bigint', path='log')){}.sink('out', ps.console())\n"
    (tmp_path / "topics.py").write_text(flow.format(""))
    said = command("submit", "topics.py").stderr
    assert "'in' reads the topic 'orders' of the log log" in said
    assert f"path='{tmp_path}/log'" in said


def test_a_package_that_the_server_does_not_have_is_refused(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what is imported whatever happens."""
    site = tmp_path / "site-packages"
    for name in ("sure_package", "other_package"):
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(site))
    optional = "try:\n    import other_package\nexcept ImportError:\n    pass\n"
    (tmp_path / "optional.py").write_text(optional + FLOW)
    (tmp_path / "sure.py").write_text(optional + "import json, sure_package.part as p\n" + FLOW)
    (site / "sure_package" / "part.py").write_text("")
    monkeypatch.setattr("penstock.server.packages.find_spec", lambda name: None if "package" in name else object())
    assert command("submit", "optional.py").exit_code == 0
    done = command("submit", "sure.py", "--name", "sure")
    assert done.exit_code != 0
    assert "install it there: pip install sure_package" in " ".join(done.output.split())


def test_the_last_error_of_a_job_that_waits_is_shown(command: Command, tmp_path: Path) -> None:
    command("submit", "ticks.py")
    directory = JobDirectory(tmp_path / "data" / "jobs" / "ticks")
    (directory.path / "plan.txt").write_text("1")
    directory.write_failure({"generation": 1, "message": "Make it: penstock topics create orders --log /log"})
    command("jobs", "restart", "ticks")
    wait_until(lambda: json.loads(command("jobs", "show", "ticks", "--json").stdout)["failures"] > 0)
    generation = json.loads(command("jobs", "show", "ticks", "--json").stdout)["generation"]
    directory.write_failure({"generation": generation, "message": "Make it: penstock topics create orders --log /log"})
    wait_until(lambda: "penstock topics create orders" in command("jobs", "show", "ticks").stdout)


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
    assert "was revoked" in command("jobs", "list", *elsewhere).output
    assert "--role is viewer" in command("tokens", "make", "eve", "--role", "root").output


def test_the_audit_is_listed_and_says_when_it_was_changed(command: Command, tmp_path: Path) -> None:
    assert command("pools", "set", "team", "--cores", "2").exit_code == 0
    assert command("pools", "set", "other", "--cores", "2").exit_code == 0
    assert [each["object"] for each in json.loads(command("audit", "list", "--limit", "2", "--json").stdout)] == [
        "other",
        "team",
    ]
    done = command("audit", "verify")
    head = done.stdout.splitlines()[1].removeprefix("head ")
    assert (done.exit_code, done.stdout) == (0, f"3 changes: intact\nhead {head}\n")
    assert command("audit", "verify", "--noted", head).exit_code == 0
    assert "expected a head as" in command("audit", "verify", "--noted", "x").output
    with closing(sqlite3.connect(tmp_path / "data" / "manager.db")) as database, database:
        database.execute("update audit set actor = 'mallory' where id = 1")
    found = command("audit", "verify")
    assert (found.exit_code, "NOT as written" in found.stdout) == (1, True)
    assert "entry 1 was changed, or is not where it was" in found.output
    assert json.loads(command("audit", "verify", "--json").stdout)["is_whole"] is False


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


def test_a_link_to_the_console_is_printed_and_signs_in(command: Command, tmp_path: Path) -> None:
    url, _, code = command("console").stdout.strip().partition("/#/sign-in/")
    request = urllib.request.Request(
        f"{url}/api/v1/session", json.dumps({"code": code}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 204
