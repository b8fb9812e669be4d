"""Row patterns as Trino documents them: patterns, quantifiers, empty matches, output modes, skips, navigation; and what is refused."""

from __future__ import annotations

import datetime
import time
from typing import Any

import pytest

import penstock as ps
from penstock.errors import ExpressionError, FlowError, SchemaError, StepError, UnknownName
from penstock.frontends.patterns.row_text import DEEPEST, read_rows
from penstock.graph.patterns.row_pattern import MatchClause, shown_pattern
from penstock.testing import Driver, explain_rows, run_local

EACH = {"m": "match_number()", "val": "running last(n)", "v": "classifier()"}


def at(seconds: float) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)


def stream_of(schema: str = "id int, n int, ts timestamp") -> ps.Stream:
    return ps.Flow("rows").source("rows", ps.items([], schema), event_time="ts")


def found(values: str, pattern: MatchClause, *fields: str) -> list[tuple[Any, ...]]:
    """What a pattern finds in numbers, one a second; ids count from 1."""
    stream = stream_of()
    stream.match_rows("found", pattern).select("picked", *fields).sink("out", ps.console())
    given = [(place, int(n), at(place)) for place, n in enumerate(values.split(), 1)]
    return [tuple(row) for row in run_local(stream.flow, {"rows": given})["out"]]


def shown(values: str, text: str, rows: str = "all", **more: Any) -> str:
    """All rows of the matches: the number of the match, the id, and the variable."""
    pattern = ps.row_pattern(text, measures=EACH, rows=rows, **more)
    if rows == "one":
        return " ".join(f"{m}:{v}" for m, v in found(values, pattern, "m", "v"))
    return " ".join(f"{m or '-'}:{row}{v or ''}" for m, row, v in found(values, pattern, "m", "id", "v"))


B_FALLS = {"B": "B.n <= prev(B.n)"}
EMPTY = "1:1 2:2 3:3 4:4"
QUANTIFIERS = {
    "B*": "1:1 2:2B 2:3B 2:4B",
    "B*?": EMPTY,
    "B+": "1:2B 1:3B 1:4B",
    "B+?": "1:2B 2:3B 3:4B",
    "B?": "1:1 2:2B 3:3B 4:4B",
    "B??": EMPTY,
    "B{,}": "1:1 2:2B 2:3B 2:4B",
    "B{,}?": EMPTY,
    "B{1,}": "1:2B 1:3B 1:4B",
    "B{1,}?": "1:2B 2:3B 3:4B",
    "B{2,}": "1:2B 1:3B 1:4B",
    "B{2,}?": "1:2B 1:3B",
    "B{5,}": "",
    "B{,1}": "1:1 2:2B 3:3B 4:4B",
    "B{,2}": "1:1 2:2B 2:3B 3:4B",
    "B{,2}?": EMPTY,
    "B{1,1}?": "1:2B 2:3B 3:4B",
    "B{1,5}": "1:2B 1:3B 1:4B",
    "B{1,5}?": "1:2B 2:3B 3:4B",
    "B{5,7}": "",
    "B{2}": "1:2B 1:3B",
    "B{2}?": "1:2B 1:3B",
}


@pytest.mark.parametrize("text", QUANTIFIERS)
def test_quantifiers(text: str) -> None:
    assert shown("90 80 70 70", text, define=B_FALLS) == QUANTIFIERS[text]


PATTERNS = {
    "() | A": EMPTY,
    "^A": "1:1A",
    "A^": "",
    "^A^": "",
    "A$": "1:4A",
    "$A": "",
    "A B C": "1:2A 1:3B 1:4C",
    "((A) (B (C)))": "1:2A 1:3B 1:4C",
    "B | D | A": "1:1A 2:2B 3:3B 4:4D",
    "PERMUTE(B, E)": "1:2B 1:3E",
    "permute(A)": "1:1A 2:2A 3:3A 4:4A",
}


