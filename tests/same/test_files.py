"""Files are read the same way by every runtime."""

from __future__ import annotations

import datetime
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import PenstockError
from penstock.graph.run import RunSpec
from penstock.kernels.errors.payload import read_payload
from penstock.spark.run import run_bounded, run_live
from penstock.testing import run_local
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
    return Counter(_text(r) for r in collected)


def _text(row: Any) -> str:
    """A row as text; runtimes name the one time zone in different ways."""
    return repr(tuple(row)).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")


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


@pytest.mark.live
def test_csv_by_position_with_a_header_that_agrees(same: Case, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("a,value\n1,x\n2,\n")
    assert read(same, ps.files(tmp_path / "in" / "*.csv", schema="a int, value string"), tmp_path) == Counter(
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


@pytest.mark.live
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


PARTED = "n bigint, city string, day date, at timestamp, size decimal(6,2), good boolean"
MOMENT = datetime.datetime(2026, 5, 1, 12, 30, 15, 500_000, tzinfo=datetime.UTC)
PARTED_ROWS = [
    (1, "Rome", datetime.date(2026, 5, 1), MOMENT, Decimal("1.50"), True),
    (2, "Rome", datetime.date(2026, 5, 1), MOMENT, Decimal("1.50"), True),
    (3, "a/b=c: 100% 'x' [1] {2} ^~#*?\\\"<>|&;", datetime.date(1, 2, 3), MOMENT, Decimal("-0.01"), False),
    (4, "Köln \t\n ünd", None, None, None, None),
    (5, None, datetime.date(2026, 5, 2), MOMENT.replace(microsecond=0), Decimal("10.00"), False),
    (6, "", datetime.date(2026, 5, 2), MOMENT.replace(microsecond=0), Decimal("10.00"), False),
    (7, "%41 .. __HIVE", datetime.date(2026, 5, 2), MOMENT, Decimal("10.00"), False),
]
PARTED_FOLDERS = {
    "city=Rome/day=2026-05-01/at=2026-05-01 12%3A30%3A15.5/size=1.50/good=true",
    "city=a%2Fb%3Dc%3A 100%25 %27x%27 %5B1%5D %7B2} %5E~%23%2A%3F%5C%22<>|&;/day=0001-02-03/at=2026-05-01 12%3A30%3A15.5/size=-0.01/good=false",
    "city=Köln %09%0A ünd/" + "/".join(f"{n}=__HIVE_DEFAULT_PARTITION__" for n in ("day", "at", "size", "good")),
    "city=__HIVE_DEFAULT_PARTITION__/day=2026-05-02/at=2026-05-01 12%3A30%3A15/size=10.00/good=false",
    "city=%2541 .. __HIVE/day=2026-05-02/at=2026-05-01 12%3A30%3A15.5/size=10.00/good=false",
}


@pytest.mark.live
def test_files_in_folders_by_value_are_the_same_everywhere_and_read_back(same: Case, tmp_path: Path) -> None:
    """The names of folders are Spark's own; the empty text becomes null, as Spark has it."""
    by = ("city", "day", "at", "size", "good")
    flow = ps.Flow("parted")
    rows = flow.source("in", ps.items(PARTED_ROWS, PARTED))
    for form in ("json", "csv", "parquet"):
        rows.sink(form, ps.write_files(tmp_path / form, form, partition_by=by))
    for _ in range(2):  # a second run replaces the first
        same.run_local(flow, write=True) if same.in_process else run_bounded(flow.graph, same.spark())
    expected = Counter(repr((n, city or None, *rest)) for n, city, *rest in PARTED_ROWS)
    for form in ("json", "csv", "parquet"):
        made = {p.parent.relative_to(tmp_path / form).as_posix() for p in (tmp_path / form).rglob(f"{form}-*.{form}")}
        made |= {p.parent.relative_to(tmp_path / form).as_posix() for p in (tmp_path / form).rglob(f"{form}-*.*")}
        assert made == PARTED_FOLDERS
        assert read(same, ps.files(tmp_path / form, form, PARTED), tmp_path / f"{form}-checkpoint") == expected


LONG, FITS = "ü" * 130, "ü" * 125


@pytest.mark.parametrize("city", [LONG, "a\0b", "/" * 90])
def test_a_text_that_can_name_no_folder_is_refused_with_its_field(same: Case, tmp_path: Path, city: str) -> None:
    """Not what the file system says of it, and the same everywhere."""
    flow = ps.Flow("long")
    rows = flow.source("in", ps.items([(1, "Rome"), (2, city)], "n int, city string"))
    rows.sink("out", ps.write_files(tmp_path / "out", "json", partition_by="city"))
    with pytest.raises(
        PenstockError, match="sink 'out' refuses a row: field 'city' names a folder, and no folder is named"
    ):
        same.run_local(flow, write=True) if same.in_process else run_bounded(flow.graph, same.spark())
    assert not [p for p in (tmp_path / "out").rglob("out-*") if p.is_file()]


@pytest.mark.spark
def test_a_text_that_can_name_no_folder_becomes_a_dead_letter(penstock_spark: Any, tmp_path: Path) -> None:
    kept: list[Any] = []
    flow = ps.Flow("long")
    given = [(1, "Rome"), (2, LONG), (3, FITS), (4, "a\0b"), (5, None)]
    rows = flow.source("in", ps.items(given, "n int, city string"))
    rows.sink("out", ps.write_files(tmp_path / "out", "json", partition_by="city"), on_error="dead_letter")
    flow.dead_letters("dead", ps.callback(lambda rows, batch: kept.extend(rows)))
    run_bounded(flow.graph, penstock_spark)
    assert sorted(read_payload(letter.payload).row for letter in kept) == [(2, LONG), (4, "a\0b")]
    assert all("field 'city' names a folder" in letter.cause for letter in kept)
    back = ps.Flow("back")
    back.source("in", ps.files(tmp_path / "out", "json", "n int, city string")).sink("out", ps.console())
    assert sorted(run_local(back)["out"]) == [(1, "Rome"), (3, FITS), (5, None)]


def test_folders_that_others_have_made_are_read_with_the_schema_asked_for(same: Case, tmp_path: Path) -> None:
    (tmp_path / "in" / "k=1" / "s=x").mkdir(parents=True)
    (tmp_path / "in" / "k=02" / "s=7").mkdir(parents=True)
    (tmp_path / "in" / "k=1" / "s=x" / "a.json").write_text('{"v": 1}\n')
    (tmp_path / "in" / "k=02" / "s=7" / "a.json").write_text('{"v": 2}\n')
    got = read(same, ps.files(tmp_path / "in", "json", "s string, v bigint, k int"), tmp_path)
    assert got == Counter([repr(("x", 1, 1)), repr(("7", 2, 2))])
    assert str(ps.files_schema(tmp_path / "in", "json")) == "v bigint, k string, s string"
