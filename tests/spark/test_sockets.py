"""Sockets between Spark and Python workers: files for this user alone, in a directory that goes with the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.spark.workers.sockets import LONGEST, socket_settings

DIRECTORY = "spark.python.unix.domain.socket.dir"


def test_each_run_has_a_private_directory() -> None:
    one, other = socket_settings(), socket_settings()
    assert one["spark.python.unix.domain.socket.enabled"] == "true"
    assert one[DIRECTORY] != other[DIRECTORY]
    for made in (one, other):
        assert Path(made[DIRECTORY]).stat().st_mode & 0o777 == 0o700
        assert len(made[DIRECTORY]) <= LONGEST


def test_a_long_path_is_left_for_a_short_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / ("x" * LONGEST)))
    assert socket_settings()[DIRECTORY].startswith("/tmp/penstock-")


def test_where_no_directory_can_be_made_spark_goes_on_with_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**given: str) -> str:
        raise PermissionError(given["dir"])

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    assert socket_settings() == {}


def test_the_directory_goes_with_the_process() -> None:
    program = f"from penstock.spark.workers.sockets import socket_settings; print(socket_settings()[{DIRECTORY!r}])"
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert made
    assert not Path(made).exists()
