"""A driver killed at any moment goes on where it was: nothing lost, nothing doubled, windows and all."""

from __future__ import annotations

import json
import os
import random
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.faults import AT_START, POINTS, SETTING
from penstock.graph.endpoints.hive import values_of
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live
from penstock.testing.stores import s3_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WORDS = 60
SHORT = ("state staged", "after sink commit")
"""Those that are tried in every run, one before the state of a batch counts and one after its sinks have it; the slow tier tries all."""
LONG = ("offsets written", "state staged", "manifest published", "after sink commit", "commit logged")
PROGRAM = """
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
import penstock as ps
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live
from penstock.spark.jvm.session import session

class Numbered(ps.Process):
    nth = ps.value(int, default=0)
    def on_event(self, row: Any) -> Iterator[Any]:
        self.nth += 1
        yield row.word, self.nth

def flow_of(folder: Path) -> ps.Flow:
    flow = ps.Flow("kill")
    words = flow.source("words", ps.files(folder / "in", "json", "word string, ts timestamp", files_per_batch=1),
                        event_time="ts", lateness="5s", idle=None)
    def out(name: str, by: tuple[str, ...] = ()) -> Any:
        return ps.write_files(folder / name, "json", partition_by=by)
    numbered = words.key_by("word").process("number", Numbered, "word string, nth bigint")
    numbered.sink("numbered", out("numbered", ("word",)))
    words.key_by("word").count("n").sink("counts", out("counts"))
    windows = words.key_by("word").window(ps.tumbling("10s")).count("times")
    windows.sink("windows", out("windows"))
    return flow

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    options = RunSpec(checkpoint=sys.argv[2], mode="once", drain=True)
    run = run_live(flow_of(folder).graph, session("kill", "local[2,4]"), options)
    print("started", flush=True)
    run.wait()
    print("done", flush=True)
"""


