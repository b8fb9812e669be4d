"""Queries that a grammar makes, each answered four ways: by DuckDB, in one batch, in batches cut at random, and by the reading of the graph itself."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import penstock as ps
from penstock.local.net_table import NetTable
from penstock.testing import BARRIER, run_local
from tests.breadth import some_now
from tests.sql.generator import DUCK_TYPES, SCHEMAS, SHAPES, TYPES, Generator, rows
from tests.sql.oracle import answered, multiset, oracle

MANY, PARTS = 2000, 8
FEATURES = (*SHAPES, "subquery")
"""What is generated."""
ROWS = 24
SEED = 20260502


def cut(data: list[tuple[object, ...]], chance: random.Random) -> list[Any]:
    """Rows in batches."""
    made: list[Any] = []
    for row in data:
        made += [BARRIER, row] if chance.random() < 0.2 else [row]
    return made


def is_nothing(wanted: Counter[Any]) -> bool:
    """Whether an answer is the one row of totals over nothing, which a stream does not emit before the first record."""
    return list(wanted.values()) == [1] and all(value in (0, None) for row in wanted for value in row)


@pytest.mark.parametrize("part", some_now(range(PARTS), 2))
def test_generated_queries_answer_as_duckdb_does(part: int) -> None:
    chance = random.Random(SEED + part)
    data = {table: rows(table, chance, ROWS) for table in SCHEMAS}
    schemas = {table: ", ".join(f"{c} {TYPES[k]}" for c, k in columns) for table, columns in SCHEMAS.items()}
    duck = oracle({t: ([(c, DUCK_TYPES[k]) for c, k in SCHEMAS[t]], data[t]) for t in SCHEMAS})
    compared = 0
    for _ in range(MANY // PARTS):
        query = Generator(chance, FEATURES).query()
        wanted = answered(duck, query)
        flow = ps.sql_flow(query, {t: ps.items([], schemas[t]) for t in SCHEMAS})
        read = {source.name: data[source.name] for source in flow.graph.sources}
        live = {name: cut(given, chance) for name, given in read.items()}
        for way, inputs, direct in (("batch", read, False), ("live", live, False), ("oracle", read, True)):
            found = multiset(run_local(flow, inputs, oracle=direct)["result"] if way != "live" else final(flow, inputs))
            assert found == wanted or (not found and is_nothing(wanted)), (way, query, found - wanted, wanted - found)
        compared += bool(wanted)
    assert compared > MANY // PARTS // 3, "most queries have an answer"


def final(flow: ps.Flow, inputs: dict[str, list[Any]]) -> list[Any]:
    """The rows that stand at the end of a live run."""
    found, net = run_local(flow, inputs)["result"], NetTable.of(flow.graph, "result")
    net.take(found)
    return net.rows()
