"""Working directories of drivers that were killed are removed by the next; those in use are left."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from penstock.live.work import YOUNG, WorkingDirectory


def aged(path: Path) -> None:
    """Makes a directory look as if it had been made a while ago."""
    before = path.stat().st_mtime - 2 * YOUNG
    os.utime(path, (before, before))


def test_what_a_killed_driver_left_is_removed_and_what_is_in_use_or_young_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    used, killed, young = (WorkingDirectory.make() for _ in range(3))
    (killed.path / "spark").mkdir()
    for made in (used, killed):
        aged(made.path)
    os.close(killed.handle)
    os.close(young.handle)
    other = tmp_path / "penstock-other"
    other.mkdir()
    last = WorkingDirectory.make()
    assert [p.exists() for p in (used.path, killed.path, young.path, last.path, other)] == [
        *(True, False, True, True, True)
    ]
    assert last.path.stat().st_mode & 0o777 == 0o700
    last.close()
    assert not last.path.exists()
    used.close()


def test_a_directory_that_never_got_its_lock_is_removed_when_it_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / "penstock-work-left"
    left.mkdir()
    WorkingDirectory.make().close()
    assert left.exists()
    aged(left)
    WorkingDirectory.make().close()
    assert not left.exists()


def test_the_directory_itself_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Services that remove old temporary files ask for a lock of the directory."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = WorkingDirectory.make()
    other = os.open(made.path, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    os.close(other)
    made.close()
