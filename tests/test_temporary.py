"""Temporary directories of processes that were killed are removed by the next one; those in use are left."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.temporary import YOUNG, LockedDirectory, temporary_directory


def aged(path: Path) -> None:
    """Makes a directory look as if it had been made a while ago."""
    before = path.stat().st_mtime - 2 * YOUNG
    os.utime(path, (before, before))


def test_what_a_killed_driver_left_is_removed_and_what_is_in_use_or_young_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    used, killed, young = (LockedDirectory.make("work") for _ in range(3))
    (killed.path / "spark").mkdir()
    for made in (used, killed):
        aged(made.path)
    os.close(killed.handle)
    os.close(young.handle)
    other = tmp_path / "penstock-other"
    other.mkdir()
    last = LockedDirectory.make("work")
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
    left = tmp_path / "penstock-work-left.locked"
    left.mkdir()
    LockedDirectory.make("work").close()
    assert left.exists()
    aged(left)
    LockedDirectory.make("work").close()
    assert not left.exists()


def test_the_directory_itself_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Services that remove old temporary files ask for a lock of the directory."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = LockedDirectory.make("work")
    other = os.open(made.path, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    os.close(other)
    made.close()


def test_a_directory_is_removed_once_and_its_handle_is_not_closed_again(tmp_path: Path) -> None:
    made = LockedDirectory.make("twice", str(tmp_path))
    made.close()
    (tmp_path / "other").touch()
    with (tmp_path / "other").open() as other:  # gets the number that was free
        made.close()
        assert other.read() == ""


def test_a_block_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(FileNotFoundError), temporary_directory("block") as made:
        (made / "none").unlink()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "making",
    [
        "from penstock.spark.workers.stand_in import make_stand_in; make_stand_in('bin/python')",
        "from penstock.temporary import temporary_directory; held = temporary_directory('block'); held.__enter__()",
    ],
)
def test_what_a_process_that_is_killed_leaves_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, making: str
) -> None:
    program = f"import os; {making}; os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False)
    (left,) = tmp_path.iterdir()
    aged(left)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    LockedDirectory.make("next").close()
    assert list(tmp_path.iterdir()) == []


def test_every_temporary_directory_of_a_process_is_such_a_one() -> None:
    """What makes one by itself says here who removes it when the process is killed."""
    known = {
        "temporary.py": "this",
        "jobs/ship.py": "among Spark's own temporary files, which its JVM removes",
        "spark/batch/batch.py": "in the directory of the run",
        "spark/jvm/jars.py": "in the cache",
        "connectors/files/local.py": "a directory for the time of a read in a test",
        "testing/servers.py": "servers of tests, which are killed with their directories by the test",
    }
    package = Path(__file__).resolve().parents[1] / "src/penstock"
    making = ("mkdtemp(", "TemporaryDirectory(")
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if any(word in line and ">>>" not in line for line in path.read_text().splitlines() for word in making)
    }
    assert found == set(known)
