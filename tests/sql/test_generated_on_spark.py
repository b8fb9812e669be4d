"""Some generated queries on Spark: many in one flow, over bounded data, with the answers of DuckDB."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.local.net_table import NetTable
from penstock.spark.run import run_bounded
from tests.sql.generator import DUCK_TYPES, SCHEMAS, TYPES, Generator, rows
from tests.sql.oracle import answered, multiset, oracle
from tests.sql.test_generated import FEATURES, is_nothing

MANY = 24
SEED = 20260503


def taking(found: list[Any]) -> Callable[[list[Any], object], None]:
    """A sink that keeps the rows it gets."""
    return lambda given, _: found.extend(given)


@pytest.mark.spark
def test_generated_queries_answer_alike_on_spark(penstock_spark: SparkSession) -> None:
    """One statement set, so that Spark plans and runs them together."""
    chance = random.Random(SEED)
    data = {table: rows(table, chance, 40) for table in SCHEMAS}
    schemas = {table: ", ".join(f"{c} {TYPES[k]}" for c, k in columns) for table, columns in SCHEMAS.items()}
    duck = oracle({t: ([(c, DUCK_TYPES[k]) for c, k in SCHEMAS[t]], data[t]) for t in SCHEMAS})
    queries = [Generator(chance, FEATURES).query() for _ in range(MANY)]
    found: list[list[Any]] = [[] for _ in queries]
    sinks = {f"out{at}": ps.callback(taking(found[at])) for at in range(MANY)}
    text = ";".join(f"INSERT INTO out{at} {query}" for at, query in enumerate(queries))
    graph = ps.sql_flow(text, {t: ps.items(data[t], schemas[t]) for t in SCHEMAS} | sinks).graph
    run_bounded(graph, penstock_spark)
    for at, query in enumerate(queries):
        net = NetTable.of(graph, f"out{at}")
        net.take(found[at])
        got, wanted = multiset(net.rows()), answered(duck, query)
        assert got == wanted or (not got and is_nothing(wanted)), (query, got - wanted, wanted - got)
