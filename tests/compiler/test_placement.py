"""What a run asks about where steps run is kept by the plan, or refused with the reason."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.compiler.placement import check_placement
from penstock.errors import OptionError, PenstockError, UnknownName
from penstock.jobs.run import start


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


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            "together=split,number",
            "expected one stage, got two: 'split . mark' runs as python, 'number' as python, and records move",
        ),
        (
            "apart=split,mark",
            r"they are one pass over the records, in one task \(split . mark\).*Make it a job of its own",
        ),
        ("apart=split,number", "Spark places tasks, not steps.*dynamic allocation.*Make it a job of its own"),
        ("alone=number", "Spark places tasks, not steps"),
        ("beside=split,mark", "expected together=STEP,STEP, apart=STEP,STEP or alone=STEP, got 'beside=split,mark'"),
        ("together=split", "expected together="),
        ("together=split,split", "expected together="),
        ("", "expected together="),
    ],
)
def test_what_is_not_kept_is_refused_with_the_reason(rule: str, told: str) -> None:
    with pytest.raises(OptionError, match=told):
        check_placement(flow().graph, [rule])


def test_a_step_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownName, match=r"--place together=split,mrak: there is no step 'mrak'.*mark"):
        check_placement(flow().graph, ["together=split,mrak"])


def test_a_run_is_refused_before_spark_starts() -> None:
    with pytest.raises(PenstockError, match="--place alone=number: Spark places tasks"):
        start(ps.RunSpec(mode="batch", place=("alone=number",)), flow())
