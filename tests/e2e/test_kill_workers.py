"""Workers killed in the middle of a batch of a topology with acks: Spark runs their tasks again, and every message counts once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.killing import acked, command, environment, rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

MANY = 60
PROGRAM = """
KILLS, MASTER, WHOLE = sys.argv[3].split(), sys.argv[4], sys.argv[5:] == ["executor"]

def perish(step, n):
    marker = FOLDER / f"killed-{step}-{n}"
    if f"{step}@{n}" in KILLS and not marker.exists():
        marker.touch()
        if WHOLE:
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
            os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

class Twice(ps.BasicBolt):
    outputs = "n bigint, part int"
    failed = ()
    def process(self, tup):
        perish("twice", tup.n)
        return [(tup.n, 0), (tup.n, 1)]

class Sum(ps.Bolt):
    outputs, auto_ack = "n bigint, seen bigint", False
    def prepare(self, context):
        self.held, self.seen = {}, {}
    def process(self, tup):
        perish("sum", tup.n)
        self.seen[tup.n] = self.seen.get(tup.n, 0) + 1
        self.held.setdefault(tup.n, []).append(tup)
        if len(self.held[tup.n]) == 2:
            both = self.held.pop(tup.n)
            self.emit((tup.n, self.seen[tup.n]), anchors=both)
            for each in both:
                self.ack(each)

if __name__ == "__main__":
    top = ps.Topology("kill", config={"topology.max.spout.pending": 20})
    top.spout("numbers", Numbers(5))
    top.bolt("twice", Twice(), parallelism=2).shuffle("numbers")
    top.bolt("sum", Sum(), parallelism=2).fields("twice", "n")
    top.sink("out", ps.write_files(FOLDER / "out", "json"), from_="sum")
    run_until_acked(top, session("kill", MASTER), 200.0)
"""


def results(
    folder: Path, kills: str, master: str = "local[2,4]", what: str = "worker"
) -> tuple[list[int], list[tuple[int, int]]]:
    """Runs the topology to its end; returns the ids that were acked, and what reached the sink. A kill is that of a Python worker, or of its `executor` too."""
    folder.mkdir()
    done = subprocess.run(
        command(folder, PROGRAM, MANY, kills, master, what),
        capture_output=True,
        text=True,
        timeout=380,
        env=environment(folder),
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert sorted(p.name for p in folder.glob("killed-*")) == sorted(
        f"killed-{k.replace('@', '-')}" for k in kills.split()
    )
    return acked(folder), sorted((row["n"], row["seen"]) for row in rows(folder))


def test_a_python_worker_that_is_killed_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """One in each bolt, one of them in a batch that goes on from the state of another; all as if nobody had been killed."""
    done, out = results(tmp_path / "killed", "twice@7 sum@31")
    assert done == list(range(MANY))
    assert out == [(n, 2) for n in range(MANY)]


@pytest.mark.slow
def test_workers_that_are_killed_again_and_again_change_nothing(tmp_path: Path) -> None:
    kills = " ".join(f"{step}@{n}" for n in range(0, MANY, 12) for step in ("twice", "sum"))
    assert results(tmp_path / "killed", kills) == results(tmp_path / "whole", "")
