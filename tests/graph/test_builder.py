"""The builder: the one way to a graph, for every front end; and a graph by hand is held to the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import penstock as ps
from penstock.errors import ExpressionError, FlowError, LoopError, NameTaken, SchemaError, UnknownName
from penstock.graph.aggregates.calls import calls_of
from penstock.graph.builder import GraphBuilder
from penstock.graph.compose import KeyedInput, add_aggregate, add_distinct, add_join, dropped, renamed
from penstock.graph.endpoints.basic import console, items
from penstock.graph.expr import as_expr
from penstock.graph.graph import Graph
from penstock.graph.nodes import (
    AggregateBy,
    Changelog,
    Changes,
    DeadLetters,
    EventTime,
    Feedback,
    Filter,
    IntervalJoin,
    Map,
    Node,
    Output,
    Port,
    Reduce,
    Select,
    Sink,
    Sort,
    Source,
    TimeField,
    Top,
    Union,
    Where,
    Window,
    Windows,
)
from penstock.graph.order import terms_of
from penstock.graph.schema import schema_of
from penstock.graph.windows import tumbling

SCHEMA = "k string, n bigint, ts timestamp"
ROWS = Source("rows", (), items([], SCHEMA))
TIMED = EventTime("time", (Port("rows"),), "ts", as_expr("ts"), 0, 0, None)
IN = (Port("rows"),)


def one(*rows: Any) -> Any:
    return rows[0]


WRONG: list[tuple[type[Exception], str, Node]] = [
    (ExpressionError, "step 'x' (a.py:1): no column 'missing'", Where("x", IN, as_expr("missing > 3"), line="a.py:1")),
    (ExpressionError, "step 'x': where needs a boolean; n is bigint", Where("x", IN, as_expr("n"))),
    (ExpressionError, "step 'x': no column 'm'", Select("x", IN, (("a", as_expr("m")),))),
    (FlowError, "step 'x' calls its function with 1 argument", Map("x", IN, lambda a, b: a)),
    (SchemaError, "step 'x': no field 'w'", AggregateBy("x", IN, ("w",), calls=calls_of({"n": "count(*)"}))),
    (SchemaError, "'k' is a key already", AggregateBy("x", IN, ("k",), calls=calls_of({"k": "count(*)"}))),
    (ExpressionError, "sum needs a number; k is string", AggregateBy("x", IN, ("n",), calls=calls_of({"s": "sum(k)"}))),
    (FlowError, "from 1 to 32,768, got 32769", Reduce("x", IN, ("k",), function=one, parallelism=32_769)),
    (FlowError, "windows over time need to know", Window("x", IN, ("k",), windows=Windows(tumbling("1s")), function=one)),
    (FlowError, "sort needs to know when the records of 'rows' happened", Sort("x", IN)),
    (SchemaError, "no field 'score'", Top("x", IN, ("k",), n=2, by=terms_of("score desc"))),
    (FlowError, "changelog emits the changes of a table", Changelog("x", IN)),
    (FlowError, "both streams of a join need event time", IntervalJoin("x", IN * 2, ("k",), ("k",), low=0, high=0)),
    (SchemaError, "event time is a timestamp; n is bigint", EventTime("x", IN, "n", as_expr("n"), 0, 0, None)),
    (FlowError, "sink 'x': items can only be read", Sink("x", IN, items([], "n int"))),
    (FlowError, "sink 'x' cannot hold delivery='exactly_once'", Sink("x", IN, console(), "exactly_once")),
    (FlowError, "source 'x': console is a sink", Source("x", (), console(), schema_of("n int"))),
    (SchemaError, "source 'x': this endpoint has no schema", Source("x", (), ps.connector(object()))),
    (FlowError, "its outputs must be what it derives", Where("x", IN, as_expr("n > 1"), outputs=(Output(schema_of("n int")),))),
    (UnknownName, "step 'x' reads stream 'late' of 'rows'", Filter("x", (Port("rows", "late"),), one)),
    (FlowError, "a step needs a name of letters", Filter("a b", IN, one)),
]  # fmt: skip


@pytest.mark.parametrize("error, says, node", WRONG, ids=[says for _, says, _ in WRONG])
def test_a_step_that_does_not_fit_is_refused_by_graph_and_builder_alike(
    error: type[Exception], says: str, node: Node
) -> None:
    with pytest.raises(error) as by_hand:
        Graph("g", (ROWS, node))
    assert says in str(by_hand.value)
    if says.startswith("a step needs"):
        return
    builder = GraphBuilder("g")
    builder.add(ROWS)
    with pytest.raises(error) as built:
        builder.add(replace(node, line="b.py:9"))
    assert "(b.py:9)" in str(built.value)
    assert [n.name for n in builder.nodes] == ["rows"]


def test_outputs_are_worked_out_whatever_the_order() -> None:
    where = Where("some", (Port("time"),), as_expr("n > 1"))
    graph = Graph("g", (where, TIMED, ROWS))
    assert graph.output(Port("some")) == Output(schema_of(SCHEMA), event_time=TimeField("ts"))
    assert graph.output(Port("time", "bad")).event_time is None


def test_a_graph_of_a_graphs_nodes_is_the_same_graph() -> None:
    flow = ps.Flow("again")
    rows = flow.source("rows", items([], SCHEMA), event_time="ts")
    rows.key_by(first="substring(k, 1, 1)").window(tumbling("1s"), lateness="5s").count("n").sink("out", console())
    rows.join("pairs", rows, "k", within="1s", prefix="other_").sink("pairs-out", console())
    made = flow.graph
    twice = Graph("again", made.nodes)
    assert [(n.name, n.outputs) for n in twice.nodes] == [(n.name, n.outputs) for n in made.nodes]
    assert [n.name for n in made.nodes] == [
        "rows",
        "rows@time",
        "n@key",
        "n",
        "out",
        "pairs@again",
        "pairs",
        "pairs-out",
    ]


def test_totals_of_totals_are_made_below_every_front_end() -> None:
    builder = GraphBuilder("totals")
    rows = builder.add(ROWS)
    first = add_aggregate(builder, "each", KeyedInput(rows, ("k",)), calls_of({"m": "count(*)"}))
    second = add_aggregate(builder, "many", KeyedInput(first, ("m",)), calls_of({"keys": "count(*)"}))
    assert [n.name for n in builder.nodes] == ["rows", "each", "many"]
    assert builder.output(second).updates == ("m",)
    assert builder.output(second).changes == Changes(("m",), deletes=True)


def test_a_step_of_several_that_is_refused_leaves_nothing_behind() -> None:
    builder = GraphBuilder("twice")
    keyed = KeyedInput(builder.add(ROWS), ("first",), (("first", as_expr("substring(k, 1, 1)")),))
    with pytest.raises(FlowError, match="distinct within a time needs to know"):
        add_distinct(builder, "once", keyed, 1_000_000, None)
    add_distinct(builder, "once", keyed, None, None)
    assert [n.name for n in builder.nodes] == ["rows", "once@key", "once"]


def test_names_are_looked_after_by_the_builder() -> None:
    builder = GraphBuilder("names")
    builder.add(replace(ROWS, line="a.py:1"))
    with pytest.raises(
        NameTaken, match=r"source 'rows' \(b.py:2\) must have a name of its own; the step made at a.py:1"
    ):
        builder.add(replace(ROWS, line="b.py:2"))
    for wrong in ("no@pe", "a b", ""):
        with pytest.raises(FlowError, match="a step needs a name of letters, digits"):
            builder.add(replace(ROWS, name=wrong)) if wrong != "no@pe" else ps.Flow("x").source(
                wrong, items([], SCHEMA)
            )


def test_a_loop_is_closed_once_with_the_fields_it_began_with() -> None:
    builder = GraphBuilder("loop")
    rows = builder.add(ROWS)
    loop = builder.add(Feedback("again", (), schema_of(SCHEMA)))
    both = builder.add(Union("both", (rows, loop)))
    with pytest.raises(LoopError, match=r"'again'.*is never fed"):
        builder.graph()
    with pytest.raises(SchemaError, match=r"feedback 'again' .*carries"):
        builder.feed(loop, builder.add(Select("less", (both,), (("n", as_expr("n")),))))
    builder.feed(loop, both)
    with pytest.raises(LoopError, match="is fed already, by both"):
        builder.feed(loop, both)
    assert builder.graph().loops[0].fed_by == both


def test_policies_of_the_flow_reach_the_steps_that_have_none() -> None:
    builder = GraphBuilder("policies", on_error="skip", delivery="at_least_once")
    rows = builder.add(ROWS)
    mine = builder.add(Map("mine", (rows,), one))
    builder.set_on_error(mine, "dead_letter")
    builder.add(Map("theirs", (mine,), one))
    builder.add(Sink("out", (mine,), console()))
    graph = builder.graph()
    assert [graph.node(n).error_action for n in ("rows", "mine", "theirs", "out")] == [
        "skip",
        "dead_letter",
        "skip",
        "fail",
    ]
    assert graph.sinks[0].delivery == "at_least_once"


def test_only_sinks_read_dead_letters() -> None:
    letters = DeadLetters("letters", ())
    with pytest.raises(FlowError, match="step 'x' reads the dead letters of the flow; only a sink may"):
        Graph("g", (ROWS, letters, Filter("x", (Port("letters"),), one)))


@pytest.mark.parametrize(
    "columns, updates, time",
    [
        (lambda s: renamed(s, {"k": "key", "ts": "at"}), ("key",), "at"),
        (lambda s: (("a", as_expr("ts")), ("ts", as_expr("ts")), ("k", as_expr("k"))), ("k",), "ts"),
        (lambda s: (("ts", as_expr("ts + interval 1 hour")), ("k", as_expr("k"))), ("k",), None),
        (lambda s: dropped(s, ["ts"]), ("k",), None),
    ],
)
def test_event_time_and_keys_follow_their_fields(
    columns: Callable[[Any], Any], updates: tuple[str, ...], time: str | None
) -> None:
    given = Output(schema_of(SCHEMA), changes=Changes(("k",)), event_time=TimeField("ts"))
    (made,) = Select("pick", IN, columns(given.schema)).bound((given,)).outputs
    assert made.updates == updates
    assert made.event_time == (None if time is None else TimeField(time))


def test_a_join_of_a_stream_with_itself_reads_it_a_second_way() -> None:
    builder = GraphBuilder("self")
    builder.add(ROWS)
    timed = builder.add(TIMED)
    join = IntervalJoin("pairs", (timed, timed), ("k",), ("k",), low=0, high=5, prefix="r_")
    made = add_join(builder, join)
    assert builder.node(made).inputs == (timed, Port("pairs@again"))
    assert builder.output(made).schema.names == ("k", "n", "ts", "r_n", "r_ts")
