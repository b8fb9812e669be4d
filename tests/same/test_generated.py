"""Generated flows of two to six steps answer as plain Python does over lists, on every runtime and however the input is cut."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.testing import BARRIER, run_local
from tests.generated.flows import generate, run_bounded, run_cut, run_live
from tests.generated.operators import ENDS, STEPS, Operator
from tests.generated.pipe import BEGIN, SECOND, moment

EACH = [pytest.param(o, id=o.__name__) for o in (*STEPS, *ENDS)]


@pytest.mark.parametrize("operator", EACH)
def test_each_step_alone(operator: Operator) -> None:
    """Read directly and compiled, cut at random."""
    for seed in range(5):
        made = generate(seed, only=[operator])
        for cut in range(3):
            assert made.differences(run_cut(made, f"{seed}-{cut}", oracle=cut == 0)) == []


@pytest.mark.parametrize("begin", range(0, 200, 20))
def test_generated_flows_in_this_process(begin: int) -> None:
    """The oracle and the compiled plan, cut at random, with crashes."""
    for seed in range(begin, begin + 20):
        made = generate(seed)
        for oracle in (True, False):
            assert made.differences(run_cut(made, seed, crashes=seed % 2 == 1, oracle=oracle)) == []


def test_a_record_exactly_a_gap_behind_falls_the_same_way_however_the_input_is_cut() -> None:
    answers = []
    for cut in ([], [BARRIER]):
        flow = ps.Flow("edge")
        seen = flow.source("seen", ps.items([], "k string, ts timestamp"), event_time="ts", lateness="2s", idle=None)
        seen.key_by("k").window(ps.session("5s")).count("n").sink("out", ps.console())
        given = [("a", moment(BEGIN)), ("b", moment(BEGIN + 7 * SECOND)), *cut, ("a", moment(BEGIN + 5 * SECOND))]
        answers.append(sorted(map(tuple, run_local(flow, {"seen": given})["out"])))
    assert answers[0] == answers[1]


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("runtime", ["live", "bounded"])
def test_generated_flows_on_spark(runtime: str, penstock_spark: Any) -> None:
    """Ten flows, as branches of one."""
    made = generate(7_000, pipelines=10)
    assert made.differences(_run(runtime, made, penstock_spark)) == []


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(8_000, 8_030))
def test_many_generated_flows_on_spark(seed: int, penstock_spark: Any) -> None:
    """Thirty times ten flows, live and bounded."""
    made = generate(seed, pipelines=10)
    found = [d for runtime in ("live", "bounded") for d in made.differences(_run(runtime, made, penstock_spark))]
    assert found == []


def _run(runtime: str, made: Any, spark: Any) -> Any:
    return run_live(made, spark, made.seed) if runtime == "live" else run_bounded(made, spark)
