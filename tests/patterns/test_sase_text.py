"""SASE's text: which tree it is read as, and what its errors say."""

from __future__ import annotations

import random

import pytest

import penstock as ps
from penstock.errors import FlowError, PatternError
from penstock.graph.expr import Expr, to_text
from penstock.graph.patterns.tree import Contiguity, Preference, Repeat, Sequence, stages_of
from penstock.testing import run_local
from tests.patterns.mutation import mutated

FULL = (
    "PATTERN SEQ(A a, !(B b), C+ c[]) WHERE skip_till_next_match(a, b, c) { [user] and a.x > 3 and c[i].x > c[i-1].x } "
    "WITHIN 10 minutes RETURN a.x, total = sum(c[].x), count(c[]) as n, c[1].x as first, c[c.LEN].x as last"
)
TEXTS = [
    FULL,
    "PATTERN SEQ(A a, B b) WHERE a.x between 1 and 3 and b.y = a.y WITHIN 5 min",
    "pattern seq(A a, B+ b[], C c) where strict_contiguity(a, b, c) { avg(b[..i-1].x) < b[i].x }",
    "PATTERN SEQ(A a, B? b, C* c[]) WHERE skip_till_any_match(a, b, c) { [user, shop], a.note = 'x and y' } WITHIN 1 hour",
    "PATTERN SEQ(A a)",
]


def conditions(text: str) -> dict[str, str]:
    made = ps.sase_text(text, types={"A": "kind = 'A'", "B": "true", "C": "true"})
    found = {stage.name: stage.condition for stage in stages_of(made.pattern.root)}
    return {name: to_text(each) for name, each in found.items() if isinstance(each, Expr)}


def test_everything_at_once() -> None:
    made = ps.sase_text(FULL, types="kind")
    assert str(made.pattern) == "a -> !(b) -> c+"
    assert made.pattern.within == 600_000_000
    assert {name: to_text(each) for name, each in made.select or ()} == {
        "x": "a.x", "total": "sum(c.x)", "n": "count(c)", "first": "c[0].x", "last": "c[-1].x",
    }  # fmt: skip


def test_a_condition_belongs_to_the_last_stage_it_names() -> None:
    found = conditions("PATTERN SEQ(A a, B b, C c) WHERE a.x > 1 and b.x > a.x and c.x = 1 and b.y = 2 and c.z > b.z")
    assert found["a"] == "(kind = 'A') AND (a.x > 1)"
    assert found["b"] == "(true AND (b.x > a.x)) AND (b.y = 2)"
    assert found["c"] == "(true AND (c.x = 1)) AND (c.z > b.z)"


def test_a_field_in_brackets_is_equal_in_all_events() -> None:
    found = conditions("PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) { [user] and [shop] }")
    assert found["a"] == "kind = 'A'"
    assert found["c"] == "(true AND (user = a.user)) AND (shop = a.shop)"


def test_what_looks_back_in_a_loop_holds_for_its_first_event() -> None:
    found = conditions(
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match(a, b) { b[i].x > b[i-1].x and b[i].x > avg(b[..i-1].x) }"
    )
    assert "(count(b) < 1) OR (b.x > b[-1].x)" in found["b"]
    assert "(count(b) < 1) OR (b.x > avg(b.x))" in found["b"]


def matches(text: str, events: str) -> list[str]:
    """The matches in events such as `a1 b2`, each of a kind and a number."""
    flow = ps.Flow("sase")
    stream = flow.source("events", ps.items([], "kind string, n int, id string"))
    stream.match("hits", ps.sase_text(text, types="kind")).sink("out", ps.console())
    found = run_local(flow, {"events": [(each[0], int(each[1:]), each) for each in events.split()]})["out"]
    return sorted(" ".join(event["id"] for taken in row if isinstance(taken, list) for event in taken) for row in found)


@pytest.mark.parametrize(
    ("condition", "events", "expected"),
    [
        ("b[1].n = a.n", "a2 b1 b2 b5", ["a2 b2 b5"]),
        ("b[1].n = a.n and b[i].n > b[i-1].n", "a2 b1 b2 b1 b5", ["a2 b2 b5"]),
        ("b[i].n > b[1].n", "a0 b2 b1 b3 b2", ["a0 b2 b3"]),
        ("b[2].n = a.n", "a5 b1 b2 b5 b3", ["a5 b1 b5 b3"]),
        ("b[b.LEN].n = 3", "a1 b3 b1", []),
        ("b[b.LEN].n = 3", "a1 b1 b3", ["a1 b1 b3"]),
        ("avg(b[].n) > 2", "a1 b1 b2 b5", ["a1 b1 b2 b5"]),
        ("count(b[]) >= 3", "a1 b1 b2", []),
        ("count(b[..i-1].n) < 2", "a1 b1 b2 b3", ["a1 b1 b2"]),
    ],
)
def test_a_condition_on_a_loop_is_of_the_event_that_it_names(condition: str, events: str, expected: list[str]) -> None:
    text = f"PATTERN SEQ(a a, b+ b[], c c) WHERE skip_till_next_match(a, b[], c) {{ {condition} }}"
    assert matches(text, f"{events} c0") == [f"{each} c0" for each in expected]


