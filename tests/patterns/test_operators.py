"""What each operator of pattern text does; answers that are known from the documentation of the field are among them."""

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
"""The events by which the forms of `every` are told apart."""
TIMED = "- A1 B1 C1 B2 A2 D1 E1 F1 D2 B3 G1 D3"
"""One event a second; the first is of no type, so that patterns start a second before A1."""


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
        ("a=A -> b=B", ["A1 B1"]),
        ("every b=B", ["B1", "B2", "B3", "B4"]),
        ("every every b=B", ["B1", *["B2"] * 2, *["B3"] * 4, *["B4"] * 8]),
        ("every every every b=B", ["B1", *["B2"] * 3, *["B3"] * 9, *["B4"] * 27]),
        ("a=A and b=B", ["A1 B1"]),
        ("every (a=A and b=B)", ["A1 B1", "A2 B2", "A3 B3", "A4 B4"]),
        ("(every a=A) and b=B", ["A1 B1", "A2 B1", "A3 B1", "A4 B1"]),
        ("a=A or b=B", ["A1 -"]),
        ("b=B and not D", ["B1"]),
        ("e=E and not D", []),
        ("every (b=B and not C)", ["B1", "B2", "B3", "B4"]),
        ("every a=A -> (d=D and not B)", ["A2 D1"]),
        ("every a=A -> (b=B and not A)", ["A1 B1", "A3 B3", "A4 B4"]),
        ("a=A -> b=B -> c=C -> d=D", ["A1 B1 C1 D1"]),
        ("[2] a=A", ["A1+A2"]),
        ("every [2] a=A", ["A1+A2", "A3+A4"]),
        ("a=A until d=D", ["A1+A2 D1"]),
        ("a=A until e=E", ["A1+A2+A3 E1"]),
        ("[2:] a=A until c=C", []),
        ("[1:] a=A until c=C", ["A1 C1"]),
        ("[:1] a=A until e=E", ["A1 E1"]),
        ("[2..3] a=A until f=F", ["A1+A2+A3 F1"]),
        ("every a=A until f=F", ["A1+A2+A3+A4 F1"]),
        ("every (a=A until b=B)", ["A1 B1", "- B2", "A2+A3 B3", "A4 B4"]),
        ("b=B until (d=D and not E)", ["B1+B2 D1"]),
        ("every a=A -[1]> c=F", ["A1 F1"]),
        ("every a=A -[2]> c=F", ["A1 F1", "A2 F1"]),
        ("every a=A -[1]> b=B", ["A1 B1", "A2 B3", "A4 B4"]),
        ("@SuppressOverlappingMatches every a=A -> b=B", ["A1 B1", "A2 B3", "A4 B4"]),
        ("every a=A(id != 'A2') -> f=F", ["A1 F1", "A3 F1", "A4 F1"]),
        ("every a=A@consume -> (b=B or every c=A)", ["A1 B1 -", "A2 B3 -", "A3 B3 -", "A4 B4 -"]),
        ("every (x=A or y=A@consume(2))", ["- A1", "- A2", "- A3", "- A4"]),
        ("every (x=A@consume(3) or y=A@consume(2))", ["A1 -", "A2 -", "A3 -", "A4 -"]),
        ("every a=A@consume(0) or every b=A", ["A1 -", "- A1", "A2 -", "- A2", "A3 -", "- A3", "A4 -", "- A4"]),
        ("every (every b=B and not B(id='B2'))", ["B1", "B3", "B3", "B4", "B4", "B4", "B4"]),
        ("@DiscardPartialsOnMatch every a=A -> b=A", ["A1 A2", "A3 A4"]),
        ("not Z", [""]),
        ("every not Z", []),
        ("a=A -> not C", ["A1"]),
    ],
)  # fmt: skip
def test_operators_over_one_walk_of_events(text: str, expected: list[str]) -> None:
    assert matches(text, WALK) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b=B(id='B1') where timer:within(2 sec)", []),
        ("b=B(id='B1') where timer:within(2001 msec)", ["B1"]),
        ("b=B(id='B1') where timer:within(1999 msec)", []),
        ("b=B(id='B3') where timer:within(10.001)", ["B3"]),
        ("(every b=B) where timer:within(4.001)", ["B1", "B2"]),
        ("every b=B where timer:within(2.001)", ["B1", "B2", "B3"]),
        ("b=B(id='B1') where timer:withinmax(2 sec, 100)", []),
        ("b=B(id='B1') where timer:withinmax(2001 msec, 1)", ["B1"]),
        ("(every b=B) where timer:withinmax(4.001, 0)", []),
        ("(every b=B) where timer:withinmax(4.001, 1)", ["B1"]),
        ("(every b=B) where timer:withinmax(4.001, 2)", ["B1", "B2"]),
        ("every (b=B where timer:withinmax(2001 msec, 2))", ["B1", "B2", "B3"]),
        ("every (b=B where timer:withinmax(2001 msec, 0))", []),
        ("every b=B -> d=D where timer:within(4000 msec)", ["B2 D1", "B3 D3"]),
        ("every b=B -> d=D where timer:withinmax(4000 msec, 1)", ["B2 D1", "B3 D3"]),
        (
            "every b=B -> (every d=D) where timer:withinmax(1 day, 2)",
            ["B1 D1", "B2 D1", "B1 D2", "B2 D2", "B3 D3"],
        ),
        ("every b=B -> (every d=D) where timer:withinmax(1 day, 1)", ["B1 D1", "B2 D1", "B3 D3"]),
        ("a=A(id='A2') until D", ["A2"]),
        ("b=B until a=A", ["- A1"]),
        ("(a=A or b=B) until d=D(id='D3')", ["A1+A2 B1+B2+B3 D3"]),
        ("(a=A or b=B) until (g=G or d=D)", ["A1+A2 B1+B2 - D1"]),
        ("a=A until G(id='GX')", []),
        ("[2:2] a=A", ["A1+A2"]),
        ("[3] a=A", []),
        ("[4] (a=A or b=B)", ["A1+A2 B1+B2"]),
        ("[2] b=B until a=A(id='A1')", []),
        ("[2:2] b=B until g=G", ["B1+B2 -"]),
        ("[:4] b=B until g=G", ["B1+B2+B3 G1"]),
        ("[:2] b=B until g=G", ["B1+B2 G1"]),
        ("[:1] b=B until a=A(id='A1')", ["- A1"]),
        ("[1:] b=B until a=A", []),
        ("[2:] b=B until a=A(id='A2')", ["B1+B2 A2"]),
        ("[2:] b=B until e=B(id='B2')", []),
        ("[1:] b=B until e=B(id='B1')", []),
        ("[1:2] b=B until G", ["B1+B2"]),
        ("c=C -> [2] b=B -> d=D", ["C1 B2+B3 D3"]),
        ("[3] d=D or [3] b=B", ["- B1+B2+B3"]),
        ("[3] d=D or [4] b=B", ["D1+D2+D3 -"]),
        ("[2] d=D and [2] b=B", ["D1+D2 B1+B2"]),
        ("d=D until timer:interval(7 sec)", ["D1"]),
        ("every (d=D until b=B)", ["- B1", "- B2", "D1+D2 B3"]),
        ("every d=D until b=B", ["- B1"]),
        ("a=A until (every (timer:interval(6 sec) and not A))", ["A1+A2"]),
        ("A until (every (timer:interval(7 sec) and not A))", [""]),
        ("every [2] a=A until d=D", ["A1+A2 D1"]),
        ("(a=A until b=B) until c=C", ["A1 B1 C1"]),
        ("(a=A until b=B) until g=G", ["A1+A2 B1+B2+B3 G1"]),
        ("a=A -> timer:interval(3 sec)", ["A1"]),
        ("a=A -> (timer:interval(3 sec) and not B)", []),
        ("every a=A -> (timer:interval(3 sec) and not B)", ["A2"]),
        ("every timer:interval(5 sec)", ["", ""]),
        ("timer:interval(2 sec) -> b=B", ["B1"]),
        ("timer:interval(2001 msec) -> b=B", ["B2"]),
        ("timer:at(*, *, *, *, *, */4) -> every b=B", ["B2", "B3"]),
        ("every timer:at(*, *, *, *, *, 5)", [""]),
        ("timer:schedule(period: 4 sec, repetitions: 2)", ["", ""]),
        ("timer:schedule(iso: 'R/1970-01-01T00:00:02Z/PT5S')", ["", "", ""]),
        ("timer:schedule(date: '1970-01-01T00:00:06Z') -> d=D", ["D1"]),
        ("timer:schedule(date: '1969-01-01T00:00:06Z')", []),
    ],
)  # fmt: skip
def test_time_in_patterns(text: str, expected: list[str]) -> None:
    assert matches(text, TIMED) == expected


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
        ("@DiscardPartialsOnMatch every a=A -> b=B -> c=C", "A1 B1 A2 B2 C1 B3 C2", ["A1 B1 C1", "A2 B2 C1"]),
        ("@DiscardPartialsOnMatch (every a=A) -> (every b=B) -> c=C", "A1 B1 B2 C1 C2", ["A1 B1 C1", "A1 B2 C1"]),
        ("@DiscardPartialsOnMatch every a=A -> (b=B or (every c=C))", "A1 B1 C1 A2 C2 C3", ["A1 B1 -", "A2 - C2"]),
        ("@SuppressOverlappingMatches @DiscardPartialsOnMatch every a=A -> every b=B", "A1 A2 B1 B2 A3 B3", ["A1 B1", "A2 B2", "A3 B3"]),
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
