"""A partitioned spout whose driver, readers and bolts are killed: every range is acked, and the sink has what an uninterrupted run has."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from penstock.faults import POINTS, SETTING
from tests.e2e.killing import acked, command, environment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

SHARDS = {"a": 9, "b": 8, "c": 3}
MOST = 2
RANGES = sorted(ord(shard) * 100 + first for shard, end in SHARDS.items() for first in range(0, end, MOST))
ROWS = sorted([*((shard, n) for shard, end in SHARDS.items() for n in range(end)), ("a", 4), ("b", 3)])
"""Every record once, and those again that were with one that fails when it is first seen."""
PROGRAM = f"""
SHARDS, MOST = {SHARDS}, {MOST}
KILLS, MASTER, WHOLE = sys.argv[3].split(), sys.argv[4], sys.argv[5:] == ["executor"]

def perish(step, shard, n):
    marker = FOLDER / f"killed-{{step}}-{{shard}}{{n}}"
    if f"{{step}}@{{shard}}{{n}}" in KILLS and not marker.exists():
        marker.touch()
        if WHOLE:
            daemon = Path(f"/proc/{{os.getppid()}}/stat").read_text()
            os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

class Shards(ps.PartitionedSpout):
    outputs, most = "shard string, n bigint", MOST
    def ends(self):
        return SHARDS
    def read(self, partition, first, end):
        perish("read", partition, first)
        return [(partition, n) for n in range(first, end)]
    def acked(self, partition, first, end):
        path = FOLDER / "acked"
        known = {{*path.read_text().split()}} if path.exists() else set()
        path.write_text(" ".join({{*known, str(ord(partition) * 100 + first)}}))

class Once(ps.BasicBolt):
    outputs = "shard string, n bigint"
    def prepare(self, context):
        self.seen = set()
    def process(self, tup):
        perish("once", tup.shard, tup.n)
        key = tup.shard, tup.n
        is_new = key not in self.seen
        self.seen.add(key)
        if is_new and key in (("a", 5), ("b", 2)):
            raise ps.FailedException("first seen")
        yield tup.shard, tup.n

if __name__ == "__main__":
    top = ps.Topology("kill", config={{"topology.max.spout.pending": 3, "topology.message.timeout.secs": 600}})
    top.spout("shards", Shards(), parallelism=2)
    top.bolt("once", Once(), parallelism=3).fields("shards", "shard")
    top.sink("out", ps.write_files(FOLDER / "out", "json"), from_="once")
    run_until_acked(top, session("kill", MASTER), 300.0)
"""


def start(folder: Path, kills: str = "", crash: str = "", master: str = "local[2,4]", what: str = "worker") -> int:
    """Runs the program to its end, or to the point where it is killed; returns how it ended."""
    env = {**environment(folder), **({SETTING: crash} if crash else {})}
    with (folder / "output").open("w") as output:
        running = subprocess.Popen(
            command(folder, PROGRAM, len(RANGES), kills, master, what),
            stdout=output,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )
        code = running.wait(timeout=380)
    if code == -signal.SIGKILL:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)  # the JVM of a driver that is gone
    return code


def check(folder: Path, *kills: str) -> None:
    """Every range was acked, the sink has what it should, and all were killed that should be."""
    assert acked(folder) == RANGES
    found = [json.loads(line) for path in (folder / "out").glob("*.json") for line in path.read_text().splitlines()]
    assert sorted((row["shard"], row["n"]) for row in found) == ROWS
    assert sorted(p.name for p in folder.glob("killed-*")) == sorted(f"killed-{k.replace('@', '-')}" for k in kills)


def test_a_driver_and_workers_that_are_killed_lose_and_repeat_nothing(tmp_path: Path) -> None:
    kills = ("read@a2", "once@b5")
    assert start(tmp_path, " ".join(kills), "state staged@1") == -signal.SIGKILL, (tmp_path / "output").read_text()
    assert start(tmp_path, " ".join(kills)) == 0, (tmp_path / "output").read_text()
    check(tmp_path, *kills)


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_driver_that_is_killed_at_every_point_of_a_batch(tmp_path: Path, point: str) -> None:
    for crash in (f"{point}#1", f"{point}#3"):
        assert start(tmp_path, crash=crash) in (-signal.SIGKILL, 0), (tmp_path / "output").read_text()
    assert start(tmp_path) == 0, (tmp_path / "output").read_text()
    check(tmp_path)


@pytest.mark.slow
def test_workers_that_are_killed_again_and_again_change_nothing(tmp_path: Path) -> None:
    kills = [f"{step}@{shard}{n}" for shard in SHARDS for step, n in (("read", 0), ("once", 1), ("read", 2))]
    assert start(tmp_path, " ".join(kills), master="local[2,12]") == 0, (tmp_path / "output").read_text()
    check(tmp_path, *kills)
