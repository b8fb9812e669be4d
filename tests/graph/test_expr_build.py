"""Expressions built in Python."""

from __future__ import annotations

import datetime
import pickle
import subprocess
import sys
from decimal import Decimal

import pytest

from penstock.errors import ExpressionError
from penstock.graph.expr import (
    FUNCTIONS,
    Alias,
    Call,
    Column,
    Expr,
    Literal,
    as_expr,
    col,
    expr,
    fn,
    lit,
    parse,
    sql,
    to_text,
    when,
)


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (col("n") + 1, "n + 1"),
        (1 + col("n"), "1 + n"),
        (2 - col("n") * 3, "2 - n * 3"),
        (10 / col("n") % 2, "10 / n % 2"),
        (-col("n"), "-n"),
        ((col("n") > 1) & (col("n") <= 5) | ~(col("m") == "x"), "n > 1 and n <= 5 or not m = 'x'"),
        (col("n").is_null(), "n is null"),
        (col("n").isin([1, 2]), "n in (1, 2)"),
        (col("n").between(1, 2), "n between 1 and 2"),
        (col("w").like("a%"), "w like 'a%'"),
        (col("s").field("a")[0]["k"], "s.a[0]['k']"),
        (col("n").cast("int"), "cast(n as int)"),
        (col("n").cast(float), "cast(n as double)"),
        (fn.upper(col("w")), "upper(w)"),
        (fn.concat_ws("-", col("a"), col("b")), "concat_ws('-', a, b)"),
        (fn.if_(col("a"), 1, 2), "if(a, 1, 2)"),
        (fn.count(), "count(*)"),
        (fn.count_distinct(col("a")), "count(distinct a)"),
        (
            when(col("a") > 1, "x").when("a < 0", "y").otherwise(None),
            "case when a>1 then 'x' when a<0 then 'y' else null end",
        ),
        (fn.upper(when("a", "x")), "upper(case when a then 'x' end)"),
        (expr("a + 1 as b"), "a + 1 as b"),
        (lit([1, 2]), "array(1, 2)"),
    ],
)
def test_what_is_built_is_what_the_text_says(built: Expr, text: str) -> None:
    assert built.same(parse(text))
    assert to_text(built) == to_text(parse(text))


def test_constants_take_sparks_types() -> None:
    given = [1, 2**40, 2**70, 1.5, "a", b"a", True, None, Decimal("1.20"), datetime.date(2024, 1, 1)]
    kinds = [str(made.type) for value in given if isinstance(made := lit(value), Literal)]
    assert " ".join(kinds) == "int bigint decimal(22,0) double string binary boolean void decimal(3,2) date"


def test_a_naive_time_is_taken_as_utc_and_another_zone_is_turned() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    naive, aware = lit(datetime.datetime(2024, 1, 1, 10)), lit(datetime.datetime(2024, 1, 1, 12, tzinfo=zone))
    assert naive.same(aware)
    assert to_text(aware) == "TIMESTAMP '2024-01-01 10:00:00Z'"


def test_a_truth_value_is_refused_with_the_way_out() -> None:
    with pytest.raises(ExpressionError, match=r"write & \| ~"):
        bool(col("n") > 1)
    with pytest.raises(ExpressionError, match=r"write & \| ~"):
        _ = 1 < col("n") < 3
    with pytest.raises(ExpressionError, match="isin"):
        _ = 1 in col("n")
    with pytest.raises(ExpressionError, match="looped"):
        list(col("n"))


def test_same_compares_structure_and_tells_types_apart() -> None:
    assert (col("n") + 1).same(col("n") + 1)
    assert not lit(1).same(lit(True))
    assert not lit(1).same(lit(1.0))
    assert not col("n").same("n")
    assert hash(col("n") + 1) == hash(col("n") + 1)
    assert len({(col("n") + 1).shape(), (col("n") + 1).shape(), (col("n") + 2).shape()}) == 2


def test_an_alias_replaces_an_alias() -> None:
    assert col("n").alias("a").alias("b").same(Alias(Column("n"), "b"))


def test_as_expr_reads_texts_and_keeps_nodes() -> None:
    node = col("n")
    assert as_expr(node) is node
    assert as_expr("n > 3").same(node > 3)
    with pytest.raises(ExpressionError, match=r"lit\(3\)"):
        as_expr(3)


def test_functions_are_listed_and_unknown_ones_name_the_nearest() -> None:
    assert {"upper", "coalesce", "date_trunc", "sum", "count_distinct"} <= set(dir(fn))
    assert not {"and", "+", "in", "not"} & set(dir(fn))
    with pytest.raises(AttributeError, match="did you mean 'upper'"):
        _ = fn.uper


def test_a_function_of_plain_texts_alone_asks_what_is_meant() -> None:
    with pytest.raises(ExpressionError, match=r"col\('word'\)"):
        fn.upper("word")
    assert fn.upper(lit("word")).same(parse("upper('word')"))


def test_what_cannot_be_a_constant_is_refused() -> None:
    with pytest.raises(ExpressionError, match="cannot be a constant"):
        lit(object())
    with pytest.raises(ExpressionError, match="at most 38"):
        lit(Decimal(10) ** 40)
    with pytest.raises(ExpressionError, match="at least one value"):
        col("n").isin()


def test_expressions_can_travel() -> None:
    built = when(col("n") > 1, fn.upper(col("w"))).otherwise(sql("f(w)", "string", ["w"]))
    assert pickle.loads(pickle.dumps(built)).same(built)


def test_every_function_takes_a_sensible_number_of_arguments() -> None:
    assert all(f.most is None or f.least <= f.most for f in FUNCTIONS.values())
    assert isinstance(fn.greatest(1, col("n")), Call)


def test_expressions_load_nothing_heavy() -> None:
    code = (
        "import sys, penstock.graph.expr, penstock.kernels.expr.evaluate;"
        "print([m for m in ('pyspark', 'pyarrow', 'numpy', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
