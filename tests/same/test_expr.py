"""Every expression gives the same values, types and errors in Python as on Spark."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from penstock.graph.expr import FUNCTIONS, Call, Expr, parse, type_of_expr
from penstock.graph.schema import Schema, schema_of
from penstock.kernels.expr.evaluate import compile_expr
from penstock.spark.lower.sql import to_sql
from tests.conftest import compiled
from tests.same.expr_cases import ANALYSIS_ERRORS, RUNTIME_ERRORS, SUITES, Suite

pytestmark = pytest.mark.spark

Answer = tuple[str, list[Any]] | Exception


@pytest.fixture(scope="module")
def spark(penstock_spark: Any) -> Iterator[Any]:
    """The session of all tests, which compiles the expressions."""
    with compiled(penstock_spark) as session:
        yield session


@pytest.fixture(scope="module")
def answers(spark: Any) -> dict[tuple[str, str], Answer]:
    """What Spark says to every expression of every suite."""
    found: dict[tuple[str, str], Answer] = {}
    for name, suite in SUITES.items():
        found.update({(name, text): answer for text, answer in _ask(spark, suite).items()})
    return found


def _ask(spark: Any, suite: Suite) -> dict[str, Answer]:
    """One select for all; one each when that fails, so that the culprit shows."""
    frame = spark.createDataFrame(suite.rows, _ddl(suite.schema))
    try:
        return _select(frame, suite.expressions)
    except Exception:
        return {text: _select_one(frame, text) for text in suite.expressions}


def _select_one(frame: Any, text: str) -> Answer:
    try:
        return _select(frame, (text,))[text]
    except Exception as error:
        return error


def _select(frame: Any, texts: tuple[str, ...]) -> dict[str, Answer]:
    made = frame.selectExpr(*[f"{to_sql(parse(text))} AS c{index}" for index, text in enumerate(texts)])
    rows = made.collect()
    kinds = [field.dataType.simpleString() for field in made.schema]
    return {
        text: (kinds[index], [_plain(row[index], kinds[index]) for row in rows]) for index, text in enumerate(texts)
    }


def _ddl(schema: Schema) -> str:
    return str(schema)


def _plain(value: Any, kind: str) -> Any:
    """A value that Spark gave, in the form the evaluator uses; pyspark gives timestamps in local time."""
    if hasattr(value, "asDict"):
        return {name: _plain(part, kind) for name, part in value.asDict().items()}
    if isinstance(value, list):
        return [_plain(part, kind) for part in value]
    if isinstance(value, dict):
        return {key: _plain(part, kind) for key, part in value.items()}
    if isinstance(value, datetime.datetime) and kind != "timestamp_ntz":
        return value.astimezone(datetime.UTC)
    return bytes(value) if isinstance(value, bytearray) else value


def _same(mine: Any, theirs: Any) -> bool:
    """Equal in type and value; a float may be off by its last bit."""
    if type(mine) is not type(theirs):
        return False
    if isinstance(mine, float):
        if math.isnan(mine) or math.isnan(theirs) or math.isinf(mine):
            return repr(mine) == repr(theirs)
        return abs(mine - theirs) <= math.ulp(theirs) and math.copysign(1, mine) == math.copysign(1, theirs)
    if isinstance(mine, Decimal):
        return bool(mine == theirs) and mine.is_signed() == theirs.is_signed()
    if isinstance(mine, list):
        return len(mine) == len(theirs) and all(map(_same, mine, theirs))
    if isinstance(mine, dict):
        return list(mine) == list(theirs) and all(_same(mine[key], theirs[key]) for key in mine)
    return bool(mine == theirs)


CASES = [(name, text) for name, suite in SUITES.items() for text in suite.expressions]


@pytest.mark.parametrize(("suite", "text"), CASES, ids=[f"{name}: {text}" for name, text in CASES])
def test_values_and_types_are_equal(answers: dict[tuple[str, str], Answer], suite: str, text: str) -> None:
    """The value of each row and the type of the result are Spark's."""
    answer = answers[suite, text]
    if isinstance(answer, Exception):
        pytest.fail(f"Spark refused {to_sql(parse(text))}: {answer}"[:600])
    kind, values = answer
    schema = SUITES[suite].schema
    assert str(type_of_expr(parse(text), schema)) == kind
    run = compile_expr(parse(text), schema)
    mine = [run(row) for row in SUITES[suite].rows]
    assert all(map(_same, mine, values)), f"here: {mine!r}\nSpark: {values!r}"


@pytest.mark.parametrize("text", RUNTIME_ERRORS)
def test_what_spark_refuses_on_a_row_raises_here(spark: Any, text: str) -> None:
    """Overflow, division by zero and bad casts are errors on both sides, and both sides agree on the type."""
    schema = schema_of("id bigint")
    frame = spark.range(1).selectExpr(f"{to_sql(parse(text))} AS value")
    assert frame.schema[0].dataType.simpleString() == str(type_of_expr(parse(text), schema))
    with pytest.raises(Exception, match=r"\["):
        frame.collect()
    with pytest.raises((ArithmeticError, ValueError, LookupError)):
        compile_expr(parse(text), schema)((0,))


@pytest.mark.parametrize("text", ANALYSIS_ERRORS)
def test_what_spark_cannot_type_is_refused_here(spark: Any, text: str) -> None:
    """What Spark's analysis refuses is refused while the flow is built."""
    from penstock.errors import ExpressionError

    with pytest.raises(Exception, match=r"\["):
        spark.range(1).selectExpr(to_sql(parse(text)))
    with pytest.raises(ExpressionError):
        type_of_expr(parse(text), schema_of("id bigint"))


def test_every_function_has_a_case() -> None:
    """No function is in the table without having been compared."""
    used = {name for _, text in CASES for name in _calls(parse(text))}
    assert {name for name in FUNCTIONS if name not in used} == set()


def _calls(expr: Expr) -> set[str]:
    here = {expr.name} if isinstance(expr, Call) else set()
    return here.union(*(_calls(child) for child in expr.children()))
