"""Pattern text: what it is read as, what its errors say, and that no text leads to anything but a pattern or such an error."""

from __future__ import annotations

import random

import pytest

import penstock as ps
from penstock.errors import FlowError, PatternError
from penstock.graph.expr import to_text
from penstock.graph.patterns.calendar import CrontabTimes
from penstock.graph.patterns.operators import Crontab
from penstock.graph.times import FOREVER, Times, to_micros, to_moment
from penstock.kernels.base import Context
from penstock.kernels.patterns.operators.kernel import OperatorKernel
from penstock.kernels.records.chunk import Chunk
from penstock.state.memory import MemoryState
from penstock.state.memory_timers import MemoryTimers
from tests.patterns.mutation import mutated

READ_AS = {
    "every a=A -> b=B": "every a=A -> b=B",
    "A and not B or C -> D": "((A and not B) or C) -> D",
    "every A or B and C": "every A or (B and C)",
    "A -> B or C -> D": "A -> (B or C) -> D",
    "every A -> B where timer:within(10 min)": "every A -> B where timer:within(10m)",
    "every A where timer:within(1)": "every A where timer:within(1s)",
    "(every A) where timer:within(1 hour 30 min)": "(every A) where timer:within(1h30m)",
    "not A and B until C": "not A and B until C",
    "every [2] A until B": "(every ([2] A)) until B",
    "[2..5] a=A until b=B": "[2:5] a=A until b=B",
    "[:5] a=A until b=B": "[0:5] a=A until b=B",
    "EVERY a = A AND NOT b = B": "every a=A and not b=B",
    "every-distinct(a.x, a.y, 10 sec) a=A": "every-distinct(a.x, a.y, 10s) a=A",
    "a=A -[3]> b=B -> c=C": "a=A -[3]> b=B -> c=C",
    "a = org.shop.Order(amount > 3, user = 'x')": "a=org.shop.Order((amount > 3) AND (user = 'x'))",
    "A('a)b' = x)": "A('a)b' = x)",
    "A@consume(2) or B@consume": "A@consume(2) or B@consume(1)",
    "@SuppressOverlappingMatches @DiscardPartialsOnMatch every A": "@SuppressOverlappingMatches @DiscardPartialsOnMatch every A",
    "timer:interval(1.5) -> timer:interval(250 msec)": "timer:interval(1s500ms) -> timer:interval(250ms)",
    "A where timer:within(1 year 2 months)": "A where timer:within(1 year 2 months)",
    "a=A while (a.n > 3)": "a=A while (a.n > 3)",
    "A where timer:withinmax(1 min, 3)": "A where timer:withinmax(1m, 3)",
    "A /* or B */ -> C // or D": "A -> C",
    "timer:at(*/20, 8:10, *, [1, 6], mon:fri)": "timer:at([0, 20, 40], [8, 9, 10], *, [1, 6], [1, 2, 3, 4, 5])",
    "timer:schedule(iso: 'R3/2026-01-01T00:00:00Z/PT1M')": "timer:schedule(date: '2026-01-01T00:00:00+00:00', period: 1m, repetitions: 3)",
}  # fmt: skip


@pytest.mark.parametrize("text", READ_AS)
def test_text_is_read_by_precedence(text: str) -> None:
    assert str(ps.pattern_text(text)) == READ_AS[text]


