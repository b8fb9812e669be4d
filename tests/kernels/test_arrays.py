"""Expressions by columns: what Arrow computes is what the rows are evaluated to, or it says that it cannot."""

from __future__ import annotations

import contextlib
import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.graph.expr import parse
from penstock.graph.expr.columnar import is_columnar
from penstock.graph.nodes import Output, Port, Select, Where
from penstock.graph.schema import schema_of
from penstock.kernels.base import RecordFailed
from penstock.kernels.expr.arrays import compile_arrays
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.records.arrow import arrow_schema, to_batch
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.stateless import FEW, SelectKernel, WhereKernel

SCHEMA = schema_of("a int, b bigint, s string, d date, f double, t boolean")
INTS = st.none() | st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3)
ROWS = st.lists(
    st.tuples(
        INTS,
        st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
        st.none() | st.sampled_from(["", "a", "b", "é", "\U0001f600", "\uffff"]),
        st.none() | st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)),
        st.none() | st.floats(allow_nan=False),
        st.none() | st.booleans(),
    ),
    max_size=20,
)
NUMBERS = st.sampled_from(["a", "b", "1", "cast(a as bigint)", "a + 1", "b - a", "b * 2"])
TESTS = st.one_of(
    st.builds(lambda x, op, y: f"({x} {op} {y})", NUMBERS, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), NUMBERS),
    st.sampled_from(["s < 'b'", "s >= 'é'", "d > date '2000-01-01'", "f is null", "t", "t is not null", "true"]),
)
CONDITIONS = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner), st.builds("({} or {})".format, inner, inner), inner.map("not ({})".format)
    ),
    max_leaves=5,
)  # fmt: skip


def batch_of(rows: list[Any]) -> pa.RecordBatch:
    return to_batch([list(c) for c in zip(*rows, strict=True)] or [[] for _ in SCHEMA.fields], SCHEMA)


def where(condition: str) -> WhereKernel:
    return WhereKernel(Where("w", (Port("before"),), parse(condition)).bound((Output(SCHEMA),)), SCHEMA)


def passing(kernel: WhereKernel, chunk: Chunk) -> list[Any] | int | None:
    """The rows that pass, or which row has no value."""
    try:
        ((_, kept),) = kernel.take(chunk)
    except RecordFailed as failed:
        return failed.at
    return [*kept.values()]


@settings(max_examples=300)
@given(CONDITIONS, ROWS)
def test_columns_are_what_the_rows_are_evaluated_to(text: str, rows: list[Any]) -> None:
    kernel, batch = where(text), batch_of(rows)
    assert kernel.array is not None
    columns = [list(c) for c in zip(*rows, strict=True)] or [[] for _ in SCHEMA.fields]
    by_rows = passing(kernel, Chunk(SCHEMA, columns=columns))
    assert passing(kernel, Chunk(SCHEMA, batch=batch)) == by_rows
    with contextlib.suppress(pa.ArrowInvalid):
        test = compile_expr(parse(text), SCHEMA)
        assert kernel.array(batch).to_pylist() == [test(row) for row in rows]


@settings(max_examples=100)
@given(CONDITIONS, ROWS.filter(bool), st.booleans())
def test_many_records_that_are_no_batch_are_tested_by_columns_too(text: str, rows: list[Any], as_rows: bool) -> None:
    kernel, test = where(text), compile_expr(parse(text), SCHEMA)
    many = rows * -(-FEW // len(rows))
    made = {"rows": list(many)} if as_rows else {"columns": [list(c) for c in zip(*many, strict=True)]}
    found = passing(kernel, Chunk(SCHEMA, **made))
    if isinstance(found, list):
        assert found == [row for row in many if test(row) is True]
    else:
        assert found == passing(kernel, Chunk(SCHEMA, batch=batch_of(many)))


def test_a_text_that_arrow_does_not_take_is_tested_as_a_row() -> None:
    rows: list[Any] = [(1, 2, text, None, None, None) for text in ["b", "\ud800", "a"] * FEW]
    kept = passing(where("s = 'b'"), Chunk(SCHEMA, columns=[list(c) for c in zip(*rows, strict=True)]))
    assert isinstance(kept, list)
    assert [row[2] for row in kept] == ["b"] * FEW


@pytest.mark.parametrize(
    "text", ["f > 1", "upper(s) = 'A'", "a / 2 > 1", "cast(s as int) > 1", "try_cast(b as int) > 1", "a in (1, 2)"]
)
def test_what_arrow_means_otherwise_is_left_to_the_rows(text: str) -> None:
    assert not is_columnar(parse(text), SCHEMA)
    assert compile_arrays(parse(text), SCHEMA) is None


def test_a_row_without_a_value_is_found_although_columns_do_not_say_which() -> None:
    chunk = Chunk(SCHEMA, batch=batch_of([(1, 2, "a", None, None, None), (2**31 - 1, 2, "a", None, None, None)]))
    with pytest.raises(RecordFailed) as caught:
        list(where("a + 1 > 0").take(chunk))
    assert caught.value.at == 1


def test_long_texts_of_state_are_compared_and_selected_as_others() -> None:
    wide = arrow_schema(SCHEMA).set(2, pa.field("s", pa.large_string()))
    chunk = Chunk(SCHEMA, batch=batch_of([(1, 2, "a", None, None, None), (2, 2, "b", None, None, None)]).cast(wide))
    ((_, kept),) = where("s = 'b'").take(chunk)
    assert [row[0] for row in kept.values()] == [2]
    node = Select("s", (Port("before"),), (("n", parse("a")), ("text", parse("s")))).bound((Output(SCHEMA),))
    ((_, made),) = SelectKernel(node, SCHEMA).take(kept)
    assert [*made.values()] == [(2, "b")]
    assert made.batch().schema.field("text").type == pa.string()
