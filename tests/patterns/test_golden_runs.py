"""The answers that the documentation of Flink's CEP library gives."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.frontends.streams.patterns import PatternBuilder
from tests.patterns.matching import found, kind

A, B, C, D = (kind(name) for name in "abcd")


def begin(stage: str = "a", condition: str = A, **settings: object) -> PatternBuilder:
    return ps.pattern("p").begin(stage, condition, **settings)  # type: ignore[arg-type]  # settings of a stage


CASES: list[tuple[str, PatternBuilder, str, list[str]]] = [
    ("a b strict", begin().next("b", B), "a c b1 b2", []),
    ("a b relaxed", begin().followed_by("b", B), "a c b1 b2", ["a b1"]),
    ("a b any", begin().followed_by_any("b", B), "a c b1 b2", ["a b1", "a b2"]),
    (
        "a b+ c strict",
        begin().followed_by_any("b", B, one_or_more=True, consecutive=True).followed_by("c", C),
        "a b1 d1 b2 d2 b3 c",
        ["a b1 c", "a b2 c", "a b3 c"],
    ),
    (
        "a b+ c relaxed",
        begin().followed_by_any("b", B, one_or_more=True).followed_by("c", C),
        "a b1 d1 b2 d2 b3 c",
        ["a b1 b2 b3 c", "a b1 b2 c", "a b1 c", "a b2 b3 c", "a b2 c", "a b3 c"],
    ),
    (
        "a b+ c any",
        begin().followed_by_any("b", B, one_or_more=True, combinations=True).followed_by("c", C),
        "a b1 d1 b2 d2 b3 c",
        ["a b1 b2 b3 c", "a b1 b2 c", "a b1 b3 c", "a b1 c", "a b2 b3 c", "a b2 c", "a b3 c"],
    ),
    (
        "c a+ b consecutive",
        begin("c", C).followed_by("a", A, one_or_more=True, consecutive=True).followed_by("b", B),
        "C D A1 A2 A3 D A4 B",
        ["C A1 A2 A3 B", "C A1 A2 B", "C A1 B"],
    ),
    (
        "c a+ b",
        begin("c", C).followed_by("a", A, one_or_more=True).followed_by("b", B),
        "C D A1 A2 A3 D A4 B",
        ["C A1 A2 A3 A4 B", "C A1 A2 A3 B", "C A1 A2 B", "C A1 B"],
    ),
    (
        "c a+ b combinations",
        begin("c", C).followed_by("a", A, one_or_more=True, combinations=True).followed_by("b", B),
        "C D A1 A2 A3 D A4 B",
        [
            "C A1 A2 A3 A4 B",
            "C A1 A2 A3 B",
            "C A1 A2 A4 B",
            "C A1 A2 B",
            "C A1 A3 A4 B",
            "C A1 A3 B",
            "C A1 A4 B",
            "C A1 B",
        ],
    ),
    *(
        (
            f"b+ c {skip} {loop}",
            begin("b", B, one_or_more=True, **dict.fromkeys(loop, True)).next("c", C).after_match(*skip.split()),
            "b1 b2 b3 c",
            answer,
        )
        for skip, answer in [
            ("none", ["b1 b2 b3 c", "b2 b3 c", "b3 c"]),
            ("next", ["b1 b2 b3 c", "b2 b3 c", "b3 c"]),
            ("past_last", ["b1 b2 b3 c"]),
            ("first b", ["b1 b2 b3 c", "b2 b3 c", "b3 c"]),
            ("last b", ["b1 b2 b3 c", "b3 c"]),
        ]
        for loop in ((), ("consecutive",), ("greedy",), ("consecutive", "greedy"))
    ),
    ("a b+ none", begin().followed_by("b", B, one_or_more=True), "a b1 b2 b3", ["a b1", "a b1 b2", "a b1 b2 b3"]),
    ("a b+ next", begin().followed_by("b", B, one_or_more=True).after_match("next"), "a b1 b2 b3", ["a b1"]),
    ("a+ until b", begin("a", A, one_or_more=True, until=B), "a1 c a2 b a3", ["a1", "a1 a2", "a2", "a3"]),
    *(
        (
            f"greedy {skip}",
            begin("x", "kind in ('a', 'b', 'c')")
            .followed_by("y", "kind in ('b', 'c')")
            .followed_by("c", C, one_or_more=True, greedy=True)
            .followed_by("d", D)
            .after_match(*skip.split()),
            "a b c1 c2 c3 d",
            answer,
        )
        for skip, answer in [
            ("none", ["a b c1 c2 c3 d", "b c1 c2 c3 d", "c1 c2 c3 d"]),
            ("first c", ["a b c1 c2 c3 d", "c1 c2 c3 d"]),
        ]
    ),
]


@pytest.mark.parametrize(
    ("pattern", "words", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_the_answer_is_that_of_the_documentation(pattern: PatternBuilder, words: str, expected: list[str]) -> None:
    assert found(pattern, words) == expected