@pytest.mark.parametrize("text", PATTERNS)
def test_alternatives_groups_anchors_and_permutations(text: str) -> None:
    conditions = {"B": "n < prev(n)", "C": "n = prev(n)", "D": "n <= prev(n)", "E": "n < prev(n)"}
    used = {name: each for name, each in conditions.items() if name in text.replace("PERMUTE", "")}
    assert shown("90 80 70 70", text, define=used) == PATTERNS[text]


EMPTY_LOOPS = {
    "()* | B": EMPTY,
    "()+ | B": EMPTY,
    "(){5,} | B": EMPTY,
    "B | ()*": "1:1 2:2B 3:3B 4:4",
    "(B ()*)*": "1:1 2:2B 2:3B 3:4",
    "(B ()*)*?": EMPTY,
    "^* | B": EMPTY,
    "^+ | B": "1:1 2:2B 3:3B",
    "^* A B": "1:1A 1:2B",
    "$* | B": EMPTY,
    "$+ | B": "1:2B 2:3B",
    "B A $+": "1:3B 1:4A",
    "(B??)* A": "1:1A 2:2A 3:3A 4:4A",
    "((A?)*)*": "1:1A 1:2A 1:3A 1:4A",
    "(B | () | A)*": "1:1 2:2B 2:3B 3:4",
    "(B | () | A)+": "1:1 2:2B 2:3B 3:4",
    "((B | ())* A?)*": "1:1A 1:2B 1:3B 1:4A",
}


@pytest.mark.parametrize("text", EMPTY_LOOPS)
def test_a_loop_that_takes_nothing_ends(text: str) -> None:
    assert shown("90 80 70 70", text, define={"B": "n < prev(n)"} if "B" in text else {}) == EMPTY_LOOPS[text]


EXCLUSIONS = {
    "A {- B+ -} C+": "1:1A 1:4C 1:5C 2:6A 2:8C",
    "{- A -} {- B+ -} C+": "1:4C 1:5C 2:8C",
    "A {- {- B+ -} C+ -}": "1:1A 2:6A",
    "{- A B+ C+ -}": "",
    "A B+ {- ()* -} C+": "1:1A 1:2B 1:3B 1:4C 1:5C 2:6A 2:7B 2:8C",
    "A {- B -}+ {- C -}+": "1:1A 2:6A",
    "A {- C -}{2,3} {- B -}{2,3}": "1:3A",
}


@pytest.mark.parametrize("text", EXCLUSIONS)
def test_rows_in_an_exclusion_are_matched_and_not_emitted(text: str) -> None:
    define = {"B": "n < prev(n)", "C": "n > prev(n)"}
    assert shown("90 80 70 80 90 50 40 60", text, define=define) == EXCLUSIONS[text]


MODES = {
    ("one", "B*"): [(1, None, None), (2, 70, "B"), (3, None, None)],
    ("one", "B+"): [(1, 70, "B")],
    ("all", "B*"): [(1, None, None), (2, 80, "B"), (2, 70, "B"), (3, None, None)],
    ("all", "B+"): [(1, 80, "B"), (1, 70, "B")],
    ("all show empty", "B*"): [(1, None, None), (2, 80, "B"), (2, 70, "B"), (3, None, None)],
    ("all omit empty", "B*"): [(2, 80, "B"), (2, 70, "B")],
    ("ALL OMIT EMPTY", "B+"): [(1, 80, "B"), (1, 70, "B")],
    ("all with unmatched", "B+"): [(None, None, None), (1, 80, "B"), (1, 70, "B"), (None, None, None)],
}


@pytest.mark.parametrize(("rows", "text"), MODES)
def test_which_rows_are_emitted(rows: str, text: str) -> None:
    pattern = ps.row_pattern(text, define={"B": "n < prev(n)"}, measures=EACH, rows=rows)
    assert found("90 80 70 70", pattern, "m", "val", "v") == MODES[rows, text]


