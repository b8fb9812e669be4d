"""Files: on this machine's disk and through Hadoop's interface, with the same result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.base import Batch
from penstock.connectors.files import sink
from penstock.connectors.files.disk import HadoopDisk
from penstock.connectors.files.manifests import Manifests
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


@pytest.mark.parametrize("scheme", ["", "hadoop"], ids=["disk", "hadoop"])
def test_a_batch_by_value_that_runs_again_replaces_its_own_files_in_all_folders(
    penstock_spark: Any, tmp_path: Path, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another try may have its rows in other folders."""
    path = str(tmp_path / "out")
    if scheme:
        monkeypatch.setattr(sink, "disk_of", lambda path: (HadoopDisk(penstock_spark, path), path))
    options = {"path": path, "format": "json", "partition_by": ("a", "b")}
    for batch, rows in [(0, 4), (1, 6), (1, 2), (2, 0)]:
        frame = penstock_spark.range(rows).selectExpr("id", "id % 3 as a", "if(id = 1, null, 'x y') as b")
        FilesSink().stage(frame, Batch(batch, "out", options)).commit()
    found = {
        p.relative_to(path).parent.as_posix(): p.read_text().count("\n") for p in Path(path).rglob("out-00000001-*")
    }
    assert found == {"a=0/b=x y": 1, "a=1/b=__HIVE_DEFAULT_PARTITION__": 1}
    assert sum(p.read_text().count("\n") for p in Path(path).rglob("out-*.json")) == 6


def test_files_by_value_that_wait_aside_are_read_as_if_they_were_in_place(penstock_spark: Any, tmp_path: Path) -> None:
    """A driver that dies after its manifest leaves the files aside: they count."""
    path = str(tmp_path / "out")
    options = {"path": path, "format": "parquet", "partition_by": ("a",)}
    batch = Batch(0, "out", options, delivery="exactly_once", lineage="life", fingerprint="f")
    FilesSink().stage(penstock_spark.range(4).selectExpr("id", "id % 2 as a"), batch).commit()
    second = replace(batch, id=1, fingerprint="g")
    staged = FilesSink().stage(penstock_spark.range(4, 7).selectExpr("id", "id % 2 as a"), second)
    monkey = Manifests.settle
    try:
        Manifests.settle = lambda self, manifest: None  # type: ignore[method-assign]
        staged._commit_once()  # type: ignore[attr-defined]
    finally:
        Manifests.settle = monkey  # type: ignore[method-assign]
    assert len(list(Path(path).rglob("_penstock/out-1-*/a=*/part-*.parquet"))) >= 2
    seen: list[Any] = []
    flow = ps.Flow("again")
    flow.source("in", ps.files(path, "parquet", "id bigint, a bigint")).sink(
        "out", ps.callback(lambda rows, batch: seen.extend(rows))
    )
    run_bounded(flow.graph, penstock_spark)
    assert sorted(tuple(r) for r in seen) == [(n, n % 2) for n in range(7)]
