"""What tests share that kill parts of a topology with acks: a program with a spout that replays, and what it has left behind."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

COMMON = """
import os, signal, sys, threading, time
from pathlib import Path
import penstock as ps
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live
from penstock.spark.jvm.session import session

FOLDER, MANY = Path(sys.argv[1]), int(sys.argv[2])

class Numbers(ps.Spout):
    outputs, reliable = "n bigint", True
    def __init__(self, at_once):
        self.todo, self.acked, self.at_once = list(range(MANY)), [], at_once
    def next_tuple(self):
        for n in self.todo[: self.at_once]:
            self.emit(n, id=n)
        self.todo = self.todo[self.at_once :]
        (FOLDER / "acked").write_text("".join(f"{n} " for n in self.acked))
    def ack(self, id):
        self.acked.append(id)
    def fail(self, id):
        self.todo.append(id)

def run_until_acked(top, spark, seconds):
    run = run_live(top.graph, spark, RunSpec(checkpoint=FOLDER / "checkpoint", duration=seconds))
    def stop():
        while len((FOLDER / "acked").read_text().split() if (FOLDER / "acked").exists() else ()) < MANY:
            time.sleep(0.1)
        run.ask_to_stop()
    threading.Thread(target=stop, daemon=True).start()
    run.wait()
"""
"""The beginning of a program: where it works, how many messages there are, and how it runs."""


def command(folder: Path, program: str, many: int, *more: str) -> list[str]:
    """Writes a program that goes on from the common part; returns the command that runs it."""
    (folder / "program.py").write_text(COMMON + program)
    return [sys.executable, str(folder / "program.py"), str(folder), str(many), *more]


def environment(folder: Path) -> dict[str, str]:
    """The environment of a run, whose temporary files go away with its folder."""
    return os.environ | {"TMPDIR": str(folder)}


def acked(folder: Path) -> list[int]:
    """The ids that were acked, in order."""
    return sorted(map(int, (folder / "acked").read_text().split()))


def rows(folder: Path) -> list[dict[str, Any]]:
    """What reached the sink."""
    lines = [line for path in (folder / "out").glob("*.json") for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]
