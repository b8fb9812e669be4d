"""Expressions run in Python; tests/same compares them with Spark."""

from __future__ import annotations

import datetime
import math
from collections import UserDict
from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import NotYet
from penstock.graph.expr import FUNCTIONS, col, parse, sql
from penstock.graph.schema import schema_of
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.expr.functions import LAZY, PLAIN, TYPED

UTC = datetime.UTC


def run(text: str, schema: str = "id bigint", *row: Any) -> Any:
    """The value of the text over one row."""
    return compile_expr(parse(text), schema_of(schema))(row or (0,))


@pytest.mark.parametrize("a", [True, False, None])
@pytest.mark.parametrize("b", [True, False, None])
def test_logic_has_three_values(a: bool | None, b: bool | None) -> None:
    unknown = None in (a, b)
    both = False if False in (a, b) else None if unknown else True
    either = True if True in (a, b) else None if unknown else False
    schema = "a boolean, b boolean"
    assert run("a and b", schema, a, b) is both
    assert run("a or b", schema, a, b) is either
    assert run("not a", schema, a, b) is (None if a is None else not a)
    assert run("a = b", schema, a, b) is (None if unknown else a == b)
    assert run("a <=> b", schema, a, b) is (a is b)


def test_the_right_side_is_not_asked_when_the_left_decides() -> None:
    schema = "n int"
    assert run("n = 0 or 1 / n > 1", schema, 0) is True
    assert run("n <> 0 and 1 / n > 1", schema, 0) is False
    assert run("if(n = 0, null, 1 / n)", schema, 0) is None
    assert run("case when n = 0 then -1 else 1 / n end", schema, 0) == -1
    assert run("coalesce(n, 1 div 0)", schema, 0) == 0


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("2147483647 + id::int + 1", OverflowError, "does not fit in int"),
        ("9223372036854775807 + id + 1", OverflowError, "does not fit in bigint"),
        ("1 / id", ZeroDivisionError, "division by zero"),
        ("1 div id", ZeroDivisionError, "division by zero"),
        ("1 % id", ZeroDivisionError, "division by zero"),
        ("cast('x' as int)", ValueError, "'x' cannot be cast to int"),
        ("cast('2024-13-01' as date)", ValueError, "cannot be cast to date"),
        ("cast(300 as tinyint)", OverflowError, "does not fit in tinyint"),
        ("array(1)[id + 1]", IndexError, "out of bounds"),
        ("element_at(array(1), 0)", IndexError, "counts from 1"),
        ("'a' rlike '('", ValueError, "cannot be read"),
        ("to_date('x', 'yyyy')", ValueError, "does not follow the pattern"),
    ],
)
def test_what_does_not_fit_raises(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        run(text)


class _Tuple(NamedTuple):
    a: int
    b: str


@dataclass
class _Data:
    a: int
    b: str


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1, "b": "x"},
        UserDict({"a": 1, "b": "x"}),
        _Tuple(1, "x"),
        _Data(1, "x"),
        SimpleNamespace(a=1, b="x"),
        (1, "x"),
    ],
    ids=["dict", "mapping", "named tuple", "dataclass", "object", "tuple"],
)
def test_a_struct_may_be_a_mapping_an_object_or_a_tuple(value: Any) -> None:
    schema = "s struct<a:int,b:string>, l array<struct<a:int,b:string>>"
    assert run("s.a + 1", schema, value, []) == 2
    assert run("s", schema, value, []) == {"a": 1, "b": "x"}
    assert run("l[0].b", schema, None, [value]) == "x"
    assert run("l", schema, None, (value,)) == [{"a": 1, "b": "x"}]
    assert run("s = l[0]", schema, value, [value]) is True


def test_a_missing_struct_gives_missing_fields() -> None:
    schema = "s struct<a:int,b:struct<c:int>>"
    assert run("s.b.c", schema, None) is None
    assert run("s.b.c", schema, {"a": 1, "b": None}) is None


def test_a_map_may_come_as_pairs() -> None:
    assert run("m['b']", "m map<string,int>", [("a", 1), ("b", 2)]) == 2


