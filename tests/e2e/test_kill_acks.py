"""A driver of a reliable spout killed at any moment: every message is acked in the end, and every result is there once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from penstock.faults import POINTS, SETTING
from tests.e2e.killing import acked, command, environment, rows

pytestmark = pytest.mark.spark

MANY = 24
PROGRAM = """
class Hold(ps.Bolt):
    outputs, auto_ack = "n bigint", False
    def prepare(self, context):
        self.held = []
    def process(self, tup):
        self.held.append(tup)
        if len(self.held) == 3:
            for each in self.held:
                self.emit(each.n, anchors=each)
                self.ack(each)
            self.held = []

if __name__ == "__main__":
    top = ps.Topology("kill", config={"topology.max.spout.pending": 4})
    top.spout("numbers", Numbers(1))
    top.bolt("hold", Hold()).global_("numbers")
    top.sink("out", ps.write_files(FOLDER / "out", "json"), from_="hold")
    run_until_acked(top, session("kill", "local[2,4]"), 100.0)
"""


def start(folder: Path, crash: str = "") -> int:
    """Runs the program to its end, or to the point where it is killed; returns how it ended."""
    env = {**environment(folder), **({SETTING: crash} if crash else {})}
    with (folder / "output").open("w") as output:
        done = subprocess.Popen(
            command(folder, PROGRAM, MANY), stdout=output, stderr=subprocess.STDOUT, env=env, start_new_session=True
        )
        code = done.wait(timeout=300)
    if code == -signal.SIGKILL:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(done.pid, signal.SIGKILL)  # the JVM of a driver that is gone
    return code


def test_every_message_is_acked_and_every_result_is_there_once(tmp_path: Path) -> None:
    killed_in_turn(tmp_path, ("state staged@1", "sinks written@3"))


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_at_every_point_of_a_batch(tmp_path: Path, point: str) -> None:
    killed_in_turn(tmp_path, (f"{point}#2", f"{point}#4"))


def killed_in_turn(folder: Path, points: tuple[str, ...]) -> None:
    for point in points:
        assert start(folder, point) in (-signal.SIGKILL, 0), (folder / "output").read_text()
    assert start(folder) == 0, (folder / "output").read_text()
    assert acked(folder) == list(range(MANY))
    assert sorted(row["n"] for row in rows(folder)) == list(range(MANY))
