"""Values inside values: a struct is held to its fields as a record is."""

from __future__ import annotations

import re
from collections import namedtuple
from dataclasses import dataclass
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