class Killed:
    """A folder with input, a program over it, and what came out.

    Each driver works in a temporary directory of its own, which is deleted when the driver has ended, as that of a machine that is lost.
    """

    def __init__(self, folder: Path, seed: int, files: int = 8, checkpoint: str = "") -> None:
        self.folder, self.rolled = folder, random.Random(seed)
        self.checkpoint, self.machines = checkpoint or str(folder / "checkpoint"), 0
        self.records = [self._record(i) for i in range(files * WORDS)]
        (folder / "in").mkdir()
        (folder / "program.py").write_text(PROGRAM)
        for at in range(files):
            lines = [json.dumps(r) for r in self.records[at * WORDS : (at + 1) * WORDS]]
            path = folder / "in" / f"{at:03d}.json"
            path.write_text("\n".join(lines) + "\n")
            os.utime(path, (1_700_000_000 + at,) * 2)  # Spark takes files by age

    def _record(self, at: int) -> dict[str, Any]:
        second = max(0, at // 4 - self.rolled.randint(0, 4))
        return {"word": self.rolled.choice("abcdefgh"), "ts": f"2024-05-01T10:{second // 60:02d}:{second % 60:02d}Z"}

    def start(self, crash: str = "") -> subprocess.Popen[str]:
        """The program in a process group of its own."""
        with self.output.open("w") as output:
            return subprocess.Popen(
                [sys.executable, str(self.folder / "program.py"), str(self.folder), self.checkpoint],
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
                env={**os.environ, "TMPDIR": str(self._machine()), **({SETTING: crash} if crash else {})},
                cwd=self._machine(),
            )

    def _machine(self) -> Path:
        """The directory of the driver at hand."""
        made = self.folder / f"machine-{self.machines}"
        made.mkdir(exist_ok=True)
        return made

    def _lose_machine(self) -> None:
        shutil.rmtree(self._machine())
        self.machines += 1

    @property
    def output(self) -> Path:
        """What the program says."""
        return self.folder / "output.txt"

    def kill_at(self, point: str) -> None:
        """Runs until the driver dies at a named point (of a batch, or of the first that passes it)."""
        process = self.start(point)
        process.wait(timeout=300)
        _end_group(process.pid)
        self._lose_machine()
        assert process.returncode == -signal.SIGKILL, f"{point}: {self.output.read_text()}"

    def kill_after(self, seconds: float) -> None:
        """Runs for a while, then kills all of it."""
        process = self.start()
        while "started" not in self.output.read_text() and process.poll() is None:
            time.sleep(0.05)
        time.sleep(seconds)
        _end_group(process.pid)
        process.wait()
        self._lose_machine()

    def finish(self) -> None:
        """Runs to the end in a process of its own."""
        last = self.start()
        last.wait(timeout=300)
        assert last.returncode == 0, self.output.read_text()

    def finish_here(self, spark: SparkSession) -> None:
        """Runs to the end in the session of all tests, which has seen nothing of what the drivers did."""
        flow = runpy.run_path(str(self.folder / "program.py"))["flow_of"](self.folder)
        run_live(flow.graph, spark, RunSpec(checkpoint=Path(self.checkpoint), mode="once", drain=True)).wait(0.02)

    def check(self) -> None:
        """Compares with what an uninterrupted run must give."""
        words = Counter(r["word"] for r in self.records)
        assert {r["word"]: r["n"] for r in self.rows("counts")} == words
        numbered = Counter((r["word"], r["nth"]) for r in self.rows("numbered"))
        assert numbered == Counter((w, i) for w, n in words.items() for i in range(1, n + 1))
        windows = Counter((r["word"], r["window_start"][11:18], r["times"]) for r in self.rows("windows"))
        expected = Counter((r["word"], r["ts"][11:18]) for r in self.records)
        assert windows == Counter((w, t, n) for (w, t), n in expected.items())

    def rows(self, sink: str) -> list[dict[str, Any]]:
        """The rows of a sink, in the order of the batches."""
        files = sorted(p for p in (self.folder / sink).rglob("*.json") if "_penstock" not in p.parts)
        return [json.loads(line) | values_of(str(p)) for p in files for line in p.read_text().splitlines()]


def _end_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "points", [pytest.param(SHORT, id="short"), pytest.param(LONG, id="long", marks=pytest.mark.slow)]
)
def test_kill_9_at_every_named_point_around_a_batch(
    tmp_path: Path, points: tuple[str, ...], penstock_spark: SparkSession
) -> None:
    """One flow, killed once at each point, each time a batch further."""
    killed = Killed(tmp_path, seed=7, files=len(points) + 2)
    for batch, point in enumerate(points, start=1):
        killed.kill_at(f"{point}@{batch}")
    killed.finish_here(penstock_spark)
    killed.check()


@pytest.mark.slow  # in every run tests/cluster/test_apart.py loses a driver so, on a cluster
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "points",
    [
        pytest.param(("manifest published",), id="short"),
        pytest.param(("offsets written", "manifest published", "sinks written"), id="long"),
    ],
)
def test_a_driver_that_is_lost_with_its_machine_goes_on_elsewhere_from_the_url(
    tmp_path: Path, points: tuple[str, ...]
) -> None:
    """Nothing but the flow's own file and the URL, in an object store, is left of each driver."""
    with s3_server() as store, store.as_environment() as url:
        killed = Killed(tmp_path, seed=11, files=len(points) + 2, checkpoint=f"{url}/flows/kill")
        for batch, point in enumerate(points, start=1):
            killed.kill_at(f"{point}@{batch}")
        killed.finish()
        killed.check()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(3))
def test_kill_9_at_random_moments_and_named_points(tmp_path: Path, seed: int) -> None:
    """Twelve kills each: named points in any order, with random moments between them."""
    killed = Killed(tmp_path, seed, files=24)
    rolled = random.Random(seed)
    for point in rolled.sample((*POINTS, *AT_START), 6):
        killed.kill_at(point)
        killed.kill_after(rolled.uniform(0.0, 0.8))
    killed.finish()
    killed.check()
