"""Flows whose checkpoint is a URL: every run works in a directory of its own, and goes on with what is under the URL alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import penstock as ps
import penstock.state as ps_state
from penstock.graph.graph import Graph
from penstock.graph.run import RunSpec
from penstock.live.report import BatchReport
from penstock.spark.run import run_bounded, run_live
from penstock.storage import names_under, storage_at
from tests.command_line import make_app

pytestmark = pytest.mark.spark

NUMBERS = [(3, 3, 0), (1, 1, 0), (4, 4, 0), (6, 6, 0)]


def rows(folder: Path) -> Counter[tuple[Any, ...]]:
    found = [json.loads(line) for path in folder.glob("*.json") for line in path.read_text().splitlines()]
    return Counter(tuple(row.values()) for row in found)


def collatz(out: Path) -> ps.Flow:
    """Items, a loop, a count by key, and a record that breaks a step."""
    flow = ps.Flow("collatz")
    numbers = flow.source("numbers", ps.items(NUMBERS, "start bigint, n bigint, steps bigint", batches=2))
    again = flow.feedback("again", "start bigint, n bigint, steps bigint")
    both = numbers.union("both", again)
    step = both.where("going", "n > 1").map("step", _next).on_error("dead_letter")
    flow.feed(again, step)
    done = both.where("done", "n = 1").select("result", "start", "steps")
    done.sink("out", ps.write_files(out, "json"), delivery="exactly_once")
    done.key_by("start").count("count").sink("seen", ps.callback(lambda rows, batch: None))
    return flow


def _next(row: Any) -> tuple[int, int, int]:
    if row.n == 6:
        raise ValueError("six")
    return row.start, row.n // 2 if row.n % 2 == 0 else 3 * row.n + 1, row.steps + 1


@pytest.mark.parametrize("apart", [(False, False, False, False), (True, False, True, True)], ids=["here", "apart"])
def test_items_loops_state_and_dead_letters_go_on_under_a_url(
    tmp_path: Path, penstock_spark: Any, monkeypatch: pytest.MonkeyPatch, apart: tuple[bool, ...]
) -> None:
    """Whether tasks see the directory of the driver or do not; what one has left the other goes on with."""
    url, out = (tmp_path / "shared").as_uri(), tmp_path / "out"
    answers = iter(apart)
    monkeypatch.setattr("penstock.spark.run.runs_here", lambda spark: not next(answers, False))
    for batches in (1, 2, 3):
        spec = RunSpec.of(checkpoint=url, batches=batches, until_idle="20s")
        run_live(collatz(out).graph, penstock_spark, spec).wait(pause=0.02)
    taken = CliRunner().invoke(make_app(), ["savepoint", url, "half"])
    assert taken.exit_code == 0, taken.output
    reports: list[BatchReport] = []
    spec = RunSpec.of(checkpoint=url, once=True)
    run_live(collatz(out).graph, penstock_spark, spec, observers=(reports.append,)).wait(pause=0.02)
    assert sum(r.sources.get("again", 0) for r in reports) > 0, "records that tasks read from the storage are counted"
    assert not [r.accounting.discrepancies for r in reports if r.accounting and r.accounting.discrepancies]
    assert rows(out) == Counter([(3, 7), (1, 0), (4, 2)])
    assert ps_state.read(url, "count").num_rows == 3
    listed = CliRunner().invoke(make_app(), ["dlq", "list", url, "--json"])
    assert [letter["cause"] for letter in json.loads(listed.output)] == ["ValueError: six"]
    shown = CliRunner().invoke(make_app(), ["state", "list", url])
    assert f"{url}: version" in shown.output
    assert not list(tmp_path.glob("shared/ticks"))

    again = RunSpec.of(
        checkpoint=tmp_path / "kept", savepoint=str(tmp_path.as_uri()) + "/savepoints/shared/half", once=True
    )
    run_live(collatz(tmp_path / "again").graph, penstock_spark, again).wait(pause=0.02)
    assert ps_state.read(tmp_path / "kept", "count").num_rows == 3


class Numbers(ps.Spout):
    """Ten numbers."""

    outputs = "n bigint"

    def __init__(self) -> None:
        self.at = 0

    def next_tuple(self) -> object:
        if self.at == 10:
            return ps.END
        self.emit((self.at,))
        self.at += 1
        return None


def test_a_bounded_run_keeps_what_tasks_elsewhere_need_under_the_url_until_its_end(
    tmp_path: Path, penstock_spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spout, the loop and the state of a flow whose tasks do not see the directory of the driver."""
    monkeypatch.setattr("penstock.spark.run.runs_here", lambda spark: False)
    url, seen = (tmp_path / "shared").as_uri(), set[str]()
    topology = ps.Topology("spouted")
    topology.spout("given", Numbers())
    topology.sink("kept", ps.write_files(tmp_path / "kept", "json"), from_="given")
    both = Graph("both", (*collatz(tmp_path / "out").graph.nodes, *topology.graph.nodes))

    def look(report: BatchReport) -> None:
        seen.update(name.split("/")[2] for name in names_under(storage_at(url), "bounded/"))

    spec = RunSpec.of(checkpoint=url, batch=True, dead_letters=f"{url}/dead")
    run_bounded(both, penstock_spark, spec, observers=(look,))
    assert rows(tmp_path / "out") == Counter([(3, 7), (1, 0), (4, 2)])
    assert rows(tmp_path / "kept") == Counter((n,) for n in range(10))
    assert seen >= {"sources", "loops", "state"}
    assert names_under(storage_at(url), "bounded/") == []
    assert len(names_under(storage_at(url), "dead/")) == 1
