"""What each operator of pattern text does, by examples; `test_operators_reference.py` compares it with its definition."""

from __future__ import annotations

import pytest

from penstock.frontends.patterns.events import pattern_text
from penstock.graph.schema import schema_of
from penstock.graph.times import FOREVER
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.patterns.operators.build import running
from penstock.kernels.patterns.operators.machine import Machine

SCHEMA = schema_of("kind string, id string, n int")
SECOND = 1_000_000
WALK = "A1 B1 C1 B2 A2 D1 A3 B3 E1 A4 F1 B4"
"""The events by which the documentation of the field tells the forms of `every` apart."""
SESSIONS = "L1 F1 F2 T1 L2 F3 O1 L3 F4 F5 T2 O2"
"""Logins, failures, tokens and logouts of a session, one a second; behind a "-", which is of no type, patterns start a second before the first."""


def matches(text: str, events: str, *, step: float = 1, ends: bool = False, saves: bool = True) -> list[str]:
    """The matches of events such as "A1 B1:7", each with the tagged ids in the order of the tags."""
    pattern = pattern_text(text, types="kind")
    made = running(pattern, SCHEMA)
    tests = [[compile_expr(e, SCHEMA) for e in (f.type, f.plain) if e is not None] for f in made.filters]
    machine, found = Machine(pattern, made, SCHEMA), []
    for at, word in enumerate(events.split()):
        name, _, n = word.partition(":")
        row = (name[0], name, int(n or 0))
        bits = sum(1 << bit for bit, each in enumerate(tests) if all(test(row) is True for test in each))
        found += machine.take(round(at * step * SECOND), row, bits)
        machine = Machine(pattern, made, SCHEMA).load(machine.dump()) if saves else machine
    found += machine.move(FOREVER) if ends else []
    return [" ".join(_tagged(pattern.tags, each.match)) for each in found]


