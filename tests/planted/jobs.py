"""Bugs of two managers of jobs: what one does that led before has an effect. No JVM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.jobs.manager.job import Job
from penstock.jobs.manager.processes.directory import JobDirectory
from penstock.jobs.manager.store.database import Connection, Database, SqliteDatabase
from penstock.jobs.manager.store.lease import Lease
from penstock.storage import read_if_present
from tests.jobs.manager.store import test_lease
from tests.planted.plant import Bug, Room, method


def the_last_one_written(self: JobDirectory) -> tuple[int, Job | None]:
    newest = max(self.path.glob("wanted-*.json"), key=lambda path: path.stat().st_mtime_ns)
    found = read_if_present(self._storage, newest.name)
    return 0, None if found is None else Job.from_json(found[0])


@contextmanager
def whoever_asks(self: Database, epoch: int | None = None) -> Iterator[Connection]:
    with self.writes() as found:
        yield found


def moved_at_once(self: JobDirectory, into: Path, epoch: int) -> bool:
    into.parent.mkdir(exist_ok=True)
    self.path.rename(into)
    return True


def the_next_number(self: Lease, condition: str) -> int:
    with self.database.alone() as found:
        found.execute(f"update lead set epoch = epoch + 1, holder = ? where {condition}", (self.holder,))
        return int(found.execute("select epoch from lead").fetchone()[0])


def database(room: Room) -> SqliteDatabase:
    made = SqliteDatabase(room.path / "manager.db")
    made.make()
    return made


BUGS = [
    Bug(
        "the wish that was written last counts, not that of the highest epoch",
        method(JobDirectory, "wanted_of", the_last_one_written),
        lambda room: test_lease.test_the_wish_of_the_highest_epoch_counts_whoever_writes_last(room.path),
        "",
    ),
    Bug(
        "changes of a manager that led before are taken",
        method(Database, "changes", whoever_asks),
        lambda room: test_lease.test_changes_of_a_manager_that_led_before_are_refused(room.path, database(room)),
        "DID NOT RAISE .*LeadLost",
    ),
    Bug(
        "a manager that led before moves what a job keeps",
        method(JobDirectory, "put_aside", moved_at_once),
        lambda room: test_lease.test_what_a_job_kept_is_not_moved_by_a_manager_that_led_before_nor_while_it_runs(
            room.path
        ),
        "",
    ),
    Bug(
        "epochs begin again with a new database",
        method(Lease, "_take", the_next_number),
        lambda room: test_lease.test_epochs_grow_beyond_those_that_the_directory_has_seen(room.path, database(room)),
        "",
    ),
]
