"""Event time as DataFrames: the timestamp of each record, and how far time has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as f

from penstock.graph import types as t
from penstock.graph.nodes import BAD, EventTime, Port
from penstock.graph.types import quote
from penstock.spark.lower.context import Lowering
from penstock.spark.lower.sql import to_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BUCKETS = 64
"""Partitions are distinguished up to this many; beyond, some share a mark."""


def event_time(at: Lowering, node: EventTime) -> None:
    """Bad records apart; of the others Spark notes the latest time while they pass."""
    time = f"cast({to_sql(node.time)} as timestamp)"
    latest = _latest(at.times[node.name].now, node.max_lead)
    punctual = f"coalesce(unix_micros({time}) <= {latest}L, false)"
    good = f"({time} is not null)" if node.of_table else punctual
    observation = Observation()
    seen = at.input(node).observe(
        observation, *map(f.expr, [f"count_if(not {good}) as bad", *_highs(at, node, time, punctual)])
    )
    at.observed[node.name] = observation
    at.give(Port(node.name), _good(seen, node, time, good))
    if at.plan.graph.readers(Port(node.name, BAD)):
        at.give(Port(node.name, BAD), at.input(node).where(f"not {good}"))


def _latest(now: int, max_lead: int) -> int:
    """The latest good time, in steps: a number that is new in each batch would have Spark generate new code each time.

    >>> _latest(1000, 240), _latest(1009, 240)
    (1240, 1250)
    """
    step = max(1, max_lead // 24)
    return -(-(now + max_lead) // step) * step


def _good(frame: DataFrame, node: EventTime, time: str, good: str) -> DataFrame:
    names = node.output().schema.names
    columns = [f"{time} as {quote(n)}" if n == node.column else quote(n) for n in names]
    return frame.where(good).selectExpr(*columns)


def _highs(at: Lowering, node: EventTime, time: str, good: str) -> list[str]:
    """The latest good time: of all, or of each bucket of partitions."""
    high = f"max(case when {good} then unix_micros({time}) end)"
    if not node.partition:
        return [f"{high} as high"]
    name = quote(node.partition)
    whole = at.plan.graph.output(node.inputs[0]).schema.field(node.partition).type in t.INTEGERS
    bucket = f"pmod({name if whole else f'hash({name})'}, {BUCKETS})"
    return [f"max(case when {good} and {bucket} = {i} then unix_micros({time}) end) as high{i}" for i in range(BUCKETS)]


def observed(observation: Observation) -> tuple[dict[str, int], int]:
    """The latest time of each partition with records, and how many records were bad."""
    found = observation.get
    return {k.removeprefix("high"): v for k, v in found.items() if k != "bad" and v is not None}, found["bad"]
