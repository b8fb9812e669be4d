"""What a run asks about where steps run is kept by the plan, or refused with the reason."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.compiler.compile import compile_graph
from penstock.compiler.describe import describe
from penstock.compiler.placement import check_placement, placed
from penstock.compiler.plan import Plan
from penstock.errors import OptionError, PenstockError, UnknownName
from penstock.graph.picture.text import as_text
from penstock.jobs.run import start
from tests.compiler.test_describe import check_golden, without_lines


def flow() -> ps.Flow:
    made = ps.Flow("demo")
    lines = made.source("lines", ps.items(["a b", "b"], "line string"))
    words = lines.flat_map("split", lambda row: row.line.split(), schema="word string")
    marked = words.map("mark", lambda row: (row.word.upper(),), schema="word string")
    marked.key_by("word").process("number", Numbers, "word string, nth bigint").sink("out", ps.console())
    return made


class Numbers(ps.Process):
    nth = ps.value(int, default=0)

    def on_event(self, row):  # type: ignore[no-untyped-def]
        self.nth += 1
        yield row.word, self.nth


def test_steps_of_one_stage_are_together() -> None:
    check_placement(flow().graph, ["together=split,mark"])
    check_placement(flow().graph, ["together=mark, split"], live=False)


def two() -> ps.Flow:
    """Two native branches, and two Python passes with a shuffle between."""
    made = ps.Flow("two")
    lines = made.source("lines", ps.items(["a b", "b"], "line string"))
    lines.where("short", "length(line) < 9").sink("shorts", ps.console())
    lines.where("long", "length(line) > 8").sink("longs", ps.console())
    words = lines.flat_map("split", lambda row: row.line.split(), schema="word string")
    words.key_by("word").process("number", Numbers, "word string, nth bigint").sink("out", ps.console())
    return made


def stages(plan: Plan) -> dict[str, tuple[str, bool]]:
    return {stage.name: (stage.workers, stage.alone) for stage in plan.stages if stage.workers or stage.alone}


def test_steps_that_are_apart_have_workers_of_their_own() -> None:
    plan = compile_graph(two().graph)
    assert stages(plan) == {}
    assert stages(placed(plan, ["apart=split,number"])) == {"split": ("split", False), "number": ("number", False)}
    assert stages(placed(plan, ["apart=short,number"])) == {"number": ("number", False)}


def test_a_step_that_is_alone_asks_for_its_executor_and_has_workers_of_its_own() -> None:
    plan = compile_graph(two().graph)
    assert stages(placed(plan, ["alone=number"])) == {"number": ("number", True)}
    assert stages(placed(plan, ["alone=number", "apart=split,number"]))["number"] == ("number", True)
    assert stages(placed(compile_graph(flow().graph), ["alone=mark,split"])) == {"split + mark": ("split + mark", True)}


def test_a_plan_says_where_its_steps_run() -> None:
    made = describe(two().graph, place=["apart=split,number", "alone=number"])
    assert [stage["placed"] for stage in made["stages"] if stage["host"] == "python"] == ["apart", "alone"]
    check_golden("placed", as_text(without_lines(made)))


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            "together=split,number",
            "expected one stage, got two: 'split . mark' runs as python, 'number' as python, and records move",
        ),
        (
            "apart=split,mark",
            r"'split' and 'mark' are one pass over the records, in one task \(split . mark\).*repartition between.*Make it a job of its own",
        ),
        (
            "apart=lines,out",
            "'lines' and 'out' run inside Spark, as source and sink.*one JVM.*Make it a job of its own",
        ),
        ("alone=lines", "'lines' runs inside Spark, as source.*Python passes only"),
        ("alone=split", "'split' is one pass over the records with 'mark'. Name them too, as alone=split,mark"),
        ("beside=split,mark", "expected together=STEP,STEP, apart=STEP,STEP or alone=STEP, got 'beside=split,mark'"),
        ("together=split", "expected together="),
        ("together=split,split", "expected together="),
        ("", "expected together="),
    ],
)
def test_what_is_not_kept_is_refused_with_the_reason(rule: str, told: str) -> None:
    with pytest.raises(OptionError, match=told):
        check_placement(flow().graph, [rule])


def test_native_steps_are_not_kept_apart() -> None:
    with pytest.raises(OptionError, match="'short' and 'long' run inside Spark, as native and native: every executor"):
        check_placement(two().graph, ["apart=short,long"])


def test_a_step_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownName, match=r"--place together=split,mrak: there is no step 'mrak'.*mark"):
        check_placement(flow().graph, ["together=split,mrak"])


def test_a_run_is_refused_before_spark_starts() -> None:
    with pytest.raises(
        PenstockError, match=r"--place alone: 'number' would need executors .*local\[1\] has one JVM for all"
    ):
        start(ps.RunSpec(mode="batch", master="local[1]", place=("alone=number",)), flow())
