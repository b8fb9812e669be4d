"""Reading expression text, and writing it again."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ExpressionError
from penstock.graph import types as t
from penstock.graph.expr import (
    Alias,
    Call,
    Case,
    Cast,
    Column,
    Expr,
    GetField,
    GetItem,
    Literal,
    col,
    fn,
    lit,
    parse,
    to_text,
)

N, M = Column("n"), Column("m")

PARSED: list[tuple[str, Expr]] = [
    ("n", N),
    ("`odd name`", Column("odd name")),
    ("`tick``ed`", Column("tick`ed")),
    ("n + m * 2", N + M * 2),
    ("(n + m) * 2", (N + M) * 2),
    ("n - m - 1", (N - M) - 1),
    ("-n", -N),
    ("-n * 2", (-N) * 2),
    ("n % 2 = 0", N % 2 == 0),
    ("n == 1", N == 1),
    ("n != 1", N != 1),
    ("n <> 1", N != 1),
    ("n <=> null", Call("<=>", (N, lit(None)))),
    ("n > 3 and m < 4 or not n = m", ((N > 3) & (M < 4)) | ~(N == M)),
    ("NOT n = m", ~(N == M)),
    ("n is null", N.is_null()),
    ("n IS NOT NULL", N.is_not_null()),
    ("n is true", Call("<=>", (N, lit(True)))),
    ("n is not false", ~Call("<=>", (N, lit(False)))),
    ("n is distinct from m", ~Call("<=>", (N, M))),
    ("n + 1 is null", (N + 1).is_null()),
    ("n in (1, m)", N.isin(1, M)),
    ("n not in (1)", ~N.isin(1)),
    ("n between 1 and 2 and m", N.between(1, 2) & M),
    ("n not between 1 and 2", ~N.between(1, 2)),
    ("n like 'a%'", N.like("a%")),
    ("n not rlike 'a'", ~N.rlike("a")),
    ("n ilike 'a'", Call("ilike", (N, lit("a")))),
    ("n || m", Call("concat", (N, M))),
    ("n div m", Call("div", (N, M))),
    ("UPPER(n)", Call("upper", (N,))),
    ("f()", Call("f", ())),
    ("count(*)", Call("count", (), star=True)),
    ("count(distinct n, m)", Call("count", (N, M), distinct=True)),
    ("struct(n as a, m)", Call("struct", (Alias(N, "a"), M))),
    ("cast(n as decimal(10, 2))", Cast(N, t.Decimal(10, 2))),
    ("try_cast(n as map<string,array<int>>)", Cast(N, t.Map(t.STRING, t.Array(t.INT)), True)),
    ("n::int + 1", Cast(N, t.INT) + 1),
    ("n::array<int>[0]", GetItem(Cast(N, t.Array(t.INT)), lit(0))),
    ("n.a.b", GetField(GetField(N, "a"), "b")),
    ("n.`a b`", GetField(N, "a b")),
    ("n[0].a['k']", GetItem(GetField(GetItem(N, lit(0)), "a"), lit("k"))),
    ("case when n then 1 else 2 end", Case(((N, lit(1)),), lit(2))),
    ("case n when 1 then 'a' end", Case(((N == 1, lit("a")),))),
    ("n as total", Alias(N, "total")),
    ("n AS `the total`", Alias(N, "the total")),
    ("timestamp", Column("timestamp")),
    ("date", Column("date")),
    ("interval", Column("interval")),
]


@pytest.mark.parametrize(("text", "expected"), PARSED, ids=[text for text, _ in PARSED])
def test_text_is_read_as_the_nodes_it_spells(text: str, expected: Expr) -> None:
    assert parse(text).same(expected)


@pytest.mark.parametrize("text", [text for text, _ in PARSED])
def test_sql_text_is_read_back_as_the_same_nodes(text: str) -> None:
    assert parse(to_text(parse(text))).same(parse(text))


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("1", 1, "int"),
        ("-2147483648", -2147483648, "int"),
        ("2147483648", 2147483648, "bigint"),
        ("9223372036854775808", Decimal(9223372036854775808), "decimal(19,0)"),
        ("1.50", Decimal("1.50"), "decimal(3,2)"),
        ("0.001", Decimal("0.001"), "decimal(3,3)"),
        ("1e3", 1000.0, "double"),
        ("1.5D", 1.5, "double"),
        ("1.5f", 1.5, "float"),
        ("5L", 5, "bigint"),
        ("5Y", 5, "tinyint"),
        ("7S", 7, "smallint"),
        ("2BD", Decimal(2), "decimal(1,0)"),
        ("true", True, "boolean"),
        ("NULL", None, "void"),
        ("'it''s'", "it's", "string"),
        (r"'it\'s'", "it's", "string"),
        ('"say ""hi"""', 'say "hi"', "string"),
        (r"'a\nb\\c\u00e9'", "a\nb\\cé", "string"),
        (r"'50\%'", r"50\%", "string"),
        (r"r'\d+'", r"\d+", "string"),
        ("X'0aFF'", b"\x0a\xff", "binary"),
        ("date '2024-02-29'", datetime.date(2024, 2, 29), "date"),
        ("timestamp '2024-02-29 01:00:00+01:00'", datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC), "timestamp"),
        ("interval 10 seconds", datetime.timedelta(seconds=10), "interval day to second"),
        ("interval '1' day", datetime.timedelta(days=1), "interval day"),
        ("interval 1 hour 30 minutes", datetime.timedelta(minutes=90), "interval day to second"),
        ("interval '5 minutes'", datetime.timedelta(minutes=5), "interval day to second"),
    ],
)
def test_a_literal_has_the_value_and_type_of_its_spelling(text: str, value: Any, kind: str) -> None:
    made = parse(text)
    assert isinstance(made, Literal)
    assert (made.value, type(made.value), str(made.type)) == (value, type(value), kind)
    assert parse(to_text(made)).same(made)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("n >> 3", "expected a value", 3),
        ("n +", "got the end", 3),
        ("(n + 1", "expected ')'", 6),
        ("n 5", "'5' is left over", 2),
        ("'abc", "has no end", 0),
        ("n # 2", "'#' cannot be read", 2),
        ("cast(n as nope)", "unknown type 'nope'", 10),
        ("case end", "expected a value", 5),
        ("n is 5", "after IS", 5),
        ("n not 5", "after NOT", 6),
        ("date '2024-13-01'", "is no date", 5),
        ("interval 3 moons", "units from microseconds to weeks", 0),
        ("300Y", "does not fit in tinyint", 0),
        ("n as", "expected a name", 4),
        ("n in ()", "expected a value", 6),
        ("", "got the end", 0),
    ],
)
def test_an_error_points_to_the_place(text: str, message: str, column: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    first, *rest = str(caught.value).splitlines()
    assert message in str(caught.value)
    assert rest[-1] == "  " + " " * column + "^"
    assert rest[-2] == "  " + text
    assert first.startswith("cannot read the expression")


def test_the_caret_stands_under_the_right_line() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("n > 1\n  and >")
    assert str(caught.value).endswith("    and >\n        ^")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (col("n") - -5, "n - (-5)"),
        (fn.negative(-col("n")), "-(-n)"),
        (col("select") + 1, "select + 1"),
        (col("größe"), "`größe`"),
        (col("a b").field("c d"), "`a b`.`c d`"),
        ((col("a") > 1) & (col("b") | ~col("c")), "(a > 1) AND (b OR (NOT c))"),
        (lit("it's\n"), r"'it\'s\n'"),
        (lit(float("nan")), "CAST('nan' AS double)"),
        (col("a").isin("x", "y"), "a IN ('x', 'y')"),
        (col("ts") + datetime.timedelta(seconds=90), "ts + (INTERVAL 90 SECONDS)"),
        (col("n").cast("int").alias("i"), "CAST(n AS int) AS i"),
    ],
)
def test_sql_text_needs_no_guess_about_precedence_or_quotes(expr: Expr, text: str) -> None:
    assert to_text(expr) == text


