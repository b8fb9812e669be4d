"""Sockets between Spark and Python workers: files for this user alone, in a directory that is swept."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.spark.jvm.sockets import LONGEST, SETTLED, socket_directory, socket_settings


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache with a short path."""
    import tempfile

    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        monkeypatch.setenv("PENSTOCK_CACHE", made)
        yield Path(made)


def test_the_directory_is_private_and_the_same_for_every_run(short: Path) -> None:
    made = socket_settings()
    assert (
        made
        == socket_settings()
        == {
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.python.unix.domain.socket.dir": str(short / "sockets"),
        }
    )
    assert (short / "sockets").stat().st_mode & 0o777 == 0o700


def test_a_long_path_is_left_for_a_short_one(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(short / ("x" * LONGEST)))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(short))
    assert socket_directory() == short / f"penstock-{os.getuid()}"
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(short / ("y" * LONGEST)))
    assert socket_settings() == {}


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_directory_that_others_may_enter_is_not_used(short: Path, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (short / "sockets").mkdir()
    (short / "sockets").chmod(mode)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(short / ("y" * LONGEST)))
    assert socket_settings() == {}


def test_neither_is_one_of_another_user_nor_a_link(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(short / ("y" * LONGEST)))
    (short / "elsewhere").mkdir(mode=0o700)
    (short / "sockets").symlink_to(short / "elsewhere")
    assert socket_settings() == {}
    (short / "sockets").unlink()
    assert socket_settings()
    monkeypatch.setattr("os.getuid", lambda: os.geteuid() + 1)
    assert socket_settings() == {}


def test_sockets_of_dead_processes_are_removed(short: Path) -> None:
    socket_settings()
    paths = {name: short / "sockets" / f".{name}.sock" for name in ("open", "dead", "young")}
    made = {}
    for name, path in paths.items():
        made[name] = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made[name].bind(str(path))
        if name != "young":
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 2 * SETTLED))
    made["open"].listen()
    made["dead"].close()
    made["young"].close()
    socket_settings()
    assert [name for name, path in paths.items() if path.exists()] == ["open", "young"]
    made["open"].close()
