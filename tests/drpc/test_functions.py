"""Functions that are called from outside, in this process: chains of bolts and Trident streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from examples import reach, trident_word_count
from penstock import trident
from penstock.errors import CallError, FlowError, SchemaError, UnknownName
from penstock.log import Log
from penstock.testing import LocalDRPC, run_local


def test_the_reach_of_a_url_counts_each_follower_once_and_that_of_an_unknown_one_is_zero() -> None:
    drpc = LocalDRPC(reach.flow)
    assert drpc.execute_all("reach", ["foo.com", "engineering.com", "quiet.com", "nobody.com"]) == ["10", "7", "0", "0"]
    assert drpc.execute("reach", "foo.com") == "10"


def test_trident_word_count_answers_with_the_state_of_the_batch() -> None:
    drpc = LocalDRPC(trident_word_count.flow)
    drpc.push("sentences", *trident_word_count.SENTENCES)
    assert drpc.execute_all("words", ["the man", "zebra", "the and"]) == ["[[5]]", "[[0]]", "[[6]]"]


@pytest.mark.parametrize("module", [reach, trident_word_count])
def test_every_step_of_a_function_has_the_line_that_made_it_whoever_asks_for_the_graph(module: Any) -> None:
    lines = {node.line.partition(":")[0] for node in module.flow.graph.nodes}
    assert lines == {f"{module.__name__.rpartition('.')[2]}.py"}


class Doubles(ps.Bolt):
    """Fails on what is no number, and keeps how often it was asked."""

    outputs = "request string, n bigint"

    def prepare(self, context: Any) -> None:
        self.asked = 0

    def process(self, tup: Any) -> Any:
        self.asked += 1
        if tup.args == "none":
            return
        if tup.args == "refused":
            raise ps.FailedException("not today")
        yield tup[0], 2 * int(tup.args)


class Adds(ps.Bolt):
    outputs = "request string, text string, more string"
    stateful = False

    def process(self, tup: Any) -> None:
        self.emit((tup.request, f"{tup.n + 1}", "not seen"))


def doubling() -> ps.LinearDRPCTopologyBuilder:
    builder = ps.LinearDRPCTopologyBuilder("double")
    builder.add_bolt(Doubles, 2)
    builder.add_bolt(Adds).fields_grouping("request")
    return builder


def test_the_answer_is_the_second_field_of_the_last_bolt() -> None:
    assert LocalDRPC(doubling()).execute_all("double", ["1", "2", "21"]) == ["3", "5", "43"]


def test_a_request_on_which_a_bolt_fails_is_answered_so_and_the_others_go_on() -> None:
    drpc = LocalDRPC(doubling())
    drpc.driver.push("drpc-double", ("good", "4"), ("bad", "four"), ("no", "refused"), ("nothing", "none"))
    rows = {row[0]: tuple(row[1:]) for row in drpc.driver.barrier()["drpc-double-answers"]}
    assert rows["good"] == ("9", None)
    assert rows["bad"][0] is None
    assert rows["bad"][1].startswith("ValueError: invalid literal")
    assert rows["no"] == (None, "FailedException: not today")
    assert rows["nothing"] == (None, "the function returned no result for this request")
    with pytest.raises(CallError, match="function 'double' failed: ValueError"):
        drpc.execute("double", "x")
    assert drpc.execute("double", "1") == "3"


def test_a_request_that_was_not_committed_is_answered_after_a_crash() -> None:
    drpc = LocalDRPC(doubling())
    drpc.driver.push("drpc-double", ("first", "4"))
    drpc.driver.crash()
    assert drpc.driver.barrier()["drpc-double-answers"] == [("first", "9", None)]


class Explodes(trident.Aggregator):
    def aggregate(self, state: Any, tup: Any, collector: trident.Collector) -> None:
        if tup.word == "bad":
            raise ValueError("a bad word")

    def complete(self, state: Any, collector: trident.Collector) -> None:
        collector.emit("fine")


@pytest.mark.parametrize("dealt", [False, True])
def test_a_call_of_a_trident_stream_that_fails_fails_alone(dealt: bool) -> None:
    top = ps.TridentTopology("failing")
    calls = top.new_drpc_stream("check").each("args", trident.Split, "word string")
    calls = calls.shuffle(parallelism=2) if dealt else calls
    calls = calls.map(lambda tup: tup.word if tup.word != "worse" else tup.missing, "word string")
    calls.aggregate("word", Explodes, "what string")
    drpc = LocalDRPC(top)
    assert drpc.execute("check", "good") == '[["fine"]]'
    with pytest.raises(CallError, match="ValueError: a bad word"):
        drpc.execute("check", "good bad")
    with pytest.raises(CallError, match="AttributeError"):
        drpc.execute_all("check", ["good", "worse"])


def test_each_call_is_a_batch_of_its_own() -> None:
    top = ps.TridentTopology("calls")
    words = top.new_drpc_stream("count").each("args", trident.Split, "word string")
    parts = words.batch_global(parallelism=2).partition_aggregate("word", trident.Count, "n bigint")
    best = words.group_by("word").aggregate((), trident.Count, "m bigint").max_by("m")
    top.join(
        [
            parts.map(lambda tup: (1, tup.n), "k int, n bigint"),
            best.map(lambda tup: (1, tup.word), "k int, word string"),
        ],
        ["k", "k"],
    )
    found = [json.loads(text) for text in LocalDRPC(top).execute_all("count", ["a a b", "c", "d e e e"])]
    assert found == [[[1, 3, "a"]], [[1, 1, "c"]], [[1, 4, "e"]]]


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(UnknownName, match="'half'"):
        LocalDRPC(doubling()).execute("half", "1")
    with pytest.raises(FlowError, match="expected a bolt, got none"):
        _ = ps.LinearDRPCTopologyBuilder("empty").graph
    with pytest.raises(FlowError, match="'a b'"):
        ps.LinearDRPCTopologyBuilder("a b")
    with pytest.raises(FlowError, match="at least one field"):
        doubling().add_bolt(Adds).fields_grouping()


class Lonely(Doubles):
    outputs = "request string"


class Numbered(Doubles):
    outputs = "n bigint, request string"


class Failing(Doubles):
    outputs = {"default": "request string, n bigint", "failed": "request string"}  # type: ignore[assignment]  # as users do


@pytest.mark.parametrize(
    ("bolt", "error", "text"),
    [
        (Lonely, FlowError, "expected the request and the result"),
        (Numbered, SchemaError, "expected the request as the first field"),
        (Failing, FlowError, "other names than 'failed'"),
    ],
)
def test_bolts_that_cannot_answer_are_refused(bolt: type[ps.Bolt], error: type[Exception], text: str) -> None:
    builder = ps.LinearDRPCTopologyBuilder("wrong")
    builder.add_bolt(bolt)
    with pytest.raises(error, match=text):
        _ = builder.graph


def test_a_request_that_cannot_be_read_stops_no_function(tmp_path: Path) -> None:
    """Anybody may write to the topic of requests: what is none is put aside, and the others are answered."""
    builder = ps.LinearDRPCTopologyBuilder("double", path=tmp_path)
    builder.add_bolt(Doubles, 2)
    builder.add_bolt(Adds).fields_grouping("request")
    with Log(tmp_path) as log:
        log.create_topic("drpc.double.requests")
        with log.producer() as producer:
            for value in (
                b"nonsense",
                b"[" * 100_000,
                b'{"drpc_request":"1","args":"\\ud800"}',
                b'{"drpc_request":"2","args":"4"}',
            ):
                producer.send("drpc.double.requests", value)
    found = run_local(builder)
    assert [(r.drpc_request, r.result) for r in found["drpc-double-answers"] if r.drpc_request] == [("2", "9")]


class Mistaken(ps.Bolt):
    """Emits what does not fit its stream, for some requests as the tuple comes and for others at the end."""

    outputs = "request string, n bigint"
    stateful = False

    def process(self, tup: Any) -> None:
        self.emit((tup[0], 1))
        if tup.args == "early":
            self.emit((tup[0], "two"))

    def finished_id(self, request: str) -> Any:
        return [(request, "late")] if self.fails_late else []

    fails_late = False


@pytest.mark.parametrize("late", [False, True])
def test_a_value_of_the_wrong_type_fails_its_call_at_once(late: bool) -> None:
    builder = ps.LinearDRPCTopologyBuilder("mistaken")
    builder.add_bolt(type("Mistaken", (Mistaken,), {"fails_late": late}))
    drpc = LocalDRPC(builder)
    with pytest.raises(CallError, match="field 'n': bigint needs"):
        drpc.execute("mistaken", "" if late else "early")
    if not late:
        assert drpc.execute("mistaken", "fine") == "1"
