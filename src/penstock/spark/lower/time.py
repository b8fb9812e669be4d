"""Event time as DataFrames: the timestamp of each record, and how far time has come."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as f

from penstock.errors import RunError
from penstock.graph import types as t
from penstock.graph.nodes import BAD, BatchTime, EventTime, Port
from penstock.graph.types import quote
from penstock.spark.lower.context import Lowering
from penstock.spark.lower.sql import to_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOG_PARTITIONS = 20
"""Partitions are distinguished up to two to this power. A sketch is as large as the partitions in it need."""
_ENTRY, _EMPTY = struct.Struct("<QdB"), 4


def event_time(at: Lowering, node: EventTime) -> None:
    """Bad records apart; of the others Spark notes the latest time while they pass."""
    time = f"cast({to_sql(node.time)} as timestamp)"
    latest = _latest(at.times[node.name].now, node.max_lead)
    punctual = f"coalesce(unix_micros({time}) <= {latest}L, false)"
    good = f"({time} is not null)" if node.of_table else punctual
    observation = Observation()
    seen = at.input(node).observe(
        observation, f.expr(f"count_if(not {good}) as bad"), f.expr(_highs(at, node, time, punctual))
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


def _highs(at: Lowering, node: EventTime, time: str, good: str) -> str:
    """The latest good time: of all, or of each partition in a sketch, which is exact as long as it has room for all."""
    if not node.partition:
        return f"max(case when {good} then unix_micros({time}) end) as high"
    key = f"case when {good} then {_partition_key(at, node)} end"
    return f"tuple_sketch_agg_double({key}, cast(unix_micros({time}) as double), {_LOG_PARTITIONS}, 'max') as highs"


def _partition_key(at: Lowering, node: EventTime) -> str:
    """What a partition is known by: a number or a text; null is a partition like any other."""
    name = quote(node.partition)
    if at.plan.graph.output(node.inputs[0]).schema.field(node.partition).type in t.INTEGERS:
        return f"coalesce(cast({name} as bigint), {-(1 << 63) + 1}L - 1L)"
    return f"coalesce(concat('=', cast({name} as string)), 'null')"


def noted(observation: Observation) -> dict[str, Any]:
    """What Spark has noted while rows passed; nothing where it has left them out, because no answer depends on them."""
    row: Any = observation._jo.getRow()  # type: ignore[union-attr]  # it is there once the frame is observed
    return observation.get if row.length() else {}


def observed(observation: Observation) -> tuple[dict[str, int], int]:
    """The latest time of each partition with records, and how many records were bad."""
    found = noted(observation)
    if not found:
        return {}, 0
    if "highs" in found:
        return partition_highs(bytes(found["highs"])), found["bad"]
    return {} if found["high"] is None else {"": found["high"]}, found["bad"]


def partition_highs(sketch: bytes) -> dict[str, int]:
    """The latest time of each partition in a tuple sketch of DataSketches: entries of a hash, a number and a mode after the preamble.

    The hash has 63 bits, and stands for the partition from batch to batch.

    >>> partition_highs(bytes.fromhex("01030901000ecc93"))
    {}
    >>> partition_highs(bytes.fromhex("01030901000acc93e56b61eec8804420880179609028184302"))
    {'204480c8ee616be5': 1700000000000098}
    """
    if sketch[0] > 2:
        raise RunError(f"an input has more partitions with a time of their own than {1 << _LOG_PARTITIONS:,}")
    if sketch[5] & _EMPTY:
        return {}
    return {f"{key:x}": int(high) for key, high, _ in _ENTRY.iter_unpack(sketch[8 * sketch[0] :])}


def batch_time(at: Lowering, node: BatchTime) -> None:
    """The processing time of the batch as a column."""
    now = f"timestamp_micros({at.times[node.name].now}L) as {quote(node.into)}"
    at.give(Port(node.name), at.input(node).selectExpr("*", now))
