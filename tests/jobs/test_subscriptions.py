"""Many subscriptions by content: the index finds what every predicate alone finds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import FlowError
from penstock.jobs.subscriptions import Subscriptions, subscriptions_of
from penstock.log import Record, predicate

VALUES = st.sampled_from(
    [None, True, False, 0, 1, -1.5, 2**53, 2**53 + 1, 2**70, 10**400, -(10**400), "a", "b", "", [1], {"x": 1}]
)
LITERALS = st.sampled_from(["0", "1", "-1.5", str(2**53), str(2**53 + 1), "'a'", "'b'", "true", "false", "null"])
COMPARISONS = st.one_of(
    st.builds("{} {} {}".format, st.sampled_from(["n", "s.x", "$key"]), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), LITERALS),
    st.builds("n in ({}, {})".format, LITERALS, LITERALS),
    st.just("not (n = 1)"),
    st.sampled_from(["n is not null", "n is null", "s.x is null", "missing is null"]),
)  # fmt: skip
PREDICATES = st.one_of(
    st.lists(COMPARISONS, min_size=1, max_size=3).map(" and ".join),
    st.lists(COMPARISONS, min_size=2, max_size=3).map(" or ".join),
    st.lists(COMPARISONS, min_size=2, max_size=3).map(lambda some: f"(({' or '.join(some)}))"),
    st.builds("({} or {}) and {}".format, COMPARISONS, COMPARISONS, COMPARISONS),
    st.builds("({}) or ({} and {})".format, COMPARISONS, COMPARISONS, COMPARISONS),
)


def records_of(values: list[tuple[Any, Any]]) -> list[Record]:
    made = [json.dumps({"n": n, "s": {"x": x}}).encode() for n, x in values]
    return [Record("t", 0, at, 0, b"a" if at % 2 else None, value) for at, value in enumerate(made)] + [
        Record("t", 0, 99, 0, None, b"no JSON")
    ]


@settings(max_examples=200, deadline=None)
@given(st.lists(PREDICATES, min_size=1, max_size=8), st.lists(st.tuples(VALUES, VALUES), max_size=10))
def test_the_index_finds_what_each_predicate_finds(texts: list[str], values: list[tuple[Any, Any]]) -> None:
    records = records_of(values)
    many = Subscriptions({f"s{at}": text for at, text in enumerate(texts)})
    tests = [predicate(text) for text in texts]
    wanted = [(r.offset, [f"s{at}" for at, test in enumerate(tests) if test(r)]) for r in records]
    assert [(r.offset, names) for r, names in many.wanted(records)] == [each for each in wanted if each[1]]


@pytest.mark.parametrize(
    "text", ["user = 'u{}' and total > 10", "user = 'u{}' or total = -{}", "(user in ('u{}', 'x{}') and x is null)"]
)
def test_only_subscriptions_that_can_match_are_asked(text: str) -> None:
    many = Subscriptions({f"s{at}": text.format(at, at) for at in range(2_000)})
    asked: list[int] = []

    def noting(at: int, test: Any) -> Any:
        def asks(fields: Any) -> bool:
            asked.append(at)
            return bool(test(fields))

        return asks

    many.predicates = [replace(each, test=noting(at, each.test)) for at, each in enumerate(many.predicates)]
    records = [
        Record("t", 0, at, 0, None, json.dumps({"user": f"u{at}", "total": at}).encode()) for at in range(11, 20)
    ]
    assert [names for _, names in many.wanted(records)] == [[f"s{at}"] for at in range(11, 20)]
    assert asked == list(range(11, 20))


@pytest.mark.parametrize("text", ["- a", "a: 1", "a: [", "3"])
def test_a_file_that_holds_no_subscriptions_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(FlowError, match="subscriptions"):
        subscriptions_of(file)