@pytest.mark.parametrize("condition", ["b[b.LEN].n > 2", "avg(b[].n) > 2"])
def test_the_end_of_a_loop_is_known_with_the_event_after_it(condition: str) -> None:
    with pytest.raises(PatternError, match="expected a variable after 'b'"):
        ps.sase_text(f"PATTERN SEQ(a a, b+ b[], !(x c), d* d[]) WHERE {condition} WITHIN 1 hour", types="kind")


@pytest.mark.parametrize("condition", ["no.n = a.n", "a.n = no.n and [n]", "[n]"])
def test_what_must_not_happen_is_named_in_its_condition(condition: str) -> None:
    text = f"PATTERN SEQ(a a, !(x no), b b) WHERE skip_till_any_match(a, no, b) {{ {condition} }}"
    assert matches(text, "a1 x2 b1") == ["a1 b1"]
    assert matches(text, "a1 x1 b1") == []


def test_a_strategy_needs_no_conditions() -> None:
    assert matches("PATTERN SEQ(a a, b+ b[]) WHERE strict_contiguity(a, b[ ])", "a1 x1 b1 a2 b2") == ["a2 b2"]


@pytest.mark.parametrize(
    ("strategy", "link", "inner", "preference"),
    [
        ("skip_till_next_match", Contiguity.RELAXED, Contiguity.RELAXED, Preference.EVERY),
        ("skip_till_any_match", Contiguity.ANY, Contiguity.ANY, Preference.EVERY),
        ("strict_contiguity", Contiguity.STRICT, Contiguity.STRICT, Preference.EVERY),
        ("partition_contiguity", Contiguity.STRICT, Contiguity.STRICT, Preference.EVERY),
    ],
)
def test_strategies(strategy: str, link: Contiguity, inner: Contiguity, preference: Preference) -> None:
    root = ps.sase_text(f"PATTERN SEQ(A a, A+ b[], A c) WHERE {strategy}(a, b, c) {{ c.n > 1 }}").pattern.root
    assert isinstance(root, Sequence)
    assert root.links == (link, link)
    loop = root.parts[1]
    assert isinstance(loop, Repeat)
    assert (loop.inner, loop.preference) == (inner, preference)


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("SEQ(A a)", 1, 1, "expected 'PATTERN'"),
        ("PATTERN SEQ(A a", 1, 16, "got the end"),
        ("PATTERN SEQ(A a,\n A a)", 2, 4, "a variable of its own"),
        ("PATTERN SEQ(!(A a), B b)", 1, 17, "an event first"),
        ("PATTERN SEQ(A a, !(B b))", 1, 15, "when time is up"),
        ("PATTERN SEQ(A a) WHERE x > 3", 1, 24, "names a variable"),
        ("PATTERN SEQ(A a) WHERE a.x >", 1, 29, "expected a value"),
        ("PATTERN SEQ(A a, !(B b), C c) WHERE b.x = c.x WITHIN 3", 1, 37, "may look only at events before it"),
        ("PATTERN SEQ(A a) WHERE skip_till_some_match(a) { a.x }", 1, 48, "got '{'"),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, x) { a.x > 1 }", 1, 53, "no variable 'x'"),
        ("PATTERN SEQ(A a, B+ b[]) WHERE b[0].x = 1", 1, 34, "expected an index such as b[1]"),
        ("PATTERN SEQ(A a, B+ b[]) WHERE b[i+1].x = 1", 1, 34, "got 'i+1'"),
        ("PATTERN SEQ(A a, B+ b[], C c) WHERE c.x > b[i-1].x", 1, 43, "elsewhere write b[1]"),
        ("PATTERN SEQ(A a, B b) WHERE b.x > b[i-1].x", 1, 35, "the event at hand of a loop"),
        ("PATTERN SEQ(A a, B+ b[]) RETURN b[i].x", 1, 33, "the event at hand of a loop"),
        ("PATTERN SEQ(A a) WITHIN soon", 1, 25, "a span of time"),
        ("PATTERN SEQ(A a) WHERE skip_till_any_match(a) { [a b] }", 1, 50, "the name of a field"),
    ],
)
def test_errors_say_where_and_what_was_expected(text: str, line: int, column: int, said: str) -> None:
    with pytest.raises(PatternError) as caught:
        ps.sase_text(text, types="kind")
    assert said in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).split("\n")[-1] == " " * (column + 1) + "^"


