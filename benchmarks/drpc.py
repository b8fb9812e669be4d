"""How long a call of a function takes through two bolts, against one micro-batch of the same flow; and 100 calls at a time against one.

A micro-batch is what Spark says a trigger took: offsets, plan, compute, state, sinks, commit.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import Bar, Result, folder, spark_session
from penstock.drpc import LogClient
from penstock.log import Log

if TYPE_CHECKING:
    from penstock.live.report import BatchReport

NAME = "drpc"
ABOUT = "a call through two bolts against a micro-batch, and 100 calls at a time against one"
AT_A_TIME = 100


class Words(ps.Bolt):
    """A tuple for each word."""

    outputs = "request string, word string"
    stateful = False

    def process(self, tup: Any) -> Iterator[Any]:
        """The words."""
        for word in tup.args.split():
            yield tup.request, word


class Count(ps.Bolt):
    """How many words a request has."""

    outputs = "request string, n bigint"
    stateful = False

    def prepare(self, context: Any) -> None:
        """Begins with nothing."""
        self._counts: dict[str, int] = {}

    def process(self, tup: Any) -> None:
        """One more word."""
        self._counts[tup.request] = self._counts.get(tup.request, 0) + 1

    def finished_id(self, request: str) -> Iterator[Any]:
        """The count."""
        yield request, self._counts.pop(request, 0)


@contextmanager
def served(directory: Path, taken: list[float]) -> Iterator[LogClient]:
    """A client of the function, which runs until the end of the block. `taken` gets the seconds of each batch."""
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    with Log(directory / "log") as log:
        log.create_topic("drpc.count.requests")
        log.create_topic("drpc.count.answers")
    builder = ps.LinearDRPCTopologyBuilder("count", path=directory / "log")
    builder.add_bolt(Words, 2)
    builder.add_bolt(Count, 2).fields_grouping("request")

    def note(report: BatchReport) -> None:
        taken.append(report.total)

    spec = RunSpec(checkpoint=directory / "flow", by_value=(__name__,))
    live = run_live(builder.graph, spark_session(), spec, observers=(note,))
    waits = threading.Thread(target=lambda: live.wait(pause=0.02), daemon=True)
    waits.start()
    try:
        with LogClient(directory / "log", timeout=120) as client:
            yield client
    finally:
        live.ask_to_stop()
        waits.join()


def call(client: LogClient, words: int) -> float:
    """The seconds of one call, whose answer is looked at."""
    began = time.perf_counter()
    assert client.execute("count", "w " * words) == str(words)
    return time.perf_counter() - began


def together(client: LogClient, pool: ThreadPoolExecutor) -> float:
    """The seconds until all of many calls at a time are answered."""
    began = time.perf_counter()
    list(pool.map(lambda n: call(client, n + 1), range(AT_A_TIME)))
    return time.perf_counter() - began


def run(quick: bool = False) -> Result:
    """Calls one after the other, then many at a time."""
    calls, rounds = (10, 3) if quick else (50, 10)
    taken: list[float] = []
    with folder() as directory, served(directory, taken) as client, ThreadPoolExecutor(AT_A_TIME) as pool:
        for _ in range(5):
            call(client, 3)
        taken.clear()
        alone = [call(client, 3) for _ in range(calls)]
        batch = statistics.median(taken)
        together(client, pool)
        many = [together(client, pool) for _ in range(rounds)]
    one, all_of_them = statistics.median(alone), statistics.median(many)
    figures = {"batch": batch, "call_p50": one, "calls_together": all_of_them, "call_most": max(alone)}
    bars = (
        Bar("call_over_batch", one / batch, at_most=1.5),
        Bar("together_over_one", all_of_them / one, at_most=3.0),
    )
    return Result(NAME, figures, bars)
