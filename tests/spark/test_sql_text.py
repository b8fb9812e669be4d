"""Spark SQL of expressions and aggregates, as text; no JVM."""

from __future__ import annotations

import pytest

from penstock.graph.aggregates.aggregate import RANKED, RECIPES
from penstock.graph.aggregates.calls import aggregate_call
from penstock.graph.expr import col, to_text
from penstock.graph.schema import schema_of
from penstock.spark.lower import sql


@pytest.mark.parametrize("word", ["table", "user", "Window", "interval"])
def test_words_that_spark_reserves_are_quoted_for_spark_alone(word: str) -> None:
    assert sql.to_sql(col(word)) == f"`{word}`"
    assert to_text(col(word)) == word


def test_every_aggregate_has_spark_sql_for_each_of_its_parts_and_for_its_result() -> None:
    recipes = {**RECIPES, "ranked": RANKED}
    assert {name: len(parts) for name, parts in sql._PARTS.items()} == {n: len(r.parts) for n, r in recipes.items()}
    assert {r.finish for r in RECIPES.values()} == set(sql._FINISH)  # ranked rows are finished in Python


def test_an_aggregate_as_parts_and_result() -> None:
    mean = aggregate_call("mean", "avg(x)").over(schema_of("x int"))
    assert sql.part_sql(mean) == [
        "cast(sum(cast(x as double)) as double) as __mean_0",
        "cast(count(x) as bigint) as __mean_1",
    ]
    assert sql.result_sql(mean) == "cast(case when __mean_1 > 0 then __mean_0 / __mean_1 end as double) as mean"
