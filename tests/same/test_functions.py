"""Python functions inside of expressions."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as ps
from penstock.compiler.compile import compile_graph
from tests.same.conftest import Case

SCHEMA = "id int, a int, b double, word string"
GIVEN = [(1, 2, 0.5, "ox"), (2, None, 1.5, "ant"), (3, 4, 2.0, None), (4, 1, 0.25, "bee"), (5, 2, 0.5, "ox")]


@ps.function
def score(a: int | None, b: float) -> float:
    return 0.0 if a is None else a * b


@ps.function(null_on_null=True)
def shout(word: str, sign: str = "!") -> str:
    return word.upper() + sign


@ps.function(vectorized=True, takes=("bigint", "double"), returns="double")
def plus(a: Any, b: Any) -> Any:
    return pc.add(pc.cast(a, pa.float64()), b)


@ps.function(vectorized=True, null_on_null=True, takes=[int], returns=int)
def double(a: Any) -> Any:
    assert a.null_count == 0
    return pc.multiply(a, 2)


@ps.function
def pair(a: int | None, word: str | None) -> list[str] | None:
    return None if word is None else [word] * (a or 0)


FUNCTIONS = (score, shout, plus, double, pair)


def source(name: str, **options: Any) -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name, functions=FUNCTIONS, **options)
    return flow, flow.source("rows", ps.items([], SCHEMA))


@pytest.mark.live
def test_functions_in_every_native_step(same: Case) -> None:
    flow, rows = source("steps")
    rows.select("s", "id", s=score("a", "b"), p="plus(a, b) + 1", loud="shout(word)").sink("select", ps.console())
    rows.with_columns("w", a="double(a)", both="concat(shout(word, '?'), shout(word, '?'))").sink("with", ps.console())
    rows.where("some", "score(a, b) > 0.5 and shout(word) is not null").sink("where", ps.console())
    parts = rows.branch("parts", high="score(a, b) >= 1", low=plus("a", "b") < 2)
    for name, stream in (("high", parts.high), ("low", parts.low), ("rest", parts.otherwise)):
        stream.sink(name, ps.console())
    rows.explode("each", "item", "pair(a, word)").select("items", "id", "item").sink("explode", ps.console())
    same.check(
        flow,
        {"rows": GIVEN},
        {
            "select": [
                (1, 1.0, 3.5, "OX!"), (2, 0.0, None, "ANT!"), (3, 8.0, 7.0, None), (4, 0.25, 2.25, "BEE!"), (5, 1.0, 3.5, "OX!"),
            ],
            "with": [
                (1, 4, 0.5, "ox", "OX?OX?"), (2, None, 1.5, "ant", "ANT?ANT?"), (3, 8, 2.0, None, None),
                (4, 2, 0.25, "bee", "BEE?BEE?"), (5, 4, 0.5, "ox", "OX?OX?"),
            ],
            "where": [GIVEN[0], GIVEN[4]],
            "high": [GIVEN[0], GIVEN[2], GIVEN[4]],
            "low": [GIVEN[3]],
            "rest": [GIVEN[1]],
            "explode": [(1, "ox"), (1, "ox"), (4, "bee"), (5, "ox"), (5, "ox")],
        },
    )  # fmt: skip


@pytest.mark.live
def test_functions_in_keys_and_aggregates(same: Case) -> None:
    flow, rows = source("aggregates")
    keyed = rows.key_by(k="shout(substring(word, 1, 1))")
    keyed.aggregate(
        "t",
        total="sum(score(a, b))",
        many="count(*) filter (where score(a, b) > 0.5)",
        scaled="score(count(*), sum(b))",
    ).sink("totals", ps.console())
    totals = rows.key_by("word").sum("sums", "double(a)")
    totals.where("large", "score(sums, 1.0) > 2").aggregate("all", n="count(*)", best="max(double(sums))").sink(
        "whole", ps.console()
    )
    same.check(
        flow,
        {"rows": GIVEN},
        {
            "totals": [("O!", 2.0, 2, 2.0), ("A!", 0.0, 0, 1.5), (None, 8.0, 1, 2.0), ("B!", 0.25, 0, 0.25)],
            "whole": [(2, 16)],
        },
    )


@dataclass
class Point:
    x: int
    y: float


@ps.function
def numbered(a: int | None) -> dict[str, int | None]:
    return {"a": a}


@ps.function
def pointed(numbers: dict[str, int]) -> Point:
    return Point(numbers["a"] or 0, 1.5)


@ps.function
def listed(point: Point) -> list[int]:
    return [point["x"]]  # type: ignore[index]  # a struct comes as a dict


def test_functions_of_lists_maps_and_structs(same: Case) -> None:
    flow = ps.Flow("nested-types", functions=[numbered, pointed, listed])
    rows = flow.source("rows", ps.items([], SCHEMA))
    rows.select("s", "id", m="numbered(a)", p="pointed(numbered(a))", n="listed(pointed(numbered(a)))[0] + 1").sink(
        "out", ps.console()
    )
    wanted = [(i, {"a": a}, {"x": a or 0, "y": 1.5}, (a or 0) + 1) for i, a, _, _ in GIVEN]
    same.check(flow, {"rows": GIVEN}, {"out": wanted})


def test_nested_calls_share_one_pass(same: Case) -> None:
    flow, rows = source("nested")
    made = rows.select("s", "id", s="score(double(a) + 1, score(a, b)) + score(a, b)", d="double(double(a))")
    made.sink("out", ps.console())
    plan = compile_graph(flow.graph)
    assert plan.python_passes == 1
    calls: Any = plan.graph.node("s@functions")
    assert len(calls.columns) == 4
    same.check(
        flow,
        {"rows": GIVEN},
        {"out": [(1, 6.0, 8), (2, 0.0, None), (3, 80.0, 16), (4, 1.0, 4), (5, 6.0, 8)]},
    )


@ps.function
def fragile(a: int | None) -> float:
    if a is None:
        raise ValueError("no a")
    if a == 4:
        return "four"  # type: ignore[return-value]  # as a user may get it wrong
    if a == 1:
        return None  # type: ignore[return-value]  # a forgotten return
    return float(a)


@ps.function(vectorized=True, takes=["bigint"], returns="double")
def fragile_array(a: Any) -> Any:
    if a.null_count:
        raise ValueError("no a")
    return pc.cast(a, pa.float32()) if 4 in a.to_pylist() else pc.cast(a, pa.float64())


@pytest.mark.live
def test_a_failing_call_is_a_dead_letter_with_its_cause(same: Case) -> None:
    flow = ps.Flow("letters", on_error="dead_letter")
    rows = flow.source("rows", ps.items([], SCHEMA))
    rows.select("s", "id", f=fragile("a")).sink("each", ps.console())
    rows.where("w", fragile_array("a") > 0).sink("arrays", ps.console())
    flow.dead_letters("letters", ps.console())
    results = same.run(flow, {"rows": GIVEN})
    assert sorted(r.id for r in results["each"]) == [1, 5]
    assert sorted(r.id for r in results["arrays"]) == [1, 4, 5]
    causes = sorted((letter.step, letter.cause) for letter in results["letters"])
    assert [step for step, _ in causes] == ["s@functions"] * 3 + ["w@functions"] * 2
    text = " | ".join(cause for _, cause in causes)
    assert "ValueError: no a" in text
    assert "fragile says that it returns double, got 'four' (str)" in text
    assert "fragile returned None" in text
    assert "got an array of float" in text


def test_a_dataclass_stays_one_behind_a_where_with_a_function(same: Case) -> None:
    flow = ps.Flow("records", functions=[double])
    rows = flow.source("rows", ps.items([], "a int")).map("wrap", wrapped)
    rows.where("some", "double(a) > 2").map("unwrap", unwrapped, "n int").sink("out", ps.console())
    same.check(flow, {"rows": [1, 2, 3]}, {"out": [(2,), (3,)]})


@dataclass
class Wrapped:
    a: int

    def inner(self) -> int:
        return self.a


def wrapped(row: Any) -> Wrapped:
    return Wrapped(row.a)


def unwrapped(row: Wrapped) -> int:
    return row.inner()


@ps.function
def close(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and abs(one - other) < 2


def test_functions_in_the_keys_and_the_condition_of_a_join(same: Case) -> None:
    flow = ps.Flow("joins", functions=[close, shout, plus])
    left = flow.source("left", ps.items([], "word string, a int"))
    right = flow.source("right", ps.items([], "name string, b int"))
    joined = left.join("j", right, on={"shout(word, '')": "name"}, condition="close(a, b) and plus(a, 1.0) > 1.0")
    joined.select("s", "word", "a", "b").sink("out", ps.console())
    same.check(
        flow,
        {
            "left": [("ox", 1), ("ox", 9), ("ant", 4), ("bee", 0)],
            "right": [("OX", 2), ("ANT", 4), ("ANT", 9), ("BEE", 0)],
        },
        {"out": [("ox", 1, 2), ("ant", 4, 4)]},
    )


@ps.function
def moment(a: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(a, datetime.UTC)


def test_where_a_function_cannot_stand_is_said() -> None:
    flow, rows = source("places")
    with pytest.raises(ps.errors.FlowError, match=r"can be used in the expressions of this step \(event_time\)"):
        rows.event_time("t", moment("a"), into="at")
    timed = rows.with_columns("m", at=moment("a")).event_time("t", "at")
    with pytest.raises(ps.errors.FlowError, match="cannot be used in the gap of a session"):
        timed.key_by("id").window(ps.session(score("a", "b"))).count("n")
    with pytest.raises(ps.errors.ExpressionError, match=r"ps\.sql runs on Spark"):
        rows.select("s", s=score(ps.sql("a + 1", type="bigint", inputs=["a"]), "b"))
    assert flow.name == "places"


def test_what_is_refused_while_the_flow_is_built() -> None:
    _, rows = source("wrong")
    wrong = ps.errors.ExpressionError
    with pytest.raises(wrong, match="score takes bigint as argument 1, got string"):
        rows.select("s", s="score(word, b)")
    with pytest.raises(wrong, match="score takes 2 arguments, got 1"):
        rows.select("s", s="score(a)")
    with pytest.raises(wrong, match="shout takes 1 to 2 arguments, got 3"):
        rows.select("s", s="shout(word, word, word)")
    with pytest.raises(wrong, match="where needs a boolean"):
        rows.where("w", "score(a, b)")
    with pytest.raises(wrong, match="unknown function 'unheard'"):
        rows.where("w", "unheard(a) > 1")
    with pytest.raises(wrong, match="must say what it returns"):
        ps.function(name="one")(lambda: 1)
    with pytest.raises(wrong, match="must say the type of 'a'"):

        @ps.function
        def untyped(a) -> int:  # type: ignore[no-untyped-def]  # what is refused
            return 1

    with pytest.raises(wrong, match="built-in function"):

        @ps.function
        def upper(a: str) -> str:
            return a

    with pytest.raises(wrong, match="no stream type for"):

        @ps.function(vectorized=True)
        def arrays(a: pa.Array) -> pa.Array:
            return a

    with pytest.raises(wrong, match="two functions are called 'score'"):
        ps.Flow("two", functions=[score, ps.function(name="score")(score.function)])
    with pytest.raises(wrong, match=r"made with @ps\.function"):
        ps.Flow("plain", functions=[len])  # type: ignore[list-item]  # what is refused
