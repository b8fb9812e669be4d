"""What Spark makes of savepoints, changed flows and bootstraps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
import penstock.state as ps_state
from penstock.errors import Impossible, StateError
from penstock.graph.run import RunSpec
from penstock.spark.checkpoint.savepoint import directory_of, take
from penstock.spark.run import run_bounded, run_live

pytestmark = pytest.mark.spark


def put(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text + "\n")


def words(stream: ps.Stream) -> ps.Stream:
    return stream.flat_map("split", lambda r: r.value.split(), "word string")


def files(folder: Path) -> Any:
    return ps.files(folder, "text", files_per_batch=1)


def run(flow: ps.Flow, spark: Any, checkpoint: Path, **more: Any) -> None:
    run_live(flow.graph, spark, RunSpec(checkpoint=checkpoint, mode="once", **more)).wait()


def counted(flow: ps.Flow, stream: ps.Stream, name: str = "count") -> dict[str, int]:
    """Counts words; gives a dict that has the last count of each when the flow has run."""
    last: dict[str, int] = {}
    totals = stream.key_by("word").count(name, into="count")
    totals.sink("out", ps.callback(lambda rows, _: last.update({r[0]: r[1] for r in rows})))
    return last


def one_source(folder: Path) -> tuple[ps.Flow, dict[str, int]]:
    flow = ps.Flow("shop")
    return flow, counted(flow, words(flow.source("one", files(folder / "one"))))


def three_sources(folder: Path) -> tuple[ps.Flow, dict[str, int]]:
    """The changed flow: two more sources, one of them before the old one."""
    flow = ps.Flow("shop")
    zero, one = flow.source("zero", files(folder / "zero")), flow.source("one", files(folder / "one"))
    made = flow.source("made", ps.items([("x y",), ("z",)], "value string", batches=2))
    return flow, counted(flow, words(zero.union("all", one, made)))


def test_a_changed_flow_starts_from_a_savepoint_and_goes_back_to_the_former(
    tmp_path: Path, penstock_spark: Any
) -> None:
    """Sources move, come and go; nothing is read twice, nothing is left out, in folders of their own and in place."""
    put(tmp_path / "one", "0", "a b")
    put(tmp_path / "one", "1", "a")
    put(tmp_path / "zero", "0", "a q")
    old = tmp_path / "ck" / "shop"
    flow, first = one_source(tmp_path)
    run(flow, penstock_spark, old)
    assert first == {"a": 2, "b": 1}
    saved = take(old, directory_of("before", old)).folder
    put(tmp_path / "one", "2", "b")
    new = tmp_path / "other" / "shop"
    flow, last = three_sources(tmp_path)
    run(flow, penstock_spark, new, savepoint=saved)
    assert last == {"a": 3, "b": 2, "q": 1, "x": 1, "y": 1, "z": 1}
    third = tmp_path / "third" / "shop"
    put(tmp_path / "zero", "1", "q")
    flow, last = three_sources(tmp_path)
    run(flow, penstock_spark, third, savepoint=take(new, directory_of("after", new)).folder)
    assert last == {"q": 2}, "the items of the checkpoint itself are not read again, although their path is another"
    flow, last = one_source(tmp_path)
    with pytest.raises(StateError, match="--drop-state zero --drop-state made"):
        run(flow, penstock_spark, third)
    put(tmp_path / "one", "3", "a z")
    run(flow, penstock_spark, third, drop_state=("zero", "made"))
    assert last == {"a": 4, "z": 2}


def test_a_renamed_step_goes_on_with_its_state(tmp_path: Path, penstock_spark: Any) -> None:
    got: list[dict[str, int]] = []
    renames: list[dict[str, Any]] = [{}, {"rename_state": {"count": "totals"}}, {}]
    for number, (name, more) in enumerate(zip(("count", "totals", "totals"), renames, strict=True)):
        put(tmp_path / "one", str(number), "a b")
        flow = ps.Flow("shop")
        got.append(counted(flow, words(flow.source("one", files(tmp_path / "one"))), name))
        run(flow, penstock_spark, tmp_path / "ck", **more)
    assert got == [{"a": n, "b": n} for n in (1, 2, 3)]


def test_a_step_may_gain_an_aggregate_and_a_cell(tmp_path: Path, penstock_spark: Any) -> None:
    """What was kept goes on; what is new begins."""

    class Before(ps.Process):
        seen = ps.value(int, default=0)

        def on_event(self, row: Any) -> Iterator[Any]:
            self.seen += 1
            yield row.word, self.seen, ""

    class After(ps.Process):
        seen = ps.value(int, default=0)
        last = ps.value(str, default="-")

        def on_event(self, row: Any) -> Iterator[Any]:
            self.seen += 1
            yield row.word, self.seen, self.last
            self.last = row.word

    got: list[Any] = []
    for number, (logic, more) in enumerate(((Before, {}), (After, {"longest": "max(length(word))"}))):
        put(tmp_path / "one", str(number), "a")
        flow = ps.Flow("shop")
        stream = words(flow.source("one", files(tmp_path / "one"))).key_by("word")
        stream.aggregate("sums", n="count(*)", **more).sink(
            "out", ps.callback(lambda rows, _: got.extend(map(tuple, rows)))
        )
        made = stream.process("seen", logic, "word string, seen bigint, last string")
        made.sink("seen_out", ps.callback(lambda rows, _: got.extend(map(tuple, rows))))
        run(flow, penstock_spark, tmp_path / "ck")
    assert sorted(got, key=repr) == [("a", 1), ("a", 1, ""), ("a", 2, "-"), ("a", 2, 1)]


def test_a_running_flow_may_gain_its_first_keyed_step(tmp_path: Path, penstock_spark: Any) -> None:
    put(tmp_path / "one", "0", "a b")
    flow = ps.Flow("shop")
    flow.source("one", files(tmp_path / "one")).sink("out", ps.callback(lambda rows, _: None))
    run(flow, penstock_spark, tmp_path / "ck")
    put(tmp_path / "one", "1", "a")
    flow, last = one_source(tmp_path)
    run(flow, penstock_spark, tmp_path / "ck")
    assert last == {"a": 1}


def test_state_can_be_read_as_a_frame(tmp_path: Path, penstock_spark: Any) -> None:
    class Seen(ps.Process):
        times = ps.value(int, default=0)
        lines = ps.list_of(str)

        def on_event(self, row: Any) -> Iterator[Any]:
            self.times += 1
            self.lines.append(row.word)
            yield from ()

    put(tmp_path / "one", "0", "a b a")
    flow = ps.Flow("shop")
    stream = words(flow.source("one", files(tmp_path / "one")))
    stream.key_by("word").process("seen", Seen, "word string").sink("out", ps.callback(lambda rows, _: None))
    run(flow, penstock_spark, tmp_path / "ck")
    found = ps_state.read(tmp_path / "ck", "seen").to_pylist()
    assert sorted((r["word"], r["times"], r["lines"]) for r in found) == [("a", 2, ["a", "a"]), ("b", 1, ["b"])]
    frame = ps_state.frame(penstock_spark, tmp_path / "ck", "seen")
    assert {tuple(r) for r in frame.select("word", "times").collect()} == {("a", 2), ("b", 1)}


def test_a_bootstrap_fills_a_step_before_the_first_batch_and_never_again(tmp_path: Path, penstock_spark: Any) -> None:
    put(tmp_path / "one", "0", "a b")
    history = ps.items([("a",), ("a",), ("c",)], "word string")
    for expected in ({"a": 3, "b": 1}, {"a": 4}):
        flow, last = one_source(tmp_path)
        flow.bootstrap("count", history)
        run(flow, penstock_spark, tmp_path / "ck")
        assert last == expected
        put(tmp_path / "one", "1", "a")
    assert ps_state.versions(tmp_path / "ck")[0] == -1
    kept = ps_state.read(tmp_path / "ck", "count").to_pylist()
    assert {tuple(r.values()) for r in kept} == {("a", 4), ("b", 1), ("c", 1)}


def test_a_bootstrap_may_be_a_stream_of_another_flow(tmp_path: Path, penstock_spark: Any) -> None:
    put(tmp_path / "one", "0", "a b")
    put(tmp_path / "past", "0", "A C")
    flow, last = one_source(tmp_path)
    past = ps.Flow("past").source("lines", files(tmp_path / "past"))
    flow.bootstrap("count", past.flat_map("split", lambda r: r.value.lower().split(), "word string"))
    run(flow, penstock_spark, tmp_path / "ck")
    assert last == {"a": 2, "b": 1}
    with pytest.raises(Impossible, match="a bounded run begins with nothing kept"):
        run_bounded(flow.graph, penstock_spark)


def test_windows_and_joins_go_on_from_a_savepoint_and_can_be_looked_at(tmp_path: Path, penstock_spark: Any) -> None:
    """Open windows and rows that wait for their match, in another folder, with a tick among the sources."""

    def made() -> tuple[ps.Flow, list[Any]]:
        got: list[Any] = []
        flow, schema = ps.Flow("shop"), "user string, ts timestamp"
        left = flow.source("left", ps.files(tmp_path / "left", "json"), schema, event_time="ts")
        right = flow.source("right", ps.files(tmp_path / "right", "json"), schema, event_time="ts")
        counts = left.key_by("user").window(ps.tumbling("1m")).count("n")
        counts.select("counts", "user", "n").sink("counted", ps.callback(lambda rows, _: got.extend(map(tuple, rows))))
        both = left.join("match", right, on="user", within="1m", prefix="right_")
        both.select("pairs", "user").sink("matched", ps.callback(lambda rows, _: got.extend(map(tuple, rows))))
        return flow, got

    def line(user: str, at: str) -> str:
        return f'{{"user": "{user}", "ts": "2024-05-01T12:{at}Z"}}'

    put(tmp_path / "left", "0", line("ada", "00:10"))
    put(tmp_path / "right", "0", line("bob", "00:20"))
    flow, got = made()
    run(flow, penstock_spark, tmp_path / "ck")
    assert got == []
    kept = {s.name: s.kind for s in ps_state.stores(tmp_path / "ck")}
    assert {kept["n"], kept["match@left"], kept["match@right"]} == {"rows"}
    assert ps_state.read(tmp_path / "ck", "match@left").to_pydict()["user"] == ["ada"]
    assert ps_state.read(tmp_path / "ck", "n").num_rows == 1
    saved = take(tmp_path / "ck", tmp_path / "sp").folder
    put(tmp_path / "left", "1", line("bob", "00:30"))
    put(tmp_path / "right", "1", line("ada", "00:40"))
    flow, got = made()
    run(flow, penstock_spark, tmp_path / "new", savepoint=saved, drain=True)
    assert sorted(got) == [("ada",), ("ada", 1), ("bob",), ("bob", 1)]
