"""Records that a source cannot read: they stop the flow, become dead letters or are left out, on every runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, StepError
from penstock.graph.run import RunSpec
from penstock.kernels.errors.payload import read_payload
from penstock.spark.run import run_bounded, run_live
from tests.same.conftest import Case

JSON = '{"k": "a", "n": 1}\nnonsense\n{"k": "b", "n": "two"}\n\n{"k": "c", "n": 3}\n{"k": "d", "n": 4.5}\nnonsense\n'
CSV = "k,n\na,1\nb,two\nc\nd,4,5\n\ne,5\n"


class Kept:
    """What the sinks of a flow got, on any runtime."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = {"out": [], "dead": []}

    def sink(self, name: str) -> Any:
        return ps.callback(lambda rows, batch: self.rows[name].extend(rows))

    def run(self, same: Case, flow: ps.Flow, folder: Path) -> list[Any]:
        """Runs the flow; gives the reports of its batches, where the runtime makes any."""
        reports: list[Any] = []
        if same.in_process:
            self.rows |= same.run_local(flow)
        elif same.runtime == "bounded":
            reports += run_bounded(flow.graph, same.spark())
        else:
            options = RunSpec(checkpoint=folder / "checkpoint", mode="once")
            run_live(flow.graph, same.spark(), options, observers=(reports.append,)).wait(pause=0.02)
        return reports


def files_of(folder: Path, form: str, text: str) -> Any:
    (folder / "in").mkdir()
    (folder / "in" / f"a.{form}").write_text(text)
    return ps.files(folder / "in", form, "k string, n bigint")


@pytest.mark.parametrize(
    ("form", "text", "good", "bad"),
    [
        ("json", JSON, ["a", "c"], [(2, "nonsense"), (3, "two"), (6, "4.5"), (7, "nonsense")]),
        ("csv", CSV, ["a", "e"], [(3, "two"), (4, "c"), (5, "d,4,5")]),
    ],
)
@pytest.mark.live("json")
def test_a_line_that_cannot_be_read_becomes_a_dead_letter_with_file_line_and_text(
    same: Case, tmp_path: Path, form: str, text: str, good: list[str], bad: list[tuple[int, str]]
) -> None:
    flow, kept = ps.Flow("malformed"), Kept()
    lines = flow.source("lines", files_of(tmp_path, form, text), on_error="dead_letter")
    lines.where("some", "n is null or n > 0").sink("out", kept.sink("out"))
    flow.dead_letters("dead", kept.sink("dead"))
    reports = kept.run(same, flow, tmp_path)
    assert sorted(r.k for r in kept.rows["out"]) == good
    letters = sorted(kept.rows["dead"], key=lambda r: r.position)
    assert {r.step for r in letters} == {"lines"}
    assert [r.position.rsplit(", ", 1)[-1] for r in letters] == [f"line {n}" for n, _ in bad]
    assert all(f"{tmp_path}/in/a.{form}" in r.position and r.cause for r in letters)
    assert all(
        part in r.record and (read_payload(r.payload).raw or b"").decode() == r.record
        for r, (_, part) in zip(letters, bad, strict=True)
    )
    if same.runtime == "live":
        blank = {"filtered": 1} if form == "json" else {}
        read = len(good) + len(bad) + len(blank)
        assert reports[0].balance == {"read": read, "written": len(good), "dead": len(bad), **blank}


def test_a_line_that_cannot_be_read_can_be_skipped_and_is_counted(same: Case, tmp_path: Path) -> None:
    flow, kept = ps.Flow("skipping"), Kept()
    flow.source("lines", files_of(tmp_path, "json", JSON), on_error="skip").sink("out", kept.sink("out"))
    reports = kept.run(same, flow, tmp_path)
    assert sorted(r.k for r in kept.rows["out"]) == ["a", "c"]
    assert all(r.skipped == {"lines": 4} for r in reports)


@pytest.mark.parametrize(("form", "text", "shown"), [("json", JSON, "nonsense"), ("csv", CSV, "b,two")])
@pytest.mark.live("json")
def test_a_line_that_cannot_be_read_stops_the_flow_and_is_shown(
    same: Case, tmp_path: Path, form: str, text: str, shown: str
) -> None:
    flow, kept = ps.Flow("stops"), Kept()
    flow.source("lines", files_of(tmp_path, form, text)).sink("out", kept.sink("out"))
    with pytest.raises(StepError) as stopped:
        kept.run(same, flow, tmp_path)
    reported = str(stopped.value)
    number = 2 if form == "json" else 3
    assert "step 'lines'" in reported
    assert shown in reported
    assert f"{tmp_path}/in/a.{form}, line {number}" in reported
    assert kept.rows["out"] == []


def test_a_flow_that_keeps_dead_letters_keeps_those_of_its_sources(same: Case, tmp_path: Path) -> None:
    flow, kept = ps.Flow("whole", on_error="dead_letter"), Kept()
    lines = flow.source("lines", files_of(tmp_path, "json", JSON))
    more = flow.source("more", ps.items([("z", 9)], "k string, n bigint"))
    both = lines.union("both", more).map("next", lambda r: (r.k, 1 // (r.n - 1)), "k string, n bigint")
    both.sink("out", kept.sink("out"))
    flow.dead_letters("dead", kept.sink("dead"))
    kept.run(same, flow, tmp_path)
    assert sorted(r.k for r in kept.rows["out"]) == ["c", "z"]
    assert sorted(r.step for r in kept.rows["dead"]) == ["lines"] * 4 + ["next"]


def test_policies_that_make_no_sense_for_a_source_are_refused(tmp_path: Path) -> None:
    flow = ps.Flow("refused")
    with pytest.raises(FlowError, match="does not read better the second time"):
        flow.source("lines", files_of(tmp_path, "json", JSON), on_error=ps.retry(3, then="skip"))
    with pytest.raises(FlowError, match="sources that read records out of text"):
        flow.source("items", ps.items([], "n int"), on_error="skip")
    with pytest.raises(FlowError, match="no error policy 'dead-letter'"):
        flow.source("lines", ps.files(tmp_path / "in", "json", "n int"), on_error="dead-letter")
    with pytest.raises(FlowError, match="said where it is made"):
        flow.source("plain", ps.files(tmp_path / "in", "json", "n int")).on_error("skip")
