"""What the database keeps of jobs: bounded, and of one layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import SetupError
from penstock.jobs.manager.database import Database
from penstock.jobs.manager.records import KEPT_EVENTS, JobRecords


def test_the_oldest_events_of_a_job_go_and_those_of_others_stay(tmp_path: Path) -> None:
    database = Database(tmp_path / "manager.db")
    database.make()
    records = JobRecords(database)
    records.happened("other", "running")
    with database.changes() as found:
        found.executemany(
            "insert into events (time, job, what, detail) values (0, 'count', ?, '')",
            [(str(n),) for n in range(KEPT_EVENTS)],
        )
    records.happened("count", "last")
    kept = [event.what for event in records.events("count", 10_000)]
    assert kept == ["last", *map(str, range(KEPT_EVENTS - 1, 0, -1))]
    assert len(records.events("other")) == 1


def test_a_database_of_another_layout_is_refused(tmp_path: Path) -> None:
    database = Database(tmp_path / "manager.db")
    database.make()
    with database.changes() as found:
        found.execute("pragma user_version = 99")
    with pytest.raises(SetupError, match="expected layout 1, got 99"):
        database.make()
    assert oct(database.path.stat().st_mode & 0o777) == "0o600"