FIRST = "1:1A 1:2B 1:3B 1:4C"
SKIPS: dict[Any, str] = {
    "past last row": FIRST,
    "to next row": f"{FIRST} 2:2A 2:3B 2:4C 3:4A 3:5B 3:6C",
    ("to first", "C"): f"{FIRST} 2:4A 2:5B 2:6C",
    ("to last", "B"): f"{FIRST} 2:4A 2:5B 2:6C",
    "to B": f"{FIRST} 2:4A 2:5B 2:6C",
    "TO LAST U": f"{FIRST} 2:4A 2:5B 2:6C",
}
SKIPPING: dict[str, Any] = {
    "define": {"B": "n < prev(n)", "C": "n > prev(n)", "D": "false"},
    "subsets": {"U": ("C", "D")},
}


@pytest.mark.parametrize("skip", SKIPS)
def test_where_the_search_goes_on(skip: Any) -> None:
    assert shown("90 80 70 80 70 80", "A B+ C+ D?", after_match=skip, **SKIPPING) == SKIPS[skip]


@pytest.mark.parametrize(
    ("text", "to", "why"),
    [
        ("D? A B+ C+", ("to first", "A"), "the first row of the match itself"),
        ("(A B)+? C+ D?", ("to last", "A"), "the first row of the match itself"),
        ("A B+ C+ D?", ("to first", "D"), "no row of the match is D"),
    ],
)
def test_a_skip_to_the_first_row_or_to_no_row_stops_the_flow(text: str, to: tuple[str, str], why: str) -> None:
    with pytest.raises(StepError, match=why):
        shown("90 80 70 80 70 80", text, after_match=to, **SKIPPING)


def test_rows_of_an_earlier_match_are_not_unmatched() -> None:
    got = shown(
        "100 100 90 80 70 100", "A B{2}", "all with unmatched", define={"B": "n < prev(n)"}, after_match="to next row"
    )
    assert got == "-:1 1:2A 1:3B 1:4B 2:3A 2:4B 2:5B -:6"


NAVIGATION = {
    "n": [10, 20, 30],
    "last(n)": [10, 20, 30],
    "final last(n)": [30, 30, 30],
    "first(n)": [10, 10, 10],
    "FINAL FIRST(n, 2)": [30, 30, 30],
    "first(n, 2)": [None, None, 30],
    "final last(n, 2)": [10, 10, 10],
    "last(n, 1)": [None, 10, 20],
    "last(n, 10)": [None, None, None],
    "prev(n)": [None, 10, 20],
    "prev(running last(n))": [None, 10, 20],
    "next(n)": [20, 30, None],
    "next(first(n), 2)": [30, 30, 30],
    "prev(final last(n), 1)": [20, 20, 20],
    "next(first(n), 10)": [None, None, None],
    "prev(first(n, 10), 2)": [None, None, None],
    "prev(n, 0)": [10, 20, 30],
    "last(A.n + A.id)": [11, 22, 33],
    "classifier() || '!'": ["A!", "A!", "A!"],
    "next(classifier())": ["A", "A", None],
    "final last(upper(classifier()))": ["A", "A", "A"],
    "sum(n)": [10, 30, 60],
    "final sum(n)": [60, 60, 60],
    "count(distinct n div 20)": [1, 2, 2],
    "count(A.*)": [1, 2, 3],
    "count(1)": [1, 2, 3],
    "count(*) filter (where n > 10)": [0, 1, 2],
    "max_by(id, 0 - n)": [1, 1, 1],
    "collect_list(n)": [[10], [10, 20], [10, 20, 30]],
    "n in (20, first(A.n))": [True, True, False],
    "match_number() + 1": [2, 2, 2],
    "sum(distinct n div 20)": [0, 1, 1],
}


@pytest.mark.parametrize("text", NAVIGATION)
def test_navigation(text: str) -> None:
    pattern = ps.row_pattern("A+", measures={"x": text}, rows="all")
    assert [x for (x,) in found("10 20 30", pattern, "x")] == NAVIGATION[text]


