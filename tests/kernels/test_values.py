"""Values inside values: a struct is held to its fields as a record is. Values that do not fit: bad records, whatever they raise."""

from __future__ import annotations

import datetime
import re
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from penstock.graph.schema import schema_of
from penstock.kernels.records.records import BadRecord, Shape

SHAPE = Shape(schema_of("at struct<a:int,b:int not null>"))
Pair = namedtuple("Pair", "a b")


@dataclass
class Both:
    a: int
    b: int


@pytest.mark.parametrize("given", [{"b": 2, "a": 1}, (1, 2), Pair(1, 2), Both(1, 2)])
def test_a_struct_is_a_dict_of_its_fields_however_it_is_given(given: Any) -> None:
    assert SHAPE.columns([{"at": given}, {"at": None}]) == [[{"a": 1, "b": 2}, None]]


@pytest.mark.parametrize(
    "given, says",
    [
        ({"a": 1, "bb": 2}, "a field 'bb' that the schema lacks; did you mean 'b'"),
        ({"a": 1, "b": 2, "c": 3}, "a field 'c' that the schema lacks"),
        ({"b": 2}, "the field 'a' is missing (write None for no value)"),
        ({"a": 1}, "the field 'b' is missing"),
        ({"a": 1, "b": None}, "'b' is declared not null, got None"),
        ((1, None), "'b' is declared not null, got None"),
        (Both(1, None), "'b' is declared not null, got None"),  # type: ignore[arg-type]  # what must be refused
    ],
)
def test_a_struct_that_does_not_fit_is_refused(given: Any, says: str) -> None:
    with pytest.raises(BadRecord, match=f"field 'at': .*{re.escape(says)}") as refused:
        SHAPE.columns([{"at": (1, 2)}, {"at": given}])
    assert refused.value.at == 1


@pytest.mark.parametrize("wrong", [([{"x": 1}], {}), ([], {"k": {"x": 1}})])
def test_the_same_holds_inside_lists_and_maps(wrong: Any) -> None:
    deep = Shape(schema_of("all array<struct<a:int>>, by map<string,struct<a:int>>"))
    with pytest.raises(BadRecord, match="a field 'x' that the schema lacks"):
        deep.columns([wrong])


class Broken:
    """An object of a user's class that raises whatever it is asked."""

    def __iter__(self) -> Iterator[Any]:
        raise KeyError("no items")

    def __index__(self) -> int:
        raise RuntimeError("no number")

    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __getattr__(self, name: str) -> Any:
        raise LookupError(name)

    def __repr__(self) -> str:
        raise RuntimeError("no text")


def nested(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


NAIVE, AWARE = datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    "kind, given, says",
    [
        ("struct<a:int,b:int>", 5, "struct<a:int,b:int> needs a dict with the fields a, b, got 5"),
        ("struct<a:int,b:int>", (1,), "struct<a:int,b:int> needs 2 values (a, b), got (1,)"),
        ("array<struct<a:int>>", [7], "struct<a:int> needs a dict with the fields a, got 7"),
        ("map<string,int>", 5, "map<string,int> needs a dict, got 5"),
        ("map<string,int>", {None: 1}, "map<string,int> has no null keys"),
        ("map<string,int>", [("a", 1), ("a", 2)], "a key of map<string,int> occurs twice"),
        ("map<timestamp,int>", {NAIVE: 1, AWARE: 2}, "a key of map<timestamp,int> occurs twice"),
        ("string", "a\ud800", r"string needs whole characters, got half of a surrogate pair in 'a\ud800'"),
        ("array<string>", ["\udc00"], "half of a surrogate pair"),
        ("map<string,string>", {"\udc00": "a"}, "half of a surrogate pair"),
        ("decimal(10,2)", Decimal("1e100"), "Decimal('1E+100') is outside the range of decimal(10,2)"),
        ("decimal(10,2)", Decimal("Infinity"), "Decimal('Infinity') is outside the range of decimal(10,2)"),
        ("int", 1 << 20_000, "<int, whose repr raises ValueError> is outside the range of int"),
        ("int", nested(2000), "int needs a whole number, got <list, whose repr raises RecursionError>"),
        ("string", nested(2000), "string needs a str, got <list, whose repr raises RecursionError>"),
        ("string", b"x" * 1000, "... (1003 characters)"),
        *(
            (t, Broken(), "<Broken, whose repr raises RuntimeError>")
            for t in ("int", "float", "array<int>", "struct<a:int>")
        ),
    ],
    ids=lambda given: given if isinstance(given, str) and given.isascii() else type(given).__name__,
)
def test_a_value_of_another_kind_is_a_bad_record_whatever_its_class_raises(kind: str, given: Any, says: str) -> None:
    with pytest.raises(BadRecord) as refused:
        Shape(schema_of({"v": kind})).columns([{"v": None}, {"v": given}])
    assert str(refused.value).startswith("field 'v': ")
    assert says in str(refused.value)
    assert refused.value.at == 1


def test_texts_of_all_characters_are_taken_in_columns() -> None:
    column = ["", None, "\x00", "ü", "\U0001f642", "\ufffe"]
    assert Shape(schema_of("v string")).columns([{"v": text} for text in column]) == [column]