def test_times_without_a_zone_count_as_utc_and_others_are_turned() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=5))
    schema = "ts timestamp"
    assert run("ts", schema, datetime.datetime(2024, 1, 1)) == datetime.datetime(2024, 1, 1, tzinfo=UTC)
    assert run("hour(ts)", schema, datetime.datetime(2024, 1, 1, 7, tzinfo=zone)) == 2
    assert run("cast(ts as string)", schema, datetime.datetime(2024, 1, 1, 7, tzinfo=zone)) == "2024-01-01 02:00:00"
    nested = run("s.t", "s struct<t:timestamp>", {"t": datetime.datetime(2024, 1, 1)})
    assert nested.tzinfo is UTC


def test_values_take_the_shape_of_their_type() -> None:
    assert str(run("p", "p decimal(10,2)", Decimal("1.5"))) == "1.50"
    assert run("f", "f float", 0.1) == pytest.approx(0.1, rel=1e-7)
    assert run("f = 0.1", "f float", 0.1) is False
    assert run("cast(f as string)", "f float", 0.1) == "0.1"


def test_decimals_keep_all_their_digits() -> None:
    wide = Decimal("12345678901234567890123456789.123456789")
    assert run("-p", "p decimal(38,9)", wide) == wide.copy_negate()
    assert run("abs(p)", "p decimal(38,9)", wide.copy_negate()) == wide


def test_what_only_spark_can_run_is_named() -> None:
    with pytest.raises(NotYet, match="hypot"):
        compile_expr(sql("hypot(n, 1)", "double", ["n"]) + 1, schema_of("n int"))
    with pytest.raises(NotYet, match=r"\\p\{L\}"):
        run(r"'a' rlike '\\p{L}'")
    with pytest.raises(NotYet, match="wildcard"):
        run("get_json_object('{}', '$[*]')")


def test_every_function_of_the_table_runs_here() -> None:
    assert {f.name for f in FUNCTIONS.values()} == {*PLAIN, *TYPED, *LAZY}
    assert not set(PLAIN) & set(TYPED)
    assert not set(LAZY) & {*PLAIN, *TYPED}


def test_nan_equals_itself_and_is_above_all() -> None:
    schema = "x double"
    assert run("x = x", schema, math.nan) is True
    assert run("x > 1e308", schema, math.nan) is True
    assert run("x in (1.0, x)", schema, math.nan) is True
    assert run("greatest(x, 1D)", schema, math.nan) != 1.0


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1))
def test_whole_numbers_divide_towards_zero_and_add_up(a: int, b: int) -> None:
    schema = schema_of("a bigint, b bigint")
    row = (a, b or 1)
    quotient = compile_expr(parse("a div b"), schema)(row)
    rest = compile_expr(parse("a % b"), schema)(row)
    assert quotient * row[1] + rest == a
    assert abs(rest) < abs(row[1])
    assert rest == 0 or (rest < 0) == (a < 0)
    assert 0 <= compile_expr(parse("pmod(a, abs(b))"), schema)(row) < abs(row[1])


@given(st.datetimes(), st.sampled_from(["year", "quarter", "month", "week", "day", "hour", "minute", "second"]))
def test_a_cut_time_is_never_later_and_cutting_again_changes_nothing(moment: datetime.datetime, unit: str) -> None:
    if unit == "week" and moment.year == 1:
        return
    schema = schema_of("ts timestamp")
    cut = compile_expr(parse(f"date_trunc('{unit}', ts)"), schema)
    once = cut((moment,))
    assert once <= moment.replace(tzinfo=UTC)
    assert cut((once,)) == once


@given(st.text(), st.integers(-20, 20), st.integers(-5, 20))
def test_a_substring_is_a_part_of_the_text(text: str, start: int, length: int) -> None:
    part = compile_expr(parse("substring(t, a, b)"), schema_of("t string, a int, b int"))((text, start, length))
    assert part in text
    assert len(part) <= max(length, 0)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_survives_as_text(value: float) -> None:
    again = compile_expr(parse("cast(cast(x as string) as double)"), schema_of("x double"))((value,))
    assert again == value


def test_a_constant_part_is_computed_once() -> None:
    made = compile_expr(col("d") > parse("cast('2024-01-01' as date)"), schema_of("d date"))
    assert made((datetime.date(2024, 1, 2),)) is True
    assert made((None,)) is None