def test_navigation_leaves_the_match_and_not_the_rows_of_the_key() -> None:
    texts = {f"p{step}": f"prev(B.n, {step})" for step in (2, 3, 4)} | {"n1": "next(B.n)", "n2": "next(B.n, 2)"}
    pattern = ps.row_pattern("A B", define={"B": "n = prev(n)"}, measures=texts)
    assert found("10 20 30 30 40", pattern, *texts) == [(20, 10, None, 40, None)]


def test_conditions_look_at_what_was_matched() -> None:
    assert shown("1 1", "(A | B)* X", define={"X": "n = A.n"}) == "1:1A 1:2X"
    assert shown("1 1", "(A | B)* X", define={"X": "n = B.n"}) == "1:1B 1:2X"
    far = "prev(last(A.n), 3) + first(A.n) + prev(last(B.n), 2)"
    assert shown("1 2 3 4 5 6", "(A | B)* X", define={"X": f"n = {far}"}) == "1:1B 1:2A 1:3A 1:4A 1:5B 1:6X"
    named = "prev(classifier(U), 1) = 'A' and last(classifier(), 3) = 'B' and first(classifier(U)) = 'B'"
    got = shown("1 2 3 4 5", "(A | B)* X $", define={"X": named}, subsets={"U": ("A", "B")})
    assert got == "1:1B 1:2B 1:3A 1:4A 1:5X"
    assert shown("1 2 3", "A+", define={"A": "next(classifier()) = 'A'"}) == ""


def test_the_last_way_is_found_among_many() -> None:
    first = " and ".join(f"first(classifier(), {place}) = 'B'" for place in range(8))
    assert (
        shown("1 2 3 4 5 6 7 8 9", "(A | B)+ Z", define={"Z": first}).replace("1:", "") == "1B 2B 3B 4B 5B 6B 7B 8B 9Z"
    )


@pytest.mark.parametrize("condition", ["n = 1", "n = 1 and n >= first(n)", "n = 1 and sum(n) > 0 and count(A.*) > 0"])
def test_patterns_that_could_take_exponential_time_do_not(condition: str) -> None:
    begun = time.process_time()
    assert shown("1 " * 60, "((A+)+ (A | A A)*)+ B", define={"A": condition, "B": "n = 2"}) == ""
    assert time.process_time() - begun < 10


@pytest.mark.parametrize(("text", "end"), [("A B* C", ""), ("(A+)+ C", ""), ("A B* C", "3"), ("A B*? C $", "3 1")])
def test_rows_that_cannot_begin_a_match_are_not_tried_one_by_one(text: str, end: str) -> None:
    """Of 20,000 rows each could begin a match; without a look from the end back all later rows would be gone over for each."""
    begun = time.process_time()
    got = shown("1 " * 20_000 + end, text, "one", define={"A": "n = 1", "C": "n = 3"})
    assert got == ("1:C" if end == "3" else "")
    assert time.process_time() - begun < 15


def test_more_variables_than_a_number_has_bits() -> None:
    names = [f"V{place}" for place in range(70)]
    pattern = ps.row_pattern(
        " ".join(names), define={name: f"n = {place}" for place, name in enumerate(names)}, measures={"n": "count(*)", "v": "classifier()"}
    )  # fmt: skip
    assert found(" ".join(map(str, range(70))), pattern, "n", "v") == [(70, "V69")]