@pytest.mark.parametrize("text", READ_AS)
def test_a_pattern_is_shown_as_text_that_means_the_same(text: str) -> None:
    shown = READ_AS[text]
    assert str(ps.pattern_text(shown)) == shown


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("", 1, 1, "got the end"),
        ("every", 1, 6, "got the end"),
        ("every a=A ->", 1, 13, "expected '('"),
        ("every a=A\n  -> -> b=B", 2, 6, "got '->'"),
        ("A(x > )", 1, 6, "expected a value, got the end"),
        ("A(x = = 3)", 1, 7, "expected a value, got '='"),
        ("A(x > 1,, y > 2)", 1, 9, "a condition between the commas"),
        ("A(x", 1, 4, "got the end"),
        ("A)", 1, 2, "expected the end, got ')'"),
        ("timer:intervall(3)", 1, 1, "did you mean 'timer:interval'"),
        ("A where timer:inside(3)", 1, 9, "no guard timer:inside"),
        ("A where timer:withinmax(3)", 1, 25, "expected 2 values"),
        ("timer:interval()", 1, 16, "expected a span of time"),
        ("timer:interval(3 parsecs)", 1, 18, "expected a unit"),
        ("every-distinct(a.n, 3 months) a=A", 1, 21, "no fixed length"),
        ("timer:interval(1.5 months)", 1, 16, "a whole number of months"),
        ("timer:at(1, 2)", 1, 10, "five or six values"),
        ("timer:at(70, *, *, *, *)", 1, 10, "minutes from 0 to 59"),
        ("timer:schedule(date: 'soon')", 1, 22, "expected a date"),
        ("timer:schedule(period: 0 sec)", 1, 16, "above zero"),
        ("[3:2] A until B", 1, 1, "bounds that rise"),
        ("[2:] A", 1, 1, "needs an end"),
        ("every timer:interval(0)", 1, 1, "without end"),
        ("a=A -[0]> b=B", 1, 7, "at least 1"),
        ("@Suppress A", 1, 2, "no annotation"),
        ("every-distinct() a=A", 1, 15, "must be distinct"),
        ("A while ()", 1, 10, "expected a condition"),
        ("A $ B", 1, 3, "got '$'"),
    ],
)
def test_errors_say_where_and_what_was_expected(text: str, line: int, column: int, said: str) -> None:
    with pytest.raises(PatternError) as caught:
        ps.pattern_text(text)
    assert said in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)
    *_, shown, caret = str(caught.value).split("\n")
    assert caret == " " * (column + 1) + "^"
    assert shown.strip() == (text.split("\n")[line - 1].strip() if text else "")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5_000 + "A" + ")" * 5_000,
        "not " * 5_000 + "A",
        "every " * 5_000 + "A",
        "A(" + "(" * 5_000,
        "A(" + "not " * 5_000 + "x)",
        "A(x[" + "[" * 5_000,
        "timer:at([" + "[" * 5_000,
        "A" + " where timer:within(1)" * 5_000,
        "(every " * 5_000,
        "A(" + " or ".join(f"n = {i}" for i in range(5_000)) + ")",
    ],
)
def test_text_that_is_nested_deep_is_refused(text: str) -> None:
    with pytest.raises(PatternError) as caught:
        ps.pattern_text(text)
    assert caught.value.line == 1
    assert len(str(caught.value)) < 1_000


def test_long_text_is_no_deep_text() -> None:
    assert len(ps.pattern_text(" -> ".join(f"a{i}=A" for i in range(2_000))).tags) == 2_000
    assert str(ps.pattern_text("A(" + " and ".join(f"n > {i}" for i in range(150)) + ")"))
    assert detect("A(" + ", ".join(f"n > {i}" for i in range(1_000)) + ")").schema.names


def refused(text: str) -> PatternError | None:
    """The error that a text leads to, if it does; any other kind of error is a failure."""
    try:
        ps.pattern_text(text, types="kind")
    except PatternError as error:
        return error
    return None


def test_mutated_texts_are_patterns_or_errors_with_a_position() -> None:
    rolled, texts = random.Random(15), list(READ_AS)
    read = 0
    for _ in range(10_000):
        text = mutated(rolled, texts)
        error = refused(text)
        read += error is None
        assert error is None or (error.line > 0 and error.column > 0), text
    assert 500 < read < 9_500


@pytest.mark.parametrize(
    ("fields", "start", "wanted"),
    [
        ("0, 12, *, *, *", "2026-01-01T12:00:00", "2026-01-02T12:00:00"),
        ("30, *, *, *, *", "2026-01-01T12:10:07", "2026-01-01T12:30:00"),
        ("0, 0, last, *, *", "2026-02-03T00:00:00", "2026-02-28T00:00:00"),
        ("0, 0, lastweekday, *, *", "2026-01-03T00:00:00", "2026-01-30T00:00:00"),
        ("0, 0, *, *, 5 last", "2026-01-03T00:00:00", "2026-01-30T00:00:00"),
        ("0, 0, 29, 2, *", "2026-01-03T00:00:00", "2028-02-29T00:00:00"),
        ("*, *, *, *, sun, */15", "2026-01-03T23:59:50", "2026-01-04T00:00:00"),
        ("0, 0, 13, *, 5", "2026-01-10T00:00:00", "2026-01-13T00:00:00"),
    ],
)
def test_crontabs(fields: str, start: str, wanted: str) -> None:
    root = ps.pattern_text(f"timer:at({fields})").root
    assert isinstance(root, Crontab)
    begin = to_micros(to_moment(0).fromisoformat(start))
    assert to_moment(root.times.after(begin)).isoformat() == f"{wanted}+00:00"


