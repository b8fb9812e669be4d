"""Types of expressions, and the errors of those that have none."""

from __future__ import annotations

import pytest

from penstock.errors import ExpressionError
from penstock.graph.expr import columns_of, name_of, parse, sql, type_of_expr, when
from penstock.graph.schema import schema_of

SCHEMA = schema_of(
    "n int, big bigint, price decimal(10,2), x double, f float, word string, ok boolean, ts timestamp, day date, "
    "s struct<a:int,b:struct<c:string>>, list array<int>, m map<string,double>"
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("n + 1", "int"),
        ("n + big", "bigint"),
        ("n / 2", "double"),
        ("n div 2", "bigint"),
        ("n + f", "double"),
        ("f + f", "float"),
        ("price + 1", "decimal(11,2)"),
        ("price + n", "decimal(13,2)"),
        ("price * price", "decimal(21,4)"),
        ("price / 3", "decimal(14,6)"),
        ("price * x", "double"),
        ("word + 1", "bigint"),
        ("n > '3'", "boolean"),
        ("coalesce(n, price)", "decimal(12,2)"),
        ("coalesce(word, 1)", "bigint"),
        ("case when ok then n else big end", "bigint"),
        ("if(ok, null, 'x')", "string"),
        ("ts + interval 10 seconds", "timestamp"),
        ("day + 1", "date"),
        ("day + interval 1 hour", "timestamp"),
        ("s.b.c", "string"),
        ("s['a']", "int"),
        ("list[0]", "int"),
        ("m['k']", "double"),
        ("m.k", "double"),
        ("struct(n, word as w, n + 1)", "struct<n:int,w:string,col3:int>"),
        ("array(n, big)", "array<bigint>"),
        ("split(word, ',')", "array<string>"),
        ("upper(word) as w", "string"),
        ("round(price, 1)", "decimal(10,1)"),
        ("null", "void"),
    ],
)
def test_the_type_is_sparks(text: str, kind: str) -> None:
    assert str(type_of_expr(parse(text), SCHEMA)) == kind


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("wrod", ["no column 'wrod'", "did you mean 'word'"]),
        ("uper(word)", ["unknown function 'uper'", "did you mean 'upper'", 'ps.sql("uper(word)", type="...")']),
        ("upper()", ["upper takes 1 arguments, got 0"]),
        ("concat_ws()", ["at least 1"]),
        ("locate(word)", ["2 to 3"]),
        ("upper(list)", ["upper(list)", "argument 1 must be string", "got array<int>"]),
        ("word + word", ["one side must be a number"]),
        ("ok + 1", ["side 1 must be a number, got boolean"]),
        ("n and ok", ["must be boolean, got int"]),
        ("not n", ["int is no boolean"]),
        ("ts - ts", ["unix_timestamp"]),
        ("s.zz", ["no field 'zz'", "'a', 'b'"]),
        ("n.x", ["only a struct has fields, got int"]),
        ("n[0]", ["needs an array or a map"]),
        ("list['a']", ["must be a whole number, got string"]),
        ("cast(list as int)", ["array<int> cannot become int"]),
        ("case when n then 1 end", ["a condition must be boolean, got int"]),
        ("case when ok then 1 else list end", ["must share a type, got int, array<int>"]),
        ("ok = 1", ["must share a type"]),
        ("m = m", ["maps cannot be compared"]),
        ("sum(n)", ["sum is an aggregate", "aggregate()"]),
        ("1 + count(*)", ["count(*): count is an aggregate"]),
        ("round(n, big)", ["constant whole number"]),
    ],
)
def test_an_error_says_what_must_hold_and_what_came(text: str, parts: list[str]) -> None:
    with pytest.raises(ExpressionError) as caught:
        type_of_expr(parse(text), SCHEMA)
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_raw_sql_has_the_type_it_was_given_and_needs_its_inputs() -> None:
    raw = sql("hypot(n, x)", type="double", inputs=["n", "x"])
    assert str(type_of_expr(raw, SCHEMA)) == "double"
    with pytest.raises(ExpressionError, match="no column 'zz'"):
        type_of_expr(sql("f(zz)", "int", ["zz"]), SCHEMA)


def test_columns_are_found_wherever_they_stand() -> None:
    text = "case when n > 1 then upper(word) else s.b.c end || list[big] || cast(m[word] as string)"
    assert columns_of(parse(text)) == {"n", "word", "s", "list", "big", "m"}
    assert columns_of(sql("f(n)", "int", "n")) == {"n"}
    assert columns_of(when("n > 1", parse("x"))) == {"n", "x"}


@pytest.mark.parametrize(
    ("text", "name"),
    [("n", "n"), ("s.b.c", "c"), ("n + 1 as m", "m"), ("n+1", "n + 1"), ("upper(word)", "upper(word)")],
)
def test_the_name_is_the_alias_the_column_the_field_or_the_text(text: str, name: str) -> None:
    assert name_of(parse(text)) == name
