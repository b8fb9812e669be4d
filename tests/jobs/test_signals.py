"""Ctrl-C and `kill`, with signals sent to this very process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.jobs.signals import leaving_on_sigterm, stop_signals
from penstock.temporary import temporary_directory


def test_the_first_signal_asks_and_the_handlers_go_away_after() -> None:
    asked: list[int] = []
    before = signal.getsignal(signal.SIGTERM)
    with stop_signals(lambda: asked.append(1)):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
    assert asked == [1, 1]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_ctrl_c_ends_the_process_at_once() -> None:
    program = """
import os, signal, time
from penstock.jobs.signals import stop_signals
with stop_signals(lambda: print("asked", flush=True), lambda: print("forced", flush=True)):
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (130, ["asked", "forced"])


def test_sigterm_releases_what_a_command_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as left, leaving_on_sigterm(), temporary_directory("held"):
        os.kill(os.getpid(), signal.SIGTERM)
    assert left.value.code == 143
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is before
