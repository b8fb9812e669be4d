"""Types, spelled as in Spark's DDL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import SchemaError
from penstock.graph import types as t

SIMPLE = st.sampled_from(
    [
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
    ]
).map(t.Simple)
DECIMALS = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: t.Decimal(p, s)))
NAMES = st.text(min_size=1, max_size=8)


def _nested(inner: st.SearchStrategy[t.DataType]) -> st.SearchStrategy[t.DataType]:
    fields = st.lists(st.builds(t.Field, NAMES, inner, st.booleans()), min_size=1, max_size=3)
    return inner.map(t.Array) | st.builds(t.Map, inner, inner) | fields.map(lambda f: t.Struct(tuple(f)))


TYPES: st.SearchStrategy[t.DataType] = st.recursive(SIMPLE | DECIMALS, _nested, max_leaves=6)


@given(TYPES)
def test_a_type_is_read_back_from_its_own_text(kind: t.DataType) -> None:
    assert t.parse_type(str(kind)) == kind


@pytest.mark.parametrize(
    "text, shown",
    [
        ("long", "bigint"),
        ("INTEGER", "int"),
        ("str", "string"),
        ("bytes", "binary"),
        ("timestamp_ltz", "timestamp"),
        ("decimal", "decimal(10,0)"),
        ("numeric(5)", "decimal(5,0)"),
        ("decimal( 12 , 2 )", "decimal(12,2)"),
        ("array< map<string , int> >", "array<map<string,int>>"),
        ("struct<a int, b: string not null>", "struct<a:int,b:string not null>"),
        ("struct<`odd name`:int>", "struct<`odd name`:int>"),
        ("struct<>", "struct<>"),
    ],
)
def test_other_spellings_of_a_type(text: str, shown: str) -> None:
    assert str(t.parse_type(text)) == shown


@pytest.mark.parametrize(
    "text, message",
    [
        ("strng", r"unknown type 'strng' in the schema 'strng'; did you mean 'string'"),
        ("array<int", r"expected '>', got 'its end'"),
        ("array", r"expected '<'"),
        ("map<int>", r"expected ',', got '>'"),
        ("int string", r"cannot read the type 'int string': 'string' is left over"),
        ("struct<a:int not nul>", r"NOT must be followed by NULL"),
        ("int!", r"unexpected '!'"),
        ("", r"expected more"),
    ],
)
def test_a_type_that_cannot_be_read_says_why(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        t.parse_type(text)


@pytest.mark.parametrize(
    "name, quoted", [("word", "word"), ("_a1", "_a1"), ("odd name", "`odd name`"), ("1st", "`1st`"), ("a`b", "`a``b`")]
)
def test_names_are_quoted_only_where_they_must_be(name: str, quoted: str) -> None:
    assert t.quote(name) == quoted


def test_numbers_are_the_types_arithmetic_takes() -> None:
    assert all(t.is_numeric(kind) for kind in (*t.INTEGERS, t.FLOAT, t.DOUBLE, t.Decimal(5, 2)))
    assert not any(t.is_numeric(kind) for kind in (t.STRING, t.BOOLEAN, t.DATE, t.Array(t.INT)))
