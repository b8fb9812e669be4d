"""Ctrl-C and `kill`, with signals sent to this very process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from penstock.jobs.signals import stop_signals


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
