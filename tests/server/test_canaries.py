"""A text of its own in each place where a secret is: none of it in any answer to who may not see it, in a log, an argument or an environment."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.processes.environment import DATABASE, SIGN_IN_SECRET
from penstock.server.serve import ADMIN, Listening, serving
from tests.jobs.manager.conftest import DRIVER, ending, supervisors_of
from tests.server.conftest import Service, phase_becomes

API = "/api/v1"


@pytest.fixture
def canaries() -> dict[str, str]:
    return {what: f"canary-{what}-{secrets.token_hex(8)}" for what in ("option", "hook", "sign-in", "database", "code")}


@pytest.fixture
def watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, canaries: dict[str, str], caplog: pytest.LogCaptureFixture
) -> Iterator[Service]:
    """A server that was given a secret by every way there is."""
    monkeypatch.setenv(SIGN_IN_SECRET, canaries["sign-in"])
    monkeypatch.setenv(DATABASE, canaries["database"])
    caplog.set_level(logging.DEBUG)
    manager = Manager(tmp_path / "data", DRIVER)
    with serving(manager, Listening(port=0)) as url, ending(manager):
        service = Service(url, manager)
        (tmp_path / "count.py").write_text(f"password = '{canaries['code']}'")
        client = service.client("developer", "ada")
        bundle = client.bundle(pack([("count.py", tmp_path / "count.py")]))
        client.submit("secret", bundle, "count.py", {"conf": {"spark.hadoop.fs.s3a.secret.key": canaries["option"]}})
        phase_becomes(client, "secret", "running")
        service.client("admin").set_alert(
            "told", {"measure": "failures", "above": 0, "to": [f"https://hooks.example.org/{canaries['hook']}"]}
        )
        yield service


def reads(service: Service) -> list[str]:
    paths = service.json("GET", f"{API}/openapi.json")["paths"]
    names = {"{name}": "secret", "{log}": "none", "{topic}": "none", "{id}": "none"}
    found = []
    for path, methods in paths.items():
        for name, value in names.items():
            path = path.replace(name, value)
        if "get" in methods:
            step = "&step=x" if path.endswith("/sample") else ""
            found.append(f"{path}?events=1{step}" if "/live/" in path else path)
    return found


def test_no_secret_is_in_an_answer_to_who_may_not_see_it(watched: Service, canaries: dict[str, str]) -> None:
    paths = reads(watched)
    assert len(paths) >= 20
    own = {**canaries, "token": (watched.manager.root / ADMIN).read_text()}
    for role in ("viewer", "developer"):
        token = watched.token(role, "mallory")
        for path in paths:
            _, headers, body = watched.ask("GET", path, token)
            shown = body.decode(errors="replace") + str(headers)
            assert [what for what, text in own.items() if text in shown] == [], (role, path)


def test_who_may_change_a_job_sees_its_options_and_its_code_and_nobody_sees_the_rest(
    watched: Service, canaries: dict[str, str]
) -> None:
    shown = "".join(
        watched.ask("GET", path, watched.token(role))[2].decode(errors="replace")
        for path in reads(watched)
        for role in ("operator", "admin")
    )
    assert {what for what, text in canaries.items() if text in shown} == {"option", "code"}


def test_no_secret_is_in_an_argument_an_environment_or_a_log(
    watched: Service, canaries: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    token = watched.token("admin")
    watched.ask("GET", f"{API}/jobs/{canaries['code']}", canaries["hook"])
    watched.ask("POST", f"{API}/session", body={"token": canaries["hook"]})
    own = {**canaries, "token": token}
    parents = supervisors_of(watched.manager)
    assert parents
    for pid in [*parents, *(c for p in parents for c in children(p))]:
        process = Path("/proc") / str(pid)
        told = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        assert [what for what, text in own.items() if text.encode() in told] == []
    logs = caplog.text + "".join(f.read_text() for f in (watched.manager.root / "jobs").rglob("log/*.log"))
    assert [what for what, text in own.items() if text in logs] == []


def children(pid: int) -> list[int]:
    found = (Path("/proc") / str(pid) / "task" / str(pid) / "children").read_text()
    return [int(each) for each in found.split()]


def test_secrets_are_kept_as_hashes_or_for_this_user_alone(watched: Service, canaries: dict[str, str]) -> None:
    token = watched.token("viewer")
    kept = [f for f in watched.manager.root.rglob("*") if f.is_file() and f.suffix != ".tmp"]
    assert not [f for f in kept if token.encode() in f.read_bytes()]
    for file in kept:
        if any(text.encode() in file.read_bytes() for text in canaries.values()):
            assert file.stat().st_mode & 0o077 == 0, file
