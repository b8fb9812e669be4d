"""Queries over time that a grammar makes, over rows that come out of order: whole, in batches cut at random, and by the reading of the graph, each with the answer from elsewhere."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest

import penstock as ps
from penstock.local.net_table import NetTable
from penstock.testing import BARRIER, run_local
from tests.breadth import some_now
from tests.sql.oracle import multiset
from tests.sql.timed import LATENESS, SCHEMAS, SECONDS, SHAPES, TIMES, Oracle, Rows, at, generated, rows

MANY, ROWS, SEED = 12, 40, 20261118
"""Queries of each shape, and rows of the larger table."""


def tables() -> dict[str, ps.Stream]:
    """The tables as streams of a new flow, with their event times."""
    flow = ps.Flow("timed")
    return {
        name: flow.source(name, ps.items([], schema), event_time=TIMES[name], lateness=LATENESS)
        for name, schema in SCHEMAS.items()
    }


def cut(data: list[Any], chance: random.Random) -> list[Any]:
    """Rows in another order, in batches."""
    mixed = chance.sample(data, len(data))
    return [each for row in mixed for each in ((BARRIER, row) if chance.random() < 0.2 else (row,))]


def standing(flow: ps.Flow, inputs: Rows, *, oracle: bool = False) -> Any:
    """The rows that stand at the end."""
    net = NetTable.of(flow.graph, "result")
    net.take(run_local(flow, inputs, oracle=oracle)["result"])
    return multiset(net.rows())


@pytest.mark.parametrize("part", some_now(range(3), 1))
@pytest.mark.parametrize("shape", SHAPES)
def test_generated_queries_over_time(shape: str, part: int) -> None:
    chance = random.Random(f"{SEED} {shape} {part}")
    answers = 0
    for _ in range(MANY):
        data = rows(chance, ROWS)
        query = generated(chance, shape)
        wanted = query.answer(Oracle(data))
        flow = ps.sql_flow(query.text, tables())
        read = {source.name: data[source.name] for source in flow.graph.sources}
        live = {name: cut(given, chance) for name, given in read.items()}
        for way, inputs, oracle in (("batch", read, False), ("live", live, False), ("oracle", read, True)):
            found = standing(flow, inputs, oracle=oracle)
            assert found == wanted, (way, query.text, found - wanted, wanted - found)
        answers += bool(wanted)
    assert answers > MANY // 2, "most queries have an answer"


def batches(chance: random.Random, data: list[Any]) -> list[list[Any]]:
    """Rows in any order, in batches."""
    made: list[list[Any]] = [[]]
    for row in chance.sample(data, len(data)):
        if chance.random() < 0.2:
            made.append([])
        made[-1].append(row)
    return [batch for batch in made if batch]


def in_time(cut_rows: list[list[Any]], size: int, lateness: int) -> list[Any]:
    """The rows that are not too late: when their batch began, time had not passed the end of their window. It moves at the end of the batch after the one that brings it."""
    kept, highs = [], [at(-SECONDS), at(-SECONDS)]
    for batch in cut_rows:
        mark = highs[-2] - datetime.timedelta(seconds=lateness)
        kept += [row for row in batch if at(int((row[-1] - at(0)).total_seconds()) // size * size + size) > mark]
        highs.append(max([highs[-1], *(row[-1] for row in batch)]))
    return kept


@pytest.mark.parametrize("seed", range(12))
def test_rows_of_windows_that_have_ended_are_left_out_and_no_others(seed: int) -> None:
    chance = random.Random(SEED + seed)
    size, lateness = chance.choice((5, 10, 30)), chance.choice((0, 7, 60))
    cut_rows = batches(chance, rows(chance, ROWS)["events"])
    kept = in_time(cut_rows, size, lateness)
    table = f"CREATE TABLE events ({SCHEMAS['events'].replace('timestamp', 'TIMESTAMP_LTZ(3)')}, WATERMARK FOR ts AS ts - INTERVAL '{lateness}' SECOND)"
    text = f"""{table} WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');
        SELECT k, window_start, count(*) AS n, sum(v) AS s FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '{size}' SECOND))
        GROUP BY k, window_start, window_end"""
    flow = ps.sql_flow(text)
    live = [each for batch in cut_rows for each in (*batch, BARRIER)]
    assert len(kept) < ROWS or lateness, "without lateness some rows are late"
    assert standing(flow, {"events": live}) == standing(flow, {"events": kept})
