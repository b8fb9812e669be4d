"""Expressions over aggregates, FILTER, structs in aggregates, top in a window, windows and totals without a key."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from tests.same.conftest import Case
from tests.same.test_window import LATE, at, clicks, run

SCHEMA = "user string, ts timestamp, n int, price double, what string"
GIVEN = [
    ("a", at(5), 3, 2.5, "x"),
    ("a", at(1), 1, None, "y"),
    ("a", at(9), None, 4.0, "x"),
    ("a", at(5), 2, 1.5, None),
    ("b", at(2), None, None, None),
    ("b", at(31), 7, 1.0, "z"),
]


class Longest(ps.Aggregator):
    schema = "string"

    def init(self) -> str:
        return ""

    def add(self, so_far: str, row: Any) -> str:
        return max(so_far, row.what or "", key=len)

    def merge(self, one: str, other: str) -> str:
        return max(one, other, key=len)


COMPUTED: dict[str, Any] = {
    "mean": "sum(price) / count(*)",
    "product": "round(sum(n * price), 2)",
    "whole": "cast(avg(price) as bigint)",
    "apart": "sum(n) - sum(price)",
    "rows": "count(*)",
    "many": ps.fn.count().where("n > 1"),
    "cheap": "sum(price) filter (where price < 3) + 1",
    "kinds": "count(distinct what) filter (where n is not null)",
    "said": "case when count(*) > 2 then 'many' else 'few' end",
    "longest": Longest().where("n > 2"),
}
A = (2.0, 10.5, 2, -2.0, 4, 2, 5.0, 2, "many", "x")
B_FIRST = (None, None, None, None, 1, 0, None, 0, "few", "")
B_SECOND = (1.0, 7.0, 1, 6.0, 1, 1, 2.0, 1, "few", "z")
B_ALL = (0.5, 7.0, 1, 6.0, 2, 1, 2.0, 1, "few", "z")


def source(name: str) -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source("rows", ps.items([], SCHEMA), event_time="ts", lateness="1m")


def plain(rows: Any) -> list[str]:
    return sorted(repr(tuple(row)) for row in rows)


@pytest.mark.live
def test_expressions_over_aggregates_in_every_step(same: Case) -> None:
    flow, stream = source("computed")
    keyed = stream.key_by("user")
    keyed.aggregate("t", **COMPUTED).sink("totals", ps.console())
    keyed.window(ps.tumbling("30s")).aggregate("w", **COMPUTED).sink("windows", ps.console())
    keyed.window(ps.session("10s")).aggregate("s", **COMPUTED).sink("sessions", ps.console())
    keyed.window(ps.sliding("60s", every="30s"), mode="update").aggregate("u", **COMPUTED).sink("slides", ps.console())
    keyed.window(ps.count_window(1)).aggregate("c", **COMPUTED).sink("counts", ps.console())
    results = same.run(flow, {"rows": GIVEN})
    assert plain(results.table("totals").values()) == plain([("a", *A), ("b", *B_ALL)])
    by_window = [("a", *A), ("b", *B_FIRST), ("b", *B_SECOND)]
    assert plain((r[0], *r[3:]) for r in results["windows"]) == plain(by_window)
    assert plain((r[0], *r[3:]) for r in results["sessions"]) == plain(by_window)
    slides = [("a", *A)] * 2 + [("b", *B_FIRST), ("b", *B_ALL), ("b", *B_SECOND)]
    assert plain((r[0], *r[3:]) for r in results.table("slides").values()) == plain(slides)
    assert len(results["counts"]) == len(GIVEN)


def test_windows_and_totals_without_a_key(same: Case) -> None:
    flow, stream = source("keyless")
    computed = {k: v for k, v in COMPUTED.items() if k != "longest"}
    stream.aggregate("t", **computed).sink("totals", ps.console())
    windows = stream.window(ps.tumbling("30s"))
    windows.aggregate("w", **computed).sink("windows", ps.console())
    windows.count("n").sink("counted", ps.console())
    windows.reduce("first", _earlier).sink("reduced", ps.console())
    stream.window(ps.session("10s")).aggregate("s", longest=Longest, n="count(*)").sink("sessions", ps.console())
    results = same.run(flow, {"rows": GIVEN})
    first = (1.6, 10.5, 2, -2.0, 5, 2, 5.0, 2, "many")
    assert plain(results.table("totals").values()) == plain([(1.5, 17.5, 2, 4.0, 6, 3, 6.0, 3, "many")])
    assert plain(r[2:] for r in results["windows"]) == plain([first, B_SECOND[:-1]])
    assert sorted(r.n for r in results["counted"]) == [1, 5]
    assert sorted((r.ts, r.user) for r in results["reduced"]) == [(at(1), "a"), (at(31), "b")]
    assert plain(r[2:] for r in results["sessions"]) == plain([("x", 5), ("z", 1)])
    assert flow.graph.node("w").output().schema.names[:3] == ("window_start", "window_end", "mean")


def _earlier(one: Any, other: Any) -> Any:
    return min(one, other, key=lambda row: row.ts)


@pytest.mark.live
def test_late_records_of_a_window_without_a_key(same: Case) -> None:
    if same.runtime == "bounded":
        pytest.skip("in a bounded run nothing is late")
    flow, stream = clicks("late")
    counted = stream.window(ps.tumbling("10s")).aggregate("w", twice="count(*) * 2")
    counted.sink("out", ps.console())
    counted.side("late").sink("late", ps.console())
    results = run(same, flow, LATE)
    assert [tuple(row) for row in results["late"]] == [("a", at(7), 4)]
    assert sorted(row.window_start for row in results["out"]) == [at(0), at(30)]


STRUCTS = {
    "oldest": "first(struct(n, what))",
    "newest": "last(struct(n, what))",
    "dearest": "max_by(struct(n, what), price).what",
    "cheapest": "min_by(struct(what, n), price)",
    "each": "collect_list(struct(n, what))",
    "best": "top(2, struct(n, what))",
}
A_STRUCTS = (
    {"n": 1, "what": "y"},
    {"n": None, "what": "x"},
    "x",
    {"what": None, "n": 2},
    [{"n": 1, "what": "y"}, {"n": 2, "what": None}, {"n": 3, "what": "x"}, {"n": None, "what": "x"}],
    [{"n": 3, "what": "x"}, {"n": 2, "what": None}],
)


def test_structs_in_aggregates(same: Case) -> None:
    flow, stream = source("structs")
    keyed = stream.where("some", "user = 'a'").key_by("user")
    keyed.aggregate("t", **STRUCTS).sink("totals", ps.console())
    keyed.window(ps.tumbling("10s")).aggregate("w", **STRUCTS).sink("windows", ps.console())
    keyed.window(ps.tumbling("10s"), mode="update").aggregate("u", **STRUCTS).sink("updates", ps.console())
    results = same.run(flow, {"rows": GIVEN})
    (total,) = results.table("totals").values()
    assert plain([total]) == plain([("a", *A_STRUCTS)])
    assert plain(r[3:] for r in results["windows"]) == plain([A_STRUCTS])
    assert plain(r[3:] for r in results.table("updates").values()) == plain([A_STRUCTS])


@pytest.mark.live
def test_top_in_a_window(same: Case) -> None:
    flow, stream = source("top")
    keyed = stream.key_by("user")
    keyed.window(ps.tumbling("30s")).top("best", 2, by="price desc, what").sink("keyed", ps.console())
    keyed.window(ps.session("10s")).top("long", 1, by="what desc, n").sink("sessions", ps.console())
    stream.window(ps.tumbling("30s")).top("all", 3, by="n", into="place").sink("global", ps.console())
    keyed.window(ps.tumbling("30s"), mode="update").top("soon", 1, by="n desc").sink("updates", ps.console())
    results = same.run(flow, {"rows": GIVEN})
    best = [("a", 4.0, 1), ("a", 2.5, 2), ("b", None, 1), ("b", 1.0, 1)]
    assert plain((r.user, r.price, r.rank) for r in results["keyed"]) == plain(best)
    assert plain((r.user, r.what, r.n) for r in results["sessions"]) == plain(
        [("a", "y", 1), ("b", None, None), ("b", "z", 7)]
    )
    placed = [(None, 1), (None, 2), (1, 3), (7, 1)]
    assert plain((r.n, r.place) for r in results["global"]) == plain(placed)
    assert results["global"][0].names[:2] == ("window_start", "window_end")


@pytest.mark.live
def test_expressions_over_aggregates_of_a_table_that_changes(same: Case) -> None:
    flow = ps.Flow("levels")
    scores = flow.source("scores", ps.items([], "player string, points int"))
    totals = scores.key_by("player").aggregate("totals", points="sum(points)", mean="sum(points) / count(*)")
    totals.where("many", "points > 5").key_by(level="points div 100").aggregate(
        "levels", players="count(*)", spread="max(points) - min(points)", high="count(*) filter (where mean > 50)"
    ).sink("out", ps.console())
    totals.aggregate("all", mean="round(avg(mean), 1)", best="max_by(struct(player, mean), points)").sink(
        "whole", ps.console()
    )
    rows = [("ada", 40), ("bob", 90), ("ada", 80), ("eve", 3), ("bob", 15), ("ada", 70), ("cy", 120)]
    same.check(
        flow,
        {"scores": rows},
        {"out": [(1, 3, 85, 3)], "whole": [(59.7, {"player": "ada", "mean": 63.333333333333336})]},
    )


def test_windows_over_a_table_have_all_of_this_too(same: Case) -> None:
    flow, stream = source("over")
    small = (
        stream.key_by("user").window(ps.tumbling("10s"), mode="update").aggregate("small", n="sum(n)", rows="count(*)")
    )
    renamed = small.rename("plain", window_start="since", window_end="until")
    renamed.key_by("user").window(ps.tumbling("1m")).aggregate(
        "w", mean="sum(n) / sum(rows)", some="count(*) filter (where n > 6)", last="max_by(struct(n, rows), until)"
    ).sink("means", ps.console())
    renamed.window(ps.tumbling("1m")).aggregate("g", mean="sum(n) / count(*)").sink("global", ps.console())
    renamed.key_by("user").window(ps.tumbling("1m")).top("most", 1, by="rows, n desc").sink("best", ps.console())
    results = same.run(flow, {"rows": GIVEN})
    means = [("a", 1.5, 0, {"n": 6, "rows": 4}), ("b", 3.5, 1, {"n": 7, "rows": 1})]
    assert plain((r.user, r.mean, r.some, r.last) for r in results["means"]) == plain(means)
    assert [r.mean for r in results["global"]] == [13 / 3]
    assert plain((r.user, r.n, r.rank) for r in results["best"]) == plain([("a", 6, 1), ("b", 7, 1)])


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("sum(count(*))", r"count\(\*\) is an aggregate inside of sum"),
        ("sum(max(n) + 1) / 2", "aggregate twice"),
        ("sum(n) filter (where n)", "FILTER needs a boolean; n is int"),
        ("sum(n) filter (where max(n) > 1)", "FILTER looks at one record"),
        ("sum(n) + upper(what) filter (where n > 1)", "FILTER goes with an aggregate, and upper is none"),
        ("sum(n) + price", "'price' is outside of the aggregates"),
        ("n + 1", "must be an aggregate"),
        ("upper(what)", "must be an aggregate"),
        ("sum(what) / 2", "needs a number"),
        ("last(map(n, what))", "maps have none"),
        ("count(*) filter (n > 1)", "expected 'WHERE'"),
    ],
)
def test_a_wrong_expression_over_aggregates_is_refused(written: str, says: str) -> None:
    _, stream = source("wrong")
    with pytest.raises(ps.errors.ExpressionError, match=says):
        stream.key_by("user").aggregate("w", a=written)
    with pytest.raises(ps.errors.ExpressionError, match=says):
        stream.key_by("user").window(ps.tumbling("1m")).aggregate("w", a=written)


def test_an_aggregate_in_where_is_refused() -> None:
    _, stream = source("where")
    with pytest.raises(ps.errors.ExpressionError, match="max is an aggregate; it belongs in aggregate"):
        stream.where("w", "max(n) > 3")
    with pytest.raises(ps.errors.ExpressionError, match="no column"):
        stream.key_by("user").aggregate("w", a=Longest().where("missing > 1"))


def test_top_in_a_window_needs_a_number_and_an_order() -> None:
    _, stream = source("tops")
    windows = stream.key_by("user").window(ps.tumbling("1m"))
    with pytest.raises(ps.errors.FlowError, match="whole number"):
        windows.top("t", 0, by="n")
    with pytest.raises(ps.errors.FlowError, match="needs an order"):
        windows.top("t", 1, by="")
    with pytest.raises(ps.errors.SchemaError, match="field already"):
        windows.top("t", 1, by="n", into="what")
    with pytest.raises(ps.errors.SchemaError, match="no field 'score'"):
        windows.top("t", 1, by="score desc")


def test_what_is_kept_stays_when_what_is_computed_of_it_changes() -> None:
    from penstock.compiler.compile import compile_graph
    from penstock.compiler.state_schemas import schemas_of

    def kept(**aggregates: str) -> Any:
        flow, stream = source("kept")
        stream.key_by("user").aggregate("t", **aggregates).sink("out", ps.console())
        return schemas_of(compile_graph(flow.graph).graph)["t"]

    before, after = kept(mean="sum(n) / count(*)"), kept(mean="round(sum(n) / count(*), 2)", double="count(*) * 2")
    assert before == after
    assert [str(f) for f in before.values] != []
    assert len(before.values) == 2
