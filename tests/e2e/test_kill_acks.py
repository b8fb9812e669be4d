"""A driver of a reliable spout killed at any moment: every message is acked in the end, and every result is there once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.faults import POINTS, SETTING

pytestmark = pytest.mark.spark

MANY = 24
PROGRAM = """
import sys, threading, time
from pathlib import Path
import penstock as ps
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live
from penstock.spark.jvm.session import session

FOLDER = Path(sys.argv[1])
MANY = int(sys.argv[2])

class Numbers(ps.Spout):
    outputs, reliable = "n bigint", True
    def __init__(self):
        self.todo, self.acked = list(range(MANY)), []
    def next_tuple(self):
        if self.todo:
            n = self.todo.pop(0)
            self.emit(n, id=n)
        (FOLDER / "acked").write_text("".join(f"{n} " for n in self.acked))
    def ack(self, id):
        self.acked.append(id)
    def fail(self, id):
        self.todo.append(id)

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
    top.spout("numbers", Numbers())
    top.bolt("hold", Hold()).global_("numbers")
    top.sink("out", ps.write_files(FOLDER / "out", "json"), from_="hold")
    run = run_live(top.graph, session("kill", "local[2,4]"), RunSpec(checkpoint=FOLDER / "checkpoint", duration=100.0))
    def stop():
        while len((FOLDER / "acked").read_text().split() if (FOLDER / "acked").exists() else ()) < MANY:
            time.sleep(0.1)
        run.ask_to_stop()
    threading.Thread(target=stop, daemon=True).start()
    run.wait()
    print("done", flush=True)
"""


def start(folder: Path, crash: str = "") -> int:
    """Runs the program to its end, or to the point where it is killed; returns how it ended."""
    env = {**os.environ, "TMPDIR": str(folder), **({SETTING: crash} if crash else {})}
    command = [sys.executable, str(folder / "program.py"), str(folder), str(MANY)]
    with (folder / "output").open("w") as output:
        done = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=env, start_new_session=True)
        code = done.wait(timeout=200)
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
    (folder / "program.py").write_text(PROGRAM)
    for point in points:
        assert start(folder, point) in (-signal.SIGKILL, 0), (folder / "output").read_text()
    assert start(folder) == 0, (folder / "output").read_text()
    assert sorted(map(int, (folder / "acked").read_text().split())) == list(range(MANY))
    lines = [line for path in (folder / "out").glob("*.json") for line in path.read_text().splitlines()]
    assert sorted(json.loads(line)["n"] for line in lines) == list(range(MANY))
