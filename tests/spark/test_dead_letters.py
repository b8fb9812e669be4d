"""Dead letters on Spark: the store, replay, and records that only bisection finds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import RunError
from penstock.graph.run import RunSpec
from penstock.kernels.errors.payload import read_payload
from penstock.live.dead_letters.replay import Replays
from penstock.live.dead_letters.store import DeadLetterStore
from penstock.spark.run import run_bounded
from penstock.testing import run_spark

pytestmark = pytest.mark.spark


def parse(row: Any) -> int:
    return int(row.text)


def parse_better(row: Any) -> int:
    return int(row.text) if row.text.isdigit() else -1


def flow_of(function: Any, **settings: Any) -> ps.Flow:
    flow = ps.Flow("letters", on_error="dead_letter")
    texts = flow.source("texts", ps.items([], "text string"))
    long = texts.map("same", lambda row: row)
    long.map("parse", function, "n int").key_by("n").count("times").sink("out", ps.console())
    return flow


def test_the_dead_letter_store_keeps_what_no_sink_takes_and_replays_it(penstock_spark: Any, tmp_path: Path) -> None:
    run_spark(flow_of(parse), penstock_spark, {"texts": ["1", "x", "2", "y"]}, cuts={"texts": [2]}, folder=tmp_path)
    letters = list(DeadLetterStore(tmp_path / "dead-letters").dead_letters())
    assert sorted(m["record"] for m in letters) == ["Row(text='x')", "Row(text='y')"]
    assert {m["step"] for m in letters} == {"parse"}
    assert "invalid literal" in letters[0]["cause"]
    assert Replays(tmp_path / "replay").ask(letters) == 2
    results = run_spark(
        flow_of(parse_better),
        penstock_spark,
        {"texts": ["1", "x", "2", "y", "7"]},
        cuts={"texts": [2, 4]},
        folder=tmp_path,
    )
    assert {k: r.times for k, r in results.table("out").items()} == {-1: 2, 7: 1}
    assert len(Replays(tmp_path / "replay").done()) == 2


def united(function: Any) -> ps.Flow:
    """The step that fails stands inside a stage whose records come second in a union: none of its tasks is the first."""
    flow = ps.Flow("united", on_error="dead_letter")
    others = flow.source("others", ps.items([], "n int")).map("other", lambda row: row.n, "n int")
    texts = flow.source("texts", ps.items([], "text string")).map("same", lambda row: row)
    others.union("both", texts.map("parse", function, "n int")).sink("out", ps.console())
    return flow


def test_a_letter_is_replayed_into_a_stage_that_has_no_first_task(penstock_spark: Any, tmp_path: Path) -> None:
    texts = ["2", "x"]
    given: dict[str, list[Any]] = {"others": [1, 1], "texts": texts}
    run_spark(united(parse), penstock_spark, given, cuts={"others": [1], "texts": [1]}, folder=tmp_path)
    assert Replays(tmp_path / "replay").ask(DeadLetterStore(tmp_path / "dead-letters").dead_letters()) == 1
    cuts = {"others": [1, 2], "texts": [1]}
    given = {"others": [1, 1, 3], "texts": texts}
    results = run_spark(united(parse_better), penstock_spark, given, cuts=cuts, folder=tmp_path)
    assert sorted(r.n for r in results["out"]) == [-1, 3]


def test_a_letter_whose_step_is_gone_counts_as_not_replayed(penstock_spark: Any, tmp_path: Path) -> None:
    run_spark(flow_of(parse), penstock_spark, {"texts": ["1", "x"]}, cuts={"texts": [1]}, folder=tmp_path)
    (letter,) = DeadLetterStore(tmp_path / "dead-letters").dead_letters()
    replays = Replays(tmp_path / "replay")
    assert replays.ask([letter | {"step": "gone"}]) == 1
    assert replays.ask([letter | {"step": "gone"}]) == 0, "it waits already"
    assert replays.done() == set(), "no batch has taken it"
    given = {"texts": ["1", "x", "7"]}
    run_spark(flow_of(parse_better), penstock_spark, given, cuts={"texts": [1, 2]}, folder=tmp_path)
    assert replays.done() == set()


def kill(row: Any) -> Any:
    if row.text == "poison":
        os._exit(7)
    return row


def test_a_record_that_kills_the_worker_is_found_and_put_aside(penstock_spark: Any, tmp_path: Path) -> None:
    flow = ps.Flow("poison", on_error="dead_letter")
    texts = flow.source("texts", ps.items([], "text string"))
    texts.map("touch", kill).key_by("text").count("times").sink("out", ps.console())
    flow.dead_letters("dead", ps.console())
    given = [f"t{i}" for i in range(30)]
    given[17] = "poison"
    results = run_spark(flow, penstock_spark, {"texts": given}, cuts=2, folder=tmp_path)
    assert set(results.table("out")) == set(given) - {"poison"}
    (letter,) = results["dead"]
    assert (letter.step, read_payload(letter.payload).row) == ("texts", ("poison",))


def test_a_record_that_breaks_a_native_step_is_found(penstock_spark: Any, tmp_path: Path) -> None:
    flow = ps.Flow("native", on_error="dead_letter")
    texts = flow.source("texts", ps.items([], "text string"))
    texts.select("cast", n="cast(text as int)").sink("out", ps.console())
    flow.dead_letters("dead", ps.console())
    results = run_spark(flow, penstock_spark, {"texts": ["1", "2", "oops", "4"]}, cuts=1, folder=tmp_path)
    assert sorted(r.n for r in results["out"]) == [1, 2, 4]
    assert [read_payload(r.payload).row for r in results["dead"]] == [("oops",)]


def test_a_broken_flow_is_not_taken_for_bad_records(penstock_spark: Any, tmp_path: Path) -> None:
    flow = ps.Flow("broken", on_error="dead_letter")
    flow.source("texts", ps.items([], "text string")).select("cast", n="cast(text as int)").sink("out", ps.console())
    with pytest.raises(RunError):
        run_spark(flow, penstock_spark, {"texts": [f"no{i}" for i in range(60)]}, cuts=1, folder=tmp_path)


def test_letters_of_a_bounded_run_outlast_it(penstock_spark: Any, tmp_path: Path) -> None:
    """Each run has a file and ids of its own."""
    flow = ps.Flow("bounded")
    numbers = flow.source("in", ps.items([1, 0], "n bigint"))
    numbers.map("inverse", lambda r: 1 / r.n, "x double").on_error("dead_letter").sink(
        "out", ps.callback(lambda *_: None)
    )
    for _ in range(2):
        run_bounded(flow.graph, penstock_spark, RunSpec(dead_letters=tmp_path / "dead-letters"))
    letters = list(DeadLetterStore(tmp_path / "dead-letters").dead_letters())
    assert [m["step"] for m in letters] == ["inverse", "inverse"]
    assert len({m["id"] for m in letters}) == 2
