"""Python functions in expressions: chunks of any size and form, nulls, and results that do not fit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as ps
from penstock.compiler.compile import compile_graph
from penstock.graph.expr import Expr
from penstock.kernels.base import Kernel, RecordFailed
from penstock.kernels.build import kernel_of
from penstock.kernels.records.chunk import Chunk
from penstock.testing import run_local


def kernel(call: Expr) -> tuple[Kernel, ps.Schema]:
    flow = ps.Flow("f")
    rows = flow.source("rows", ps.items([], "a bigint, b double, s string"))
    rows.select("made", c=call).sink("out", ps.console())
    graph = compile_graph(flow.graph).graph
    return kernel_of(graph.node("made@functions"), graph), rows.schema


ROWS = [(1, 0.5, "x"), (None, 1.5, None), (3, None, "z")]


def chunks(schema: ps.Schema) -> list[Chunk]:
    """The same records as rows of values, and as an Arrow batch."""
    plain = Chunk.of(schema, ROWS)
    return [plain, Chunk(schema, batch=Chunk.of(schema, ROWS).batch())]


def results(call: Expr) -> list[list[Any]]:
    made, schema = kernel(call)
    return [[row[-1] for _, out in made.take(chunk) for row in out.values()] for chunk in chunks(schema)]


def add(a: Any, b: Any) -> Any:
    return pc.add(pc.cast(a, pa.float64()), b)


def add_what_is_there(a: Any, b: Any) -> Any:
    assert a.null_count + b.null_count == 0
    return add(a, b)


def test_null_on_null_calls_with_what_is_there_alone() -> None:
    types: dict[str, Any] = {"takes": ("bigint", "double"), "returns": "double"}
    strict = ps.function(vectorized=True, null_on_null=True, **types)(add_what_is_there)
    assert results(strict("a", "b")) == [[1.5, None, None]] * 2
    assert results(strict("coalesce(a, 0)", "coalesce(b, 0.0)")) == [[1.5, 1.5, 3.0]] * 2
    assert results(ps.function(vectorized=True, **types)(add)("a", "b")) == [[1.5, None, None]] * 2

    @ps.function(null_on_null=True)
    def joined(a: int, s: str) -> str:
        return s * a

    assert results(joined("a", "s")) == [["x", None, "zzz"]] * 2


def test_the_function_gets_none() -> None:
    @ps.function
    def shown(a: int | None) -> str:
        return repr(a)

    assert results(shown("a")) == [["1", "None", "3"]] * 2


def test_arguments_are_expressions_and_constants() -> None:
    @ps.function
    def three(a: int | None, b: float, c: str = "?") -> str:
        return f"{a}{b}{c}"

    assert results(three("coalesce(a, 9) + 1", 2)) == [["22.0?", "102.0?", "42.0?"]] * 2
    assert results(three("a", 0.5, ps.lit("!"))) == [["10.5!", "None0.5!", "30.5!"]] * 2


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda a, b: [1.0] * len(a), "must return a pyarrow array, got list"),
        (lambda a, b: a, "says that it returns double, got an array of int64"),
        (lambda a, b: b.slice(1), "got 3 values and returned 2"),
    ],
)
def test_arrays_that_do_not_fit_fail_the_record(wrong: Any, says: str) -> None:
    call = ps.function(vectorized=True, takes=("bigint", "double"), returns="double", name="wrong")(wrong)
    made, schema = kernel(call("a", "b"))
    with pytest.raises(RecordFailed, match=says):
        list(made.take(chunks(schema)[0]))


def test_the_record_that_fails_is_known() -> None:
    @ps.function
    def half(b: float) -> int:
        return b  # type: ignore[return-value]  # as a user may get it wrong

    made, schema = kernel(half("coalesce(b, 2.0)"))
    with pytest.raises(RecordFailed, match=r"half says that it returns bigint, got 0.5 \(float\)") as failed:
        list(made.take(chunks(schema)[1]))
    assert failed.value.at == 0


def test_more_records_than_a_chunk_holds() -> None:
    @ps.function
    def square(a: int) -> int:
        return a * a

    @ps.function(vectorized=True, takes=["bigint"], returns="bigint")
    def less(a: Any) -> Any:
        return pc.subtract(a, 1)

    flow = ps.Flow("many", functions=[square, less])
    flow.source("rows", ps.items([], "a bigint")).where("odd", "less(square(a)) % 2 = 0").sink("out", ps.console())
    made = run_local(flow, {"rows": list(range(25_001))})["out"]
    assert [row.a for row in made] == list(range(1, 25_001, 2))
