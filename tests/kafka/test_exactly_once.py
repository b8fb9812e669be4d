"""A flow from Kafka to Kafka whose driver is killed at named points: every record arrives once, in order, in whole batches."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.faults import SETTING
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live
from tests.kafka.conftest import Kafka, Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

PROGRAM = """
import sys
from pathlib import Path
import penstock as ps
from penstock.connectors.kafka.jars import kafka_jars
from penstock.graph.endpoints.kafka import kafka, write_kafka
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live
from penstock.spark.jvm.session import session

class Numbered(ps.Process):
    nth = ps.value(int, default=0)
    def on_event(self, row):
        self.nth += 1
        yield row.user, row.n, self.nth

def flow_of(servers, source, sink, most):
    flow = ps.Flow("copy")
    read = flow.source("in", kafka(source, "user string, n bigint", servers=servers, rows_per_batch=int(most)))
    numbered = read.key_by("user").process("number", Numbered, "user string, n bigint, nth bigint")
    numbered.sink("out", write_kafka(sink, servers=servers, key="user"), delivery="exactly_once")
    return flow

if __name__ == "__main__":
    folder, *where = sys.argv[1:]
    spark = session("copy", "local[2,4]", jars=kafka_jars())
    run_live(flow_of(*where).graph, spark, RunSpec(checkpoint=Path(folder), mode="once")).wait()
"""


class Copies:
    """A topic with records, a flow over it in processes of its own, and a reader that looks on."""

    def __init__(self, kafka: Kafka, folder: Path, records: int, per_batch: int) -> None:
        self.kafka, self.folder, self.per_batch = kafka, folder, per_batch
        self.source, self.sink = kafka.topic(2), kafka.topic(2)
        kafka.send(self.source, [(f"u{n % 9}", json.dumps({"user": f"u{n % 9}", "n": n})) for n in range(records)])
        self.records = records
        (folder / "program.py").write_text(PROGRAM)
        self.reader = Reader(kafka.servers, self.sink)
        self.seen: list[Any] = []

    @property
    def where(self) -> list[str]:
        """What the flow must know."""
        return [self.kafka.servers, self.source, self.sink, str(self.per_batch)]

    def start(self, crash: str = "") -> subprocess.Popen[str]:
        """The flow in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, str(self.folder / "program.py"), str(self.folder / "checkpoint"), *self.where],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**os.environ, **({SETTING: crash} if crash else {})},
        )  # fmt: skip

    def run(self, crash: str = "") -> None:
        """Runs to the end, or until the driver dies at a point; the reader looks on."""
        with self.start(crash) as process:
            try:
                output = self._watch(process)
            finally:
                end_group(process.pid)
        assert process.returncode == (-signal.SIGKILL if crash else 0), f"{crash}: {output}"

    def run_here(self, spark: SparkSession) -> None:
        """Runs to the end in the session of all tests; the reader looks on after each batch."""
        flow = runpy.run_path(str(self.folder / "program.py"))["flow_of"](*self.where)
        spec = RunSpec(checkpoint=self.folder / "checkpoint", mode="once")
        run_live(flow.graph, spark, spec, observers=(lambda report: self.look(),)).wait(0.02)

    def _watch(self, process: subprocess.Popen[str]) -> str:
        """What the process says until it ends. The reader looks now and then: looking all the time would take the processor from the flow."""
        while True:
            self.look()
            try:
                return process.communicate(timeout=0.25)[0]
            except subprocess.TimeoutExpired:
                continue

    def look(self) -> None:
        self.seen += self.reader.to_end()

    def check(self) -> None:
        """Nothing lost, nothing doubled, the order of each key kept, and what the reader saw is what is there."""
        self.look()
        self.reader.close()
        rows = [json.loads(m.value()) for m in self.kafka.read(self.sink)]
        assert Counter(r["n"] for r in rows) == Counter(range(self.records))
        assert Counter(json.loads(m.value())["n"] for m in self.seen) == Counter(range(self.records))
        for user in {r["user"] for r in rows}:
            mine = [(r["nth"], r["n"]) for r in rows if r["user"] == user]
            assert mine == sorted(mine)
            assert [nth for nth, _ in mine] == list(range(1, len(mine) + 1))


def end_group(pid: int) -> None:
    """The JVM is in a session of its own and goes when its driver's pipe does; the rest of the group goes here."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("lost", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_driver_killed_around_the_commit_loses_and_doubles_nothing(
    kafka: Kafka, tmp_path: Path, lost: bool, penstock_spark: SparkSession
) -> None:
    """A power cut may also take the offsets of a batch that the sink has: the ledger gives them back."""
    flow = Copies(kafka, tmp_path, records=900, per_batch=200)
    for point in ("before sink commit@1", "after sink commit@2"):
        flow.run(point)
    if lost:
        for name in ("2", ".2.crc"):
            (tmp_path / "checkpoint" / "spark" / "offsets" / name).unlink(missing_ok=True)
    flow.run_here(penstock_spark)
    flow.check()
    assert kafka.lag("penstock-copy-in", flow.source) == 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_driver_killed_twenty_times_loses_and_doubles_nothing(kafka: Kafka, tmp_path: Path) -> None:
    flow = Copies(kafka, tmp_path, records=100_000, per_batch=2_500)
    around = ("offsets written", "staged", "manifest published", "before sink commit", "after sink commit")
    points = (*around, "sink written", "sinks written", "commit logged", "reconcile", "reconciled")
    for at in range(20):
        point = points[at % len(points)]
        flow.run(point if point.startswith("reconcil") else f"{point}@{at + 2}")
    flow.run()
    flow.check()