@pytest.mark.parametrize(
    ("components", "events", "expected"),
    [
        ("a a, b+ b[], c c", "a1 b1 x1 c1 b2 c2", ["a1 b1 c1"]),
        ("a a, b+ b[], b c", "a1 b1 b2 b3", ["a1 b1 b2", "a1 b1 b2 b3"]),
        ("a a, b? b, c c", "a1 b1 c1 a2 x1 c2", ["a1 b1 c1", "a2 c2"]),
        ("a a, b* b[], c* c[], d d", "a1 c1 x1 b1 d1 d2", ["a1 c1 d1"]),
    ],
)
def test_an_event_that_fits_is_not_passed_over(components: str, events: str, expected: list[str]) -> None:
    named = ", ".join(each.split()[-1] for each in components.split(", "))
    assert matches(f"PATTERN SEQ({components}) WHERE skip_till_next_match({named})", events) == expected


def test_a_loop_and_what_follows_it_may_take_the_same_event() -> None:
    text = (
        "PATTERN SEQ(s+ a[], s b) WHERE {}(a[], b) {{ [user] and a[1].volume > 1000 and a[i].price > avg(a[..i-1].price) "
        "and b.volume < 0.8 * a[a.LEN].volume }} WITHIN 1 hour"
    )
    given = [(100, 1010), (120, 990), (120, 1005), (121, 999), (120, 999), (125, 750), (120, 950), (120, 700)]
    assert of_stock(text.format("skip_till_next_match"), given) == ["1 2 3 4 5 6", "1 2 3 4 5 6 7 8", "3 4 6"]
    assert of_stock(text.format("strict_contiguity"), given[:1] + given[3:]) == ["1 2 3 4", "1 2 3 4 5 6"]


def of_stock(text: str, given: list[tuple[int, int]]) -> list[str]:
    """The matches of a text among prices and volumes, by the numbers of the events."""
    flow = ps.Flow("stock")
    stream = flow.source("events", ps.items([], "id int, user string, price int, volume int"))
    stream.match("hits", ps.sase_text(text)).sink("out", ps.console())
    rows = run_local(flow, {"events": [(at, "x", *each) for at, each in enumerate(given, 1)]})["out"]
    return sorted(" ".join(str(each["id"]) for each in (*row.a, *row.b)) for row in rows)


def test_and_beside_or_is_one_condition() -> None:
    assert matches("PATTERN SEQ(a a, b b) WHERE a.n = 1 and b.n > 5 or b.n = 0", "a1 b6 a2 b0") == [
        "a1 b0",
        "a1 b6",
        "a2 b0",
    ]


def test_quoted_text_keeps_what_looks_like_an_index() -> None:
    found = conditions("PATTERN SEQ(A a, B+ b[]) WHERE b[i].note = 'b[1] and b[i-1]'")
    assert found["b"] == "true AND (b.note = 'b[1] and b[i-1]')"


def test_partition_contiguity_needs_a_stream_by_its_fields() -> None:
    text = "PATTERN SEQ(a a, b b) WHERE partition_contiguity(a, b) { [user] }"
    flow = ps.Flow("sase")
    events = flow.source("events", ps.items([], "kind string, user string, id int"))
    with pytest.raises(FlowError, match=r"got one without a key; say key_by\('user'\)"):
        events.match("one", ps.sase_text(text, types="kind"))
    with pytest.raises(FlowError, match="got one by 'id'"):
        events.key_by("id").patterns("many", {"p": ps.sase_text(text, types="kind")})
    events.key_by("user").match("hits", ps.sase_text(text, types="kind"), {"a": "a.id", "b": "b.id"}).sink(
        "out", ps.console()
    )
    assert run_local(flow, {"events": [("a", "x", 1), ("c", "y", 2), ("b", "x", 3), ("b", "x", 4)]})["out"] == [(1, 3)]


def test_types_must_be_known() -> None:
    with pytest.raises(PatternError, match="nothing says which records are of the type 'A'"):
        ps.sase_text("PATTERN SEQ(A a, B b)")
    with pytest.raises(PatternError, match="nothing says which records are of the type 'B'"):
        ps.sase_text("PATTERN SEQ(A a, B b)", types={"A": "true"})
    with pytest.raises(FlowError, match="a pattern is a text"):
        ps.sase_text(3)  # type: ignore[arg-type]


def refused(text: str) -> PatternError | None:
    try:
        ps.sase_text(text, types="kind")
    except PatternError as error:
        return error
    return None


def test_mutated_texts_are_patterns_or_errors_with_a_position() -> None:
    rolled, read = random.Random(16), 0
    for _ in range(10_000):
        text = mutated(rolled, TEXTS)
        error = refused(text)
        read += error is None
        assert error is None or (error.line > 0 and error.column > 0), text
    assert 200 < read < 9_500


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a) WHERE " + "(" * 5_000,
        "PATTERN SEQ(A a) WHERE " + "not " * 5_000 + "a.x",
        "PATTERN SEQ" + "(" * 5_000,
        "PATTERN SEQ(A a) WHERE a.x = 1 or " + " or ".join(f"a.x = {i}" for i in range(5_000)),
    ],
)
def test_text_that_is_nested_deep_is_refused(text: str) -> None:
    with pytest.raises(PatternError) as caught:
        ps.sase_text(text, types="kind")
    assert caught.value.line == 1
