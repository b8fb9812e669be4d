"""What the compiler promises: Python steps fuse, native steps stay in the JVM, nothing dear is computed twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.compiler.compile import BOUNDED, LIVE, compile_graph
from penstock.compiler.plan import NATIVE, PYTHON, SOURCE, Plan, Stage
from penstock.compiler.rewrites.assign_hosts import assign_hosts
from penstock.compiler.rewrites.call_functions import call_functions
from penstock.compiler.rewrites.carry_changes import carried, carry_changes
from penstock.compiler.rewrites.combine_early import combine_early
from penstock.compiler.rewrites.drop_roots import drop_roots
from penstock.compiler.rewrites.expand_sources import expand_sources
from penstock.compiler.rewrites.finish_aggregates import finish_aggregates
from penstock.compiler.rewrites.fuse_keyed import fuse_keyed
from penstock.compiler.rewrites.fuse_native import fuse_native
from penstock.compiler.rewrites.fuse_outputs import fuse_outputs
from penstock.compiler.rewrites.fuse_python import fuse_python
from penstock.compiler.rewrites.match_columns import match_columns
from penstock.compiler.rewrites.merge_equal import merge_equal
from penstock.compiler.rewrites.merge_with_state import merge_with_state
from penstock.compiler.rewrites.narrow_shared import narrow_shared
from penstock.compiler.rewrites.prune_unused import prune_unused, unused
from penstock.compiler.rewrites.share_streams import CHEAP, share_behind_union, share_streams
from penstock.compiler.rewrites.whole_tables import whole_tables
from penstock.compiler.rewrites.window_parts import window_parts
from penstock.graph.nodes import AsRecords, Node, Port, Union
from penstock.graph.nodes.topology import ROOTS
from tests.compiler.flows import FLOWS, Meter, acked, first, many, positive, same, start

RULES: dict[Callable[[Plan], Plan], str] = {
    drop_roots: "acked",
    finish_aggregates: "computed",
    match_columns: "patterns",
    call_functions: "functions",
    carry_changes: "tables",
    whole_tables: "whole",
    merge_equal: "equal",
    narrow_shared: "inside",
    merge_with_state: "word_count",
    expand_sources: "generated",
    window_parts: "windows",
    combine_early: "reduce_early",
    assign_hosts: "native_between",
    prune_unused: "left_out",
    fuse_python: "branch_in_python",
    fuse_keyed: "by_one_key",
    fuse_outputs: "by_one_key",
    fuse_native: "all_native",
    share_streams: "shared_streams",
    share_behind_union: "shared_streams",
}


def shown(plan: Plan) -> str:
    """A plan in a few lines: the steps before any stage is made, the stages after that."""
    if not plan.stages:
        return "".join(f"  {n.name}: {n.kind} <- {_inputs(plan, n)}\n" for n in plan.graph.nodes)
    return "".join(map(_stage, plan.stages)) + "".join(f"  shared: {p}\n" for p in sorted(map(str, plan.shared)))


def _inputs(plan: Plan, node: Node) -> str:
    """What a step reads, and which root ids come with it."""
    rooted = [ROOTS.name in plan.graph.output(port).schema for port in node.inputs]
    shown = [f"{port}{' with roots' if has else ''}" for port, has in zip(node.inputs, rooted, strict=True)]
    return ", ".join(shown) or "outside"


def _stage(stage: Stage) -> str:
    moved = f" after a shuffle {stage.shuffle}" if stage.shuffle else ""
    return f"  {stage.host}: {stage.name}{moved} -> {', '.join(map(str, stage.outputs)) or 'outside'}\n"


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
def test_each_rewrite_does_what_its_golden_text_shows(rule: Callable[[Plan], Plan]) -> None:
    from tests.compiler.test_describe import check_golden

    before = Plan(acked().graph if rule is drop_roots else FLOWS[RULES[rule]]().graph, ())
    for earlier in LIVE if rule in LIVE else BOUNDED:
        if earlier is rule:
            break
        before = earlier(before)
    after = rule(before)
    check_golden(f"rewrite-{rule.__name__}", f"{RULES[rule]}, before\n{shown(before)}\nafter\n{shown(after)}")


def test_every_rewrite_has_a_golden_text() -> None:
    assert set(RULES) == {*LIVE, *BOUNDED}


def test_a_flow_of_records_pays_nothing_for_tables() -> None:
    graphs = [make().graph for make in FLOWS.values()]
    records = [g for g in graphs if not any(o.changes for n in g.nodes for o in n.outputs)]
    assert len(records) > 10
    assert all(carried(graph) is graph for graph in records)


@pytest.mark.parametrize(
    "flow, live, bounded",
    [
        ("one_python_pass", 1, 1),
        ("native_between", 1, 1),
        ("native_apart", 4, 4),
        ("all_native", 1, 0),  # live, the merge with the state is the one pass
        ("branch_in_python", 1, 1),
        ("process_then_map", 2, 2),
        ("reduce_early", 2, 2),
        ("own_aggregate", 2, 2),
        ("totals_as_records", 1, 1),
        ("generated", 1, 1),
        ("two_sources", 1, 1),
        ("side_outputs", 1, 1),
        ("repartition", 2, 2),
        ("join", 0, 0),
        ("native_branch", 0, 0),
        ("whole", 4, 0),
    ],
)
def test_how_often_records_pass_through_python(flow: str, live: int, bounded: int) -> None:
    graph = FLOWS[flow]().graph
    assert compile_graph(graph).python_passes == live
    assert compile_graph(graph, live=False).python_passes == bounded


@pytest.mark.parametrize(
    "flow, shuffles",
    [("one_python_pass", 0), ("word_count", 1), ("reduce_early", 1), ("two_keys", 2), ("repartition", 2), ("join", 0)],
)
def test_how_often_records_move(flow: str, shuffles: int) -> None:
    graph = FLOWS[flow]().graph
    assert compile_graph(graph).shuffles == shuffles
    assert compile_graph(graph, live=False).shuffles == shuffles


def shared(flow: ps.Flow, *, live: bool = True) -> set[str]:
    return {str(p) for p in compile_graph(flow.graph, live=live).shared}


def test_a_stream_with_one_reader_is_not_kept() -> None:
    assert shared(FLOWS["one_python_pass"]()) == set()


def test_a_source_with_two_readers_is_read_once() -> None:
    flow, numbers = start("fan")
    numbers.sink("one", ps.console())
    numbers.sink("two", ps.console())
    assert shared(flow) == {"numbers"}


def test_a_native_step_before_a_branch_is_computed_once() -> None:
    assert shared(FLOWS["native_branch"]()) == {"some"}


def test_several_sources_of_a_live_run_are_kept_as_one_and_of_a_bounded_run_each() -> None:
    assert shared(FLOWS["two_sources"](), live=True) == set()
    assert shared(FLOWS["two_sources"](), live=False) == {"left", "both"}


def test_a_union_of_a_stream_with_itself_reads_it_twice() -> None:
    flow, numbers = start("twice")
    clean = numbers.map("clean", same)
    clean.union("both", clean).where("some", "n > 1").sink("out", ps.console())
    assert compile_graph(flow.graph).python_passes == 1
    native, more = start("twice")
    native_some = more.where("some", "n > 1")
    native_some.union("both", native_some).sink("out", ps.console())
    assert shared(native) == {"some"}


def test_a_stream_that_is_read_and_fed_back_is_computed_once() -> None:
    flow, numbers = start("fed")
    again = flow.feedback("again", "k string, n bigint")
    step = numbers.union("both", again).map("step", same).where("some", "n > 1")
    flow.feed(again, step)
    step.with_columns("less", n="n - 1").sink("out", ps.console())
    assert shared(flow) == {"some"}


def test_a_long_native_chain_is_kept_rather_than_computed_again() -> None:
    flow, numbers = start("long")
    clean = numbers.map("clean", same)
    clean.sink("one", ps.console())
    chain = clean
    for i in range(CHEAP + 1):
        chain = chain.with_columns(f"more{i}", n="n + 1")
    chain.sink("two", ps.console())
    chain.map("three", same).sink("out", ps.console())
    assert shared(flow) == {"clean", f"more{CHEAP}"}


def test_a_loop_that_reaches_no_sink_still_turns() -> None:
    flow, numbers = start("idle")
    again = flow.feedback("again", "k string, n bigint")
    flow.feed(again, numbers.union("both", again).where("some", "n > 1"))
    numbers.sink("out", ps.console())
    assert unused(compile_graph(flow.graph)) == ()


def test_a_union_of_streams_that_differ_in_nullability_stays_native() -> None:
    flow, numbers = start("nulls")
    one = numbers.flat_map("one", many, "n bigint not null", side={"two": "n bigint"})
    one.union("both", one.side("two")).map("after", same).sink("out", ps.console())
    assert compile_graph(flow.graph).stage_of("both").host == NATIVE


def test_a_name_like_that_of_a_step_of_the_compiler_is_free() -> None:
    flow, numbers = start("clash")
    numbers.key_by("k").count("count").sink("out", ps.console())
    numbers.map("count.parts", same).sink("other", ps.console())
    names = [n.name for n in compile_graph(flow.graph).graph.nodes]
    assert {"count@parts", "count.parts"} <= set(names)


# --- the same promises over flows of any shape ---------------------------------------------------------------------

SHAPE = "k string, n bigint"
Step = Callable[[ps.Stream, ps.Stream, str], list[ps.Stream]]
STEPS: dict[str, Step] = {
    "map": lambda s, _, name: [s.map(name, same)],
    "filter": lambda s, _, name: [s.filter(name, positive)],
    "where": lambda s, _, name: [s.where(name, "n > 1")],
    "more": lambda s, _, name: [s.with_columns(name, n="n + 1")],
    "union": lambda s, other, name: [s.union(name, other)],
    "branch": lambda s, _, name: list(s.branch(name, low="n < 1", high="n > 9").values()),
    "python_branch": lambda s, _, name: list(s.branch(name, up=positive).values()),
    "side": lambda s, _, name: _sides(s.flat_map(name, many, SHAPE, side={"b": SHAPE})),
    "spread": lambda s, _, name: [s.repartition(name, 4)],
    "join": lambda s, _, name: [
        s.join(name, ps.items([("a", 1)], f"k string, {name} bigint"), "k").select(f"{name}.s", "k", "n")
    ],
    "process": lambda s, _, name: [s.key_by("k").process(name, Meter, schema=SHAPE)],
    "reduce": lambda s, _, name: [s.key_by("k").reduce(name, first).as_records(f"{name}.r")],
    "sum": lambda s, _, name: [s.key_by("k").sum(name, "n", into="n").as_records(f"{name}.r")],
}


def _sides(stream: ps.Stream) -> list[ps.Stream]:
    return [stream, stream.side("b")]


@st.composite
def flows(draw: st.DrawFn) -> ps.Flow:
    flow = ps.Flow("any")
    streams = [flow.source(f"source{i}", ps.items([], SHAPE)) for i in range(draw(st.integers(1, 3)))]
    loop = flow.feedback("again", SHAPE) if draw(st.booleans()) else None
    streams += [loop] if loop else []
    pick = st.integers(0, 10_000)
    for i, kind in enumerate(draw(st.lists(st.sampled_from(sorted(STEPS)), max_size=12))):
        one, other = (streams[draw(pick) % len(streams)] for _ in range(2))
        streams += STEPS[kind](one, other, f"s{i}")
    if loop:
        flow.feed(loop, streams[draw(pick) % len(streams)])
    read = {p for n in flow.graph.nodes for p in n.inputs}
    leaves = [s for s in streams if s.port not in read] or streams
    ends = (
        leaves if draw(st.booleans()) else [streams[draw(pick) % len(streams)] for _ in range(draw(st.integers(1, 4)))]
    )
    for i, stream in enumerate(ends):
        stream.sink(f"sink{i}", ps.console())
    return flow


def times_computed(plan: Plan) -> Counter[str]:
    """How often each step would be computed: a sink pulls on what it reads, and what is kept is computed once."""
    times: Counter[str] = Counter()
    held: set[object] = set()

    def pull(port: Port) -> None:
        stage, node = plan.stage_of(port.step), plan.graph.node(port.step)
        holder = stage.name if stage.host == PYTHON and len(stage.outputs) > 1 else port
        if holder in held:
            return
        if holder is not port or port in plan.shared:
            held.add(holder)
        times[port.step if stage.host != PYTHON else stage.name] += 1
        for before in stage.inputs if stage.host == PYTHON else node.inputs:
            pull(before)

    roots = [p for sink in plan.graph.sinks for p in sink.inputs] + [n.fed_by for n in plan.graph.loops if n.fed_by]
    for port in roots:
        pull(port)
    return times


def moves_nothing(node: Node) -> bool:
    return isinstance(node, Union | AsRecords)


def is_between(plan: Plan, stage: Stage, node: Node) -> bool:
    readers = [reader for output in node.outputs for reader in plan.graph.readers(Port(node.name, output.name))]
    return len(readers) == 1 and {readers[0].name, node.inputs[0].step} <= stage.steps


@settings(max_examples=200, deadline=None)
@given(flows(), st.booleans())
def test_a_plan_of_any_flow_keeps_the_promises(flow: ps.Flow, live: bool) -> None:
    plan = compile_graph(flow.graph, live=live)
    done: set[str] = set()
    for stage in plan.stages:
        assert {p.step for p in stage.inputs} <= done, "a stage stands behind all it reads"
        assert not stage.steps & done, "a step runs in one stage"
        done |= stage.steps
        for node in stage.nodes:
            if stage.host == PYTHON:
                alone = node.runs_python or moves_nothing(node) or is_between(plan, stage, node)
                assert alone, "native steps leave the JVM only where they stand between Python steps"
            elif stage.host == NATIVE:
                assert not node.runs_python
    for node in plan.graph.nodes:
        if node.name in done and node.runs_python and len(node.inputs) == 1:
            mine, before = plan.stage_of(node.name), plan.stage_of(node.inputs[0].step)
            starts = mine.nodes[0] is node and (mine.shuffle or mine.state)
            assert starts or before.host != PYTHON or mine is before, "Python steps in a row are one pass"


@settings(max_examples=300, deadline=None)
@given(flows(), st.booleans())
def test_nothing_dear_is_computed_twice(flow: ps.Flow, live: bool) -> None:
    plan = compile_graph(flow.graph, live=live)
    sources = sum(s.host == SOURCE for s in plan.stages)
    times = times_computed(plan)
    for stage in plan.stages:
        if stage.host == PYTHON:
            assert times[stage.name] <= 1
        elif stage.host == SOURCE and not (live and sources > 1):
            assert all(times[s] <= 1 for s in stage.steps)
        elif stage.shuffle:
            assert times[stage.nodes[0].name] <= 1


def pass_of(step: str, over: Callable[[ps.Stream, ps.Stream], ps.Stream]) -> frozenset[str]:
    """The steps that run in one pass with a step over the totals `a` and `b` of two sources."""
    flow = ps.Flow("f")
    one, two = (flow.source(f"source-{n}", ps.items([], f"k string, {n} int, x double")).key_by("k") for n in "nm")
    over(one.aggregate("a", n="count(*)", x="max(x)"), two.aggregate("b", m="count(*)")).sink("out", ps.console())
    return compile_graph(flow.graph).stage_of(step).steps - {"out@rows"}


def renamed(one: ps.Stream, two: ps.Stream, how: str) -> ps.Stream:
    return one.select("s", "n", who="k").join("j", two, on={"who": "k"}, how=how, prefix="o_")


def total(stream: ps.Stream, key: str, field: str) -> ps.Stream:
    return stream.key_by(key).aggregate("c", z=f"sum({field})")


def test_steps_over_totals_by_the_same_key_are_one_pass_with_them() -> None:
    assert pass_of("j", lambda one, two: one.join("j", two, on="k")) == set("abj")
    assert pass_of("j", lambda one, two: one.where("w", "n > 1 and x is not null").join("j", two, on="k")) == set(
        "abwj"
    )
    assert pass_of("j", lambda one, two: renamed(one, two, "full")) == set("absj")
    assert pass_of("c", lambda one, two: total(one.join("j", two, on="k"), "k", "m")) >= set("abjc")
    assert pass_of("c", lambda one, two: total(renamed(one, two, "left"), "who", "o_m")) >= set("absjc")


def test_steps_over_totals_move_rows_of_a_key_that_may_be_in_several_tasks() -> None:
    assert pass_of("j", lambda one, two: one.join("j", two, on={"n": "m"}, prefix="o_")) == set("j")
    assert pass_of("j", lambda one, two: one.with_columns("w", k="concat(k, 'x')").join("j", two, on="k")) == set("bj")
    # The key of a row that only the right has is null.
    assert pass_of("c", lambda one, two: total(renamed(one, two, "full"), "who", "o_m")) == set("c")


def test_what_arrow_does_not_compute_as_spark_does_stays_native() -> None:
    assert pass_of("j", lambda one, two: one.where("w", "x > 1").join("j", two, on="k")) == set("bj")
    assert pass_of("j", lambda one, two: one.where("w", "upper(k) = 'A'").join("j", two, on="k")) == set("bj")


def test_a_stage_that_would_wait_for_itself_is_not_made() -> None:
    flow = ps.Flow("f")
    totals = flow.source("one", ps.items([], "k string, n int")).key_by("k").aggregate("a", n="count(*)")
    by_n = totals.key_by("n").aggregate("b", k="max(k)")
    again = by_n.key_by("k").aggregate("c", m="count(*)")
    totals.join("j", again, on="k").sink("out", ps.console())
    plan = compile_graph(flow.graph)
    assert [s.name for s in plan.stages if s.host == PYTHON] == [
        "a + b@needed + b@early",
        "b + c@needed + c@early",
        "c + j + out@rows",
    ]


@dataclass
class Wrapped:
    """A record of the user's own."""

    a: int


def wrapped(row: ps.Row) -> Wrapped:
    return Wrapped(row.a)


@ps.function
def double(a: int) -> int:
    return 2 * a


def test_steps_with_functions_over_records_of_a_class_compile_for_a_bounded_run() -> None:
    flow = ps.Flow("records", functions=[double])
    rows = flow.source("rows", ps.items([], "a int")).map("wrap", wrapped)
    for name in ("one", "other"):
        rows.where(name, "double(a) > 2").sink(f"{name}-out", ps.console())
    names = {node.name for node in compile_graph(flow.graph, live=False).graph.nodes}
    assert {"one", "other"} <= names