def test_a_match_is_emitted_when_no_later_row_can_change_it() -> None:
    """A greedy end waits for the row that ends it, a reluctant one does not, and the end of the rows is known at the end of the input."""
    texts = {"greedy": "A B+", "reluctant": "A B+?", "end": "A B+ $", "ahead": "A N"}
    define = {"A": "n = 1", "B": "n = 2", "N": "n = 2 and next(n) = 2"}
    stream = stream_of()
    for name, text in texts.items():
        used = {k: v for k, v in define.items() if k in text}
        stream.match_rows(name, ps.row_pattern(text, define=used, measures={"n": "count(*)"})).sink(
            f"{name}-out", ps.console()
        )
    driver = Driver(stream.flow)
    seen = []
    for place, n in enumerate([1, 2, 2, 3, 1, 2]):
        driver.push("rows", (0, n, at(place)))
        results = driver.barrier()
        seen.append([len(results[f"{name}-out"]) for name in texts])
    results = driver.barrier(end=True)
    driver.close()
    assert seen == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 1], [1, 1, 0, 1], [1, 1, 0, 1]]
    assert [len(results[f"{name}-out"]) for name in texts] == [2, 2, 1, 1]


def test_a_match_has_no_more_rows_than_it_may() -> None:
    assert shown("1 1 1 1 1", "A+", most_rows=2) == "1:1A 1:2A 2:3A 2:4A 3:5A"
    assert shown("1 1 1 3", "A B* C", define={"C": "n = 3"}, most_rows=3) == "1:2A 1:3B 1:4C"


def test_rows_that_no_match_needs_are_forgotten() -> None:
    from tests.kernels.hosts import SECOND, Host

    stream = stream_of("k int, n int, ts timestamp")
    pattern = ps.row_pattern("A B+ C", define={"A": "n = 1", "B": "n = 2", "C": "n = 3"}, measures={"n": "count(*)"})
    stream.key_by("k").match_rows("found", pattern).sink("out", ps.console())
    host = Host(stream.flow.graph)
    kept = host.states["found"].kept

    def take(*values: int) -> None:
        for n in values:
            second = host.watermark // SECOND + 1 if host.watermark > 0 else 1
            host.take([("rows", (7, n, at_zero(second)), second)])
            host.advance((second + 1) * SECOND, 0)
            host.begin()

    take(3, 2, 3)
    assert kept == {}
    take(1, 2, 2)
    assert [row["n"] for row in kept[7,][0]] == [1, 2, 2]
    take(3)
    assert kept == {}
    assert host.out == {"out": [(7, 4)]}


def at_zero(seconds: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)


