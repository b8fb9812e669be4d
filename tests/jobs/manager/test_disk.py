"""A job that fills the disk is stopped and told why; the others, and the database of the server, go on."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import OptionError
from penstock.jobs.manager import disk
from penstock.jobs.manager.disk import DiskGuard, DiskLimits, size_of
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager
from penstock.server.views import view_of
from tests.waiting import wait_until

MIB = 1 << 20


@pytest.fixture
def jobs(manager: Manager, job: Job) -> tuple[Path, Path]:
    """The directories of two jobs that run."""
    for name in ("count", "beside"):
        manager.submit(replace(job, name=name), "ada")
    wait_until(lambda: [state.phase for state in manager.states()] == ["running"] * 2)
    manager.reconcile()
    return manager.directory("count").path, manager.directory("beside").path


def phases(manager: Manager) -> dict[str, str]:
    manager.reconcile()
    return {state.job.name: state.phase for state in manager.states()}


def grow(folder: Path, size: int) -> Path:
    file = folder / "work" / f"{size}"
    file.write_bytes(b"x" * size)
    return file


def stops(manager: Manager, name: str) -> str:
    """Waits until a job has stopped; what is said of it."""
    wait_until(lambda: phases(manager)[name] == "stopped")
    shown = view_of(manager, manager.state(name))
    assert (shown.health, shown.health_reason) == ("bad", shown.reason)
    return shown.reason


def test_a_job_that_takes_more_than_its_share_is_stopped_until_there_is_room(
    manager: Manager, jobs: tuple[Path, Path]
) -> None:
    guard = DiskGuard(manager, DiskLimits(of_job=4 * MIB, free=0))
    guard.look()
    assert phases(manager) == {"count": "running", "beside": "running"}
    large = grow(jobs[0], 5 * MIB)
    guard.look()
    reason = stops(manager, "count")
    assert reason.startswith("it takes 5 MiB of the disk, and a job may take 4 MiB")
    assert reason.endswith("make room, and resume it")
    assert phases(manager)["beside"] == "running"
    assert manager.records.audit(1)[0].detail == reason
    large.unlink()
    manager.wish("count", "running", "ada")
    wait_until(lambda: phases(manager)["count"] == "running")
    guard.look()
    assert phases(manager)["count"] == "running"
    assert view_of(manager, manager.state("count")).reason != reason


def test_the_job_that_fills_the_disk_is_stopped_and_no_other(manager: Manager, jobs: tuple[Path, Path]) -> None:
    left = [100 * MIB]
    guard = DiskGuard(manager, DiskLimits(free=16 * MIB), lambda root: left[0])
    grow(jobs[1], 8 * MIB)
    assert not guard.look()
    left[0] = 40 * MIB
    assert guard.look()
    grow(jobs[0], 5 * MIB)
    left[0] = 17 * MIB
    assert guard.look()
    assert phases(manager) == {"count": "running", "beside": "running"}, "there is what is to be left free"
    left[0] = 15 * MIB
    guard.look()
    reason = stops(manager, "count")
    assert reason.startswith("15 MiB of the disk are left, 16 MiB are to be (--keep-free), and it took 5 MiB meanwhile")
    for _ in range(3):
        guard.look()
    assert phases(manager)["beside"] == "running", "it is the largest, and has not grown"


def test_a_disk_that_something_else_fills_stops_no_job(manager: Manager, jobs: tuple[Path, Path]) -> None:
    guard = DiskGuard(manager, DiskLimits(free=64 * MIB), lambda root: MIB)
    for n in range(3):
        grow(jobs[0], 1_000 + n)
        assert guard.look()
    assert phases(manager) == {"count": "running", "beside": "running"}


def test_a_manager_that_does_not_lead_stops_nobody(manager: Manager, jobs: tuple[Path, Path]) -> None:
    manager.lease.lose()
    DiskGuard(manager, DiskLimits(of_job=1)).look()
    manager.lease.seize()
    assert phases(manager) == {"count": "running", "beside": "running"}


def test_a_look_that_fails_ends_no_other(
    manager: Manager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stopping, looks = threading.Event(), []

    def fail(root: Path) -> int:
        looks.append(root)
        if len(looks) > 2:
            stopping.set()
        raise OSError("the disk is away")

    monkeypatch.setattr(disk, "LOOK", 0.0)
    DiskGuard(manager, DiskLimits(), fail).run(stopping)
    assert len(looks) == 3
    assert "was not looked at: the disk is away" in caplog.text


def test_a_directory_is_as_large_as_what_is_in_it_and_links_lead_nowhere(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "below").mkdir(parents=True)
    outside.mkdir()
    (outside / "large").write_bytes(b"x" * 5 * MIB)
    (inside / "below" / "file").write_bytes(b"x" * MIB)
    (inside / "link").symlink_to(outside)
    (inside / "gone").symlink_to(tmp_path / "nowhere")
    assert MIB <= size_of(inside) < 2 * MIB
    assert size_of(tmp_path / "nowhere") == 0


def test_limits_that_are_none_are_refused() -> None:
    for wrong in ({"of_job": 0}, {"free": -1}):
        with pytest.raises(OptionError, match="bytes of a disk"):
            DiskLimits(**wrong)
