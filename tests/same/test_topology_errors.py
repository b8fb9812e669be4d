"""Tuples that a bolt fails on: dead letters, skips and retries in topologies, on every runtime."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import penstock as ps
from penstock import trident
from penstock.errors import FlowError, StepError
from penstock.graph.run import RunSpec
from penstock.kernels.errors.payload import read_payload
from penstock.live.dead_letters.replay import Replays
from penstock.live.dead_letters.store import DeadLetterStore
from penstock.spark.run import run_live
from penstock.testing import TrackedTopology, run_local
from tests.same.conftest import Case

GIVEN = [("a", "1"), ("b", "x"), ("a", "2"), ("b", "3"), ("a", "y"), ("c", "z"), ("c", "4")]
BAD = [("a", "y"), ("b", "x"), ("c", "z")]


class Parse(ps.Bolt):
    """Emits before it fails: what it emitted for that tuple must not stay."""

    outputs = "k string, n bigint"
    stateful = False

    def process(self, tup: Any) -> None:
        self.emit((tup.k, 0))
        self.emit((tup.k, int(tup.text)))


class Count(ps.Bolt):
    """Fails after it has counted the tuple."""

    outputs = "k string, n bigint"

    def prepare(self, context: Any) -> None:
        self.n: dict[str, int] = {}

    def process(self, tup: Any) -> Iterator[Any]:
        int(tup.text)
        self.n[tup.k] = self.n.get(tup.k, 0) + 1
        yield tup.k, self.n[tup.k]


def topology(bolt: type[ps.Bolt], *, by_key: bool = False, **said: Any) -> ps.Topology:
    made = ps.Topology("errors", **said)
    made.spout("texts", ps.items([], "k string, text string"))
    declared = made.bolt("step", bolt, parallelism=2)
    declared.fields("texts", "k") if by_key else declared.shuffle("texts")
    made.sink("out", ps.console(), from_="step")
    return made


@pytest.mark.live
def test_a_tuple_that_fails_becomes_a_dead_letter_and_leaves_nothing(same: Case) -> None:
    made = topology(Parse, on_error="dead_letter")
    made.dead_letters("dead", ps.console())
    results = same.run(made, {"texts": GIVEN})
    expected = [(k, n) for k, text in GIVEN if text.isdigit() for n in (0, int(text))]
    assert sorted(map(tuple, results["out"])) == sorted(expected)
    assert sorted(read_payload(r.payload).row[:2] for r in results["dead"]) == BAD
    assert all(r.step == "step" and "invalid literal for int()" in r.cause for r in results["dead"])


@pytest.mark.live
def test_a_bolt_with_state_goes_on_without_the_tuple(same: Case) -> None:
    made = topology(Count, by_key=True, on_error="skip")
    same.check(made, {"texts": GIVEN}, {"out": [("a", 1), ("a", 2), ("b", 1), ("c", 1)]})


class Flaky(ps.Bolt):
    """Fails on each tuple once."""

    outputs = "k string, n bigint"
    stateful = False

    def prepare(self, context: Any) -> None:
        self._seen: set[Any] = set()

    def process(self, tup: Any) -> None:
        self.emit((tup.k, 1))
        if tuple(tup) not in self._seen:
            self._seen.add(tuple(tup))
            raise ConnectionError("not now")


def test_a_retry_tries_the_tuple_again_and_doubles_nothing(same: Case) -> None:
    made = topology(Flaky, on_error=ps.retry(1, "1ms"))
    same.check(made, {"texts": GIVEN}, {"out": [(k, 1) for k, _ in GIVEN]})


class Wrong(ps.Bolt):
    outputs = "k string, n bigint"
    stateful = False

    def process(self, tup: Any) -> Iterator[Any]:
        yield tup.k, int(tup.text) if tup.text.isdigit() else tup.text


def test_what_does_not_fit_its_stream_is_blamed_on_the_tuple(same: Case) -> None:
    same.check(topology(Wrong, on_error="skip"), {"texts": GIVEN}, {"out": [("a", 1), ("a", 2), ("b", 3), ("c", 4)]})


def test_without_a_policy_the_run_stops(same: Case) -> None:
    with pytest.raises(StepError, match="invalid literal"):
        same.run(topology(Parse), {"texts": GIVEN})


def test_a_bolt_and_an_endpoint_say_it_for_themselves(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"k":"a","text":"1"}\nnonsense\n{"k":"b","text":"x"}\n')
    made = ps.Topology("own")
    made.spout("texts", ps.files(tmp_path / "in", "json", "k string, text string"), on_error="dead_letter")
    made.bolt("step", Wrong, on_error="dead_letter").shuffle("texts")
    made.sink("out", ps.console(), from_="step")
    made.dead_letters("dead", ps.console())
    results = run_local(made)
    assert results["out"] == [("a", 1)]
    assert sorted(r.step for r in results["dead"]) == ["step", "texts"]


class Numbers(ps.Spout):
    """What a service outside may send: not all of it is a tuple."""

    outputs: Any = "k string, n bigint, at timestamp"
    emitted: ClassVar[list[Any]] = [
        ("a", 1, None),
        ("b", "x", None),
        ("c", 2**70, None),
        ("d",),
        {"k": object()},
        7,
        ("e", 2, "10000-01-01"),
        ("f", 3, None),
    ]
    good = [("a", 1, None), ("f", 3, None)]

    def __init__(self) -> None:
        self.at = 0

    def next_tuple(self) -> Any:
        if self.at == len(self.emitted):
            return ps.END
        self.at += 2
        for record in self.emitted[self.at - 2 : self.at]:
            self.emit(record)
        return None


class SeveralStreams(Numbers):
    outputs = {"default": "k string, n bigint, at timestamp", "more": "word string"}

    def next_tuple(self) -> Any:
        self.emit(("w",), stream="more")
        return super().next_tuple()


def hostile(spout: type[ps.Spout], on_error: Any) -> ps.Topology:
    made = ps.Topology("hostile")
    made.spout("numbers", spout, on_error=on_error)
    made.sink("out", ps.console(), from_="numbers")
    made.dead_letters("dead", ps.console())
    return made


@pytest.mark.live
@pytest.mark.parametrize("spout", [Numbers, SeveralStreams])
def test_a_tuple_of_a_spout_that_does_not_fit_becomes_a_dead_letter(same: Case, spout: type[ps.Spout]) -> None:
    results = same.run(hostile(spout, "dead_letter"), {})
    assert sorted(map(tuple, results["out"])) == Numbers.good
    dead = results["dead"]
    assert len(dead) == len(Numbers.emitted) - len(Numbers.good)
    assert all(r.step == "numbers" and ", tuple " in r.position and "of task 0" in r.position for r in dead)
    assert any(b'"k": "b"' in (read_payload(r.payload).raw or b"") for r in dead)


def test_a_spout_may_skip_what_does_not_fit_or_stop_at_it(same: Case) -> None:
    same.check(hostile(Numbers, "skip"), {}, {"out": Numbers.good})
    if same.in_process:
        with pytest.raises(StepError, match="bigint"):
            same.run(hostile(Numbers, None), {})


def test_a_policy_that_is_none_is_refused() -> None:
    with pytest.raises(FlowError, match="no error policy 'ignore'"):
        ps.Topology("wrong", on_error="ignore")
    with pytest.raises(FlowError, match="does not read better the second time"):
        hostile(Numbers, ps.retry(2)).graph  # noqa: B018 - it is built here


class Reliable(Numbers):
    reliable = True
    heard: ClassVar[list[Any]] = []

    def next_tuple(self) -> Any:
        for number, record in enumerate(self.emitted):
            self.emit(record, id=number)
        return ps.END

    def ack(self, tuple_id: Any) -> None:
        Reliable.heard.append(tuple_id)


def test_a_message_that_does_not_fit_is_acked_once_it_is_a_dead_letter() -> None:
    Reliable.heard.clear()
    made = hostile(Reliable, "dead_letter")
    results = run_local(made)
    assert sorted(map(tuple, results["out"])) == Numbers.good
    assert sorted(Reliable.heard) == list(range(len(Numbers.emitted)))


@pytest.mark.spark
def test_a_tuple_of_a_spout_is_mended_and_replayed(penstock_spark: Any, tmp_path: Path) -> None:
    got: list[Any] = []
    made = ps.Topology("mended")
    made.spout("numbers", Numbers, on_error="dead_letter")
    made.sink("out", ps.callback(lambda rows, _: got.extend(map(tuple, rows))), from_="numbers")
    spec = RunSpec(checkpoint=tmp_path / "c", mode="once")
    run_live(made.graph, penstock_spark, spec).wait(pause=0.02)
    assert sorted(got) == Numbers.good
    kept = DeadLetterStore(tmp_path / "c" / "dead-letters")
    (letter,) = [each for each in kept.dead_letters() if '\\"b\\"' in json.dumps(each["payload"])]
    mended = json.loads(json.dumps(letter["payload"]).replace('\\"x\\"', "9"))
    Replays(tmp_path / "c" / "replay").ask([{**letter, "payload": mended}])
    run_live(made.graph, penstock_spark, spec).wait(pause=0.02)
    assert sorted(got) == sorted([*Numbers.good, ("b", 9, None)])


class ToNumber(trident.Function):
    def execute(self, tup: Any, collector: Any) -> None:
        collector.emit(int(tup[0]))


def test_trident_goes_on_without_the_tuple(same: Case) -> None:
    made = ps.TridentTopology("errors", on_error="skip")
    stream = made.new_stream("texts", ps.items([], "k string, text string"))
    stream.each("text", ToNumber, "n bigint").project("k", "n").sink("out", ps.console())
    same.check(made, {"texts": GIVEN}, {"out": [("a", 1), ("a", 2), ("b", 3), ("c", 4)]})


class Emits(ps.Spout):
    """Three messages, of which a bolt cannot take the second."""

    outputs = "k string, text string"
    reliable = True

    def open(self, context: Any) -> None:
        self.left = [("a", "1"), ("b", "x"), ("c", "3")]

    def next_tuple(self) -> Any:
        if not self.left:
            return ps.END
        record = self.left.pop(0)
        self.emit(record, id=record[0])
        return None


class Held(ps.Bolt):
    """Acks by itself, after its work: a tuple that fails has no ack of its own."""

    outputs = "k string, n bigint"
    auto_ack = False

    def process(self, tup: Any) -> None:
        self.emit((tup.k, 0), anchors=[tup])
        self.emit((tup.k, int(tup.text)), anchors=[tup])
        self.ack(tup)


@pytest.mark.parametrize("bolt", [Parse, Held])
def test_a_message_whose_tuple_is_a_dead_letter_is_acked_and_not_replayed(bolt: type[ps.Bolt]) -> None:
    made = ps.Topology("acks", on_error="dead_letter")
    made.spout("texts", Emits)
    made.bolt("step", bolt).shuffle("texts")
    made.sink("out", ps.console(), from_="step")
    made.dead_letters("dead", ps.console())
    tracked = TrackedTopology(made)
    results = tracked.run()
    assert sorted(tracked.acked("texts")) == ["a", "b", "c"]
    assert tracked.failed("texts") == []
    assert tracked.is_done
    assert sorted(map(tuple, results["out"])) == [("a", 0), ("a", 1), ("c", 0), ("c", 3)]
    assert len(results["dead"]) == 1


class ByTime(ps.WindowedBolt):
    """Fails on a window with a text that is no number, after it has emitted something."""

    outputs = "many bigint, total bigint"
    window, timestamp_field = "10s", "at"

    def process_window(self, window: Any) -> Iterator[Any]:
        yield 0, 0
        yield len(window), sum(int(tup.text) for tup in window)


class BySliding(ByTime):
    slide = "5s"


def windowed(bolt: type[ps.Bolt], config: Any = None, **said: Any) -> ps.Topology:
    made = ps.Topology("windows", **said)
    made.spout("texts", ps.items([], "at bigint, text string"))
    made.bolt("window", bolt, config=config).global_("texts")
    made.sink("out", ps.console(), from_="window")
    made.dead_letters("dead", ps.console())
    return made


TIMED = [(1_000, "1"), (6_000, "2"), (11_000, "x"), (19_000, "3"), (21_000, "4"), (28_000, "5")]


@pytest.mark.live
def test_a_window_that_fails_is_put_aside_tuple_by_tuple(same: Case) -> None:
    results = same.run(windowed(ByTime, on_error="dead_letter"), {"texts": TIMED})
    assert sorted(map(tuple, results["out"])) == [(0, 0), (0, 0), (2, 3), (2, 9)]
    assert sorted(read_payload(r.payload).row for r in results["dead"]) == TIMED[2:4]
    assert all(r.step == "window" and "invalid literal for int()" in r.cause for r in results["dead"])


def test_a_tuple_of_several_windows_that_fail_is_put_aside_once(same: Case) -> None:
    results = same.run(windowed(BySliding, on_error="dead_letter"), {"texts": TIMED})
    put_aside = [read_payload(r.payload).row for r in results["dead"]]
    assert len(put_aside) == len(set(put_aside))
    assert TIMED[2] in put_aside
    assert (2, 7) in [tuple(r) for r in results["out"]]


class ByCount(ps.WindowedBolt):
    """Fails on each window once."""

    outputs = "total bigint"
    window = 2

    def prepare(self, context: Any) -> None:
        self._seen: set[Any] = set()

    def process_window(self, window: Any) -> Iterator[Any]:
        texts = tuple(tup.text for tup in window)
        if texts not in self._seen:
            self._seen.add(texts)
            raise ConnectionError("not now")
        yield sum(map(int, texts))


def test_a_retry_of_a_window_takes_no_tuple_twice(same: Case) -> None:
    given = [(n, str(n)) for n in range(4)]
    made = windowed(ByCount, on_error=ps.retry(1, "1ms"))
    assert sorted(map(tuple, same.run(made, {"texts": given})["out"])) == [(1,), (5,)]


class Ticked(ps.Bolt):
    """Fails at every second tick, after it has emitted something."""

    outputs = "what string"

    def prepare(self, context: Any) -> None:
        self.ticks = 0

    def process(self, tup: Any) -> Iterator[Any]:
        if tup.is_tick:
            self.ticks += 1
        yield f"tick {self.ticks}" if tup.is_tick else tup.text
        if tup.is_tick and self.ticks % 2:
            raise ValueError("an odd tick")


def test_a_tick_that_fails_is_left_out_and_the_run_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    made = windowed(Ticked, {"topology.tick.tuple.freq.secs": 10}, on_error="dead_letter")
    tracked = TrackedTopology(made)
    tracked.push("texts", (0, "a text"))
    tracked.advance(45)
    assert [row.what for row in tracked.driver.results()["out"]] == ["a text", "tick 2", "tick 4"]
    assert "ValueError: an odd tick" in caplog.text
