"""Files: on this machine's disk and through Hadoop's interface, with the same result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.base import Batch
from penstock.connectors.files.sink import FilesSink
from penstock.spark.run import run_bounded

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("scheme", ["", "file://"], ids=["disk", "hadoop"])
def test_a_batch_that_runs_again_replaces_its_own_files(penstock_spark: Any, tmp_path: Path, scheme: str) -> None:
    options = {"path": f"{scheme}{tmp_path}/out", "format": "json"}
    for batch, rows in [(0, 3), (1, 2), (1, 5), (12, 1)]:
        FilesSink().stage(penstock_spark.range(rows), Batch(batch, "out", options)).commit()
    counts: dict[str, int] = {}
    for p in (tmp_path / "out").glob("*.json"):
        counts[p.name[:12]] = counts.get(p.name[:12], 0) + p.read_text().count("\n")
    assert counts == {"out-00000000": 3, "out-00000001": 5, "out-00000012": 1}


def test_what_is_staged_is_not_shown_and_can_be_taken_back(penstock_spark: Any, tmp_path: Path) -> None:
    options = {"path": str(tmp_path / "out"), "format": "parquet"}
    staged = FilesSink().stage(penstock_spark.range(3), Batch(0, "out", options))
    assert staged.rows == 3
    assert list((tmp_path / "out").glob("*.parquet")) == []
    staged.abort()
    assert [p.name for p in (tmp_path / "out").rglob("part-*")] == []


def test_an_empty_batch_leaves_no_file(penstock_spark: Any, tmp_path: Path) -> None:
    flow = ps.Flow("empty")
    flow.source("n", ps.items([1], "n bigint")).where("none", "n > 1").sink("out", ps.write_files(tmp_path / "out"))
    run_bounded(flow.graph, penstock_spark)
    assert list((tmp_path / "out").glob("*.parquet")) == []
