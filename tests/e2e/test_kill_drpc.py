"""A flow that answers calls, killed while calls wait: they are answered when it runs again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.bridge.drpc.calls import CallLimits, Calls
from penstock.faults import SETTING
from penstock.log import Log

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

PROGRAM = """
import sys
from pathlib import Path
import penstock as ps
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live
from penstock.spark.jvm.session import session

FOLDER = Path(sys.argv[1])

class Doubles(ps.BasicBolt):
    outputs = "request string, n bigint"
    def process(self, tup):
        return [(tup.request, 2 * int(tup.args))]

class Adds(ps.BasicBolt):
    outputs = "request string, n bigint"
    def process(self, tup):
        return [(tup.request, tup.n + 1)]

if __name__ == "__main__":
    builder = ps.LinearDRPCTopologyBuilder("double", path=FOLDER / "log")
    builder.add_bolt(Doubles, 2)
    builder.add_bolt(Adds).fields_grouping("request")
    run_live(builder.graph, session("kill", "local[2]"), RunSpec(checkpoint=FOLDER / "checkpoint", interval=3600)).wait()
"""


@contextlib.contextmanager
def driver(folder: Path, crash: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """The flow in a process of its own, which is killed with its JVM at the end."""
    env = {**os.environ, "TMPDIR": str(folder), **({SETTING: crash} if crash else {})}
    command = [sys.executable, str(folder / "program.py"), str(folder)]
    with (folder / "output").open("ab") as output:
        started = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=env, start_new_session=True)
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


@pytest.mark.parametrize("point", ["state staged#1", pytest.param("sinks written#1", marks=pytest.mark.slow)])
def test_calls_that_wait_are_answered_when_the_flow_runs_again(tmp_path: Path, point: str) -> None:
    """The driver is killed in the batch that has the calls: before their answers are written, or after that and before the batch is noted as done."""
    (tmp_path / "program.py").write_text(PROGRAM)
    with Log(tmp_path / "log") as log:
        log.create_topic("drpc.double.requests")
        log.create_topic("drpc.double.answers")
    with Calls(tmp_path / "log", CallLimits(timeout=600)) as calls:
        waiting = [calls.start("double", str(n))[1] for n in range(5)]
        with driver(tmp_path, point) as first:
            assert first.wait(300) == -signal.SIGKILL, (tmp_path / "output").read_text()
        with driver(tmp_path):
            assert [call.result(300) for call in waiting] == [str(2 * n + 1) for n in range(5)]
            assert calls.start("double", "20")[1].result(300) == "41"
