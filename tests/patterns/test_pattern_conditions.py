"""Expressions that look at other events of a match."""

from __future__ import annotations

import pytest

from penstock.errors import ExpressionError
from penstock.graph.expr import parse, to_text
from penstock.graph.patterns.conditions import Look, navigated, need_condition
from penstock.graph.schema import schema_of

EVENT = schema_of("n int, amount double, kind string, at timestamp, spot struct<city:string>")

LOOKS = [
    ("first(a).n", "first(a.n)", "int"),
    ("last(a).amount", "last(a.amount)", "double"),
    ("a.n", "last(a.n)", "int"),
    ("a[1].n", "first(a.n, 1)", "int"),
    ("a[-1].n", "last(a.n)", "int"),
    ("a[-2].n", "last(a.n, 1)", "int"),
    ("FIRST(a.n, 2)", "first(a.n, 2)", "int"),
    ("LAST(a.n + a.amount)", "last(a.n + amount)", "double"),
    ("prev(n)", "prev(last(n), 1)", "int"),
    ("PREV(a.n, 2)", "prev(last(a.n), 2)", "int"),
    ("NEXT(FIRST(a.n, 1), 3)", "next(first(a.n, 1), 3)", "int"),
    ("count(a)", "count(*) of a", "bigint"),
    ("count(a.*)", "count(*) of a", "bigint"),
    ("count(*)", "count(*) of all", "bigint"),
    ("avg(a.n)", "avg(n) of a", "double"),
    ("sum(a.n * a.n)", "sum(n * n) of a", "bigint"),
    ("sum(n)", "sum(n) of all", "bigint"),
    ("count(distinct a.kind)", "count_distinct(kind) of a", "bigint"),
    ("CLASSIFIER()", "last(__classifier)", "string"),
    ("LAST(CLASSIFIER(), 1)", "last(__classifier, 1)", "string"),
    ("MATCH_NUMBER()", "match_number()", "bigint"),
    (
        "first(a)",
        "first(a.struct(n, amount, kind, at, spot))",
        "struct<n:int,amount:double,kind:string,at:timestamp,spot:struct<city:string>>",
    ),
]


@pytest.mark.parametrize(("text", "look", "kind"), LOOKS, ids=[text for text, *_ in LOOKS])
def test_a_look_becomes_an_input(text: str, look: str, kind: str) -> None:
    made = navigated(parse(text), EVENT, ("a", "b"))
    assert to_text(made.expr) == "__look0"
    assert ([str(each) for each in made.inputs], str(made.type)) == ([look], kind)


def test_a_condition_without_looks_is_plain() -> None:
    made = need_condition("stage 'a'", parse("n > 1 and spot.city = 'Rome'"), EVENT, ("a",))
    assert made.is_plain
    assert made.schema is EVENT


def test_equal_looks_share_an_input_and_the_own_stage_is_the_event() -> None:
    made = navigated(
        parse("b.n > a.n and b.n < a.n * 2 and first(a).spot.city = spot.city"), EVENT, ("a", "b"), own="b"
    )
    assert to_text(made.expr) == "((n > __look0) AND (n < (__look0 * 2))) AND (__look1.city = spot.city)"
    assert [str(each) for each in made.inputs] == ["last(a.n)", "first(a.spot)"]


def test_running_and_final_are_kept() -> None:
    made = navigated(parse("RUNNING LAST(a.n) + FINAL count(a) + last(n)"), EVENT, ("a",))
    assert [look.final for look in made.inputs] == [False, True, None]
    assert made.inputs[2].look is Look.LAST


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("sum(a.n + b.n) > 1", "one stage"),
        ("first(a.n, -1) > 1", "whole number"),
        ("a['x'].n > 1", "number from 0"),
        ("first(a).m > 1", "no column 'm'"),
        ("n + 1", "true or false"),
        ("final n + 1 > 2", "FINAL goes before"),
        ("prev() > 1", "takes a value"),
    ],
)
def test_what_looks_where_nothing_is_is_refused(text: str, why: str) -> None:
    with pytest.raises(ExpressionError, match=why):
        need_condition("stage 'a'", parse(text), EVENT, ("a", "b"))
