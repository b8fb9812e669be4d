"""A driver killed around a change of rules goes on with the rules that each batch used."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.test_kill import Killed

pytestmark = [pytest.mark.spark, pytest.mark.slow]

POINTS = ("offsets written", "state staged", "manifest published", "after sink commit", "commit logged")
RECORDS = 40
PROGRAM = """
import sys
from pathlib import Path
import penstock as ps
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live
from penstock.spark.jvm.session import session

def flow_of(folder: Path) -> ps.Flow:
    flow = ps.Flow("rules")
    changes = flow.source("changes", ps.files(folder / "changes", "json", "rule string, op string, text string", files_per_batch=1))
    numbers = flow.source("numbers", ps.files(folder / "in", "json", "file int, n int", files_per_batch=1))
    found = numbers.rules("all", ps.rules("rule large if n >= 1000 do emit to found(file, n, least = 1000)"), changes=changes)
    found.found.sink("found", ps.write_files(folder / "found", "json"))
    return flow

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    options = RunSpec(checkpoint=sys.argv[2], mode="once", drain=True)
    run = run_live(flow_of(folder).graph, session("kill", "local[2,4]"), options)
    print("started", flush=True)
    run.wait()
    print("done", flush=True)
"""


class KilledRules(Killed):
    """Files of numbers, and for each a file that changes the rule they are judged by."""

    def __init__(self, folder: Path, files: int) -> None:
        self.folder, self.checkpoint, self.machines, self.files = folder, str(folder / "checkpoint"), 0, files
        (folder / "program.py").write_text(PROGRAM)
        for at in range(files):
            text = f"if n >= {self.least(at)} do emit to found(file, n, least = {self.least(at)})"
            self._write("changes", at, [{"rule": "large", "op": "change", "text": text}])
            self._write("in", at, [{"file": at, "n": n} for n in range(RECORDS)])

    def _write(self, name: str, at: int, rows: list[dict[str, object]]) -> None:
        path = self.folder / name / f"{at:03d}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (1_700_000_000 + at,) * 2)  # Spark takes files by age

    def least(self, at: int) -> int:
        """What the rule asks of the numbers of a file."""
        return 3 * at

    def finish(self) -> None:
        """Runs to the end: every number was judged by the rule of its own batch, once."""
        last = self.start()
        last.wait(timeout=300)
        assert last.returncode == 0, self.output.read_text()
        found = Counter((row["file"], row["n"], row["least"]) for row in self.rows("found"))
        expected = [(at, n, self.least(at)) for at in range(self.files) for n in range(self.least(at), RECORDS)]
        assert found == Counter(expected)


@pytest.mark.timeout(900)
def test_kill_9_around_a_change_of_rules_gives_the_same_answers(tmp_path: Path) -> None:
    """One flow, killed once at each point, each time a batch and a change further."""
    killed = KilledRules(tmp_path, files=len(POINTS) + 2)
    for batch, point in enumerate(POINTS, start=1):
        killed.kill_at(f"{point}@{batch}")
    killed.finish()