def _tagged(tags: tuple[str, ...], match: object) -> list[str]:
    return ["+".join(str(e.values[1]) for e in match[tag]) if tag in match else "-" for tag in tags]  # type: ignore[index, operator]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("every (a=A -> b=B)", ["A1 B1", "A2 B3", "A4 B4"]),
        ("every a=A -> b=B", ["A1 B1", "A2 B3", "A3 B3", "A4 B4"]),
        ("a=A -> every b=B", ["A1 B1", "A1 B2", "A1 B3", "A1 B4"]),
        (
            "every a=A -> every b=B",
            ["A1 B1", "A1 B2", "A1 B3", "A2 B3", "A3 B3", "A1 B4", "A2 B4", "A3 B4", "A4 B4"],
        ),
    ],
)
def test_the_forms_of_every(text: str, expected: list[str]) -> None:
    assert matches(text, WALK) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f=F -> t=T", ["F1 T1"]),
        ("every f=F -> t=T", ["F1 T1", "F2 T1", "F3 T2", "F4 T2", "F5 T2"]),
        ("every (f=F -> t=T)", ["F1 T1", "F3 T2"]),
        ("f=F -> every t=T", ["F1 T1", "F1 T2"]),
        ("l=L and o=O", ["L1 O1"]),
        ("every (l=L and t=T)", ["L1 T1", "L2 T2"]),
        ("(every f=F) and t=T", ["F1 T1", "F2 T1", "F3 T1", "F4 T1", "F5 T1"]),
        ("t=T or o=O", ["T1 -"]),
        ("every (t=T or o=O)", ["T1 -", "- O1", "T2 -", "- O2"]),
        ("l=L and not F", ["L1"]),
        ("t=T and not O", ["T1"]),
        ("o=O and not T", []),
        ("every l=L -> (o=O and not F)", []),
        ("every l=L -> (f=F and not L)", ["L1 F1", "L2 F3", "L3 F4"]),
        ("l=L -> f=F -> t=T -> o=O", ["L1 F1 T1 O1"]),
        ("[3] f=F", ["F1+F2+F3"]),
        ("every [2] f=F", ["F1+F2", "F3+F4"]),
        ("f=F until t=T", ["F1+F2 T1"]),
        ("f=F until o=O", ["F1+F2+F3 O1"]),
        ("[3:] f=F until t=T", []),
        ("[2:] f=F until t=T", ["F1+F2 T1"]),
        ("[:1] f=F until o=O", ["F1 O1"]),
        ("[2..4] f=F until o=O", ["F1+F2+F3 O1"]),
        ("every (f=F until t=T)", ["F1+F2 T1", "F3+F4+F5 T2"]),
        ("every f=F -[1]> t=T", ["F1 T1", "F3 T2"]),
        ("every f=F -[2]> t=T", ["F1 T1", "F2 T1", "F3 T2", "F4 T2"]),
        ("@SuppressOverlappingMatches every f=F -> t=T", ["F1 T1", "F3 T2"]),
        ("@DiscardPartialsOnMatch every f=F -> t=T", ["F1 T1", "F2 T1", "F3 T2", "F4 T2", "F5 T2"]),
        ("every f=F(id != 'F2') -> t=T", ['F1 T1', 'F3 T2', 'F4 T2', 'F5 T2']),
        ("every (x=F or y=F@consume(2))", ["- F1", "- F2", "- F3", "- F4", "- F5"]),
        ("every f=F@consume(0) or every g=F", ["F1 -", "- F1", "F2 -", "- F2", "F3 -", "- F3", "F4 -", "- F4", "F5 -", "- F5"]),
        ("not X", [""]),
        ("every not X", []),
        ("l=L -> not O", ["L1"]),
        ("every every t=T", ["T1", "T2", "T2"]),
        ("every every every o=O", ["O1", "O2", "O2", "O2"]),
    ],
)  # fmt: skip
def test_operators(text: str, expected: list[str]) -> None:
    assert matches(text, SESSIONS) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t=T where timer:within(4 sec)", []),
        ("t=T where timer:within(4001 msec)", ["T1"]),
        ("o=O where timer:within(3.5)", []),
        ("(every f=F) where timer:within(3.001)", ["F1", "F2"]),
        ("(every f=F) where timer:within(6 sec)", ["F1", "F2"]),
        ("every f=F where timer:within(1.5)", ["F1", "F2", "F3", "F4", "F5"]),
        ("(every f=F) where timer:withinmax(20 sec, 3)", ["F1", "F2", "F3"]),
        ("(every f=F) where timer:withinmax(20 sec, 0)", []),
        ("(every f=F) where timer:withinmax(2500 msec, 3)", ["F1"]),
        ("every l=L -> t=T where timer:within(3 sec)", []),
        ("every l=L -> t=T where timer:within(3001 msec)", ["L1 T1", "L3 T2"]),
        ("every l=L -> (every f=F) where timer:withinmax(1 day, 1)", ["L1 F1", "L2 F3", "L3 F4"]),
        ("every l=L -> (every f=F) where timer:withinmax(1 day, 2)", ["L1 F1", "L1 F2", "L2 F3", "L2 F4", "L3 F4", "L3 F5"]),
        ("(f=F or l=L) until o=O", ["F1+F2+F3 L1+L2 O1"]),
        ("(f=F or l=L) until (t=T or o=O)", ["F1+F2 L1 T1 -"]),
        ("f=F until X", []),
        ("[2:2] f=F until o=O", ["F1+F2 -"]),
        ("[:3] f=F until t=T(id='T2')", ['F1+F2+F3 T2']),
        ("[4:] f=F until t=T", []),
        ("t=T -> [2] f=F -> o=O", ["T1 F3+F4 O2"]),
        ("[4] f=F or [2] t=T", ["F1+F2+F3+F4 -"]),
        ("[9] f=F or [2] o=O", ["- O1+O2"]),
        ("[2] l=L and [2] t=T", ["L1+L2 T1+T2"]),
        ("f=F until timer:interval(6500 msec)", ["F1+F2+F3"]),
        ("every (f=F until l=L)", ["- L1", "F1+F2 L2", "F3 L3"]),
        ("(f=F until t=T) until o=O", ["F1+F2 T1 O1"]),
        ("l=L -> timer:interval(3 sec)", ["L1"]),
        ("l=L -> (timer:interval(3 sec) and not T)", ["L1"]),
        ("every l=L -> (timer:interval(2500 msec) and not T)", ["L1", "L2", "L3"]),
        ("every timer:interval(4 sec)", ["", "", ""]),
        ("timer:interval(3 sec) -> f=F", ["F2"]),
        ("timer:interval(3001 msec) -> f=F", ["F3"]),
        ("timer:at(*, *, *, *, *, */5) -> every f=F", ["F3", "F4", "F5"]),
        ("every timer:at(*, *, *, *, *, 7)", [""]),
        ("timer:schedule(period: 3 sec, repetitions: 2)", [""]),
        ("every timer:schedule(period: 3 sec, repetitions: 2)", ["", ""]),
        ("every timer:schedule(period: 3 sec)", [""]),
        ("every timer:schedule(iso: 'R3/1970-01-01T00:00:01Z/PT4S')", ['', '', '']),
        ("every timer:schedule(iso: 'R3/1970-01-01T00:00:00Z/PT4S')", ['', '']),
        ("every timer:schedule(iso: 'R8/1969-12-31T23:59:00Z/PT10S')", [""]),
        ("every (timer:schedule(date: '1970-01-01T00:00:02Z') or timer:schedule(iso: '1970-01-01T00:00:02Z/PT5S'))", ["", ""]),
        ("timer:schedule(iso: '1970-01-01T00:00:00Z/PT3S') -> f=F", ["F2"]),
        ("every l=L -> timer:schedule(iso: 'R/1960-01-01T00:00:00Z/PT4S')", ["L1", "L2", "L3"]),
        ("timer:schedule(date: '1970-01-01T00:00:05Z') -> o=O", ['O1']),
        ("timer:schedule(date: '1969-12-31T23:59:59Z')", []),
    ],
)  # fmt: skip
def test_time_in_patterns(text: str, expected: list[str]) -> None:
    assert matches(text, f"- {SESSIONS}") == expected


