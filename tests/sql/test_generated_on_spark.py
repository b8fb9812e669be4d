"""Generated queries on Spark, many in one flow: bounded, and live in batches cut at random, with the answers of DuckDB and its like."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.local.net_table import NetTable
from penstock.testing import run_spark
from tests.sql import timed
from tests.sql.generator import DUCK_TYPES, SCHEMAS, TYPES, Generator, rows
from tests.sql.oracle import answered, multiset, oracle
from tests.sql.test_generated import FEATURES, is_nothing
from tests.sql.test_timed import tables as timed_tables

SEED = 20260503


class StatementSet:
    """Queries of both generators over their rows, as one flow, so that Spark plans and runs them together."""

    def __init__(self, seed: int, many: int) -> None:
        self.chance = chance = random.Random(seed)
        plain = {table: rows(table, chance, 40) for table in SCHEMAS}
        self.data: dict[str, list[Any]] = {**plain, **timed.rows(chance, 40)}
        self.duck = oracle({t: ([(c, DUCK_TYPES[k]) for c, k in SCHEMAS[t]], plain[t]) for t in SCHEMAS})
        self.known = timed.Oracle({t: self.data[t] for t in timed.SCHEMAS})
        self.plain = [Generator(chance, FEATURES).query() for _ in range(many)]
        self.timed = [timed.generated(chance, shape) for shape in timed.SHAPES]

    def flow(self) -> ps.Flow:
        """Every query into a sink of its own."""
        tables = timed_tables()
        for table, columns in SCHEMAS.items():
            schema = ", ".join(f"{c} {TYPES[k]}" for c, k in columns)
            tables[table] = tables["events"].flow.source(table, ps.items([], schema))
        texts = [*self.plain, *(query.text for query in self.timed)]
        sinks = {f"out{at}": ps.console() for at in range(len(texts))}
        return ps.sql_flow(
            ";".join(f"INSERT INTO out{at} {text}" for at, text in enumerate(texts)), {**tables, **sinks}
        )

    def answers(self) -> Iterator[tuple[str, Counter[Any]]]:
        """The queries with their answers."""
        yield from ((text, answered(self.duck, text)) for text in self.plain)
        yield from ((query.text, query.answer(self.known)) for query in self.timed)

    def check(self, spark: SparkSession, cuts: int) -> None:
        """Runs them, live with so many cuts, and compares."""
        flow = self.flow()
        read = {source.name: self.data[source.name] for source in flow.graph.sources}
        places = {name: sorted(self.chance.choices(range(len(data)), k=cuts)) for name, data in read.items()}
        results = run_spark(flow, spark, read, cuts=places if cuts else None)
        for at, (text, wanted) in enumerate(self.answers()):
            net = NetTable.of(flow.graph, f"out{at}")
            net.take(results[f"out{at}"])
            got = multiset(net.rows())
            assert got == wanted or (not got and is_nothing(wanted)), (text, got - wanted, wanted - got)


@pytest.mark.spark
def test_generated_queries_answer_alike_on_spark(compiled_spark: SparkSession) -> None:
    StatementSet(SEED, 24).check(compiled_spark, cuts=0)


@pytest.mark.spark
def test_generated_queries_answer_alike_live(penstock_spark: SparkSession) -> None:
    StatementSet(SEED + 1, 8).check(penstock_spark, cuts=2)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_many_generated_queries_answer_alike_live(part: int, penstock_spark: SparkSession) -> None:
    StatementSet(SEED + 100 + part, 15).check(penstock_spark, cuts=3)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_many_generated_queries_answer_alike_bounded(part: int, penstock_spark: SparkSession) -> None:
    StatementSet(SEED + 200 + part, 40).check(penstock_spark, cuts=0)