def test_a_crontab_that_never_comes() -> None:
    assert CrontabTimes((0,), (0,), (31,), (2,), None).after(0) == FOREVER


EVENTS = "user string, kind string, ok boolean, n int, at timestamp"


def detect(text: str, select: dict[str, str] | None = None, **given: object) -> ps.Stream:
    source = ps.Flow("logins").source("events", ps.items([], EVENTS), event_time="at")
    return source.key_by("user").match("hits", ps.pattern_text(text, **given), select=select)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "select", "given", "said"),
    [
        ("a=A -> b=B", None, {}, "nothing says which records are of which"),
        ("a=A -> b=B", None, {"types": {"A": "ok"}}, "no event type 'B'"),
        ("a=A(m > 1)", None, {}, "no column 'm'"),
        ("a=A(n)", None, {}, "true or false"),
        ("a=A -> b=A(n > c.n)", None, {}, "no stage or field 'c'"),
        ("a=A", {"n": "n"}, {}, "say of which event 'n' is, such as a.n"),
        ("a=A", {"n": "a.m"}, {}, "no column 'm'"),
        ("a=A while (a.n)", None, {}, "while needs a condition"),
        ("a=A -> timer:interval(a.user)", None, {}, "number of seconds"),
        ("match_end=A", None, {}, "has the name of a field"),
        ("a=A(prev(n) > 1)", None, {}, "row patterns"),
        ("a=A", None, {"types": "sort"}, "no column 'sort'"),
    ],
)
def test_what_does_not_fit_the_stream_is_refused_when_the_flow_is_built(
    text: str, select: dict[str, str] | None, given: dict[str, object], said: str
) -> None:
    with pytest.raises(FlowError, match="step 'hits'") as caught:
        detect(text, select, **given)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("every a=A -> b=B", "(kind = 'A') OR (kind = 'B')"),
        ("every a=A(n > 3) -> b=A(n > a.n)", "((kind = 'A') AND (n > 3)) OR (kind = 'A')"),
        ("every a=A(n / 2 > 3, ok) -> (b=B and not A)", "(((kind = 'A') AND ok) OR (kind = 'B')) OR (kind = 'A')"),
        ("every a=A -> timer:interval(3)", "kind = 'A'"),
        ("a=A where timer:within(3)", None),
        ("timer:interval(3) -> a=A", None),
        ("not A -> timer:interval(3) and b=B", None),
        ("not a=A", None),
        ("a=A and not timer:interval(3)", None),
    ],
)
def test_events_that_cannot_matter_are_left_out_before_they_move(text: str, condition: str | None) -> None:
    nodes = {node.name: node for node in detect(text, types="kind").flow.builder.nodes}
    found = nodes.get("hits@relevant")
    assert (None if found is None else to_text(found.condition)) == condition  # type: ignore[attr-defined]  # a Where


def test_a_key_to_which_nothing_has_happened_keeps_nothing() -> None:
    flow = ps.Flow("idle")
    source = flow.source("events", ps.items([], "user string, kind string"))
    pattern = ps.pattern_text("every a=A -> (b=B and not C)", types="kind")
    source.key_by("user").match("hits", pattern, select={"user": "user"}).sink("out", ps.console())
    kernel = OperatorKernel(flow.graph.node("hits"), flow.graph.output(flow.graph.node("hits").inputs[0]).schema)  # type: ignore[arg-type]
    state, timers = MemoryState(), MemoryTimers()
    kernel.open(Context(state=lambda _: state, timers=lambda _: timers))
    kernel.begin(Times())

    def kept(*rows: tuple[str, str]) -> set[object]:
        list(kernel.take(Chunk(source.schema, rows=[*rows])))
        list(kernel.advance(Times()))
        list(kernel.barrier())
        return {key for key, _ in state.items()}

    assert kept(("ada", "B"), ("bob", "A"), ("eve", "C")) == {("bob",)}
    assert kept(("bob", "C"), ("eve", "A")) == {("eve",)}
    assert kept(("eve", "B")) == set()


def test_a_match_without_select_has_the_key_its_times_and_the_events_of_each_tag() -> None:
    stream = detect("every a=A -> [2] b=A")
    assert stream.schema.names == ("user", "match_start", "match_end", "a", "b")
