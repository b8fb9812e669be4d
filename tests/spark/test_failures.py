"""A user's error on a worker comes back as the user's own, and nothing is half-written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import CaptureError, RunError, StepError
from penstock.graph.run import RunSpec
from penstock.spark.run import run_bounded, run_live
from penstock.testing import run_local, run_spark

pytestmark = pytest.mark.spark


def parse(row: Any) -> tuple[int]:
    """Fails on what is no number."""
    return (int(row.text),)


def failing() -> ps.Flow:
    flow = ps.Flow("failing")
    flow.source("lines", ps.items([], "text string")).map("parse", parse, "n bigint").sink("out", ps.console())
    return flow


@pytest.mark.parametrize("cuts", [None, 2], ids=["bounded", "live"])
def test_the_error_names_step_record_position_and_the_users_line(penstock_spark: Any, cuts: int | None) -> None:
    with pytest.raises(StepError) as caught:
        run_spark(failing(), penstock_spark, {"lines": ["1", "2", "x3", "4"]}, cuts=cuts)
    failure = caught.value.failure
    assert failure.step == "parse"
    assert "x3" in failure.record
    assert "record" in failure.position
    assert failure.error.startswith("ValueError: invalid literal")
    assert "in parse" in failure.traceback
    assert "int(row.text)" in failure.traceback
    for noise in ("py4j", "org.apache", "penstock/kernels"):
        assert noise not in str(caught.value)


def test_the_local_runtime_says_the_same(penstock_spark: Any) -> None:
    with pytest.raises(StepError) as local:
        run_local(failing(), {"lines": ["1", "x3"]})
    with pytest.raises(StepError) as spark:
        run_spark(failing(), penstock_spark, {"lines": ["1", "x3"]})
    assert local.value.failure.traceback == spark.value.failure.traceback
    assert local.value.failure.record == spark.value.failure.record


def test_a_wrong_type_is_the_steps_fault(penstock_spark: Any) -> None:
    flow = ps.Flow("types")
    flow.source("lines", ps.items([], "text string")).map("size", lambda r: r.text, "n bigint").sink(
        "out", ps.console()
    )
    with pytest.raises(StepError, match="field 'n': bigint needs a whole number, got 'ab'"):
        run_spark(flow, penstock_spark, {"lines": ["ab"]})


def test_nothing_is_half_written_when_one_branch_fails(penstock_spark: Any, tmp_path: Path) -> None:
    flow = ps.Flow("two-sinks")
    lines = flow.source("lines", ps.items(["1", "2", "oops"], "text string"))
    lines.sink("raw", ps.write_files(tmp_path / "raw", "json"))
    lines.map("parse", parse, "n bigint").sink("numbers", ps.write_files(tmp_path / "numbers", "json"))
    with pytest.raises(StepError):
        run_bounded(flow.graph, penstock_spark)
    shown = [p for p in tmp_path.rglob("*.json") if "_penstock" not in p.parts]
    assert shown == []


def test_a_failed_batch_is_done_whole_after_the_fix(penstock_spark: Any, tmp_path: Path) -> None:
    flag = tmp_path / "fixed"

    def fragile(row: Any) -> tuple[int]:
        return (int(row.text) if row.text != "bad" or not flag.exists() else -1,)

    flow = ps.Flow("fragile")
    lines = flow.source("lines", ps.items(["1", "2", "bad", "4"], "text string", batches=2))
    numbers = lines.map("parse", fragile, "n bigint")
    numbers.sink("out", ps.write_files(tmp_path / "out", "json"))
    numbers.key_by(one="1").sum("total", "n").sink("totals", ps.write_files(tmp_path / "totals", "json"))
    options = RunSpec(checkpoint=tmp_path / "checkpoint", mode="once")
    with pytest.raises(StepError):
        run_live(flow.graph, penstock_spark, options).wait()
    flag.touch()
    run_live(flow.graph, penstock_spark, options).wait()
    assert sorted(r["n"] for r in read_json(tmp_path / "out")) == [-1, 1, 2, 4]
    assert read_json(tmp_path / "totals")[-1]["total"] == 6


def read_json(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder of JSON files, in the order of their names."""
    return [json.loads(line) for p in sorted(folder.glob("*.json")) for line in p.read_text().splitlines()]


def test_a_native_error_is_one_sentence(penstock_spark: Any) -> None:
    flow = ps.Flow("native-error")
    flow.source("n", ps.items([], "text string")).select("cast", n="cast(text as int)").sink("out", ps.console())
    with pytest.raises(RunError, match="CAST_INVALID_INPUT") as caught:
        run_spark(flow, penstock_spark, {"n": ["x"]})
    assert "\tat " not in str(caught.value)


def test_what_cannot_travel_is_named(penstock_spark: Any) -> None:
    import threading

    held = {"lock": threading.Lock()}
    flow = ps.Flow("capture")
    flow.source("n", ps.items([1], "n bigint")).map("hold", lambda r: (r.n, held)[0]).sink("out", ps.console())
    with pytest.raises(CaptureError, match=r"step 'hold'.*cannot travel to a worker"):
        run_bounded(flow.graph, penstock_spark)


def test_a_spark_session_in_a_lambda_is_refused_when_the_flow_is_built(penstock_spark: Any) -> None:
    flow = ps.Flow("session")
    numbers = flow.source("n", ps.items([1], "n bigint"))
    with pytest.raises(CaptureError, match="'penstock_spark', a SparkSession"):
        numbers.map("bad", lambda r: penstock_spark.range(r.n).count())


@pytest.mark.parametrize("live", [False, True], ids=["bounded", "live"])
def test_a_bad_line_of_a_file_is_found_in_the_file(penstock_spark: Any, tmp_path: Path, live: bool) -> None:
    (tmp_path / "in").mkdir()
    for name, text in {"a": "1\n2\n", "b": "3\n4\n five \n6\n", "c": "7\n"}.items():
        (tmp_path / "in" / f"{name}.txt").write_text(text)
    flow = ps.Flow("lines")
    lines = flow.source("lines", ps.files(tmp_path / "in", "text"))
    lines.map("strip", lambda r: r.value.strip(), "text string").map("parse", parse, "n bigint").sink(
        "out", ps.console()
    )
    with pytest.raises(StepError) as caught:
        run_in_place(flow, penstock_spark, tmp_path / "checkpoint", live=live)
    assert "made of:  Row(value=' five ')" in str(caught.value)
    assert caught.value.failure.step == "parse"
    assert "b.txt, line 3" in caught.value.failure.position


def run_in_place(flow: ps.Flow, spark: Any, checkpoint: Path, *, live: bool) -> None:
    """Runs a flow over its own sources."""
    if live:
        run_live(flow.graph, spark, RunSpec(checkpoint=checkpoint, mode="once")).wait()
    else:
        run_bounded(flow.graph, spark)
