"""Class-data sharing: which options a JVM gets, and who writes the archive. No JVM."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from penstock.spark.jvm.archive import IN_USE, KEEP, SWITCH, archive_options
from penstock.spark.jvm.java import Java

NOBODY = "4194305"
"""A process id that no process has."""


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(SWITCH, raising=False)
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / "spark-core.jar").write_bytes(b"x")
    return folder


def java(version: int = 17) -> Java:
    return Java(Path("/nowhere"), version, "PATH", f"Java {version}", vector=True)


def written(options: tuple[str, ...]) -> Path:
    """The file that a JVM with these options would write."""
    (option,) = [o for o in options if o.startswith("-XX:ArchiveClassesAtExit=")]
    return Path(option.partition("=")[2])


def claimed(file: Path, pid: str) -> None:
    file.with_suffix(".pid").write_text(pid)


def test_the_first_jvm_writes_the_archive_and_later_ones_use_it(jars: Path) -> None:
    file = written(archive_options(java(), jars))
    file.write_bytes(b"classes")
    assert archive_options(java(), jars)[0] == f"-XX:SharedArchiveFile={file}"


def test_only_one_running_process_writes_it(jars: Path) -> None:
    file = written(archive_options(java(), jars))
    claimed(file, str(os.getppid()))
    assert archive_options(java(), jars) == ()


@pytest.mark.parametrize("left", [NOBODY, "", "no number"])
def test_a_claim_of_a_process_that_has_ended_does_not_count(jars: Path, left: str) -> None:
    file = written(archive_options(java(), jars))
    claimed(file, left)
    assert written(archive_options(java(), jars)) == file


def test_other_jars_or_another_java_have_an_archive_of_their_own(jars: Path) -> None:
    first = written(archive_options(java(), jars))
    other = written(archive_options(java(18), jars))
    (jars / "spark-core.jar").write_bytes(b"another")
    assert len({first, other, written(archive_options(java(), jars))}) == 3


def test_a_newer_java_keeps_its_archive_itself(jars: Path) -> None:
    assert archive_options(java(21), jars)[0] == "-XX:+AutoCreateSharedArchive"


@pytest.mark.parametrize("given", ["-Xshare:off", "-XX:SharedArchiveFile=/mine.jsa"])
def test_what_the_user_says_wins(jars: Path, given: str) -> None:
    assert archive_options(java(), jars, given) == ()


def test_it_can_be_turned_off(jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "off")
    assert archive_options(java(), jars) == ()


def test_a_cache_that_cannot_be_written_is_done_without(
    jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "file" / "below"))
    assert archive_options(java(), jars) == ()


def test_the_archives_used_longest_ago_are_removed(jars: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "classes"
    folder.mkdir(parents=True)
    for at in range(KEEP + 3):
        (folder / f"old{at:02}.jsa").touch()
        os.utime(folder / f"old{at:02}.jsa", (at, at))
    archive_options(java(), jars)
    assert sorted(f.name for f in folder.glob("*.jsa")) == [f"old{at:02}.jsa" for at in range(4, KEEP + 3)]


def test_archives_in_use_are_not_removed_for_another(jars: Path, tmp_path: Path) -> None:
    """Environments that take turns would otherwise write theirs, and lose it, at every end."""
    folder = full(tmp_path)
    assert archive_options(java(), jars) == ()
    assert len(list(folder.glob("*.jsa"))) == KEEP


def test_an_archive_whose_environment_is_gone_makes_room_for_another(jars: Path, tmp_path: Path) -> None:
    """Where environments come and go, a directory full of archives that nobody can use costs each start most of its processor time."""
    folder = full(tmp_path)
    (folder / "mine3.jars").write_text(str(tmp_path / "gone" / "jars"))
    (folder / "mine4.jars").write_text(str(jars))
    written(archive_options(java(), jars))
    assert sorted(f.name for f in folder.glob("mine*.jsa")) == [f"mine{at}.jsa" for at in range(KEEP) if at != 3]
    assert not (folder / "mine3.jars").exists()


def test_an_archive_knows_its_jars_once_it_is_written_or_used(jars: Path) -> None:
    file = written(archive_options(java(), jars))
    assert file.with_suffix(".jars").read_text() == str(jars)
    file.write_bytes(b"classes")
    file.with_suffix(".jars").unlink()
    archive_options(java(), jars)
    assert file.with_suffix(".jars").read_text() == str(jars)


def test_an_archive_that_was_not_used_for_a_while_makes_room_for_another(jars: Path, tmp_path: Path) -> None:
    folder = full(tmp_path)
    before = time.time() - IN_USE - 1
    os.utime(folder / "mine0.jsa", (before, before))
    written(archive_options(java(), jars))
    assert not (folder / "mine0.jsa").exists()


def full(tmp_path: Path) -> Path:
    """A directory with as many archives as are kept, all of them in use."""
    folder = tmp_path / "cache" / "classes"
    folder.mkdir(parents=True)
    for at in range(KEEP):
        (folder / f"mine{at}.jsa").touch()
    return folder
