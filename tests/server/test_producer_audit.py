"""Who puts records into a topic is in the audit, with all of them, however many requests there are at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from penstock.jobs.manager.store.audit import AuditTrail
from penstock.jobs.manager.store.database import SqliteDatabase
from penstock.jobs.manager.store.records import JobRecords
from penstock.server.served_log import ProducerAudit


def noted(records: JobRecords) -> int:
    return sum(int(entry.detail.split()[0]) for entry in records.audit())


def records_of(folder: Path) -> JobRecords:
    made = JobRecords(SqliteDatabase(folder / "jobs.db"), AuditTrail(folder))
    made.database.make()
    return made


def test_requests_at_the_same_time_all_count(tmp_path: Path) -> None:
    records = records_of(tmp_path)
    audit = ProducerAudit(records)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: audit.add("ada", "orders", 3), range(2_000)))
    audit.close()
    assert noted(records) == 6_000


def test_what_cannot_be_noted_now_is_noted_later_and_fails_no_request(tmp_path: Path) -> None:
    records = records_of(tmp_path)
    audit = ProducerAudit(records)
    database = tmp_path / "jobs.db"
    database.rename(tmp_path / "aside")
    database.mkdir()
    audit.add("ada", "orders", 5)
    database.rmdir()
    (tmp_path / "aside").rename(database)
    audit.add("ada", "orders", 2)
    audit.close()
    assert noted(records) == 7
