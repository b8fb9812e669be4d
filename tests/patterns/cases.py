"""The cases of `flink/answers.jsonl`, written and run as a user would."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.frontends.streams.patterns import PatternBuilder
from penstock.testing import BARRIER, run_local

Case = dict[str, Any]
ANSWERS = Path(__file__).parent / "flink" / "answers.jsonl"
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
SCHEMA = "k int, i int, kind string, n int, at timestamp"
SKIPS = {"no_skip": "none", "to_next": "next", "past_last": "past_last", "to_first": "first", "to_last": "last"}
MILLISECOND = datetime.timedelta(milliseconds=1)


@cache
def answered() -> tuple[Case, ...]:
    """All cases with Flink's answers."""
    return tuple(json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines())


def every_part(parts: list[Case]) -> list[Case]:
    """The parts of a case, those in groups too."""
    return [each for part in parts for each in (part, *every_part(part.get("group", [])))]


def pattern_of(case: Case) -> PatternBuilder:
    """The pattern of a case."""
    kind, *rest = case["skip"]
    made = _sequence("p", case["parts"]).after_match(SKIPS[kind], *rest[:1], must_exist=len(rest) > 1)
    return made.within(case["within"] / 1000) if case.get("within") else made


def _sequence(name: str, parts: list[Case]) -> PatternBuilder:
    made = ps.pattern(name)
    for at, part in enumerate(parts):
        group = _sequence(f"{name}{at}", part["group"]) if "group" in part else None
        stage = (group,) if group is not None else (part["name"], _condition(part))
        made = getattr(made, part["link"])(*stage, **_quantifier(part))
        made = made.within(part["within"] / 1000, per="stage") if "within" in part else made
    return made


def _quantifier(part: Case) -> Case:
    made: Case = {"optional": True} if part.get("optional") else {}
    made |= {"times": tuple(part["times"])} if part.get("times") else {}
    made |= {{"strict": "consecutive", "any": "combinations"}[part["inner"]]: True} if part.get("inner") else {}
    made |= {"greedy": True} if part.get("greedy") else {}
    return made | ({"until": kinds(part["until"])} if part.get("until") else {})


def _condition(part: Case) -> str:
    return kinds(part["where"]) + (f" and {rule_of(part['rule'])}" if part.get("rule") else "")


def kinds(letters: str) -> str:
    """The condition that the kind of an event is one of these."""
    return f"kind in ({', '.join(repr(letter) for letter in letters)})"


def rule_of(rule: list[Any]) -> str:
    """A condition on what was taken, as an expression."""
    name, stage, *bound = rule
    return {
        "above_last": f"(count({stage}) = 0 or n > last({stage}).n)",
        "above_first": f"(count({stage}) = 0 or n > first({stage}).n)",
        "sum_below": f"coalesce(sum({stage}.n), 0) + n < {bound[0] if bound else 0}",
        "count_below": f"count({stage}) < {bound[0] if bound else 0}",
    }[name]


def rows_of(inputs: list[list[Any]]) -> list[tuple[Any, ...]]:
    """The events of several inputs, numbered within each; each input is a key, and they alternate as far as their times allow."""
    rows = [
        (key, i, kind, n, START + at * MILLISECOND)
        for key, events in enumerate(inputs)
        for i, (kind, n, at) in enumerate(events)
    ]
    return sorted(rows, key=lambda row: (row[4], row[1], row[0]))


def flow_of(case: Case) -> ps.Flow:
    """The flow that finds the matches of a case, and the runs whose time was up."""
    flow = ps.Flow("case")
    source = flow.source("events", ps.items([], SCHEMA), event_time="at")
    matches = source.key_by("k").match("m", pattern_of(case))
    matches.sink("out", ps.console())
    if case.get("within") or any("within" in part for part in every_part(case["parts"])):
        matches.side("timed_out").sink("timed_out", ps.console())
    return flow


Answers = list[tuple[list[str], list[str]]]
"""The matches of each input, and the runs whose time was up, as the file writes them."""


def found(case: Case, inputs: list[list[Any]], ends: Callable[[], bool] = lambda: False) -> Answers:
    """What Penstock finds in each of several inputs. `ends` says of each event whether a batch ends after it."""
    rows = [each for row in rows_of(inputs) for each in ((row, BARRIER) if ends() else (row,))]
    made = run_local(flow_of(case), {"events": rows})
    stages = [part["name"] for part in every_part(case["parts"]) if "name" in part and part["link"][:4] != "not_"]
    answers: Answers = [([], []) for _ in inputs]
    for row in made["out"]:
        answers[row.k][0].append(_written(row, stages))
    for row in made.get("timed_out", []):
        answers[row.k][1].append(f"{_written(row, stages)}@{(row.timed_out_at - START) // MILLISECOND}")
    return [(sorted(matches), sorted(expired)) for matches, expired in answers]


def _written(row: Any, stages: list[str]) -> str:
    taken = {stage: [event["i"] for event in getattr(row, stage)] for stage in sorted(stages)}
    return " ".join(f"{stage}={','.join(map(str, events))}" for stage, events in taken.items() if events)
