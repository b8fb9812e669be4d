"""The checkpoint is brought in line with the ledger when a flow starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.files.manifests import committed_files
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live

pytestmark = pytest.mark.spark


def copying(folder: Path) -> ps.Flow:
    flow = ps.Flow("copy")
    flow.source("in", ps.files(folder / "in", "json", "n bigint")).sink(
        "out", ps.write_files(folder / "out", "json"), delivery="exactly_once"
    )
    return flow


def run_over(spark: Any, folder: Path, name: str, numbers: range) -> None:
    """A run of one batch over one more file."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / name).write_text("".join(f'{{"n": {n}}}\n' for n in numbers))
    run_live(copying(folder).graph, spark, RunSpec(checkpoint=folder / "checkpoint", mode="once")).wait()


def lose(folder: Path, batch: int) -> None:
    """Spark syncs nothing: a power cut may take what it wrote of its last batch."""
    for part in ("offsets", "commits"):
        for name in (str(batch), f".{batch}.crc"):
            (folder / "checkpoint" / "spark" / part / name).unlink(missing_ok=True)


def shown(folder: Path) -> list[int]:
    """The numbers that a reader sees."""
    lines = (line for file in committed_files(str(folder)) for line in Path(file).read_text().splitlines())
    return [json.loads(line)["n"] for line in lines]


def test_offsets_that_a_power_cut_took_are_written_again(penstock_spark: Any, tmp_path: Path) -> None:
    """The sink has the batch, Spark has forgotten it: what came since must not be taken for a part of it."""
    run_over(penstock_spark, tmp_path, "0.json", range(3))
    run_over(penstock_spark, tmp_path, "1.json", range(3, 6))
    lose(tmp_path, 1)
    run_over(penstock_spark, tmp_path, "2.json", range(6, 9))
    assert sorted(shown(tmp_path / "out")) == list(range(9))
