"""Files are read the same way by every runtime."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import PenstockError
from penstock.graph.run import RunSpec
from penstock.spark.run import run_bounded, run_live
from tests.same.conftest import Case


def read(same: Case, endpoint: Any, folder: Path) -> Counter[str]:
    """The rows of an endpoint on the case's runtime."""
    flow = ps.Flow("files")
    collected: list[Any] = []
    flow.source("in", endpoint).sink("out", ps.callback(lambda rows, batch: collected.extend(rows)))
    if same.in_process:
        collected += same.run_local(flow)["out"]
    elif same.runtime == "bounded":
        run_bounded(flow.graph, same.spark())
    else:
        run_live(flow.graph, same.spark(), RunSpec(checkpoint=folder / "checkpoint", mode="once")).wait()
    return Counter(repr(tuple(r)) for r in collected)


def test_text_is_cut_at_line_ends_only(same: Case, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_bytes("one\r\ntwo\x0cstill two\n\nlast\u2028still last".encode())
    (tmp_path / "in" / "_hidden.txt").write_text("no\n")
    got = read(same, ps.files(tmp_path / "in"), tmp_path)
    assert got == Counter(repr((v,)) for v in ["one", "two\x0cstill two", "", "last\u2028still last"])


def test_json_lines_with_nulls_and_lists(same: Case, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"a": 1, "xs": [1, 2]}\n{"a": null, "b": "x"}\n')
    got = read(same, ps.files(tmp_path / "in", "json", "a bigint, b string, xs array<bigint>"), tmp_path)
    assert got == Counter([repr((1, None, [1, 2])), repr((None, "x", None))])


def test_csv_by_position_with_a_header_that_agrees(same: Case, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("a,b\n1,x\n2,\n")
    assert read(same, ps.files(tmp_path / "in" / "*.csv", schema="a int, b string"), tmp_path) == Counter(
        [repr((1, "x")), repr((2, None))]
    )


def test_csv_with_a_header_that_disagrees_is_refused(same: Case, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("b,a\n1,2\n")
    with pytest.raises(PenstockError, match=r"(?i)header"):
        read(same, ps.files(tmp_path / "in", "csv", "a int, b int"), tmp_path)


def test_a_missing_path_is_refused(same: Case, tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match=r"(?i)nothing at|does not exist|PATH_NOT_FOUND"):
        read(same, ps.files(tmp_path / "nowhere", "text"), tmp_path)


def test_what_is_written_can_be_read_again(same: Case, tmp_path: Path) -> None:
    """Parquet keeps every type; a schema is read from the file when none is given."""
    rows = [(1, "a", [1.5]), (2, None, None)]
    flow = ps.Flow("write")
    flow.source("in", ps.items(rows, "n bigint, s string, xs array<double>")).sink(
        "out", ps.write_files(tmp_path / "out")
    )
    same.run_local(flow, write=True) if same.in_process else run_bounded(flow.graph, same.spark())
    schema = ps.files_schema(tmp_path / "out", "parquet")
    assert read(same, ps.files(tmp_path / "out", "parquet", schema), tmp_path) == Counter(map(repr, rows))