@pytest.mark.parametrize(
    ("text", "events", "expected"),
    [
        ("every-distinct(a.n) a=A", "A1:1 A2:2 A3:1 A4:3", ["A1", "A2", "A4"]),
        ("every-distinct(a.n, 2 sec) a=A", "A1:1 A2:1 A3:1 A4:1 A5:1", ["A1", "A3", "A5"]),
        ("every-distinct(a.n, b.n) (a=A -> b=B)", "A1:1 B1:1 A2:1 B2:1 A3:1 B3:2", ["A1 B1", "A3 B3"]),
        ("every a=A -> b=B(n > a.n)", "A1:5 A2:1 B1:3 B2:6", ["A2 B1", "A1 B2"]),
        ("every a=A -> b=B(n > a.n, id != 'B2')", "A1:5 A2:1 B1:3 B2:6", ["A2 B1"]),
        ("(every a=A) while (a.n < 3)", "A1:1 A2:2 A3:3 A4:1", ["A1", "A2"]),
        ("every (a=A while (a.n < 3))", "A1:1 A2:2 A3:3 A4:1", ["A1", "A2", "A4"]),
        ("[3] a=A -> b=B(n > a[0].n and n < last(a).n)", "A1:1 A2:9 A3:5 B1:1 B2:6 B3:4", ["A1+A2+A3 B3"]),
        ("[2] a=A -> b=B(n > avg(a.n) and count(a) = 2)", "A1:2 A2:6 B1:4 B2:5", ["A1+A2 B2"]),
        ("a=A -> timer:interval(a.n) -> b=B", "A1:2 B1 B2 B3", ["A1 B2"]),
        ("every a=A -> b=B where timer:within(a.n)", "A1:1 A2:3 B1 B2", ["A2 B1"]),
        ("@DiscardPartialsOnMatch every l=L -> f=F -> o=O", "L1 F1 L2 F2 O1 F3 O2", ["L1 F1 O1", "L2 F2 O1"]),
        ("@DiscardPartialsOnMatch every l=L -> (f=F or (every t=T))", "L1 F1 T1 L2 T2 T3", ["L1 F1 -", "L2 - T2"]),
        ("@SuppressOverlappingMatches @DiscardPartialsOnMatch every l=L -> every f=F", "L1 L2 F1 F2 L3 F3", ["L1 F1", "L2 F2", "L3 F3"]),
    ],
)  # fmt: skip
def test_conditions_and_annotations(text: str, events: str, expected: list[str]) -> None:
    assert matches(text, events) == expected


def test_months_are_as_long_as_they_are() -> None:
    day = 86_400
    assert matches("(every a=A) where timer:within(1 month)", "A1 " + "- " * 30 + "A2 A3", step=day) == ["A1"]
    assert matches("(every a=A) where timer:within(1 month)", "A1 " + "- " * 29 + "A2 A3", step=day) == ["A1", "A2"]
    assert matches("a=A -> timer:interval(2 months 1 day) -> b=B", "A1 " + "- " * 59 + "B1 B2", step=day) == ["A1 B1"]
    assert matches("a=A -> timer:interval(2 months 1 day) -> b=B", "A1 " + "- " * 58 + "B1 B2", step=day) == ["A1 B2"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("every a=A -> (timer:interval(1 hour) and not C)", ["A2", "A3", "A4"]),
        ("every timer:interval(1 day)", [""]),
        ("every a=A -> timer:schedule(period: 1 day)", ["A1", "A2", "A3", "A4"]),
        ("[2] timer:interval(1 day)", [""]),
        ("timer:interval(1 sec) until z=Z", []),
        ("f=F -> every timer:at(0, 0, *, *, *)", ["F1"]),
    ],
)
def test_the_end_of_the_input_brings_all_timers_once(text: str, expected: list[str]) -> None:
    """What starts itself again would go on for ever; it is started for the last time before the end."""
    assert matches(text, WALK, ends=True)[-len(expected) :] == expected or not expected
    assert len(matches(text, WALK, ends=True)) < 100


def test_thousands_of_open_copies() -> None:
    """More than one would like; what does not concern a copy does not cost it."""
    events = " ".join(f"A{i}" if i % 1_500 else f"B{i}" for i in range(1, 3_001))
    assert len(matches("every a=A -> b=B where timer:within(1 hour)", events, saves=False)) == 1_499 + 1_499
    assert len(matches("every a=A -[7]> b=B where timer:within(1 hour)", events, saves=False)) == 14
    assert matches("every a=A -> b=B where timer:within(2 sec)", events, saves=False) == ["A1499 B1500", "A2999 B3000"]


def test_a_pattern_that_turns_true_without_end_at_one_moment_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="without end at one moment"):
        matches("a=A -> every timer:interval(a.n)", "A1:0 A2:0")
