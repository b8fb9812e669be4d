"""PostgreSQL as the home of jobs: it keeps what SQLite keeps, takes over what SQLite has, and belongs to one directory."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from penstock.errors import NameTaken, OptionError, SetupError, UnknownName
from penstock.jobs.manager.access.sessions import MOST_SESSIONS
from penstock.jobs.manager.access.tokens import Tokens
from penstock.jobs.manager.alerts.center import AlertCenter
from penstock.jobs.manager.alerts.rule import AlertRule
from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.pools import Pool
from penstock.jobs.manager.processes.environment import DATABASE, job_environment
from penstock.jobs.manager.store.database import VERSION
from penstock.jobs.manager.store.postgres_database import SCHEMA, PostgresDatabase
from penstock.jobs.manager.store.records import KEPT_EVENTS
from penstock.testing.servers import PASSWORD
from tests.jobs.manager.conftest import DRIVER, ending
from tests.jobs.manager.store.test_history import progress
from tests.jobs.manager.test_manager import becomes

JOB = Job("count", "ada", "0" * 64, "count.py", wish="stopped")


def at(url: str) -> PostgresDatabase:
    return PostgresDatabase.of(url, is_seen=False)


def test_jobs_pools_alerts_tokens_sessions_and_figures_are_kept(tmp_path: Path, url: str) -> None:
    with Manager(tmp_path / "data", DRIVER, at(url)).opened() as manager:
        records = manager.records
        records.add(JOB, "ada", "key")
        assert records.submitted("ada", "key", JOB) == "count"
        with pytest.raises(NameTaken):
            records.add(JOB, "ada")
        for cores in (4, 2):
            records.put_pool(Pool("team", cores), "ada")
        assert records.pools() == {"team": Pool("team", 2)}
        center = AlertCenter(manager)
        for above in (1.0, 2.0):
            center.put(AlertRule("a", "lag", above), "ada")
        assert [rule.above for rule in center.rules()] == [2.0]
        for n in range(KEPT_EVENTS + 2):
            records.happened("count", str(n))
        assert [e.what for e in records.events("count", 10_000)] == list(map(str, range(KEPT_EVENTS + 1, 1, -1)))
        text, token = manager.tokens.make("bob", "viewer", 60.0)
        assert manager.tokens.all()[0] == token
        session = manager.sessions.open_link(manager.sessions.make_link(token.id))
        assert session is not None
        assert manager.sessions.identity(session) == manager.tokens.identity(text)
        for _ in range(3):
            assert manager.sessions.open_token(text)
        manager.tokens.revoke(token.id)
        assert manager.sessions.identity(session) is None
        now = time.time() // 10 * 10
        for second in range(1, 22):
            told = progress(now + second, second * 100.0, began=now)
            manager.history.observe("count", told, now + second)
            manager.history.flush(now + second, manager.lease.epoch)
        manager.history.flush(now + 45, manager.lease.epoch)
        manager.history.jobs.clear()
        points = manager.history.points("count", "1h", now + 46)[1]
        assert sum(point.figures["rows"] for point in points) == 2_100.0
        records.remove("count", "ada")
        with pytest.raises(UnknownName):
            records.get("count")
        entries = records.audit(2)
        assert [entry.action for entry in entries] == ["remove", "alert"]
        assert records.audit(1, entries[0].time)[0].action == "alert"


def test_the_oldest_sessions_go(tmp_path: Path, url: str) -> None:
    with Manager(tmp_path / "data", DRIVER, at(url)).opened() as manager:
        text, token = manager.tokens.make("bob", "viewer")
        with manager.database.changes() as found:
            for n in range(MOST_SESSIONS):
                row = (str(n).encode(), "x", token.id, float(n), 1e12)
                found.execute("insert into sessions values (?, ?, ?, ?, ?)", row)
        assert manager.sessions.open_token(text)
        with manager.database.reads() as found:
            assert found.execute("select count(*) from sessions").fetchone()[0] == MOST_SESSIONS
            assert found.execute("select min(created) from sessions").fetchone()[0] == 1.0


def test_a_job_runs_and_its_figures_are_the_database_s(tmp_path: Path, url: str) -> None:
    made = Manager(tmp_path / "data", DRIVER, at(url))
    file = tmp_path / "count.py"
    file.write_text("x = 1\n")
    with made.opened() as manager, ending(manager):
        bundle = manager.bundles.put(pack([("count.py", file)]))
        manager.submit(Job("count", "ada", bundle, "count.py"), "ada")
        becomes(manager, "count", "running")
        manager.wish("count", "stopped", "ada")
        becomes(manager, "count", "stopped")
        assert not (manager.root / "manager.db").exists()


def test_what_sqlite_had_moves_and_the_directory_goes_back_to_no_file(tmp_path: Path, url: str) -> None:
    root = tmp_path / "data"
    with Manager(root, DRIVER).opened() as before:
        before.records.add(JOB, "ada")
        before.records.put_pool(Pool("team", 2), "ada")
        text, _ = before.tokens.make("bob", "viewer")
        noted = before.records.verify_audit().head
    with Manager(root, DRIVER, at(url)).opened() as manager:
        assert manager.records.get("count") == JOB
        assert manager.records.pools() == {"team": Pool("team", 2)}
        assert [entry.action for entry in manager.records.audit()] == ["pool", "submit"]
        manager.records.note("ada", "pool", "team")
        assert manager.records.verify_audit(noted).entries == 3
        assert manager.records.verify_audit(noted).is_whole, "the chain goes on"
        found = Tokens(manager.database).identity(text)
        assert found is not None
        assert found.owner == "bob"
        assert manager.lease.epoch == 2
        manager.records.remove("count", "ada")
    with (
        pytest.raises(SetupError, match=r"are kept in postgresql://.*give it with --database") as told,
        Manager(root).opened(),
    ):
        pass
    assert PASSWORD not in str(told.value)
    with Manager(root, DRIVER, at(url)).opened() as manager:
        assert manager.records.all() == []


def test_a_manager_with_another_directory_is_refused(tmp_path: Path, url: str) -> None:
    with Manager(tmp_path / "data", DRIVER, at(url)).opened():
        pass
    with (
        pytest.raises(SetupError, match=r"does not have the jobs of .*share the directory --data"),
        Manager(tmp_path / "other", DRIVER, at(url)).opened(),
    ):
        pass


def test_a_home_that_was_made_halfway_is_made_again(tmp_path: Path, url: str) -> None:
    root = tmp_path / "data"
    with Manager(root, DRIVER, at(url)).opened() as manager, manager.database.changes() as found:
        found.execute("delete from home")
    with pytest.raises(SetupError, match="does not have the jobs"), Manager(root, DRIVER, at(url)).opened():
        pass
    text = (root / "home.json").read_text()
    (root / "home.json").write_text(text.replace('"yes"', '""'))
    with Manager(root, DRIVER, at(url)).opened():
        assert (root / "home.json").read_text() == text


def test_tables_of_a_newer_version_are_refused(tmp_path: Path, url: str, db: psycopg.Connection[tuple[int]]) -> None:
    with closing(at(url)) as database:
        database.make()
        db.execute(f"update {SCHEMA}.layout set version = 99".encode())
        with pytest.raises(SetupError, match=f"expected layout {VERSION}, got 99"):
            database.make()


def test_a_manager_that_is_silent_in_the_middle_of_a_change_holds_up_nobody_for_long(url: str) -> None:
    silent, other = at(url), at(url)
    silent.make()
    with pytest.raises(SetupError, match="idle"):
        _add("a", silent, lambda: _add("b", other, lambda: None))
    with other.reads() as mine:
        assert mine.execute("select name from removals").fetchall() == [("b",)]
    silent.close()
    other.close()


def _add(name: str, database: PostgresDatabase, meanwhile: Callable[[], None]) -> None:
    with database.changes() as found:
        found.execute("insert into removals values (?)", (name,))
        meanwhile()


def test_a_database_that_does_not_answer_is_told_without_its_password(url: str) -> None:
    nowhere = "postgresql://penstock:geheim@127.0.0.1:1/jobs"
    with pytest.raises(SetupError, match=r"postgresql://penstock@127\.0\.0\.1:1/jobs cannot be used") as told:
        at(nowhere).make()
    assert "geheim" not in str(told.value)
    wrong = url.replace(PASSWORD, "geheim")
    with pytest.raises(SetupError, match="cannot be used") as told:
        at(wrong).make()
    assert "geheim" not in str(told.value)


def test_an_argument_has_no_password_and_jobs_are_not_given_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("postgresql://ada:geheim@db/jobs", "postgresql://ada@db/jobs?password=geheim"):
        with pytest.raises(OptionError, match=r"~/\.pgpass") as told:
            PostgresDatabase.of(url)
        assert "geheim" not in str(told.value)
        monkeypatch.setenv(DATABASE, url)
        assert "geheim" not in repr(at(url))
        assert DATABASE not in job_environment()