@given(st.text())
def test_any_text_survives_as_a_literal(text: str) -> None:
    read = parse(to_text(lit(text)))
    assert isinstance(read, Literal)
    assert read.value == text


@given(st.text(min_size=1))
def test_any_column_name_survives(name: str) -> None:
    assert parse(to_text(col(name))).same(col(name))


def _literals() -> st.SearchStrategy[Expr]:
    values = st.one_of(
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=5),
        st.booleans(),
        st.none(),
        st.dates(),
        st.datetimes(timezones=st.just(datetime.UTC)),
        st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-1000, max_value=1000),
        st.binary(max_size=4),
    )
    return values.map(lit)


def _larger(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    names = st.sampled_from(["+", "-", "*", "/", "%", "div", "=", "<>", "<", "<=>", "and", "or", "like", "concat"])
    return st.one_of(
        st.builds(lambda name, a, b: Call(name, (a, b)), names, inner, inner),
        st.builds(lambda name, a: Call(name, (a,)), st.sampled_from(["not", "isnull", "isnotnull", "upper"]), inner),
        st.builds(lambda a, b: Call("in", (a, b)), inner, inner),
        st.builds(lambda a: Cast(a, t.Array(t.INT)), inner),
        st.builds(GetItem, inner, inner),
        st.builds(lambda a: GetField(a, "case"), inner),
        st.builds(lambda a, b, c: Case(((a, b),), c), inner, inner, inner),
    )


@given(st.recursive(_literals() | st.sampled_from(["n", "a b", "and"]).map(Column), _larger, max_leaves=12))
def test_any_expression_is_read_back_as_it_was_written(expr: Expr) -> None:
    assert parse(to_text(expr)).same(expr)
