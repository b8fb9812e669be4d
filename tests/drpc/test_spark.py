"""Functions on Spark: calls of one live flow, a call that fails, and one that waits while the flow is stopped."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from examples import reach
from penstock.bridge.drpc.calls import CallLimits, Calls
from penstock.drpc import CallError, LogClient
from penstock.graph.graph import Graph
from penstock.log import Log
from tests.drpc.test_functions import Adds, Doubles

pytestmark = pytest.mark.spark


@contextlib.contextmanager
def live(graph: Graph, spark: Any, checkpoint: Path) -> Iterator[None]:
    """A flow that runs until the end of the block."""
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    names = ("tests", "examples")
    run = run_live(graph, spark, RunSpec(checkpoint=checkpoint, by_value=names, interval=3600))
    waits = threading.Thread(target=lambda: run.wait(pause=0.05), daemon=True)
    waits.start()
    try:
        yield
    finally:
        run.ask_to_stop()
        waits.join(300)


def with_topics(folder: Path, function: str) -> None:
    with Log(folder) as log:
        log.create_topic(f"drpc.{function}.requests")
        log.create_topic(f"drpc.{function}.answers")


def test_calls_are_answered_live_at_once_and_those_of_a_stopped_flow_when_it_runs_again(
    penstock_spark: Any, tmp_path: Path
) -> None:
    """The interval of the run is an hour, and no call waits for it."""
    folder = tmp_path / "log"
    with_topics(folder, "double")
    builder = ps.LinearDRPCTopologyBuilder("double", path=folder)
    builder.add_bolt(Doubles, 2)
    builder.add_bolt(Adds).fields_grouping("request")
    with live(builder.graph, penstock_spark, tmp_path / "flow"), LogClient(folder, timeout=300) as client:
        assert client.execute("double", "4") == "9"
        with pytest.raises(CallError, match="ValueError: invalid literal"):
            client.execute("double", "x")
        with ThreadPoolExecutor(12) as pool:
            assert list(pool.map(lambda n: client.execute("double", str(n)), range(12))) == [
                str(2 * n + 1) for n in range(12)
            ]
    with Calls(folder, CallLimits(timeout=300)) as calls:
        _, waiting = calls.start("double", "50")
        with live(builder.graph, penstock_spark, tmp_path / "flow"):
            assert waiting.result(300) == "101"


def test_the_reach_of_a_url_bounded(penstock_spark: Any) -> None:
    from penstock.testing import run_spark

    calls = [("1", "foo.com"), ("2", "engineering.com"), ("3", "nobody.com")]
    rows = run_spark(reach.flow, penstock_spark, {"drpc-reach": calls})["drpc-reach-answers"]
    assert sorted(map(tuple, rows)) == [("1", "10", None), ("2", "7", None), ("3", "0", None)]
