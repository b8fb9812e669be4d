"""Schemas, from whatever the user finds handy."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import SchemaError
from penstock.graph import types as t
from penstock.graph.schema import Schema, returned_schema, schema_of, type_of


@dataclasses.dataclass
class Post:
    user: str
    tags: list[str]
    score: float | None = None


class Pair(NamedTuple):
    word: str
    n: int


class Row(TypedDict):
    word: str
    at: datetime.datetime


@pytest.mark.parametrize(
    "given, ddl",
    [
        ("word string, n bigint", "word string, n bigint"),
        ("word: string not null", "word string not null"),
        ("`odd name` int", "`odd name` int"),
        ({"word": str, "n": "int"}, "word string, n int"),
        (Post, "user string, tags array<string>, score double"),
        (Pair, "word string, n bigint"),
        (Row, "word string, at timestamp"),
        (schema_of("a int"), "a int"),
    ],
)
def test_a_schema_comes_from_many_forms(given: Any, ddl: str) -> None:
    assert str(schema_of(given)) == ddl


def test_a_class_that_can_be_made_again_is_the_record_of_its_schema() -> None:
    assert schema_of(Post).record is Post
    assert schema_of(Pair).record is Pair
    assert schema_of(Row).record is None
    assert schema_of("a int").record is None


@pytest.mark.parametrize(
    "hint, kind",
    [
        (str, "string"),
        (int, "bigint"),
        (float, "double"),
        (bool, "boolean"),
        (bytes, "binary"),
        (datetime.datetime, "timestamp"),
        (datetime.date, "date"),
        (decimal.Decimal, "decimal(38,18)"),
        (list[int], "array<bigint>"),
        (tuple[str, ...], "array<string>"),
        (set[Optional[int]], "array<bigint>"),  # noqa: UP045 - the old spelling is read as well
        (dict[str, float | None], "map<string,double>"),
        (Pair, "struct<word:string,n:bigint>"),
        ("map<string,int>", "map<string,int>"),
        (t.INT, "int"),
    ],
)
def test_annotations_stand_for_types(hint: Any, kind: str) -> None:
    assert str(type_of(hint)) == kind


class Plain:
    word: str


@pytest.mark.parametrize(
    "given, message",
    [
        ("", r"a schema needs at least one field: 'name type, ...', got an empty text"),
        ({}, r"a schema needs at least one field"),
        (3, r"a schema is DDL text .*got 3"),
        (str, r"a schema is DDL text"),
        (Plain, r"class Plain has no fields; a schema needs a dataclass"),
        ({"word": object}, r"field 'word': no stream type for <class 'object'>"),
        ({"word": int | str}, r"field 'word': no stream type for int \| str"),
        ("word strng", r"unknown type 'strng' in the schema 'word strng'; did you mean 'string'"),
        ("word", r"cannot read the schema 'word': expected more, got 'its end'"),
        ("a int b int", r"expected ',', got 'b'"),
        ("a int, A string", r"field 'A' appears twice in the schema"),
        ("__a int", r"field '__a': names that begin with two underscores are Penstock's own"),
    ],
)
def test_a_schema_that_cannot_be_says_why(given: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        schema_of(given)


FIELDS = st.lists(
    st.builds(
        t.Field,
        st.text("abcxyz _`1", min_size=1, max_size=6).filter(lambda n: not n.startswith("__")),
        st.sampled_from([t.INT, t.STRING, t.Array(t.DOUBLE), t.Decimal(9, 2)]),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda f: f.name.lower(),
)


@given(FIELDS)
def test_a_schema_is_read_back_from_its_own_text(fields: list[t.Field]) -> None:
    schema = Schema(tuple(fields))
    assert schema_of(str(schema)) == schema


def test_fields_are_found_by_name() -> None:
    schema = schema_of("word string, n bigint")
    assert schema.field("n").type == t.BIGINT
    assert "n" in schema
    assert "m" not in schema
    assert str(schema.only(("n",))) == "n bigint"
    with pytest.raises(SchemaError, match=r"no field 'wrod'; did you mean 'word'\? \(there are: 'word', 'n'\)"):
        schema.field("wrod")


def test_new_fields_replace_those_of_their_name_and_come_last_otherwise() -> None:
    made = schema_of("a int, b int").with_fields((t.Field("c", t.STRING), t.Field("a", t.DOUBLE)))
    assert str(made) == "a double, b int, c string"


def test_types_are_equal_whatever_may_be_null() -> None:
    assert schema_of("a int").types_equal(schema_of("a int not null"))
    assert not schema_of("a int").types_equal(schema_of("a bigint"))
    assert not schema_of("a int, b int").types_equal(schema_of("b int, a int"))


def one() -> Post: ...  # type: ignore[empty-body]
def several() -> Iterator[Pair]: ...  # type: ignore[empty-body]
def text() -> str: ...  # type: ignore[empty-body]
def lost() -> Nowhere: ...  # type: ignore[name-defined]  # noqa: F821
def silent(): ...  # type: ignore[no-untyped-def]


def test_return_annotations_tell_schemas() -> None:
    assert returned_schema(one, many=False) == schema_of(Post)
    assert returned_schema(several, many=True) == schema_of(Pair)


@pytest.mark.parametrize(
    "function, many",
    [(one, True), (several, False), (text, False), (lost, False), (silent, False), (len, False), (lambda r: r, True)],
)
def test_other_annotations_tell_nothing(function: Any, many: bool) -> None:
    assert returned_schema(function, many=many) is None
