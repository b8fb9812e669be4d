"""Patterns in the JSON of dynamic CEP give the matches that Flink's CEP library gives for them."""

from __future__ import annotations

import datetime
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.testing import run_local
from tests.patterns.flink_matches import are_those_of_flink

ANSWERS = Path(__file__).parent / "flink" / "answers.jsonl"
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
EDGES = {
    "next": "STRICT", "followed_by": "SKIP_TILL_NEXT", "followed_by_any": "SKIP_TILL_ANY", "not_next": "NOT_NEXT", "not_followed_by": "NOT_FOLLOW",
}  # fmt: skip
INNER = {"strict": "STRICT", "any": "SKIP_TILL_ANY", "relaxed": "SKIP_TILL_NEXT"}
SKIPS = {
    "no_skip": "NO_SKIP", "to_next": "SKIP_TO_NEXT", "past_last": "SKIP_PAST_LAST_EVENT", "to_first": "SKIP_TO_FIRST", "to_last": "SKIP_TO_LAST",
}  # fmt: skip
Case = dict[str, Any]


def cases() -> list[Case]:
    """The patterns that the JSON can say."""
    read = [json.loads(line) for line in ANSWERS.read_text().splitlines()]
    return [
        each for each in read if "matches" in each and len(each["skip"]) < 3 and all(map(can_be_said, each["parts"]))
    ]


def can_be_said(part: Case) -> bool:
    inner = part.get("group", [])
    return (
        not {"rule", "gap", "within"} & part.keys()
        and part["link"] in ("begin", *EDGES)
        and all(map(can_be_said, inner))
    )


def condition(letters: str | None) -> Case | None:
    return (
        None
        if letters is None
        else {"type": "AVIATOR", "expression": " || ".join(f"kind == '{each}'" for each in letters)}
    )


def quantifier(part: Case) -> Case:
    low, high = part.get("times") or (1, 1)
    kind = "SINGLE" if "times" not in part else "LOOPING" if high is None else "TIMES"
    properties = [kind, *(["OPTIONAL"] if part.get("optional") else []), *(["GREEDY"] if part.get("greedy") else [])]
    times = None if kind == "SINGLE" else {"from": low, "to": high or low, "windowTime": None}
    inner = INNER[part.get("inner") or "relaxed"]
    return {
        "consumingStrategy": inner,
        "properties": properties,
        "times": times,
        "untilCondition": condition(part.get("until")),
    }


def node(part: Case, name: str) -> Case:
    if "group" in part:
        return {**graph(part["group"], name), "quantifier": quantifier(part)}
    return {
        "name": part["name"],
        "type": "ATOMIC",
        "quantifier": quantifier(part),
        "condition": condition(part["where"]),
    }


def graph(parts: list[Case], name: str) -> Case:
    nodes = [node(part, f"{name}.{at}") for at, part in enumerate(parts)]
    edges = [
        {"source": nodes[at]["name"], "target": nodes[at + 1]["name"], "type": EDGES[parts[at + 1]["link"]]}
        for at in range(len(parts) - 1)
    ]
    return {
        "name": name,
        "type": "COMPOSITE",
        "quantifier": quantifier({}),
        "condition": None,
        "nodes": nodes,
        "edges": edges,
    }


def rule(case: Case) -> Case:
    window = (
        {"type": "FIRST_AND_LAST", "time": {"unit": "SECONDS", "size": case["within"]}} if "within" in case else None
    )
    skip, *stage = case["skip"]
    after = {"type": SKIPS[skip], "patternName": stage[0] if stage else None}
    return {**graph(case["parts"], "pattern"), "window": window, "afterMatchStrategy": after, "version": 1}


def matches(case: Case) -> Counter[str]:
    pattern = ps.pattern_json(json.dumps(rule(case)))
    rows = [(at, kind, START + datetime.timedelta(seconds=time)) for at, (kind, _, time) in enumerate(case["events"])]
    flow = ps.Flow("json")
    events = flow.source("events", ps.items(rows, "number int, kind string, at timestamp"), event_time="at")
    events.match("hits", pattern).sink("out", ps.console())
    found = Counter[str]()
    for row in run_local(flow)["out"]:
        taken = {stage: [event["number"] for event in getattr(row, stage)] for stage in pattern.stages}
        found[
            " ".join(f"{stage}={','.join(map(str, numbers))}" for stage, numbers in sorted(taken.items()) if numbers)
        ] += 1
    return found


def test_the_matches_are_those_of_flink() -> None:
    known = cases()
    assert len(known) > 1_000
    wrong = []
    for case in random.Random(3).sample(known, 150):
        got = matches(case)
        if not are_those_of_flink(case, got.elements()):
            wrong.append((case, got))
    assert not wrong, f"{len(wrong)}: {wrong[0]}"
