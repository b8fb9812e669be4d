"""Generated flows of two to six steps answer as plain Python does over lists, on every runtime and however the input is cut."""

from __future__ import annotations

import random
from typing import Any

import pytest

import penstock as ps
from penstock.testing import BARRIER, run_local
from tests.breadth import some_now
from tests.conftest import compiled
from tests.generated.flows import generate, run_bounded, run_cut, run_live
from tests.generated.operators import ENDS, STEPS, Operator
from tests.generated.pipe import BEGIN, SECOND, moment, plain
from tests.same.conftest import Case
from tests.same.conftest import run_cut as run_cut_at

EACH = [pytest.param(o, id=o.__name__) for o in (*STEPS, *ENDS)]


@pytest.mark.parametrize("operator", EACH)
def test_each_step_alone(operator: Operator) -> None:
    """Read directly and compiled, cut at random."""
    for seed in range(5):
        made = generate(seed, only=[operator])
        for cut in range(3):
            assert made.differences(run_cut(made, f"{seed}-{cut}", oracle=cut == 0)) == []


@pytest.mark.parametrize("begin", some_now(range(0, 200, 20), 4))
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


def lateness() -> tuple[ps.Flow, list[Any]]:
    """A flow with windows, sessions and a sort, each with its late records; and records that are far out of order."""
    flow = ps.Flow("lateness")
    seen = flow.source("seen", ps.items([], "k string, ts timestamp"), event_time="ts", lateness="2s", idle=None)
    steps = {
        "windows": seen.key_by("k").window(ps.tumbling("5s")).count("windows"),
        "lenient": seen.key_by("k").window(ps.sliding("6s", every="3s"), lateness="4s").count("lenient"),
        "sessions": seen.key_by("k").window(ps.session("3s")).count("sessions"),
        "sorted": seen.sort("sorted"),
    }
    for name, step in steps.items():
        step.sink(f"{name}-out", ps.console())
        step.side("late").sink(f"{name}-late", ps.console())
    rng = random.Random(5)
    return flow, [(rng.choice("ab"), moment(BEGIN + (at // 2 + rng.randrange(-20, 9)) * SECOND)) for at in range(90)]


CUTS = [9, 10, 11, 40, 80]
"""Where batches end so that records are late for each step."""


@pytest.mark.live
def test_what_is_late_is_the_same_at_the_same_cuts(same: Case) -> None:
    """On the oracle, the compiled plan, and Spark; for a bounded run nothing is."""
    flow, records = lateness()
    rng = random.Random(6)
    rolled = [sorted(rng.sample(range(90), rng.randint(3, 20))) for _ in range(10)] if same.in_process else []
    for cuts in [CUTS, *rolled]:
        expected = run_cut_at(flow, {"seen": records}, {"seen": [] if same.runtime == "bounded" else cuts}, oracle=True)
        late = [len(rows) for sink, rows in expected.items() if sink.endswith("late")]
        assert all(late) if cuts is CUTS and same.runtime != "bounded" else True, "the case must have late records"
        found = same.run(flow, {"seen": records}, cuts={"seen": cuts}) if same.runtime != "oracle" else expected
        for sink, rows in expected.items():
            assert sorted(map(plain, found[sink]), key=repr) == sorted(map(plain, rows), key=repr), (sink, cuts)


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
    if runtime == "live":
        return run_live(made, spark, made.seed)
    with compiled(spark):
        return run_bounded(made, spark)
