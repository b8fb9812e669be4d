"""standing-queries: 5,000 standing queries that differ in constants against 10, on the local host and on Spark.

    penstock bench standing-queries

All queries have two shapes: totals of one user, and orders of one shop above an amount. The same records go through both sets.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, best, folder, spark_session
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph
from penstock.testing import run_local

NAME = "standing-queries"
ABOUT = "5,000 standing queries that differ in constants: at most 3 times the time of 10"
FEW, MANY = 10, 5_000
SCHEMA = "who string, shop bigint, amount bigint"
USERS, SHOPS = 50_000, 20_000


def statements(many: int) -> str:
    """Queries of two shapes in turns."""
    roll = random.Random(3).randrange
    totals = "SELECT who, sum(amount) AS total FROM orders WHERE who = 'u{}' GROUP BY who INTO totals"
    found = "SELECT who, amount FROM orders WHERE shop = {} AND amount > {} INTO alerts"
    made = (totals.format(roll(USERS)) if at % 2 else found.format(roll(SHOPS), roll(100)) for at in range(many))
    return ";\n".join(f"CREATE STANDING QUERY q{at} AS {text}" for at, text in enumerate(made))


def records(many: int) -> list[tuple[str, int, int]]:
    """Orders."""
    roll = random.Random(1).randrange
    return [(f"u{roll(USERS)}", roll(SHOPS), roll(100)) for _ in range(many)]


def graph(many: int, orders: Any, sink: Any) -> Graph:
    """The flow."""
    return ps.sql_flow(statements(many), {"orders": orders, "totals": sink, "alerts": sink}).graph


def local(many: int, given: list[tuple[str, int, int]]) -> Callable[[], object]:
    """A run on the local host."""
    flow = graph(many, ps.items([], SCHEMA), ps.console())
    return lambda: run_local(flow, {"orders": given})


def run(quick: bool = False) -> Result:
    """Measures both hosts; the flows are planned before the time is taken."""
    from penstock.spark.run import run_bounded

    given, copies = records(50_000 if quick else 200_000), 2 if quick else 10
    taken = best(alternate({"few": local(FEW, given), "many": local(MANY, given)}, rounds=3))
    spark = spark_session()
    with folder() as directory:
        path = f"{directory}/orders"
        frame = spark.createDataFrame(given, SCHEMA)
        frame.crossJoin(spark.range(copies)).drop("id").repartition(4).write.parquet(path)
        made = {
            f"spark_{name}": graph(many, ps.files(path, "parquet", SCHEMA), nothing())
            for name, many in (("few", FEW), ("many", MANY))
        }
        taken |= best(alternate({name: partial(run_bounded, each, spark) for name, each in made.items()}, rounds=3))
    figures = {f"{name}_seconds": seconds for name, seconds in taken.items()}
    bars = (
        Bar("5,000 queries over 10, local", taken["many"] / taken["few"], at_most=3),
        Bar("5,000 queries over 10, Spark", taken["spark_many"] / taken["spark_few"], at_most=3),
    )
    return Result(NAME, {"records": len(given), "spark_records": len(given) * copies, **figures}, bars)