TEXTS = {
    "": (1, 1, "expected a variable, '(', '^', '$' or '{-', got the end"),
    "A |": (1, 4, "nothing is written ()"),
    "A\n  B** C": (2, 5, "repeated again in brackets"),
    "A + + B": (1, 5, "repeated again in brackets"),
    "* A": (1, 1, "expected a variable or '(' before '*'"),
    "(A B": (1, 5, "expected ')' for the '(' at column 1"),
    "A B)": (1, 4, "closes no bracket"),
    "{- A )": (1, 6, "expected '-}', got ')'"),
    "A{2": (1, 4, "expected '}', got the end"),
    "A{}": (1, 3, "expected a number or ','"),
    "A{3,2}": (1, 2, "not below the lower one"),
    "A{0}": (1, 2, "above zero"),
    "A, B": (1, 2, "got ','"),
    "PERMUTE(A,)": (1, 11, "got ')'"),
    "A %": (1, 3, "got '%'"),
    "A 3": (1, 3, "got '3'"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_an_error_of_the_text_says_where_and_what_was_expected(text: str) -> None:
    line, column, why = TEXTS[text]
    with pytest.raises(FlowError) as caught:
        ps.row_pattern(text)
    assert f"line {line}, column {column}:" in str(caught.value)
    assert why in str(caught.value)


def test_brackets_may_be_deep_and_repetitions_not_endlessly() -> None:
    assert shown_pattern(read_rows("(" * 3_000 + "A" + ")" * 3_000)) == "A"
    deep = "(" * (DEEPEST - 10) + "A" + "+)" * (DEEPEST - 10)
    assert shown("1 2", deep).startswith("1:1A")
    with pytest.raises(FlowError, match="more than 200 deep"):
        ps.row_pattern("(" * 300 + "A" + "+)" * 300)


@pytest.mark.parametrize(
    "text", ["A{30000}", "(A{200}){200}", "(){100000000}", "permute(A, B, C, D, E, F, G, H, I, J, K, L)", "permute(A+, B, C, D, E, F, G, H, I)"]
)  # fmt: skip
def test_patterns_that_are_too_large_are_refused(text: str) -> None:
    with pytest.raises(FlowError, match="too large"):
        ps.row_pattern(text)


@pytest.mark.parametrize(
    "text", ["A | B C+?", "permute(A, (B | C) D)", "{- A{2,} -} ^ $ ()", "((A+)*)?", 'x "a b" `c`']
)
def test_a_pattern_reads_back_as_it_is_shown(text: str) -> None:
    read = read_rows(text)
    if '"' not in text:
        assert read_rows(shown_pattern(read)) == read


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"define": {"D": "n > 1"}}, UnknownName, "no variable 'D' in the pattern; there are: 'A', 'B'"),
    ({"define": {"U": "n > 1"}, "subsets": {"U": ("A",)}}, FlowError, "'U' stands for several"),
    ({"subsets": {"U": ("A", "C")}}, UnknownName, "subset 'U': no variable 'C'"),
    ({"subsets": {"A": ("B",)}}, FlowError, "has the name of another variable"),
    ({"subsets": {"U": ()}}, FlowError, "stands for no variable"),
    ({"after_match": ("to first", "Q")}, UnknownName, "after_match: no variable 'Q'"),
    ({"after_match": ("to first", "A")}, FlowError, "the first row of A, which is the first row of every match"),
    ({"after_match": ("to last", "A")}, FlowError, "the last row of A, which is the first row of every match"),
    ({"after_match": ("to first", "U"), "subsets": {"U": ("B", "A")}}, FlowError, "the first row of U, which is"),
    ({"after_match": "somewhere"}, FlowError, "after_match is 'past last row'"),
    ({"rows": "some"}, FlowError, "rows is one of 'one'"),
    ({"within": "0s"}, FlowError, "within"),
    ({"most_rows": 0}, FlowError, "most_rows is a whole number"),
    ({"define": {"B": "final last(n) > 1"}}, ExpressionError, "FINAL looks at rows that are matched later"),
    ({"define": {"B": "n + 1"}}, ExpressionError, "a condition is true or false"),
    ({"define": {"B": "m > 1"}}, ExpressionError, "no column 'm'"),
    ({"define": {"B": "last(A.n + B.n) > 1"}}, ExpressionError, "of one stage"),
    ({"measures": {"x": "null"}}, ExpressionError, "has no type"),
    ({"measures": {"n": "A.n"}, "rows": "all"}, SchemaError, "'n' has the name of a field"),
    ({"measures": {}}, FlowError, "add measures"),
]


