"""How many matches of a pattern from text may be begun, whichever way the text is written and read."""

from __future__ import annotations

import json
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, RunError, StepError
from penstock.graph.times import Times
from penstock.kernels.base import Context
from penstock.kernels.build import kernel_of
from penstock.kernels.records.chunk import Chunk
from penstock.state.memory import MemoryState
from penstock.state.memory_timers import MemoryTimers
from penstock.testing import explain_match, run_local

SCHEMA = "k string, kind string, n int"
GIVEN = [*(("x", "a", n) for n in range(4)), ("y", "a", 9), ("x", "b", 100), ("y", "b", 101)]
SINGLE = {"consumingStrategy": "SKIP_TILL_NEXT", "properties": ["SINGLE"], "times": None, "untilCondition": None}
JSON = {
    "name": "j", "type": "COMPOSITE", "quantifier": SINGLE, "condition": None, "window": None, "afterMatchStrategy": {"type": "NO_SKIP", "patternName": None},
    "nodes": [
        {"name": name, "type": "ATOMIC", "quantifier": SINGLE, "condition": {"type": "AVIATOR", "expression": f"kind == '{name}'"}} for name in "ab"
    ],
    "edges": [{"source": "a", "target": "b", "type": "SKIP_TILL_NEXT"}],
}  # fmt: skip
TEXTS = ["every a=a -> b=b", "PATTERN SEQ(a a, b b)", json.dumps(JSON)]


def found(pattern: Any, given: list[tuple[str, str, int]] = GIVEN) -> list[list[int]]:
    """The matches of a pattern, by the numbers of their events."""
    flow = ps.Flow("limit")
    events = flow.source("events", ps.items([], SCHEMA))
    events.key_by("k").match("found", pattern, {"a": "a.n", "b": "b.n"}).sink("out", ps.console())
    return sorted(list(row) for row in run_local(flow, {"events": given})["out"])


def made(text: str, limit: Any) -> Any:
    if text.startswith("{"):
        return ps.pattern_json(text, limit=limit)
    return (ps.sase_text if text.startswith("PATTERN") else ps.pattern_text)(text, types="kind", limit=limit)


@pytest.mark.parametrize("text", TEXTS)
def test_the_oldest_of_a_key_are_dropped(text: str) -> None:
    assert found(made(text, None)) == [[0, 100], [1, 100], [2, 100], [3, 100], [9, 101]]
    assert found(made(text, 2)) == [[2, 100], [3, 100], [9, 101]]
    with pytest.raises((RunError, StepError), match=r"may have (begun )?2"):
        found(made(text, ps.run_limit(2, "fail")))


@pytest.mark.parametrize("text", TEXTS)
def test_patterns_that_change_have_the_limit_of_their_reader(text: str) -> None:
    flow = ps.Flow("limit")
    changes = flow.source("changes", ps.items([], "rule string, text string"))
    events = flow.source("events", ps.items([], SCHEMA))
    hits = events.key_by("k").patterns("found", changes=changes, reader=ps.pattern_reader("kind", limit=2))
    hits.sink("out", ps.console())
    rows = run_local(flow, {"changes": [("p", text)], "events": GIVEN})["out"]
    assert sorted([event["n"] for event in row.events] for row in rows) == [[2, 100], [3, 100], [9, 101]]


@pytest.mark.parametrize("limit", [ps.run_limit(2, "aside"), ps.run_limit(2, per="pattern")])
def test_pattern_text_drops_or_fails_by_key(limit: Any) -> None:
    with pytest.raises(FlowError, match="expected a limit per key that drops or fails"):
        found(made(TEXTS[0], limit))


def test_a_limit_is_a_number_or_made_by_run_limit() -> None:
    with pytest.raises(FlowError, match="a key may have one run or more, got '2'"):
        ps.pattern_text(TEXTS[0], limit="2")  # type: ignore[arg-type]


def test_what_the_limit_drops_is_explained() -> None:
    lines = explain_match(made(TEXTS[0], 1), GIVEN[:2], SCHEMA).lines
    assert "  drops a=1: there may be 1 runs for each key, drop" in lines


def test_matches_and_dropped_ones_are_counted() -> None:
    flow = ps.Flow("limit")
    events = flow.source("events", ps.items([], SCHEMA))
    events.key_by("k").match("m", made(TEXTS[0], 2)).sink("out", ps.console())
    node = flow.graph.node("m")
    kernel = kernel_of(node, flow.graph)
    state, timers = MemoryState(), MemoryTimers()
    kernel.open(Context(state=lambda _: state, timers=lambda _: timers))
    kernel.begin(Times(0, 0, 0, 0))
    columns: list[list[Any]] = [list(column) for column in zip(*GIVEN, strict=True)]
    list(kernel.take(Chunk(flow.graph.output(node.inputs[0]).schema, columns=columns)))
    assert kernel.counters.runs == {"matches": 3, "dropped": 2}
