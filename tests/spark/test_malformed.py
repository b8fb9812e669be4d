"""Records that a source on Spark cannot read: values of topics, replay, many of them, and later steps that fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import RunError, StepError
from penstock.graph.run import RunSpec
from penstock.live.dead_letters.replay import Replays
from penstock.live.dead_letters.store import DeadLetterStore
from penstock.log import Log
from penstock.spark.run import run_bounded, run_live

pytestmark = pytest.mark.spark

VALUES = [b'{"n": 1}', b"oops", b"", b"\xff\xfe", b'{"n": "x"}', b'{"n": 2}', b"[1]"]


def topic(folder: Path, *values: bytes | None) -> None:
    with Log(folder / "log") as log:
        if "numbers" not in log.topics():
            log.create_topic("numbers", 1)
        with log.producer() as producer:
            for value in values:
                producer.send("numbers", value)


def run(flow: ps.Flow, spark: Any, folder: Path) -> list[Any]:
    reports: list[Any] = []
    options = RunSpec(checkpoint=folder / "checkpoint", mode="once")
    run_live(flow.graph, spark, options, observers=(reports.append,)).wait(pause=0.02)
    return reports


def flow_of(folder: Path, rows: list[Any], schema: str = "n bigint", **settings: Any) -> ps.Flow:
    flow = ps.Flow("topics")
    numbers = flow.source("numbers", ps.topic("numbers", schema, path=folder / "log"), **settings)
    numbers.sink("out", ps.callback(lambda got, batch: rows.extend(got)))
    return flow


def test_values_of_a_topic_that_are_no_json_become_letters_with_their_offset(
    penstock_spark: Any, tmp_path: Path
) -> None:
    topic(tmp_path, *VALUES)
    rows: list[Any] = []
    (report,) = run(flow_of(tmp_path, rows, on_error="dead_letter"), penstock_spark, tmp_path)
    assert sorted(r.n for r in rows) == [1, 2]
    letters = sorted(
        DeadLetterStore(tmp_path / "checkpoint" / "dead-letters").dead_letters(), key=lambda m: m["position"]
    )
    assert [m["position"].rsplit(" ", 1)[-1] for m in letters] == ["1", "2", "3", "4", "6"]
    assert all("topic numbers, partition 0, offset" in m["position"] for m in letters)
    assert [m["cause"].split(":")[0] for m in letters] == [
        "not JSON",
        "it is empty",
        "the value is not UTF-8",
        "field 'n'",
        "a JSON object is needed, got list",
    ]
    assert report.balance == {"read": 7, "written": 2, "dead": 5}


def test_a_value_of_a_topic_that_is_no_json_stops_the_flow_and_is_shown(penstock_spark: Any, tmp_path: Path) -> None:
    topic(tmp_path, b'{"n": 1}', b"it's 'no' \\ json")
    for go in (lambda flow: run(flow, penstock_spark, tmp_path), lambda flow: run_bounded(flow.graph, penstock_spark)):
        with pytest.raises(StepError) as stopped:
            go(flow_of(tmp_path, []))
        reported = str(stopped.value)
        assert "step 'numbers'" in reported
        assert "it's 'no' \\ json" in reported
        assert "topic numbers, partition 0, offset 1" in reported
        assert "not JSON" in reported
        assert "on_error='dead_letter'" in reported


def test_an_empty_value_is_not_taken_for_a_record_of_nulls(penstock_spark: Any, tmp_path: Path) -> None:
    topic(tmp_path, b"")
    with pytest.raises(StepError, match="it is empty"):
        run(flow_of(tmp_path, []), penstock_spark, tmp_path)


def test_text_that_is_no_text_goes_aside(penstock_spark: Any, tmp_path: Path) -> None:
    topic(tmp_path, b"fine", b"\xff\xfe", None)
    rows: list[Any] = []
    flow = ps.Flow("texts")
    read = flow.source("texts", ps.topic("numbers", format="text", path=tmp_path / "log"), on_error="dead_letter")
    read.sink("out", ps.callback(lambda got, batch: rows.extend(got)))
    run(flow, penstock_spark, tmp_path)
    assert sorted(map(tuple, rows), key=str) == [("fine",), (None,)]
    (letter,) = DeadLetterStore(tmp_path / "checkpoint" / "dead-letters").dead_letters()
    assert letter["cause"] == "the value is not UTF-8"


def test_letters_of_a_source_are_read_again_with_the_schema_it_has_now(penstock_spark: Any, tmp_path: Path) -> None:
    rows: list[Any] = []
    topic(tmp_path, *VALUES)
    run(flow_of(tmp_path, rows, on_error="dead_letter"), penstock_spark, tmp_path)
    letters = list(DeadLetterStore(tmp_path / "checkpoint" / "dead-letters").dead_letters())
    assert Replays(tmp_path / "checkpoint" / "replay").ask(letters) == 5
    topic(tmp_path, b'{"n": 3}')
    rows.clear()
    (report,) = run(flow_of(tmp_path, rows, "n string", on_error="dead_letter"), penstock_spark, tmp_path)
    assert sorted(r.n for r in rows) == ["3", "x"]
    assert report.dead == {"numbers": 4}


@pytest.mark.parametrize("form", ["json", "csv"])
def test_lines_of_files_are_read_again(penstock_spark: Any, tmp_path: Path, form: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text('{"n": 1}\n{"n": "x"}\n' if form == "json" else "n\n1\nx\n")

    def flow(kind: str) -> ps.Flow:
        made = ps.Flow("files")
        read = made.source("lines", ps.files(tmp_path / "in", form, f"n {kind}"), on_error="dead_letter")
        read.sink("out", ps.callback(lambda got, batch: rows.extend(got)))
        return made

    rows: list[Any] = []
    run(flow("bigint"), penstock_spark, tmp_path)
    Replays(tmp_path / "checkpoint" / "replay").ask(
        DeadLetterStore(tmp_path / "checkpoint" / "dead-letters").dead_letters()
    )
    (tmp_path / "in" / "b").write_text('{"n": 3}\n' if form == "json" else "n\n3\n")
    rows.clear()
    run(flow("string"), penstock_spark, tmp_path)
    assert sorted(r.n for r in rows) == ["3", "x"]


def test_a_source_where_nothing_reads_is_broken_and_not_put_aside_whole(penstock_spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text("no\n" * 10_001)
    flow = ps.Flow("broken")
    read = flow.source("lines", ps.files(tmp_path / "in.json", "json", "n bigint"), on_error="dead_letter")
    read.sink("out", ps.console())
    with pytest.raises(RunError, match="taken for a broken flow"):
        run_bounded(flow.graph, penstock_spark)


def half(row: Any) -> Any:
    return 10 // row.n


def test_a_later_step_that_fails_names_the_record_although_lines_before_it_were_put_aside(
    penstock_spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "in.json").write_text('no\n{"n": 1}\nno\n{"n": 0}\n')
    flow = ps.Flow("behind")
    read = flow.source("lines", ps.files(tmp_path / "in.json", "json", "n bigint"), on_error="skip")
    read.map("half", half, "n bigint").sink("out", ps.console())
    with pytest.raises(StepError, match=r"in\.json, record 4"):
        run_bounded(flow.graph, penstock_spark)


def test_the_payload_is_the_bytes_that_came(penstock_spark: Any, tmp_path: Path) -> None:
    topic(tmp_path, b"\x00\xff")
    run(flow_of(tmp_path, [], on_error="dead_letter"), penstock_spark, tmp_path)
    (letter,) = DeadLetterStore(tmp_path / "checkpoint" / "dead-letters").dead_letters()
    assert letter["payload"] == {"raw_base64": "AP8="}


def test_bytes_that_are_no_text_inside_a_json_string_are_not_changed_on_the_way(
    penstock_spark: Any, tmp_path: Path
) -> None:
    topic(tmp_path, b'{"word": "fine"}', b'{"word": "\xff"}')
    rows: list[Any] = []
    run(flow_of(tmp_path, rows, "word string", on_error="dead_letter"), penstock_spark, tmp_path)
    assert [r.word for r in rows] == ["fine"]
    (letter,) = DeadLetterStore(tmp_path / "checkpoint" / "dead-letters").dead_letters()
    assert letter["cause"] == "the value is not UTF-8"
