"""What the database keeps of jobs: bounded, and of one layout."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from penstock.errors import OptionError, SetupError
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.store import records as module
from penstock.jobs.manager.store.answers import MOST, Answers, StoredAnswer
from penstock.jobs.manager.store.audit import AuditTrail
from penstock.jobs.manager.store.database import _FIRST, VERSION, SqliteDatabase, statements
from penstock.jobs.manager.store.records import KEPT_EVENTS, JobRecords
from penstock.jobs.manager.store.request_keys import AGE, CURRENT, KeyUsed, RequestKey


def test_the_oldest_events_of_a_job_go_and_those_of_others_stay(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "manager.db")
    database.make()
    records = JobRecords(database, AuditTrail(tmp_path))
    records.happened("other", "running")
    with database.changes() as found:
        for n in range(KEPT_EVENTS):
            found.execute("insert into events (time, job, what, detail) values (0, 'count', ?, '')", (str(n),))
    records.happened("count", "last")
    kept = [event.what for event in records.events("count", 10_000)]
    assert kept == ["last", *map(str, range(KEPT_EVENTS - 1, 0, -1))]
    assert len(records.events("other")) == 1


def test_one_owner_has_so_many_jobs_and_leaves_room_for_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_OF_ONE", 3)
    monkeypatch.setattr(module, "MOST_JOBS", 5)
    database = SqliteDatabase(tmp_path / "manager.db")
    database.make()
    records = JobRecords(database, AuditTrail(tmp_path))

    def submit(owner: str, name: str) -> None:
        records.add(Job(name, owner, "0" * 64, "count.py"), owner)

    for n in range(3):
        submit("eve", f"eve-{n}")
    with pytest.raises(OptionError, match="eve has 3 jobs, as many as an owner may have; remove some"):
        submit("eve", "one-more")
    for n in range(2):
        submit("ada", f"ada-{n}")
    with pytest.raises(OptionError, match="there are 5 jobs, as many as there may be"):
        submit("bob", "bob")
    assert len(records.all()) == 5
    assert [entry.action for entry in records.audit()] == ["submit"] * 5


def test_a_database_of_another_layout_is_refused(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "manager.db")
    database.make()
    with database.changes() as found:
        found.execute("pragma user_version = 99")
    with pytest.raises(SetupError, match=f"expected layout {VERSION}, got 99"):
        database.make()
    assert oct(database.path.stat().st_mode & 0o777) == "0o600"


def test_a_damaged_database_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "manager.db").write_bytes(b"no database at all, but longer than its header would be" * 100)
    with pytest.raises(SetupError, match=r"manager\.db cannot be used \(file is not a database\)"):
        SqliteDatabase(tmp_path / "manager.db").make()


def test_a_database_of_an_older_layout_gets_what_it_lacks_and_keeps_what_it_has(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "manager.db")
    with database.changes() as found:
        for statement in statements([_FIRST]):
            found.execute(statement)
        found.execute("insert into jobs values ('a', 'b')")
        found.execute("pragma user_version = 1")
    database.make()
    with database.reads() as found:
        assert found.execute("select * from jobs").fetchall() == [("a", "b")]
        assert found.execute("select * from pools").fetchall() == []
        assert found.execute("pragma user_version").fetchone() == (VERSION,)


def test_answers_to_keys_are_so_many_of_an_owner_and_those_of_others_stay(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "manager.db")
    database.make()
    answers = Answers(database)
    answers.keep(RequestKey("bob", "k", b"d"), b"bob's")
    with database.writes() as found:
        for n in range(MOST):
            found.execute(
                "insert into replays values ('ada', ?, ?, ?, ?)", (str(n), b"d", time.time() - AGE / 2 + n, b"")
            )
    answers.keep(RequestKey("ada", "last", b"d"), b"answer")
    assert answers.find("ada", "0") is None
    assert answers.find("ada", "1") is not None
    assert (answers.find("ada", "last"), answers.find("bob", "k")) == (
        StoredAnswer(b"d", b"answer"),
        StoredAnswer(b"d", b"bob's"),
    )


def test_a_key_stands_with_the_change_or_not_at_all_and_is_free_again_after_a_day(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "manager.db")
    database.make()
    records, answers = JobRecords(database, AuditTrail(tmp_path)), Answers(database)
    before = CURRENT.set(RequestKey("ada", "k", b"first"))
    try:
        with pytest.raises(ZeroDivisionError), database.changes():
            raise ZeroDivisionError
        assert answers.find("ada", "k") is None
        records.note("ada", "pool", "a")
        records.note("ada", "pool", "b")
        assert answers.find("ada", "k") == StoredAnswer(b"first", None)
        CURRENT.set(RequestKey("ada", "k", b"second"))
        with pytest.raises(KeyUsed, match="use a new key"):
            records.note("ada", "pool", "c")
        assert len(records.audit()) == 2
        with database.writes() as found:
            found.execute("update replays set time = time - ?", (AGE,))
        assert answers.find("ada", "k") is None
        records.note("ada", "pool", "d")
        assert answers.find("ada", "k") == StoredAnswer(b"second", None)
    finally:
        CURRENT.reset(before)


def test_a_job_that_another_version_wrote_hinders_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    database = SqliteDatabase(tmp_path / "manager.db")
    database.make()
    records = JobRecords(database, AuditTrail(tmp_path))
    good = Job("good", "ada", "0" * 64, "count.py")
    records.add(good, "ada")
    assert records.bundles() == {good.bundle}
    option = {**json.loads(good.to_json()), "name": "newer", "options": {"of_another_version": 1}}
    fields = {**json.loads(good.to_json()), "name": "fields", "of_another_version": 1}
    with database.writes() as found:
        for name, text in (("newer", option), ("fields", fields), ("torn", {}), ("list", [])):
            found.execute("insert into jobs values (?, ?)", (name, json.dumps(text)))
    for _ in range(2):
        assert records.all() == [good]
    assert len(caplog.records) == 4, "each is told once"
    for name in ("newer", "fields", "torn", "list"):
        with pytest.raises(SetupError, match=f"job '{name}' cannot be read"):
            records.get(name)
    assert records.bundles() is None, "what it has is not known"