@pytest.mark.parametrize(("options", "error", "why"), REFUSED)
def test_what_is_not_sound_is_refused_when_the_flow_is_built(
    options: dict[str, Any], error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        stream_of().match_rows("found", ps.row_pattern("A B+", **{"measures": {"x": "count(*)"}, **options}))


def test_an_exclusion_does_not_go_with_unmatched_rows() -> None:
    with pytest.raises(FlowError, match="use one of the two"):
        ps.row_pattern("A {- B -}", rows="all with unmatched")


def test_a_stream_without_event_time_is_refused() -> None:
    stream = ps.Flow("rows").source("rows", ps.items([], "n int"))
    with pytest.raises(FlowError, match="match_rows needs to know when"):
        stream.match_rows("found", ps.row_pattern("A", measures={"n": "count(*)"}))


def test_a_measure_that_has_the_name_of_a_key_is_refused() -> None:
    with pytest.raises(SchemaError, match="'id' is a key already"):
        stream_of().key_by("id").match_rows("found", ps.row_pattern("A", measures={"id": "count(*)"}))


def test_something_else_than_a_row_pattern_is_refused() -> None:
    with pytest.raises(FlowError, match=r"match_rows takes ps\.row_pattern"):
        stream_of().match_rows("found", "A B")  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("last", ["2", "nan"])
def test_numbers_that_are_none_are_the_largest_and_zero_has_no_sign(last: str) -> None:
    """By column where all floats are numbers, row by row where one is not: the same answers."""
    stream = stream_of("id int, x double, ts timestamp")
    define = {"BIG": "x > 1.5", "ZERO": "x = 0", "SOON": "x < prev(x) and ts >= timestamp '2024-01-01 00:00:03'"}
    pattern = ps.row_pattern("(BIG | ZERO | SOON)", define=define, measures={"v": "classifier()"}, rows="all")
    stream.match_rows("found", pattern).select("picked", "id", "v").sink("out", ps.console())
    given = [(place, float(x), at(place)) for place, x in enumerate(["1", "-0.0", last, "1", "0.5"], 1)]
    results = run_local(stream.flow, {"rows": given})["out"]
    assert [tuple(row) for row in results] == [(2, "ZERO"), (3, "BIG"), (4, "SOON"), (5, "SOON")]


def test_a_condition_that_fails_names_the_step_and_the_row() -> None:
    for condition in ("1 / (n - 2) > 0", "n + 2147483646 > 0", "1 / (n - A.n - 1) > 0"):
        with pytest.raises(StepError, match="found"):
            shown("1 2", "A B", define={"B": condition})


def test_describe_shows_the_program() -> None:
    stream = stream_of().match_rows("found", ps.row_pattern("A B+? | {- C{60} -}", measures={"n": "count(*)"}))
    stream.sink("out", ps.console())
    node = stream.flow.graph.node("found")
    assert node.drawing[:6] == (
        "0: split 1 5",
        "1: take A",
        "2: take B",
        "3: split 4 2",
        "4: split 65",
        "5: take C hidden",
    )
    assert node.drawing[-1] == "... and 16 more"


EXPLAINED = {
    ("A B", ""): ("after A=1, row 2 is not B", "begins match 1: A=2, B=3"),
    ("C B", ""): ("1 begins no match: row 1 is not C", "2 begins no match: row 2 is not C"),
    ("A B A A", ""): ("2 begins no match: after A=2, B=3, the rows end where A should come",),
    ("A $", ""): ("1 begins no match: the pattern wants the first or the last row", "3 begins match 1: A=3"),
    ("A ^", ""): ("1 begins no match: the pattern wants the first or the last row",),
    ("() | A", ""): ("1 begins match 1, which is empty", "3 begins match 3, which is empty"),
    ("A (C | B) C", "2s"): (
        "1 begins no match: after A=1, row 2 is not C or B",
        "2 begins no match: after A=2, B=3, the time is up",
    ),
    ("^ C", ""): ("2 begins no match: the pattern wants the first",),
}


@pytest.mark.parametrize(("text", "within"), EXPLAINED)
def test_the_test_kit_says_why_rows_did_not_match(text: str, within: str) -> None:
    define = {name: each for name, each in {"B": "n > prev(n)", "C": "n = 9"}.items() if name in text}
    pattern = ps.row_pattern(text, define=define, measures={"n": "count(*)"}, within=within or None)
    rows = [(1, 5, at(0)), (2, 4, at(1)), (3, 6, at(2)), (4, 1, at(20))][: 4 if within else 3]
    said = str(explain_rows(pattern, reversed(rows), "id int, n int, ts timestamp", event_time="ts"))
    for each in EXPLAINED[text, within]:
        assert each in said


def test_no_rows_match_nothing() -> None:
    why = explain_rows(ps.row_pattern("A", measures={"n": "count(*)"}), [], "n int, ts timestamp", event_time="ts")
    assert (why.matches, str(why)) == ([], "no rows")
