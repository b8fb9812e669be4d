"""What Flink CEP answers, Penstock answers: matches and timed-out runs, order aside."""

from __future__ import annotations

from itertools import pairwise

import pytest

from penstock.errors import FlowError, PenstockError
from tests.patterns.cases import Case, answered, every_part, flow_of, found
from tests.patterns.flink_matches import are_those_of_flink, first_event, last_event
from tests.patterns.reference import may_be_empty

KINDS = sorted({case["kind"] for case in answered()} - {"refused"})
EVERY = 6
"""Of the cases, so many make one that runs in every run of the tests; all do in the slow tier."""


def is_refused_here(case: Case) -> bool:
    """What Flink takes and Penstock refuses, since it has no meaning: a part that may be empty after a greedy one, a loop over a group that may be empty,
    and a skip to a stage that takes no event."""
    parts = case["parts"]
    greedy = any(one.get("greedy") and may_be_empty(two) for one, two in pairwise(parts))
    inner = [is_refused_here({"parts": part["group"], "skip": case["skip"]}) for part in parts if "group" in part]
    empty = any(all(map(may_be_empty, part["group"])) for part in every_part(parts) if "group" in part)
    absent = [part["name"] for part in every_part(parts) if part["link"].startswith("not_")]
    return greedy or empty or any(inner) or any(stage in absent for stage in case["skip"][1:2])


def check(case: Case) -> None:
    """Compares the answers of one case."""
    if is_refused_here(case):
        return
    if "failed" in case:
        with pytest.raises(PenstockError, match="after_match"):
            found(case, [case["events"]])
        return
    ((matches, timed_out),) = found(case, [case["events"]])
    assert are_those_of_flink(case, matches), case
    ours, expired = dated(timed_out), dated(without_dropped(case, timed_out))
    assert [run for run, _ in ours] == [run for run, _ in expired], case
    may_be_earlier = case["kind"] == "gaps"
    assert all(
        mine == other or (may_be_earlier and mine < other) for (_, mine), (_, other) in zip(ours, expired, strict=True)
    ), case


def without_dropped(case: Case, timed_out: list[str]) -> list[str]:
    """The timed-out runs of a case that are no match's to drop. At the end of the input Flink lets all time pass at once: it reports runs whose time is up
    only after a run has timed out that held a match back, though the match drops them."""
    if case["skip"] == ["no_skip"] or not set(timed_out) < set(case["timed_out"]):
        return list(case["timed_out"])
    held = min((at for _, at in dated(case["timed_out"]) if at > case["events"][-1][2]), default=0)
    gone = set(case["timed_out"]) - set(timed_out)
    dropped = {run for run in gone if dated([run])[0][1] > held and may_be_dropped(case, run)}
    return [run for run in case["timed_out"] if run not in dropped]


def may_be_dropped(case: Case, run: str) -> bool:
    """Whether a run began up to the last event of some match."""
    return any(first_event(run.rpartition("@")[0]) <= last_event(match) for match in case["matches"])


def dated(timed_out: list[str]) -> list[tuple[str, int]]:
    """Timed-out runs with their times. Where the time of a stage and that of the pattern are both over, Flink says that of the stage, Penstock the earlier."""
    return sorted((run, int(at)) for run, _, at in (each.rpartition("@") for each in timed_out))


@pytest.mark.parametrize("kind", KINDS)
def test_matches_and_timed_out_runs_are_those_of_flink(kind: str) -> None:
    cases = [case for case in answered() if case["kind"] == kind]
    assert len(cases) > 15
    for case in cases[:: 1 if kind == "documented" else EVERY]:
        check(case)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_matches_and_timed_out_runs_are_those_of_flink(kind: str) -> None:
    for case in answered():
        if case["kind"] == kind:
            check(case)


@pytest.mark.parametrize("case", [c for c in answered() if c["kind"] == "refused"], ids=lambda c: str(c["parts"])[:60])
def test_what_flink_refuses_is_refused_when_the_flow_is_built(case: Case) -> None:
    with pytest.raises(FlowError):
        flow_of(case)
