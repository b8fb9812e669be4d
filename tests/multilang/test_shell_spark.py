"""A program as a bolt in Spark's workers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.testing import run_spark

PROGRAM = Path(__file__).parent / "programs" / "words.py"


@pytest.mark.spark
def test_a_program_counts_over_batches_on_spark(penstock_spark: Any) -> None:
    """Its counts go on from batch to batch where its worker has the task again, and begin anew in another one; within a batch it is one process."""
    top = ps.Topology("shell-on-spark")
    top.spout("words", ps.items([], "word string"))
    bolt = ps.ShellBolt([sys.executable, str(PROGRAM), "Count"], "word string, n bigint")
    top.bolt("count", bolt).fields("words", "word")
    top.sink("out", ps.console(), from_="count")
    given = {"words": ["a", "b", "a", "a"]}
    results = run_spark(top, penstock_spark, given, cuts={"words": [2]})
    assert sorted(results["out"]) in (
        [("a", 1), ("a", 2), ("a", 3), ("b", 1)],
        [("a", 1), ("a", 1), ("a", 2), ("b", 1)],
    )
