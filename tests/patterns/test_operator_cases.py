"""Patterns of operators, case by case: every with and, or and not, repetitions, distinct events, timers, limits, and who gets an event."""

from __future__ import annotations

import datetime

import pytest

import penstock as ps
from penstock.errors import FlowError
from penstock.testing import run_local

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
SCHEMA = "kind string, id string, n int, at timestamp"


def matches(text: str, words: str) -> list[str]:
    """The matches over words such as `A1@5`: the type, a number, and the second; without one they come a second apart."""
    rows: list[tuple[str, str, int, datetime.datetime]] = []
    for word in words.split():
        name, _, second = word.partition("@")
        at = START + datetime.timedelta(seconds=float(second or len(rows)))
        rows.append((name[0], name, int(name[1:]), at))
    flow = ps.Flow("cases")
    pattern = ps.pattern_text(text, types="kind")
    flow.source("events", ps.items(rows, SCHEMA), event_time="at").match("hits", pattern).sink("out", ps.console())
    return [
        " ".join(f"{tag}={'+'.join(e['id'] for e in getattr(row, tag))}" for tag in pattern.tags if getattr(row, tag))
        + f"@{(row.match_end - START).total_seconds():g}"
        for row in run_local(flow)["out"]
    ]


WALK = "A1 B1 C1 B2 A2 D1 A3 B3 E1 A4 F1 B4"
CASES = [
    ("every (a=A or b=B)", "A1 B1 A2", ["a=A1@0", "b=B1@1", "a=A2@2"]),
    ("every a=A or every b=B", "A1 B1 A2", ["a=A1@0", "b=B1@1", "a=A2@2"]),
    ("a=A or b=B", "B1 A1", ["b=B1@0"]),
    ("every (a=A and b=B)", "A1 A2 B1 B2 A3", ["a=A1 b=B1@2", "a=A3 b=B2@4"]),
    (
        "every a=A and every b=B",
        "A1 B1 A2 B2",
        ["a=A1 b=B1@1", "a=A2 b=B1@2", "a=A1 b=B2@3", "a=A2 b=B2@3"],
    ),
    ("every a=A and b=B", "A1 A2 B1 A3", ["a=A1 b=B1@2", "a=A2 b=B1@2", "a=A3 b=B1@3"]),
    ("a=A and not b=B", "A1", ["a=A1@0"]),
    ("a=A and not B", "B1 A1", []),
    ("every (a=A and not B)", "B1 A1 A2", ["a=A1@1", "a=A2@2"]),
    ("every a=A -> (b=B and not C)", "A1 C1 B1 A2 B2", ["a=A2 b=B2@4"]),
    ("a=A -> b=B -> c=C", "A1 C1 B1 C2", ["a=A1 b=B1 c=C2@3"]),
    ("(a=A -> b=B) or c=C", "A1 C1 B1", ["c=C1@1"]),
    ("every ((a=A -> b=B) or c=C)", "A1 C1 B1 A2 B2", ["c=C1@1", "a=A2 b=B2@4"]),
    ("[2] a=A", "A1 A2 A3", ["a=A1+A2@1"]),
    ("every [2] a=A", "A1 A2 A3 A4", ["a=A1+A2@1", "a=A3+A4@3"]),
    ("[2] (a=A or b=B)", "A1 B1", ["a=A1 b=B1@1"]),
    ("a=A until b=B", "A1 A2 B1", ["a=A1+A2 b=B1@2"]),
    ("[2:] a=A until b=B", "A1 B1 A2 B2", []),
    ("[2:] a=A until b=B", "A1 A2 B1", ["a=A1+A2 b=B1@2"]),
    ("[:2] a=A until b=B", "A1 A2 A3 B1", ["a=A1+A2 b=B1@3"]),
    ("[2:2] a=A until b=B", "A1 A2 A3 B1", ["a=A1+A2@1"]),
    ("[1:3] a=A until b=B", "B1", []),
    ("[:3] a=A until b=B", "B1", ["b=B1@0"]),
    ("every (a=A until b=B)", "A1 B1 A2 A3 B2 B3", ["a=A1 b=B1@1", "a=A2+A3 b=B2@4", "b=B3@5"]),
    ("a=A until timer:interval(5 sec)", "A1@0 A2@2 B1@9", ["a=A1+A2@5"]),
    ("[2] a=A -> b=B", "A1 B1 A2 B2", ["a=A1+A2 b=B2@3"]),
    ("every [2] a=A -> b=B", "A1 A2 A3 A4 B1", ["a=A1+A2 b=B1@4", "a=A3+A4 b=B1@4"]),
    ("every-distinct(a.n) a=A", "A1 A2 A1 A3 A2", ["a=A1@0", "a=A2@1", "a=A3@3"]),
    ("every-distinct(a.n, 3 sec) a=A", "A1@0 A1@2 A1@4 A2@5", ["a=A1@0", "a=A1@4", "a=A2@5"]),
    ("every-distinct(a.n) a=A -> b=B", "A1 A1 A2 B1", ["a=A1 b=B1@3", "a=A2 b=B1@3"]),
    ("every-distinct(a.n) (a=A -> b=B)", "A1 B1 A1 B2 A2 B3", ["a=A1 b=B1@1", "a=A2 b=B3@5"]),
    ("every-distinct(a.n, b.n) (a=A and b=B)", "A1 B1 A1 B2 A1 B1", ["a=A1 b=B1@1", "a=A1 b=B2@3"]),
    ("timer:interval(5 sec)", "A1@0 B1@9", ["@5"]),
    ("every timer:interval(5 sec)", "A1@0 B1@14", ["@5", "@10", "@15"]),
    ("every timer:interval(5 sec) -> b=B", "A1@0 B1@12", ["b=B1@12", "b=B1@12"]),
    ("a=A -> every timer:interval(5 sec)", "A1@0 B1@12", ["a=A1@5", "a=A1@10", "a=A1@15"]),
    ("a=A -> timer:interval(5 sec)", "A1@0 B1@9", ["a=A1@5"]),
    ("a=A -> (timer:interval(5 sec) and not B)", "A1@0 B1@3 C1@9", []),
    ("a=A -> b=B where timer:within(5 sec)", "A1@0 B1@4", ["a=A1 b=B1@4"]),
    ("a=A -> b=B where timer:within(5 sec)", "A1@0 B1@5", []),
    ("(a=A -> b=B) where timer:within(5 sec)", "A1@3 B1@6", ["a=A1 b=B1@6"]),
    ("(every a=A) where timer:withinmax(10 sec, 2)", "A1@0 A2@1 A3@2", ["a=A1@0", "a=A2@1"]),
    ("(every a=A) where timer:within(2 sec)", "A1@0 A2@1 A3@2", ["a=A1@0", "a=A2@1"]),
    ("(every a=A) while (a.n < 3)", "A1 A2 A3 A1", ["a=A1@0", "a=A2@1"]),
    ("every timer:at(*, *, *, *, *, [0, 30])", "A1@5 B1@70", ["@30", "@60", "@90"]),
    ("timer:at(1, *, *, *, *)", "A1@5 B1@70", ["@60"]),
    ("every timer:at(*, *, *, *, *)", "A1@5 B1@130", ["@60", "@120", "@180"]),
    ("every a=A -[2]> b=B", "A1 A2 A3 B1", ["a=A1 b=B1@3", "a=A2 b=B1@3"]),
    ("every a=A -[1]> b=B", "A1 A2 B1 A3 B2", ["a=A1 b=B1@2", "a=A3 b=B2@4"]),
    ("every a=A or every b=A@consume", "A1 A2", ["b=A1@0", "b=A2@1"]),
    ("every (a=A -> b=A)", "A1 A2 A3 A4", ["a=A1 b=A2@1", "a=A3 b=A4@3"]),
    ("every a=A -> b=A", "A1 A2 A3", ["a=A1 b=A2@1", "a=A2 b=A3@2"]),
    ("every (a=A -> b=B@consume) or every c=B", "A1 B1 B2", ["a=A1 b=B1@1", "c=B2@2"]),
    ("@SuppressOverlappingMatches every a=A -> b=B", "A1 A2 B1", ["a=A1 b=B1@2"]),
    ("@DiscardPartialsOnMatch every a=A -> b=B -> c=C", "A1 A2 B1 C1 C2", ["a=A1 b=B1 c=C1@3", "a=A2 b=B1 c=C1@3"]),
    ("@DiscardPartialsOnMatch @SuppressOverlappingMatches every a=A -> b=B", "A1 A2 B1 B2", ["a=A1 b=B1@2"]),
    ("every (a=A -> b=B)", WALK, ["a=A1 b=B1@1", "a=A2 b=B3@7", "a=A4 b=B4@11"]),
    ("every a=A -> b=B", WALK, ["a=A1 b=B1@1", "a=A2 b=B3@7", "a=A3 b=B3@7", "a=A4 b=B4@11"]),
    ("a=A -> every b=B", WALK, ["a=A1 b=B1@1", "a=A1 b=B2@3", "a=A1 b=B3@7", "a=A1 b=B4@11"]),
]


@pytest.mark.parametrize(("text", "words", "expected"), CASES)
def test_operators(text: str, words: str, expected: list[str]) -> None:
    assert matches(text, words) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "every-distinct(5) a=A",
            "column 16: expected something of what was tagged, such as a.user, got the constant 5",
        ),
        ("every-distinct(a.n, 'x') a=A", "got the constant 'x'"),
        ("every-distinct(1 + 1, 3 sec) a=A", "got the constant 1 \\+ 1"),
        ("a=A where timer:within(-1)", "column 24: expected a span of time such as 10 sec, from 0 on, got -1"),
        ("a=A where timer:within(-1 sec)", "from 0 on, got -1 sec"),
        ("a=A where timer:withinmax(-2 min, 3)", "from 0 on, got -2 min"),
        ("timer:interval(-5)", "from 0 on, got -5"),
    ],
)
def test_what_has_no_meaning_is_refused(text: str, message: str) -> None:
    with pytest.raises(FlowError, match=message):
        ps.pattern_text(text, types="kind")
