"""rules-many: ten thousand rules over one stream against ten, on the local host and on Spark.

    penstock bench rules-many

Half of the rules ask for one card and a least amount, half for a range of merchants in one country; each of them finds a few records. The same
records go through both sets, which are built before the time is taken.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, best, folder, spark_session
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph
from penstock.graph.rules import Rule
from penstock.testing import run_local

NAME = "rules-many"
ABOUT = "10,000 rules of equality and ranges: at most 5 times the time of 10 rules"
FEW, MANY = 10, 10_000
SCHEMA = "card string, amount int, merchant int, country string"
CARDS, MERCHANTS, COUNTRIES = 100_000, 1_000_000, 50


def rules(many: int) -> list[Rule]:
    """Rules of two kinds in turns."""
    rolled = random.Random(5)
    return [_rule(at, rolled) for at in range(many)]


def _rule(at: int, rolled: random.Random) -> Rule:
    if at % 2:
        when = f"card = 'c{rolled.randrange(CARDS)}' and amount > {rolled.randrange(1_000)}"
    else:
        low = rolled.randrange(MERCHANTS)
        when = f"merchant >= {low} and merchant < {low + 100} and country = 'C{rolled.randrange(COUNTRIES)}'"
    return ps.rule(f"r{at}", when, ps.action.emit("hits", "card", "amount", rule=ps.lit(f"r{at}")))


def records(many: int) -> list[tuple[str, int, int, str]]:
    """Payments."""
    roll = random.Random(1).randrange
    return [(f"c{roll(CARDS)}", roll(1_000), roll(MERCHANTS), f"C{roll(COUNTRIES)}") for _ in range(many)]


def local(many: int, given: list[tuple[str, int, int, str]]) -> Callable[[], object]:
    """A run on the local host."""
    flow = ps.Flow("many")
    flow.source("payments", ps.items([], SCHEMA)).rules("all", rules(many)).hits.sink("out", ps.console())
    return lambda: run_local(flow, {"payments": given})


def graph(path: str, many: int) -> Graph:
    """The flow on Spark."""
    flow = ps.Flow("many")
    flow.source("payments", ps.files(path, "parquet", SCHEMA)).rules("all", rules(many)).hits.sink("out", nothing())
    return flow.graph


def run(quick: bool = False) -> Result:
    """Measures both hosts."""
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_bounded

    given, copies = records(50_000 if quick else 200_000), 2 if quick else 10
    taken = best(alternate({"few": local(FEW, given), "many": local(MANY, given)}, rounds=3))
    spark = spark_session()
    options = RunSpec(by_value=(__name__,))
    with folder() as directory:
        path = f"{directory}/payments"
        frame = spark.createDataFrame(given, SCHEMA)
        frame.crossJoin(spark.range(copies)).drop("id").repartition(4).write.parquet(path)
        graphs = {f"spark_{name}": graph(path, many) for name, many in (("few", FEW), ("many", MANY))}
        runs = {name: partial(run_bounded, made, spark, options) for name, made in graphs.items()}
        taken |= best(alternate(runs, rounds=3))
    figures = {f"{name}_seconds": seconds for name, seconds in taken.items()}
    bars = (
        Bar("10,000 rules over 10, local", taken["many"] / taken["few"], at_most=5),
        Bar("10,000 rules over 10, Spark", taken["spark_many"] / taken["spark_few"], at_most=5),
    )
    return Result(NAME, {"records": len(given), "spark_records": len(given) * copies, **figures}, bars)
