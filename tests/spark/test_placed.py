"""Steps that a run keeps apart are never run by the same Python worker, though Spark hands workers from task to task otherwise."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import OptionError
from penstock.graph.run import RunSpec
from penstock.spark.run import run_bounded, run_live

pytestmark = pytest.mark.spark


class Number(ps.Process):
    nth = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.nth += 1
        yield row.word, row.pid, os.getpid()


def flow(folder: Path) -> ps.Flow:
    made = ps.Flow("placed")
    lines = made.source("lines", ps.items(["a b c d"] * 40, "line string"))
    words = lines.flat_map("split", lambda r: ((w, os.getpid()) for w in r.line.split()), schema="word string, pid int")
    numbered = words.key_by("word").process("number", Number, "word string, pid int, other int")
    numbered.sink("out", ps.write_files(folder, "json"))
    return made


def workers(folder: Path) -> tuple[set[int], set[int]]:
    """The processes of either step."""
    rows = [json.loads(line) for file in folder.glob("*.json") for line in file.read_text().splitlines()]
    assert len(rows) == 160
    return {row["pid"] for row in rows}, {row["other"] for row in rows}


def test_steps_share_workers_unless_they_are_kept_apart(penstock_spark: Any, tmp_path: Path) -> None:
    one, two = set[int](), set[int]()
    for turn in range(20):  # Spark takes the worker that has waited longest, which one run alone need not meet twice
        skipped = penstock_spark.range(0, turn, 1, 1).mapInArrow(lambda batches: batches, "id bigint")
        skipped.collect()  # one worker more has its turn
        run_bounded(flow(tmp_path / f"shared-{turn}").graph, penstock_spark)
        first, second = workers(tmp_path / f"shared-{turn}")
        one, two = one | first, two | second
        if one & two:
            break
    assert one & two
    run_bounded(flow(tmp_path / "apart").graph, penstock_spark, RunSpec(place=("apart=split,number",)))
    three, four = workers(tmp_path / "apart")
    assert not three & four
    assert not (three | four) & (one | two)


def test_steps_are_kept_apart_in_every_batch(penstock_spark: Any, tmp_path: Path) -> None:
    spec = RunSpec(mode="once", place=("apart=split,number",), checkpoint=tmp_path / "kept", max_rows=20)
    run_live(flow(tmp_path / "live").graph, penstock_spark, spec).wait()
    one, two = workers(tmp_path / "live")
    assert not one & two


def test_without_executors_nothing_is_alone(penstock_spark: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"'number' needs executors, and local.* has one JVM for all"):
        run_bounded(flow(tmp_path).graph, penstock_spark, RunSpec(place=("alone=number",)))
