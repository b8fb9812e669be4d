"""Records that a step fails on: dead letters, skips, retries, on every runtime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, StepError
from penstock.kernels.errors.payload import read_payload
from tests.same.conftest import Case

GIVEN = [("a", "1"), ("b", "x"), ("a", "2"), ("b", "3"), ("a", "y"), ("c", "z")]


def numbers(name: str, **settings: Any) -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name, **settings)
    return flow, flow.source("texts", ps.items([], "k string, text string"))


def to_number(row: Any) -> Any:
    return row.k, int(row.text)


@pytest.mark.live
def test_a_record_that_fails_becomes_a_dead_letter_and_the_rest_goes_on(same: Case) -> None:
    flow, texts = numbers("dead")
    parsed = texts.map("parse", to_number, "k string, n int").on_error("dead_letter")
    parsed.key_by("k").sum("total", "n").sink("out", ps.console())
    flow.dead_letters("dead", ps.console())
    results = same.run(flow, {"texts": GIVEN})
    assert {k: r.total for k, r in results.table("out").items()} == {"a": 3, "b": 3}
    letters = results["dead"]
    assert sorted(read_payload(r.payload).row for r in letters) == [("a", "y"), ("b", "x"), ("c", "z")]
    assert {(r.step, r.flow) for r in letters} == {("parse", "dead")}
    assert all("invalid literal for int()" in r.cause and "to_number" in r.traceback for r in letters)
    assert len({r.id for r in letters}) == 3


ODD = {"number": 5, "text": "a\ud800", "short": (1,), "deep": None, "big": 10**5000}


def odd(row: Any) -> Any:
    """A struct that is none, for each letter of the alphabet another one."""
    if row.k == "deep":
        made: list[Any] = []
        for _ in range(2000):
            made = [made]
        return row.k, made
    if row.k == "raises":
        raise ValueError("half: \ud800")
    return row.k, ODD.get(row.k, {"n": 1, "s": "fine"})


def test_a_value_that_is_no_value_of_its_type_becomes_a_dead_letter(same: Case) -> None:
    """Whatever a function returns or raises: an attribute that is missing, a text that no file takes, a value that cannot be shown."""
    flow, texts = numbers("odd")
    made = texts.map("make", odd, "k string, v struct<n:int,s:string>").on_error("dead_letter")
    made.map("pass", lambda r: (r.k, r.v["s"]), "k string, s string").sink("out", ps.console())
    flow.dead_letters("dead", ps.console())
    results = same.run(flow, {"texts": [(k, "") for k in ("a", *ODD, "raises", "b")]})
    assert sorted(results["out"]) == [("a", "fine"), ("b", "fine")]
    assert {str(read_payload(r.payload).row[0]) for r in results["dead"]} == {*ODD, "raises"}
    assert all("field 'v': " in r.cause or r.cause == "ValueError: half: \\ud800" for r in results["dead"])


DEEP = "k string, v struct<a:int not null,b:string>, vs array<struct<a:int not null>>, m map<string,struct<s:struct<a:int not null>>>"


def hollow(row: Any) -> Any:
    return {"k": row.k, "v": None, "vs": [None], "m": {"x": {"s": None}}}


@pytest.mark.live
def test_what_is_null_may_have_parts_that_are_declared_not_null(same: Case) -> None:
    flow, texts = numbers("hollow")
    made = texts.map("make", hollow, DEEP)
    made.sink("out", ps.console())
    made.key_by("k").process("last", Last, DEEP).map("again", lambda r: r, DEEP).sink("kept", ps.console())
    rows = [(k, None, [None], {"x": {"s": None}}) for k, _ in GIVEN]
    same.check(flow, {"texts": GIVEN}, {"out": rows, "kept": rows})


class Last(ps.Process):
    """Keeps the last row of a key, and emits it as it is kept."""

    row = ps.value(
        "struct<k:string,v:struct<a:int not null,b:string>,vs:array<struct<a:int not null>>,m:map<string,struct<s:struct<a:int not null>>>>"
    )

    def on_event(self, row: Any) -> Iterator[Any]:
        self.row = {name: getattr(row, name) for name in ("k", "v", "vs", "m")}
        yield self.row


def test_a_text_that_no_file_takes_becomes_a_dead_letter_whatever_comes_next(same: Case) -> None:
    flow, texts = numbers("halves")
    made = texts.map("cut", lambda r: r.k + ("\ud83d" if r.text == "x" else "ü"), "word string").on_error("dead_letter")
    made.sink("out", ps.console())
    made.key_by("word").count("n").sink("counts", ps.console())
    flow.dead_letters("dead", ps.console())
    results = same.run(flow, {"texts": GIVEN})
    assert sorted(r.word for r in results["out"]) == ["aü", "aü", "aü", "bü", "cü"]
    assert {k: r.n for k, r in results.table("counts").items()} == {"aü": 3, "bü": 1, "cü": 1}
    assert [(r.step, read_payload(r.payload).row) for r in results["dead"]] == [("cut", ("b", "x"))]


def test_a_record_can_be_skipped(same: Case) -> None:
    flow, texts = numbers("skip")
    texts.map("parse", to_number, "k string, n int").on_error("skip").sink("out", ps.console())
    same.check(flow, {"texts": GIVEN}, {"out": [("a", 1), ("a", 2), ("b", 3)]})


def test_a_map_that_returns_none_fails_on_that_record_unless_it_says_null(same: Case) -> None:
    def known(row: Any) -> str | None:
        return row.text if row.text.isdigit() else None

    flow, texts = numbers("none")
    texts.map("forgot", lambda r: r.text if r.text.isdigit() else None, "text string").on_error("skip").sink(
        "out", ps.console()
    )
    texts.map("said", known, "text string").sink("nulls", ps.console())
    kept = [("1",), ("2",), ("3",)]
    same.check(flow, {"texts": GIVEN}, {"out": kept, "nulls": [*kept, (None,), (None,), (None,)]})


class ReturnsOne(ps.Process):
    """Returns a record where it is to return many: its parts are no records."""

    def on_event(self, row: Any) -> Any:
        return {"2": {"text": "x"}, "3": row}.get(row.text, [row.text])


@pytest.mark.parametrize("kind", ["flat_map", "process"])
def test_one_record_is_not_taken_for_many(same: Case, kind: str) -> None:
    """A text would be taken for its letters, and a dict for the names of its fields: a record of one field may hold either."""
    flow, texts = numbers("one")
    if kind == "flat_map":
        made = texts.flat_map("many", lambda r: {"2": {"text": "x"}, "3": r}.get(r.text, [r.text]), "text string")
    else:
        made = texts.key_by("k").process("many", ReturnsOne(), "text string")
    made.on_error("skip").sink("out", ps.console())
    kept = [(text,) for _, text in GIVEN if text not in ("2", "3")]
    same.check(flow, {"texts": GIVEN}, {"out": kept})


class Wandering(ps.Process):
    """Keeps what it does not declare, and a text where it declared a number."""

    total = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        if row.k == "b":
            self.last = row.text
        self.total = row.text if row.k == "c" else self.total + 1
        yield row.k, self.total


def test_what_a_process_does_not_declare_is_refused_record_by_record(same: Case) -> None:
    flow, texts = numbers("wandering")
    texts.key_by("k").process("step", Wandering, schema="k string, n bigint").on_error("skip").sink("out", ps.console())
    same.check(flow, {"texts": GIVEN}, {"out": [("a", 1), ("a", 2), ("a", 3)]})


class Totals(ps.Process):
    """Fails in the middle of its work: what it changed and gave for that record must not stay."""

    total = ps.value(int, default=0)
    seen = ps.list_of(str)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.total += 100
        self.seen.append(row.text)
        yield self.key, self.total, ",".join(self.seen)
        int(row.text)
        self.total -= 99
        yield self.key, self.total, ",".join(self.seen)


@pytest.mark.live
def test_a_process_forgets_what_it_did_for_a_record_it_failed_on(same: Case) -> None:
    flow, texts = numbers("process")
    texts.key_by("k").process("totals", Totals, "k string, total bigint, seen string").on_error("dead_letter").sink(
        "out", ps.console()
    )
    flow.dead_letters("dead", ps.console())
    results = same.run(flow, {"texts": [*GIVEN, ("a", "5")]})
    assert sorted(map(tuple, results["out"])) == [
        ("a", 1, "1"), ("a", 2, "1,2"), ("a", 3, "1,2,5"), ("a", 100, "1"), ("a", 101, "1,2"), ("a", 102, "1,2,5"),
        ("b", 1, "3"), ("b", 100, "3"),
    ]  # fmt: skip
    assert sorted(read_payload(r.payload).row for r in results["dead"]) == [("a", "y"), ("b", "x"), ("c", "z")]


def test_the_flow_says_it_for_all_steps(same: Case) -> None:
    flow, texts = numbers("all", on_error="dead_letter")
    texts.map("parse", to_number, "k string, n int").filter("even", lambda r: 2 % r.n == 0).sink("out", ps.console())
    flow.dead_letters("dead", ps.console())
    results = same.run(flow, {"texts": [*GIVEN, ("d", "0")]})
    assert sorted(map(tuple, results["out"])) == [("a", 1), ("a", 2)]
    assert sorted(r.step for r in results["dead"]) == ["even", "parse", "parse", "parse"]


class Whole(ps.Aggregator):
    """An aggregate that not every record can enter."""

    schema = "bigint"

    def init(self) -> int:
        return 0

    def add(self, so_far: int, row: Any) -> int:
        return so_far + int(row.text)

    def merge(self, one: int, other: int) -> int:
        return one + other


def test_an_aggregate_goes_on_without_the_record(same: Case) -> None:
    flow, texts = numbers("aggregate", on_error="dead_letter")
    texts.key_by("k").aggregate("all", total=Whole).sink("out", ps.console())
    flow.dead_letters("dead", ps.console())
    results = same.run(flow, {"texts": GIVEN})
    assert {k: r.total for k, r in results.table("out").items()} == {"a": 3, "b": 3}
    assert sorted(read_payload(r.payload).row for r in results["dead"]) == [("a", "y"), ("b", "x"), ("c", "z")]


ATTEMPTS: dict[str, int] = {}


def flaky(row: Any) -> Any:
    ATTEMPTS[row.text] = ATTEMPTS.get(row.text, 0) + 1
    if ATTEMPTS[row.text] % 3:
        raise ConnectionError("not now")
    return row


def test_a_retry_tries_again(same: Case) -> None:
    flow, texts = numbers("retry")
    texts.map("call", flaky).on_error(ps.retry(3, "1ms")).sink("out", ps.console())
    same.check(flow, {"texts": GIVEN}, {"out": GIVEN})


@pytest.mark.live
def test_a_retry_that_gives_up_does_what_comes_then(same: Case) -> None:
    flow, texts = numbers("give-up")
    texts.map("parse", to_number, "k string, n int").on_error(ps.retry(2, "1ms", then="skip")).sink("out", ps.console())
    same.check(flow, {"texts": GIVEN}, {"out": [("a", 1), ("a", 2), ("b", 3)]})


@pytest.mark.live
def test_without_a_policy_the_run_stops(same: Case) -> None:
    flow, texts = numbers("stop")
    texts.map("parse", to_number, "k string, n int").sink("out", ps.console())
    with pytest.raises(StepError, match="step 'parse'"):
        same.run(flow, {"texts": GIVEN})


def test_a_policy_is_for_steps_that_run_python() -> None:
    _, texts = numbers("native")
    with pytest.raises(FlowError, match="for steps that run Python; 'long' is a where"):
        texts.where("long", "length(text) > 1").on_error("skip")
    with pytest.raises(FlowError, match="no error policy 'dead-letter'; did you mean 'dead_letter'"):
        texts.map("m", to_number, "k string, n int").on_error("dead-letter")
