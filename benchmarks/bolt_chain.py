"""Five Python bolts without regrouping, against one that does the same work."""

from __future__ import annotations

from typing import Any

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session
from benchmarks.topology import Lines, drain
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph

NAME = "bolt-chain"
ABOUT = "5 Python bolts without regrouping, against 1 bolt that does the same work"
WORK = 20
"""How much each step does with a line."""


def work(line: str) -> str:
    """A part of the work."""
    for _ in range(WORK):
        line = line.swapcase()
    return line


class Step(ps.BasicBolt):
    """So many parts of the work."""

    outputs = "line string"
    stateful = False

    def __init__(self, parts: int) -> None:
        self.parts = parts

    def process(self, tup: Any) -> Any:
        """The line after its work."""
        line = tup.line
        for _ in range(self.parts):
            line = work(line)
        return (line,)


def graph(lines: int, bolts: int) -> Graph:
    """A chain of bolts that do five parts together."""
    top = ps.Topology("bolt-chain")
    top.spout("lines", Lines(lines, False))
    top.bolt("bolt-0", Step(5 // bolts), parallelism=2).shuffle("lines")
    for at in range(1, bolts):
        top.bolt(f"bolt-{at}", Step(5 // bolts), parallelism=2).local_or_shuffle(f"bolt-{at - 1}")
    top.sink("out", nothing(), from_=f"bolt-{bolts - 1}")
    return top.graph


def run(quick: bool) -> Result:
    """One and five bolts in turns."""
    lines, rounds = (100_000, 2) if quick else (1_000_000, 5)
    spark = spark_session()
    with folder() as directory:
        runs = {
            "one": lambda: drain(spark, graph(lines, 1), directory / "one", __name__),
            "five": lambda: drain(spark, graph(lines, 5), directory / "five", __name__),
        }
        taken = alternate(runs, rounds)
    figures = {f"{name}_seconds": value for name, value in medians(taken).items()}
    return Result(
        NAME, {"lines": lines, **figures}, (Bar("time over one bolt", paired_ratio(taken, "five", "one"), at_most=1.5),)
    )
